"""The kinds of arguments that an action has, from a scenario file and from a test alike.

An argument is read once: where an action is made. A duration is then milliseconds, a node an id or
a selector that has been parsed; reading what has been read changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeAlias, TypeVar, runtime_checkable
from uuid import UUID

from minicluster.durations import LONGEST_MS, format_duration, parse_duration_ms
from minicluster.errors import UserError, instead
from minicluster.faults import NO_FAULT, Faults
from minicluster.protocol.api_keys import BY_NAME
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.uuids import format_uuid, parse_uuid
from minicluster.rules import Rules
from minicluster.scenario.checks import limits
from minicluster.scenario.checks.limits import checked_text, shown, whole_number
from minicluster.scenario.expression import Expression, Word
from minicluster.scenario.selectors import parse_selector
from minicluster.values import dataclass

T = TypeVar("T")
_VERSIONS = re.compile(r"[0-9]{1,3}(\+|-[0-9]{1,3})?")
_PROGRAM = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@runtime_checkable
class HasId(Protocol):
    """A handle of a node."""

    @property
    def id(self) -> int:
        """The node's id."""


@runtime_checkable
class HasName(Protocol):
    """A handle of a topic."""

    @property
    def name(self) -> str:
        """The topic's name."""


@runtime_checkable
class HasClientId(Protocol):
    """A handle of one of Kafka's clients."""

    @property
    def client_id(self) -> str:
        """Its ``client.id``."""


@runtime_checkable
class OfTopic(Protocol):
    """A handle of a partition."""

    @property
    def topic(self) -> str:
        """The name of its topic."""

    @property
    def index(self) -> int:
        """The partition's number."""


@runtime_checkable
class Span(Protocol):
    """A ``timedelta``."""

    def total_seconds(self) -> float:
        """The whole duration."""


class Milliseconds(int):
    """A duration that has been read."""


