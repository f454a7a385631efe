"""The actions that a step may name, with their arguments, as one table.

A fault that lasts is undone by ``lasting`` or by the action that reverses it. The same table
checks scenario files, describes the Python methods of the cluster, and is printed in the docs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from minicluster.durations import format_duration, parse_duration_ms
from minicluster.errors import instead
from minicluster.faults import Faults
from minicluster.protocol.api_keys import BY_NAME
from minicluster.rules import Rules
from minicluster.scenario.errors import ScenarioError
from minicluster.scenario.expression import Word
from minicluster.scenario.selectors import parse_at


class Kind(Enum):
    """What an argument holds."""

    TEXT = "text"
    COUNT = "a whole number, 0 or more"
    DURATION = "a duration with its unit, such as 10s"
    NODES = "a selector such as leader(orders-0), or a list of them"
    GROUPS = "a list of groups, each a selector or a list of them"
    APIS = "an API name such as Fetch, or a list of them"
    FLAG = "true or false"
    PROBABILITY = "a number from 0 to 1"
    CHOICE = "one of a few words"
    VALUE = "text or a number, or null to remove it"
    MAPPING = "names and values"
    PARTITIONS = "a partition such as orders-0, or a list of them"
    ASSIGNMENT = "a list of lists of broker ids"
    FAULT = "the id of a planted fault, such as Z01"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an action."""

    kind: Kind
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """One action: what it does, what it takes."""

    text: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)


_LINK = {
    "src": Argument(Kind.NODES, required=True),
    "dst": Argument(Kind.NODES, required=True),
    "api": Argument(Kind.APIS),
}
_LASTING = {"lasting": Argument(Kind.DURATION)}
_ADMIN = {
    "within": Argument(Kind.DURATION, default="30s"),
    "may_fail": Argument(Kind.FLAG, default=False),
}
_NODE = {"node": Argument(Kind.NODES, required=True)}

