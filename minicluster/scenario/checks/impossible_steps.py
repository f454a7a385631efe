"""Steps that a cluster of a file's shape can never do, whatever happens in the run.

A step that ``may_fail`` may ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from minicluster.configs.dynamic_broker import check_by_itself
from minicluster.errors import UserError
from minicluster.protocol.api_keys import BY_NAME
from minicluster.protocol.topics import invalid_name_reason
from minicluster.protocol.versions import parse_versions
from minicluster.scenario.actions.action import Action, arguments_of
from minicluster.scenario.actions.answers import CloseConnections, DropResponses, Respond
from minicluster.scenario.actions.arguments import Selector
from minicluster.scenario.actions.network import Delay
from minicluster.scenario.actions.nodes import (
    AddVoter,
    Compact,
    FailDir,
    RemoveVoter,
    RepairDir,
    Resign,
    SlowDisk,
    Snapshot,
    UpgradeKraftVersion,
)
from minicluster.scenario.actions.topics import CreateTopic, SetConfig, Unregister
from minicluster.scenario.checks.selectors_and_conditions import Shape
from minicluster.scenario.document import Path
from minicluster.scenario.expression import Call, Expression, Nodes, Word
from minicluster.scenario.scenario import FIRST_CONTROLLER, Scenario, Step
from minicluster.values import Value

_LOG_DIRS = "log.dirs"
_OF_BROKERS = ("broker", "leader", "follower", "followers", "replicas", "isr", "rack")
_OF_KRAFT = (
    AddVoter,
    Compact,
    RemoveVoter,
    Resign,
    Snapshot,
    Unregister,
    UpgradeKraftVersion,
)


class OtherChecks(Value):
    """Checks of other rooms: the ids of rules, the readers of a cluster's and a topic's configs."""

    rules: Collection[str]
    read_config: Callable[[str, Any], object]
    read_topic_config: Callable[[str, Any], object]


def impossible(step: Step, scenario: Scenario, others: OtherChecks) -> Iterator[tuple[Path, str]]:
    """The steps that a cluster of this shape can never do, each with the place in it."""
    if step.action is None or step.may_fail:
        return
    if scenario.mode == "zookeeper" and isinstance(step.action, _OF_KRAFT):
        text = f"{step.action.method} is of KRaft, and this cluster is on ZooKeeper"
        yield ("do",), text
        return
    match step.action:
        case CreateTopic() as create:
            yield from _impossible_topic(create, scenario, others)
        case SetConfig() as change:
            if (bad := _bad_change(change, others)) is not None:
                yield ("key",), bad
        case Respond() | DropResponses() | CloseConnections() | Delay(src=None) as answer:
            yield from _never_sent(answer)
        case AddVoter() | RemoveVoter():
            if not _voters_change(step, scenario):
                yield ("do",), "voters change with kraft.version 1; upgrade_kraft_version before it"
        case FailDir() | RepairDir() as broken:
            count = len(str(scenario.config.get(_LOG_DIRS, "d0")).split(","))
            if broken.directory >= count:
                has = "1 log directory" if count == 1 else f"{count} log directories"
                yield (
                    ("directory",),
                    f"each broker has {has}, counted from 0; not {broken.directory}",
                )
        case SlowDisk() as slow:
            yield from _never_slow(slow, scenario)
        case Action() as link if {"src", "dst"} <= set(arguments_of(type(link))):
            shape = Shape.of(scenario)
            here = _only_node(getattr(link, "src", None), shape)
            if here is not None and here == _only_node(getattr(link, "dst", None), shape):
                yield ("dst",), f"node {here} has no network between itself and itself"
        case _:
            pass


def _impossible_topic(
    create: CreateTopic, scenario: Scenario, others: OtherChecks
) -> Iterator[tuple[Path, str]]:
    brokers = scenario.brokers
    if create.assignment is None and create.replicas_on(brokers) > brokers:
        text = f"{create.replicas} replicas need as many brokers; the cluster has {brokers}"
        yield ("replicas",), text
    named = {int(broker) for each in create.assignment or () for broker in each}  # type: ignore[arg-type]
    for broker in sorted(named - set(range(1, brokers + 1))):
        yield ("assignment",), f"there is no broker {broker}; brokers are 1 to {brokers}"
    if create.assignment is not None:
        yield from _impossible_assignment(create.assignment)
    if (reason := invalid_name_reason(str(create.name))) is not None:
        yield ("name",), f"no topic can have this name: {reason}"
    for name, value in (create.configs or {}).items():
        if (why := _bad_config(name, value, others)) is not None:
            yield ("configs", name), why


def _impossible_assignment(assignment: Iterable[Any]) -> Iterator[tuple[Path, str]]:
    partitions = [tuple(map(int, replicas)) for replicas in assignment]
    for replicas in partitions:
        repeated = next((each for each in replicas if replicas.count(each) > 1), None)
        if not replicas:
            text = "a partition needs a replica"
        elif repeated is not None:
            text = f"a partition has a replica on broker {repeated} once"
        elif len(replicas) != len(partitions[0]):
            text = (
                f"every partition has as many replicas as the first, which is {len(partitions[0])}"
            )
        else:
            continue
        yield ("assignment",), text
        return


def _bad_change(change: SetConfig, others: OtherChecks) -> str | None:
    """Why a config cannot be set; None where it can."""
    if change.topic is not None:
        return _bad_config(str(change.key), change.value, others)
    try:
        check_by_itself(change.key, change.value, per_broker=change.broker is not None)
    except UserError as error:
        return str(error)
    return None


def _bad_config(name: str, value: Any, others: OtherChecks) -> str | None:
    """Why a topic cannot have a config; None where it can."""
    try:
        others.read_topic_config(name, value)
    except UserError as error:
        return str(error)
    return None


def _never_sent(
    answer: Respond | DropResponses | CloseConnections | Delay,
) -> Iterator[tuple[Path, str]]:
    """Why no client sends a request that an answer is for."""
    for api in answer.api or ():
        if api not in BY_NAME:
            yield ("api",), f"no client sends {api}"
        elif answer.versions is not None:
            known = BY_NAME[api].request.valid_versions
            if not set(parse_versions(str(answer.versions))) & set(known):
                has = f"{known[0]} to {known[-1]}, none of {answer.versions}"
                yield ("versions",), f"versions: {api} has versions {has}"


def _voters_change(step: Step, scenario: Scenario) -> bool:
    """True if kraft.version may be 1 by this step."""
    before = scenario.steps[: step.number - 1]
    upgraded = any(isinstance(each.action, UpgradeKraftVersion) for each in before)
    return upgraded or str(scenario.config.get("kraft.version", 0)) != "0"


def _never_slow(slow: SlowDisk, scenario: Scenario) -> Iterator[tuple[Path, str]]:
    if scenario.mode == "zookeeper":
        why = "it slows controllers of KRaft, and this cluster is on ZooKeeper"
    elif all(
        isinstance(node, Selector) and _is_of_brokers(node.expression)
        if not isinstance(node, int)
        else node < FIRST_CONTROLLER
        for node in slow.node  # type: ignore[union-attr]
    ):
        why = "brokers do not wait for their disks; name controllers"
    else:
        return
    yield ("node",), f"slow_disk would change nothing: {why}"


def _is_of_brokers(expression: Expression) -> bool:
    """All nodes that an expression selects are brokers, whatever happens."""
    match expression:
        case Call(name, _, _):
            return name in _OF_BROKERS
        case Word(text):
            return text == "brokers" or (text.isdecimal() and int(text) < FIRST_CONTROLLER)
        case Nodes(members):
            return all(map(_is_of_brokers, members))
    return False


def _only_node(nodes: Any, shape: Shape) -> int | None:
    """The one node that an argument can select, None where it may be another or several."""
    names: set[int] = set()
    for node in nodes or ():
        possible = {node} if isinstance(node, int) else shape.nodes(node.expression)
        if possible is None:
            return None
        names |= possible
    return names.pop() if len(names) == 1 else None