@dataclass(frozen=True, slots=True)
class Selector:
    """Nodes by their role, looked up when the action is carried out."""

    text: str
    expression: Expression

    @classmethod
    def read(cls, text: str, where: str) -> Selector:
        return cls(text, parse_selector(text, where))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of argument: its name and text for people, and how it is read and written.

    Arguments:  read(value, where) -> what the action holds, or UserError that begins with where;
                written(what the action holds) -> what a scenario file has; choices and bounds of a
                kind that has some.
    """

    name: str
    text: str
    read: Callable[[Any, str], Any]
    written: Callable[[Any], Any] = lambda value: value
    choices: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None


def _not(kind_text: str, value: object, where: str) -> UserError:
    return UserError(f"{where}: {shown(value)} is not {kind_text}")


def read_duration(value: object, where: str) -> Milliseconds:
    """A duration as people write it, seconds or a timedelta, in milliseconds."""
    if isinstance(value, Milliseconds):
        return value
    if not isinstance(value, str | int | float) and isinstance(value, Span):
        span_ms = round(value.total_seconds() * 1_000)
        if not 0 <= span_ms <= LONGEST_MS:
            raise UserError(f"{where}: {value!s} is negative or more than a year")
        return Milliseconds(span_ms)
    return Milliseconds(parse_duration_ms(value, what=where))


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) and hasattr(value, "name"):
        value = value.name
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _not("text", value, where)
    return checked_text(value if isinstance(value, str) else shown(value), where)


def whole(low: int, high: int) -> Kind:
    """Whole numbers within bounds."""
    text = f"a whole number from {low:,} to {high:,}"
    return Kind(
        "count",
        text,
        lambda value, where: whole_number(value, where, low, high),
        bounds=(low, high),
    )


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _not("true or false", value, where)
    return value


def _between(low: float, high: float, text: str) -> Callable[[Any, str], float]:
    def read(value: object, where: str) -> float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not low <= value <= high:  # type: ignore[operator]
            raise _not(text, value, where)
        return value  # type: ignore[return-value]

    return read


def _rate(value: object, where: str) -> float:
    text = f"a number of records per second, above 0 and up to {limits.RATE_MAX:,}"
    if value == 0:
        raise _not(text, value, where)
    return _between(0, limits.RATE_MAX, text)(value, where)


def choice(*words: str) -> Kind:
    """One of a few words."""

    def read(value: object, where: str) -> str:
        word = value if isinstance(value, str) else shown(value)
        if isinstance(value, bool) or word not in words:
            raise UserError(f"{where}: {shown(value)} is not one of {', '.join(words)}")
        return word

    name = " or ".join(f"`{word}`" for word in words)
    return Kind(name, "one of a few words", read, choices=words)


_ACKS = choice("0", "1", "all")


def _acks(value: object, where: str) -> str:
    return str(_ACKS.read("all" if value == -1 else value, where))


# Lists. One item alone is a list of one.


def _items(value: Any) -> Iterable[Any]:
    alone = isinstance(value, str | int | Selector | HasId | OfTopic) or not isinstance(
        value, Iterable
    )
    return (value,) if alone else value


def _not_empty(items: tuple[T, ...], kind: str, where: str) -> tuple[T, ...]:
    """Items of which there has to be one: an action on nothing would pass for one that acted.

    Errors:  UserError.
    """
    if not items:
        raise UserError(f"{where}: an empty list names no {kind}")
    return items


def _one_or_list(items: Sequence[Any]) -> Any:
    return items[0] if len(items) == 1 else list(items)


def _node(value: object, where: str) -> int | Selector:
    if isinstance(value, Selector):
        return value
    if isinstance(value, HasId):
        return value.id
    if isinstance(value, str):
        if value.strip().isdecimal():
            raise UserError(f"{where}: {value!r} is text; a node's id is a number: {value.strip()}")
        return Selector.read(value, where)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _not(NODES.text, value, where)
    return whole_number(value, where, -(2**31), 2**31 - 1)


def _group(value: object, where: str) -> tuple[int | Selector, ...]:
    return tuple(_node(item, where) for item in _items(value))


def _nodes(value: object, where: str) -> tuple[int | Selector, ...]:
    return _not_empty(_group(value, where), "node", where)


def _nodes_written(nodes: tuple[int | Selector, ...]) -> Any:
    return _one_or_list([node if isinstance(node, int) else str(node) for node in nodes])


def _groups(value: Any, where: str) -> tuple[tuple[int | Selector, ...], ...]:
    if not isinstance(value, list | tuple) or len(value) < 2:
        raise UserError(f"{where}: give at least two groups of nodes")
    if any(group is None for group in value):
        raise _not(GROUPS.text, value, where)
    return tuple(_group(group, where) for group in value)


_OF_THE_KIPS = ("AlterIsr", "AlterReplicaState")  # never shipped: in no registry
_OF_ZOOKEEPER = (
    "ZooKeeperConnect", "ZooKeeperOperation", "ZooKeeperPing", "ZooKeeperClose", "ZooKeeperWatch",
)  # fmt: skip


def _apis(value: Any, where: str) -> tuple[str, ...]:
    names = _not_empty(tuple(_items(value)), "API; leave it out for all of them", where)
    apis = (*BY_NAME, *_OF_THE_KIPS, *_OF_ZOOKEEPER)
    for name in names:
        if not isinstance(name, str):
            raise _not(APIS.text, value, where)
        if name not in apis:  # a fault that is narrowed to it would hit nothing
            near = name.removesuffix("Request")
            hint = instead(near, apis, "write one such as Fetch or Produce")
            raise UserError(f"{where}: unknown API {name[:60]!r}; {hint}")
    return names


def _partition(value: object, where: str) -> tuple[str, int]:
    if isinstance(value, OfTopic):
        return value.topic, value.index
    if isinstance(value, tuple) and len(value) == 2:
        return value
    text = checked_text(value, where) if isinstance(value, str) else shown(value)
    if not Word(text).is_partition:
        raise UserError(f"{where}: {text[:60]!r} is not a partition; write topic-index: orders-0")
    return Word(text).partition


def _partitions(value: Any, where: str) -> tuple[tuple[str, int], ...]:
    items = _not_empty(tuple(_items(value)), "partition", where)
    partitions = [_partition(item, where) for item in items]
    for index, (topic, number) in enumerate(partitions):
        if (topic, number) in partitions[:index]:  # Kafka's client takes a set or a map
            raise UserError(f"{where}: {topic}-{number} is given twice")
    return tuple(partitions)


def _names(value: Any, where: str) -> tuple[str, ...]:
    alone = isinstance(value, HasName)
    items = _not_empty(tuple((value,) if alone else _items(value)), "topic", where)
    return tuple(_text(item, where) for item in items)


def _value(value: object, where: str) -> str:
    """A config's value, as Kafka writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise _not(VALUE.text, value, where)
    return checked_text(value if isinstance(value, str) else shown(value), where)