ACTIONS: Mapping[str, Action] = {
    "create_topic": Action(
        "Create a topic.",
        {
            "name": Argument(Kind.TEXT, required=True),
            "partitions": Argument(Kind.COUNT, default=1),
            "replicas": Argument(Kind.COUNT, default=3),
            "min_isr": Argument(Kind.COUNT),
            "unclean": Argument(Kind.FLAG),
            "assignment": Argument(Kind.ASSIGNMENT),
            "configs": Argument(Kind.MAPPING),
            **_ADMIN,
        },
    ),
    "delete_topic": Action(
        "Delete a topic.", {"name": Argument(Kind.TEXT, required=True), **_ADMIN}
    ),
    "recreate_topic": Action(
        "Delete a topic and create it with the same replicas and configs, under a new id.",
        {"name": Argument(Kind.TEXT, required=True), **_ADMIN},
    ),
    "add_partitions": Action(
        "Let a topic have more partitions (CreatePartitions).",
        {
            "name": Argument(Kind.TEXT, required=True),
            "total": Argument(Kind.COUNT, required=True),
            **_ADMIN,
        },
    ),
    "reassign": Action(
        "Move partitions to other replicas; null cancels (AlterPartitionReassignments).",
        {
            "partitions": Argument(Kind.PARTITIONS, required=True),
            "replicas": Argument(Kind.NODES, required=True),
            **_ADMIN,
        },
    ),
    "set_config": Action(
        "Set a config of a topic, of a broker or, with neither, of the cluster; null removes it.",
        {
            "topic": Argument(Kind.TEXT),
            "broker": Argument(Kind.NODES),
            "key": Argument(Kind.TEXT, required=True),
            "value": Argument(Kind.VALUE),
            **_ADMIN,
        },
    ),
    "produce": Action(
        "Produce records: a count of them, or at a rate per second for a while.",
        {
            "topic": Argument(Kind.TEXT, required=True),
            "partition": Argument(Kind.COUNT, default=0),
            "count": Argument(Kind.COUNT),
            "rate": Argument(Kind.COUNT),
            "acks": Argument(Kind.CHOICE, default="all", choices=("0", "1", "all")),
            "idempotent": Argument(Kind.FLAG, default=False),
            **_LASTING,
        },
    ),
    "cut": Action(
        "Lose what src sends to dst; both directions with both: true; only some APIs with api.",
        {**_LINK, "both": Argument(Kind.FLAG, default=False), **_LASTING},
    ),
    "partition": Action(
        "Lose everything between groups of nodes; one-way (earlier to later) if not symmetric.",
        {
            "groups": Argument(Kind.GROUPS, required=True),
            "symmetric": Argument(Kind.FLAG, default=True),
            **_LASTING,
        },
    ),
    "isolate": Action("Cut nodes off from all others.", {**_NODE, **_LASTING}),
    "heal": Action(
        "Remove network faults: all of them, or those of one link.",
        {"src": Argument(Kind.NODES), "dst": Argument(Kind.NODES)},
    ),
    "delay": Action(
        "Deliver late what src sends to dst, min plus an exponential draw that makes up the mean.",
        {
            **_LINK,
            "mean": Argument(Kind.DURATION, required=True),
            "min": Argument(Kind.DURATION),
            **_LASTING,
        },
    ),
    "loss": Action(
        "Lose some of what src sends to dst.",
        {**_LINK, "p": Argument(Kind.PROBABILITY, required=True), **_LASTING},
    ),
    "duplicate": Action(
        "Deliver some of what src sends to dst twice.",
        {**_LINK, "p": Argument(Kind.PROBABILITY, required=True), **_LASTING},
    ),
    "reorder": Action(
        "Let some of what src sends to dst be overtaken.",
        {**_LINK, "p": Argument(Kind.PROBABILITY, required=True), **_LASTING},
    ),
    "hold": Action("Keep what src sends to dst until release.", _LINK),
    "release": Action("Deliver what was held, in its order, and hold no more.", _LINK),
    "pause": Action("Stop a node's steps; its messages wait (SIGSTOP).", {**_NODE, **_LASTING}),
    "resume": Action("Let a paused node go on (SIGCONT).", _NODE),
    "kill": Action(
        "Stop a node at once (SIGKILL); optionally lose what it had not flushed, or everything.",
        {
            **_NODE,
            "lose_tail": Argument(
                Kind.CHOICE, default="none", choices=("none", "unflushed", "all")
            ),
        },
    ),
    "restart": Action("Start a node again, as a new incarnation.", _NODE),
    "bounce": Action(
        "Kill a node and start it again after a while.",
        {
            **_NODE,
            "down": Argument(Kind.DURATION, default="1s"),
            "lose_tail": Argument(
                Kind.CHOICE, default="none", choices=("none", "unflushed", "all")
            ),
        },
    ),
    "wipe": Action("Give a node an empty disk; one that runs is killed first.", _NODE),
    "fail_over": Action(
        "Kill the active controller; start it again when another has taken over.",
        {"within": Argument(Kind.DURATION, default="30s")},
    ),
    "resign": Action(
        "Let the active controller give up its epoch.",
        {"node": Argument(Kind.NODES, default="active_controller()")},
    ),
    "snapshot": Action("Let a controller write a snapshot of what is committed (KIP-630).", _NODE),
    "compact": Action(
        "Let a controller drop its log before its newest snapshot; who lags must load that.", _NODE
    ),
    "upgrade_kraft_version": Action(
        "Raise kraft.version to 1, so that voters can change (UpdateFeatures).", _ADMIN
    ),
    "add_voter": Action(
        "Let a controller that only observes vote (KIP-853; config kraft.version: 1).",
        {**_NODE, **_ADMIN},
    ),
    "remove_voter": Action("Let a voter only observe from now on.", {**_NODE, **_ADMIN}),
    "slow_disk": Action(
        "Let each write of a controller to its metadata log take a while; 0s ends it.",
        {**_NODE, "delay": Argument(Kind.DURATION, required=True), **_LASTING},
    ),
    "flush_off": Action(
        "Let a disk flush nothing and say that it did, or flush again with off: true.",
        {**_NODE, "off": Argument(Kind.FLAG, default=False)},
    ),
    "controlled_shutdown": Action("Ask a broker to hand over and stop (SIGTERM).", _NODE),
    "elect": Action(
        "Elect leaders (ElectLeaders).",
        {
            "type": Argument(Kind.CHOICE, default="PREFERRED", choices=("PREFERRED", "UNCLEAN")),
            "partitions": Argument(Kind.PARTITIONS, required=True),
            **_ADMIN,
        },
    ),
    "unregister": Action(
        "Remove the registration of a broker that is down (UnregisterBroker).",
        {"broker": Argument(Kind.NODES, required=True), **_ADMIN},
    ),
    "publish_delay": Action(
        "Let brokers see committed metadata late; 0s ends it.",
        {
            "broker": Argument(Kind.NODES, required=True),
            "delay": Argument(Kind.DURATION, required=True),
            **_LASTING,
        },
    ),
    "fail_dir": Action(
        "Break a log directory of a broker, counted from 0 (config log.dirs says how many). "
        "Without another, or if metadata.log.dir names it, the broker halts.",
        {
            "broker": Argument(Kind.NODES, required=True),
            "dir": Argument(Kind.COUNT, default=0),
        },
    ),
    "repair_dir": Action(
        "Mend a log directory; a broker notices when it starts again.",
        {
            "broker": Argument(Kind.NODES, required=True),
            "dir": Argument(Kind.COUNT, default=0),
        },
    ),
    "mutate": Action(
        "Plant a fault from here on, or take it out again with off: true.",
        {
            "fault": Argument(Kind.FAULT, required=True),
            "off": Argument(Kind.FLAG, default=False),
        },
    ),
    "wait": Action("Do nothing; use with after."),
    "liveness": Action(
        "Undo every fault, start every node, and wait until the cluster has converged.",
        {"bound": Argument(Kind.DURATION, default="60s")},
    ),
}

