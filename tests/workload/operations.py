"""Events of a controller: operations as data, each drawn from its own seed.

An operation names brokers and topics from fixed, small pools; what hangs on the state (epochs, an
ISR, what a broker has learned) is looked up when it is played. So any of them can be left out, and
the others still mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

BROKERS = (1, 2, 3, 4, 5, 6)
TOPICS = ("t0", "t1", "t2", "t3", "t4")
PARTITIONS_MAX = 4
DIRECTORIES = 2
LONGEST_WAIT_MS = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation; its number also names its chance.

    Units:  at_ms is the time from the beginning; where it is past, the operation follows at once.
    """

    number: int
    kind: str
    at_ms: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The operation in one line."""
        given = [f"{name}={_short(value)}" for name, value in self.arguments.items()]
        when = [f"at={self.at_ms}ms"] if self.at_ms else []
        return " ".join([f"#{self.number}", self.kind, *given, *when])


def groups(operation: Operation) -> Iterator[Hashable]:
    """Whom an operation is about, for the shrinker."""
    for name in ("broker", "topic"):
        if name in operation.arguments:
            yield name, operation.arguments[name]


def simpler(operation: Operation) -> Iterator[Operation]:
    """Simpler forms of an operation, the simplest first: fewer things, an earlier or rounder time.

    All lists of replicas stay as long as each other; a list of one stays.
    """
    arguments = operation.arguments
    for smaller in _smaller(arguments):
        yield replace(operation, arguments={**arguments, **smaller})
    if operation.at_ms > 0:
        yield replace(operation, at_ms=0)
        for earlier in (operation.at_ms // 2, operation.at_ms // 1000 * 1000):
            if 0 < earlier < operation.at_ms:
                yield replace(operation, at_ms=earlier)


def _smaller(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    lists = arguments.get("assignments", ())
    if len(lists) > 1:
        yield {"assignments": lists[:1]}
        for n in range(len(lists)):
            yield {"assignments": (*lists[:n], *lists[n + 1 :])}
    for broker in dict.fromkeys(b for replicas in lists for b in replicas):
        fewer = tuple(tuple(b for b in replicas if b != broker) for replicas in lists)
        if all(fewer) and len({len(replicas) for replicas in fewer}) == 1:
            yield {"assignments": fewer}
    replicas = arguments.get("replicas", ())
    if len(replicas) > 1:
        for n in range(len(replicas)):
            yield {"replicas": (*replicas[:n], *replicas[n + 1 :])}
    for name in ("partitions", "factor"):
        if arguments.get(name, 1) != 1:
            yield {name: 1}
    for name in arguments.get("configs", ()):
        yield {"configs": {k: v for k, v in arguments["configs"].items() if k != name}}
    if arguments.get("more"):
        yield {"more": False}


def generate(seed: int, count: int) -> tuple[Operation, ...]:
    """The first operations of a seed: all brokers start, then anything goes."""
    first = [
        Operation(number=n, kind="start", arguments={"broker": broker, "clean": False})
        for n, broker in enumerate(BROKERS)
    ]
    beats = [Operation(number=len(first), kind="beat")]
    operations, now_ms = [*first, *beats], 0
    for number in range(len(operations), count):
        drawn, after_ms = one(seed, number)
        now_ms += after_ms
        operations.append(replace(drawn, at_ms=now_ms))
    return tuple(operations[:count])


def chance(seed: int, number: int, purpose: str = "") -> Random:
    """The chance of one operation; seeding with text does not depend on the process."""
    return Random(f"{seed}/{number}/{purpose}")


def one(seed: int, number: int) -> tuple[Operation, int]:
    """One operation, from its own seed, and how long after the one before it comes."""
    draw = chance(seed, number)
    kind = draw.choices(list(_KINDS), weights=[weight for weight, _ in _KINDS.values()])[0]
    arguments = _KINDS[kind][1](draw)
    after_ms = draw.randrange(600) if draw.random() < 0.8 else 0
    if kind == "wait":
        after_ms = draw.randrange(LONGEST_WAIT_MS)
    return Operation(number=number, kind=kind, arguments=arguments), after_ms


def _nothing(_: Random) -> dict[str, Any]:
    return {}


def _broker(draw: Random) -> dict[str, Any]:
    return {"broker": draw.choice(BROKERS)}


def _topic(draw: Random) -> dict[str, Any]:
    return {"topic": draw.choice(TOPICS)}


def _partition(draw: Random) -> dict[str, Any]:
    return _topic(draw) | {"partition": draw.randrange(PARTITIONS_MAX)}


def _start(draw: Random) -> dict[str, Any]:
    return _broker(draw) | {"clean": draw.random() < 0.7, "new_dirs": draw.random() < 0.3}


def _heartbeat(draw: Random) -> dict[str, Any]:
    return _broker(draw) | {
        "want_fence": draw.random() < 0.3,
        "behind": draw.choice((0, 0, 0, 1, 5, 100)),
        "stale": draw.random() < 0.1,
    }


def _directory(draw: Random) -> dict[str, Any]:
    return _broker(draw) | {"directory": draw.randrange(DIRECTORIES)}


def _cordon(draw: Random) -> dict[str, Any]:
    which = [n for n in range(DIRECTORIES) if draw.random() < 0.4]
    return _broker(draw) | {"directories": tuple(which)}


def _replicas(draw: Random) -> tuple[int, ...]:
    return tuple(draw.sample(BROKERS, draw.choice((1, 2, 2, 3, 3, 3, 4))))


def _alter(draw: Random) -> dict[str, Any]:
    stale = ("", "", "", "", "", "leader", "partition", "broker", "member", "sender")
    return _partition(draw) | {
        "mode": draw.choice(("all", "all", "all", "add", "drop", "drop", "alone", "mask")),
        "pick": draw.randrange(16),
        "version": draw.choice((3, 3, 3, 2, 1, 0)),
        "stale": draw.choice(stale),
        "recovery": draw.choice((0, 0, 0, 0, 0, 1)),
        "more": draw.random() < 0.3,
    }


def _create(draw: Random) -> dict[str, Any]:
    arguments = _topic(draw)
    if draw.random() < 0.5:
        factor = draw.choice((1, 2, 3, 3, 3, 4))
        lists = [
            tuple(draw.sample(BROKERS, factor)) for _ in range(draw.randint(1, PARTITIONS_MAX))
        ]
        arguments["assignments"] = tuple(lists)
    else:
        arguments["partitions"] = draw.choice((-1, 1, 2, 3, PARTITIONS_MAX))
        arguments["factor"] = draw.choice((-1, 1, 2, 3, 3, 4))
    configs: dict[str, str] = {}
    if draw.random() < 0.8:
        configs["min.insync.replicas"] = draw.choice("2233")
    if draw.random() < 0.3:
        configs["unclean.leader.election.enable"] = draw.choice(("true", "false"))
    return arguments | {"configs": configs, "validate_only": draw.random() < 0.05}


def _grow(draw: Random) -> dict[str, Any]:
    arguments = _topic(draw) | {"count": draw.randint(1, PARTITIONS_MAX)}
    if draw.random() < 0.4:
        arguments["replicas"] = _replicas(draw)
    return arguments


def _elect(draw: Random) -> dict[str, Any]:
    kind = {"unclean": draw.random() < 0.4}
    return kind if draw.random() < 0.4 else _partition(draw) | kind


def _reassign(draw: Random) -> dict[str, Any]:
    return _partition(draw) | {
        "replicas": _replicas(draw),
        "factor_may_change": draw.random() < 0.8,
    }


def _config(draw: Random) -> dict[str, Any]:
    name, values = draw.choice(
        (
            ("min.insync.replicas", ("1", "2", "2", "3", None, "x")),
            ("min.insync.replicas", ("1", "2", "2", "3", None, "x")),
            ("unclean.leader.election.enable", ("true", "false", "false", None)),
            ("retention.ms", ("1", "100", None)),
        )
    )
    where = draw.choice(("topic", "topic", "topic", "cluster", "broker"))
    owner = {"topic": _topic, "cluster": _nothing, "broker": _broker}[where](draw)
    return {"kind": where} | owner | {"name": name, "value": draw.choice(values)}


def _assign(draw: Random) -> dict[str, Any]:
    return _directory(draw) | _topic(draw) | {"stale": draw.random() < 0.1}


def _feature(draw: Random) -> dict[str, Any]:
    """Levels only go up: what turning ELR off leaves behind is promised nothing (3.6)."""
    if draw.random() < 0.5:
        return {"feature": "eligible.leader.replicas.version", "up": 1}
    return {"feature": "metadata.version", "up": draw.randint(1, 3)}


def _fail_over(draw: Random) -> dict[str, Any]:
    return {"loses_tail": draw.random() < 0.5}


_KINDS: Mapping[str, tuple[int, Callable[[Random], dict[str, Any]]]] = {
    "beat": (220, _nothing),
    "wait": (40, _nothing),
    "heartbeat": (50, _heartbeat),
    "start": (60, _start),
    "amend": (10, _broker),
    "stop": (15, _broker),
    "kill": (12, _broker),
    "mute": (15, _broker),
    "unmute": (20, _broker),
    "fail_directory": (20, _directory),
    "cordon": (15, _cordon),
    "alter_partition": (260, _alter),
    "create_topic": (60, _create),
    "delete_topic": (12, _topic),
    "create_partitions": (15, _grow),
    "elect_leaders": (30, _elect),
    "reassign": (60, _reassign),
    "cancel_reassignment": (15, _partition),
    "list_reassignments": (5, _nothing),
    "config": (60, _config),
    "unregister": (7, _broker),
    "assign_directories": (40, _assign),
    "feature": (2, _feature),
    "hold_commits": (6, _nothing),
    "commit": (25, _nothing),
    "fail_over": (10, _fail_over),
    "reload_standby": (5, _nothing),
}
"""Kinds of operations: how often, and what else is drawn."""


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ",".join(map(_short, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{v}" for k, v in value.items()) + "}"
    return str(value)