def _mapping(value: Any, where: str) -> dict[str, str | None]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise _not(MAPPING.text, value, where)
    return {
        checked_text(name, where): None if item is None else _value(item, f"{where}: {name}")
        for name, item in value.items()
    }


def _assignment(value: Any, where: str) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list | tuple) or len(value) > limits.PARTITIONS_MAX:
        raise _not(ASSIGNMENT.text, value, where)
    assignment = []
    for brokers in _not_empty(tuple(value), "broker", where):
        ids = tuple(_node(item, where) for item in _items(brokers))
        if not all(isinstance(node, int) for node in ids):
            raise _not(ASSIGNMENT.text, value, where)
        assignment.append(ids)
    return tuple(assignment)  # type: ignore[arg-type]


def _errors(value: Any, where: str) -> tuple[str, ...]:
    """Names of Kafka's errors; each takes its turn."""
    alone = isinstance(value, str | int) or not isinstance(value, Iterable)
    names = []
    for item in _not_empty((value,) if alone else tuple(value), "error", where):
        name = item.name if isinstance(item, ErrorCode) else item
        if not isinstance(name, str):
            raise _not(ERRORS.text, value, where)
        if name not in ErrorCode.__members__:
            hint = instead(name, ErrorCode.__members__, "write one such as REQUEST_TIMED_OUT")
            raise UserError(f"{where}: unknown error {name[:60]!r}; {hint}")
        names.append(name)
    return tuple(names)


def _versions(value: object, where: str) -> str:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not _VERSIONS.fullmatch(text):
        raise _not(VERSIONS.text, value, where)
    return text


def _client(value: object, where: str) -> str:
    return _text(value.client_id if isinstance(value, HasClientId) else value, where)


def _topic_id(value: object, where: str) -> str:
    text = (
        value if isinstance(value, str) else format_uuid(value) if isinstance(value, UUID) else ""
    )
    try:
        parse_uuid(text)
    except ValueError:
        raise _not(TOPIC_ID.text, value, where) from None
    return text


def _function(value: Any, where: str) -> Any:
    if not callable(value):
        raise _not("a function", value, where)
    return value


def _program(value: Any, where: str) -> Any:
    """A function, or where it is found."""
    if callable(value):
        return value
    if not isinstance(value, str) or not _PROGRAM.fullmatch(value):
        raise _not(PROGRAM.text, value, where)
    return value


def _hosts(value: Any, where: str) -> tuple[str, ...]:
    return tuple(_text(item, where) for item in _items(value))


def _program_written(program: Any) -> str:
    if isinstance(program, str):
        return program
    while hasattr(program, "func"):  # functools.partial
        program = program.func
    name = getattr(program, "__qualname__", type(program).__qualname__)
    return f"{program.__module__}:{name}"


def _fault(value: object, where: str) -> str:
    if isinstance(value, str) and value in Faults.switches():
        return value
    if isinstance(value, str) and value in Rules.zoo():
        why = "is a bug of Kafka's own: it is there from the start; name it in faults"
    else:
        why = NO_FAULT
    raise UserError(f"{where}: {shown(value)} {why}")