_OF_THE_KIPS = ("AlterIsr", "AlterReplicaState")  # never shipped: in no registry


def check_api_names(names: Iterable[str], where: str) -> None:
    """Refuse a name that is no API: a fault that is narrowed to it would hit nothing.

    Errors:  ScenarioError with the name that was meant, if one is near.
    """
    known = (*BY_NAME, *_OF_THE_KIPS)
    for name in names:
        if name not in known:
            what = instead(
                name.removesuffix("Request"), known, "write one such as Fetch or Produce"
            )
            raise ScenarioError(f"{where}: {name!r} is no API; {what}")


def checked_arguments(action: str, given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Check an action's arguments and fill in its defaults.

    Shapes:  durations come out in milliseconds, under the same name; selectors stay text.
    Errors:  ScenarioError naming the step, the argument and what it takes.
    """
    if action not in ACTIONS:
        raise ScenarioError(f"{where}: {action!r} is no action; {instead(action, ACTIONS)}")
    declared = ACTIONS[action].arguments
    for name in given:
        if name not in declared:
            what = instead(name, declared, f"it takes {', '.join(declared) or 'nothing'}")
            raise ScenarioError(f"{where}: {action} has no argument {name!r}; {what}")
    found = {}
    for name, argument in declared.items():
        value = given.get(name)
        if value is None:
            if argument.required and name not in given:
                raise ScenarioError(f"{where}: {action} needs {name!r}: {argument.kind.value}")
            value = argument.default
        if value is not None:
            value = _checked(argument, value, f"{where}: {name}")
        if value is not None or name in given:
            found[name] = value
    return found


def _checked(argument: Argument, value: Any, where: str) -> Any:
    bad = ScenarioError(f"{where}: {value!r} is not {argument.kind.value}")
    match argument.kind:
        case Kind.TEXT:
            if not isinstance(value, str | int) or isinstance(value, bool):
                raise bad
            return str(value)
        case Kind.COUNT:
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise bad
            return value
        case Kind.DURATION:
            return parse_duration_ms(value, what=where)
        case Kind.FLAG:
            if not isinstance(value, bool):
                raise bad
            return value
        case Kind.PROBABILITY:
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise bad
            return float(value)
        case Kind.CHOICE:
            word = str(value)
            if word not in argument.choices:
                raise ScenarioError(
                    f"{where}: {word!r} is not one of {', '.join(argument.choices)}"
                )
            return word
        case Kind.FAULT:
            if value not in Faults.switches():
                if value in Rules.zoo():
                    why = "is a bug of Kafka's own: it is there from the start; name it in faults"
                else:
                    why = f"is no planted fault; known: {', '.join(sorted(Faults.switches()))}"
                raise ScenarioError(f"{where}: {value!r} {why}")
            return value
        case _:
            return _checked_list(argument.kind, value, where, bad)


def _checked_list(kind: Kind, value: Any, where: str, bad: ScenarioError) -> Any:
    match kind:
        case Kind.NODES:
            for selector in value if isinstance(value, list) else [value]:
                if isinstance(selector, bool) or not isinstance(selector, str | int):
                    raise bad
                parse_at(str(selector), where)
            return value
        case Kind.GROUPS:
            if not isinstance(value, list) or len(value) < 2:
                raise ScenarioError(f"{where}: give at least two groups, as a list")
            for group in value:
                _checked_list(Kind.NODES, group, where, bad)
            return value
        case Kind.APIS:
            names = value if isinstance(value, list) else [value]
            if not all(isinstance(name, str) and name for name in names):
                raise bad
            check_api_names(names, where)
            return names
        case Kind.PARTITIONS:
            names = value if isinstance(value, list) else [value]
            for name in names:
                if not isinstance(name, str):
                    raise bad
                word = parse_at(name, where)
                if not isinstance(word, Word) or not word.is_partition:
                    raise bad
            return names
        case Kind.MAPPING:
            if not isinstance(value, dict):
                raise bad
            return {
                str(name): None if v is None else _checked_list(Kind.VALUE, v, where, bad)
                for name, v in value.items()
            }
        case Kind.ASSIGNMENT:
            if not isinstance(value, list) or not all(isinstance(v, list) for v in value):
                raise bad
            return value
    if isinstance(value, list | dict):
        raise bad
    return str(value).lower() if isinstance(value, bool) else str(value)  # as Kafka writes them


def written(action: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as a person writes them: durations with units, defaults left out."""
    declared = ACTIONS[action].arguments
    found = {}
    for name, value in arguments.items():
        argument = declared[name]
        if argument.kind is Kind.DURATION and value is not None:
            default = argument.default
            if default is not None and parse_duration_ms(default) == value:
                continue
            value = format_duration(value)
        elif value == argument.default and not argument.required:
            continue
        found[name] = value
    return found
