"""The table of the actions, and how a step of a scenario file becomes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.errors import UserError, instead
from minicluster.scenario.actions import access, answers, apps, clients, network, nodes, topics
from minicluster.scenario.actions.action import Action, arguments_of
from minicluster.scenario.checks.limits import shown
from minicluster.scenario.errors import ScenarioError

_ALL: tuple[type[Action], ...] = (
    topics.CreateTopic, topics.DeleteTopic, topics.RecreateTopic, topics.AddPartitions,
    topics.Reassign, topics.SetConfig, topics.Produce, clients.Consume, clients.Transaction,
    clients.Transform, apps.App, apps.Terminate,
    network.Cut, network.Partition,
    network.Isolate, network.Heal, network.Delay, network.Loss, network.Duplicate,
    network.Reorder, network.Hold, network.Release, network.Record, network.Replay,
    answers.Respond, answers.DropResponses, answers.CloseConnections,
    nodes.Pause, nodes.Resume, nodes.Kill,
    nodes.Restart, nodes.Bounce, nodes.Wipe, nodes.FailOver, nodes.Resign, nodes.Snapshot,
    nodes.Compact, nodes.UpgradeKraftVersion, nodes.AddVoter, nodes.RemoveVoter,
    nodes.SlowDisk, nodes.FlushOff, nodes.FlushOn, nodes.ControlledShutdown, topics.Elect,
    topics.DeleteRecords, topics.Unregister, access.Grant, access.Deny, access.Revoke,
    nodes.PublishDelay, nodes.ClockSkew, nodes.FailDir, nodes.RepairDir, nodes.Mutate, nodes.Wait,
    nodes.Liveness,
)  # fmt: skip

ACTIONS: Mapping[str, type[Action]] = {action.method: action for action in _ALL}
"""Every action by the name that a step and a method give it."""


def action_of(method: str, arguments: Mapping[str, Any], where: str) -> Action:
    """The action that a step names, with its arguments read.

    Errors:  ScenarioError naming the step, the argument and what it takes.
    """
    if method not in ACTIONS:
        raise ScenarioError(f"{where}: unknown action {shown(method)}; {instead(method, ACTIONS)}")
    action = ACTIONS[method]
    declared = arguments_of(action)
    for name in arguments:
        if name not in declared:
            hint = instead(name, declared, f"it takes {', '.join(declared) or 'nothing'}")
            raise ScenarioError(f"{where}: {method} has no argument {shown(name)}; {hint}")
    read = {}
    for name, argument in declared.items():
        if name not in arguments and argument.required:
            raise ScenarioError(f"{where}: {method} needs {name!r}: {argument.kind.text}")
        if name in arguments:
            try:
                read[name] = argument.read(arguments[name], f"{where}: {name}")
            except UserError as error:
                raise ScenarioError(str(error)) from None
    try:
        return action(**read)
    except UserError as error:  # arguments that do not go together
        raise ScenarioError(f"{where}: {error}") from None