TEXT = Kind("text", "text", _text)
NAMES = Kind("names", "text, or a list of texts", _names, _one_or_list)
DURATION = Kind(
    "duration", "a duration such as 10s, or a number of seconds", read_duration, format_duration
)
NODES = Kind(
    "nodes", "a selector such as leader(orders-0), or a list of them", _nodes, _nodes_written
)
GROUPS = Kind(
    "groups",
    "a list of groups, each a selector or a list of them",
    _groups,
    lambda groups: [_nodes_written(group) for group in groups],
)
APIS = Kind("apis", "an API name such as Fetch, or a list of them", _apis, _one_or_list)
FLAG = Kind("flag", "true or false", _flag)
PROBABILITY = Kind("probability", "a number from 0 to 1", _between(0, 1, "a number from 0 to 1"))
_DRIFT_TEXT = f"a number from {limits.DRIFT_MIN} to {limits.DRIFT_MAX}"
DRIFT = Kind("drift", _DRIFT_TEXT, _between(limits.DRIFT_MIN, limits.DRIFT_MAX, _DRIFT_TEXT))
RATE = Kind("rate", f"records per second, up to {limits.RATE_MAX:,}", _rate)
VALUE = Kind("value", "text or a number, or null to remove it", _value)
MAPPING = Kind("mapping", "names and values", _mapping)
PARTITIONS = Kind(
    "partitions",
    "a partition such as orders-0, or a list of them",
    _partitions,
    lambda partitions: _one_or_list([f"{topic}-{index}" for topic, index in partitions]),
)
ASSIGNMENT = Kind(
    "assignment",
    "a list of lists of broker ids",
    _assignment,
    lambda assignment: [list(brokers) for brokers in assignment],
)
FAULT = Kind("fault", "the id of a planted fault, such as Z01", _fault)
ERRORS = Kind(
    "errors", "an error of Kafka's such as REQUEST_TIMED_OUT, or a list of them", _errors,
    _one_or_list,
)  # fmt: skip
VERSIONS = Kind("versions", "versions of an API: 9, 3-9 or 12+", _versions)
CLIENT = Kind("client", "the client.id of a client", _client)
FUNCTION = Kind("function", "a function", _function)  # no file has one
HOSTS = Kind("hosts", "a host, or host:port, or a list of them", _hosts, _one_or_list)
PROGRAM = Kind("program", "module:function, such as shop.orders:main", _program, _program_written)
TOPIC_ID = Kind("topic id", "the id of a topic, as Kafka writes it", _topic_id)
ACKS = Kind("`0` or `1` or `all`", "one of a few words", _acks, choices=("0", "1", "all"))

KINDS = (
    TEXT, DURATION, NODES, GROUPS, APIS, FLAG, PROBABILITY, RATE, VALUE, MAPPING, PARTITIONS,
    ASSIGNMENT, FAULT, DRIFT, NAMES, ERRORS, VERSIONS, CLIENT, TOPIC_ID, PROGRAM,
    HOSTS,
)  # fmt: skip
"""The kinds in docs/reference/vocabulary.md; whole numbers and choices show what they take."""

# The types of arguments as a test writes them; the kind reads each.
Node: TypeAlias = HasId | Selector | str | int
Duration = Annotated[str | float | Span, DURATION]
# None is what the leader of a partition is while there is none; reading it is an error in one line.
Nodes = Annotated[Node | Iterable[Node | None] | None, NODES]
Groups = Annotated[Sequence[Node | Iterable[Node]], GROUPS]
Apis = Annotated[str | Sequence[str], APIS]
TopicName = Annotated[str | HasName, TEXT]
TopicNames = Annotated[str | HasName | Iterable[str | HasName], NAMES]
Partitions = Annotated[OfTopic | str | Iterable[OfTopic | str], PARTITIONS]
Assignment = Annotated[Sequence[Sequence[HasId | int]], ASSIGNMENT]
Configs = Annotated[Mapping[str, str | int | float | bool | None], MAPPING]
Value = Annotated[str | int | float | bool, VALUE]
Text = Annotated[str, TEXT]
Probability = Annotated[float, PROBABILITY]
Drift = Annotated[float, DRIFT]
Rate = Annotated[float, RATE]
Fault = Annotated[str, FAULT]
Errors = Annotated[str | Sequence[str], ERRORS]
Versions = Annotated[str | int, VERSIONS]
ClientId = Annotated[str | HasClientId, CLIENT]
TopicId = Annotated[str | UUID, TOPIC_ID]
Function = Annotated[Callable[[Any], Any], FUNCTION]
Flag = Annotated[bool, FLAG]
Hosts = Annotated[str | Sequence[str], HOSTS]
Program = Annotated[str | Callable[[], Any], PROGRAM]
