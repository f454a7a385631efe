"""References of steps to brokers, controllers, topics and partitions that nobody creates."""

from __future__ import annotations

from collections.abc import Iterator

from minicluster.configs.definitions import broker_configs
from minicluster.durations import format_duration as shown_duration
from minicluster.errors import counted, instead
from minicluster.protocol.topics import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    TRANSACTION_STATE_TOPIC,
)
from minicluster.scenario.actions.action import Action, arguments_of
from minicluster.scenario.actions.arguments import GROUPS, NODES, PARTITIONS, Selector
from minicluster.scenario.actions.clients import Transform
from minicluster.scenario.actions.network import Isolate, Partition
from minicluster.scenario.actions.nodes import (
    AddVoter,
    Compact,
    Pause,
    RemoveVoter,
    Resign,
    Resume,
    Snapshot,
    Wipe,
)
from minicluster.scenario.actions.topics import (
    AddPartitions,
    CreateTopic,
    DeleteTopic,
    Reassign,
)
from minicluster.scenario.checks.impossible_steps import OtherChecks, impossible
from minicluster.scenario.checks.selectors_and_conditions import (
    Shape,
    never_of_call,
    never_of_comparison,
    never_only,
)
from minicluster.scenario.document import Path
from minicluster.scenario.expression import Both, Call, Comparison, Expression, Nodes, Not, Word
from minicluster.scenario.functions import FUNCTIONS, Takes
from minicluster.scenario.scenario import FIRST_CONTROLLER, Scenario, Step
from minicluster.scenario.view import ZOOKEEPER_NODE

_OF_TOPIC = ("topic", "name")  # the arguments that name a topic
_LINK = ("src", "dst")
_SMALL_PARTS = {"minority": 2, "minority_third": 3}
"""Of so many nodes or fewer, these parts have none."""
_RACKS = {"rack", "broker.rack"}
_NEED_CONTROLLERS = (AddVoter, Compact, RemoveVoter, Resign, Snapshot)
_TAKE_CLIENTS = (Isolate, Partition, Pause, Resume)  # and the links of the network
_NEED_BROKERS = {"broker", "replicas", "to"}  # arguments
_PARTITIONS_OF = {
    GROUP_METADATA_TOPIC: "offsets.topic.num.partitions",
    TRANSACTION_STATE_TOPIC: "transaction.state.log.num.partitions",
}


def mistaken_references(scenario: Scenario, others: OtherChecks) -> Iterator[tuple[Path, str]]:
    """The mistakes about what steps name, each with its path in the file."""
    topics = _Topics(scenario)
    earliest_ms, at_step = 0, 0
    for index, step in enumerate(scenario.steps):
        for place, text in _of_step(step, scenario, topics, others):
            yield ("steps", index, *place), f"step {step.number}: {text}"
        if step.at_ms is not None and step.at_ms < earliest_ms:
            at, then = (shown_duration(ms) for ms in (step.at_ms, earliest_ms))
            text = f"at {at} is before step {at_step}, which is at {then} or later; order them"
            yield ("steps", index, "at"), f"step {step.number}: {text}"
        elif step.at_ms is not None or step.after_ms:
            earliest_ms = step.at_ms if step.at_ms is not None else earliest_ms + step.after_ms
            at_step = step.number
        topics.take(step)


def _of_step(
    step: Step, scenario: Scenario, topics: _Topics, others: OtherChecks
) -> Iterator[tuple[Path, str]]:
    for name, expression in _expressions(step):
        for text in _unknown(expression, scenario, topics):
            yield (name,), text
        if not step.may_fail:
            for text in _wrong_kind(step.action, name, expression, scenario):
                yield (name,), text
    for name, topic, partition in _topics(step.action):
        for text in topics.missing(topic, partition, may_fail=step.may_fail):
            yield (name,), text
    if not step.may_fail:
        for name, text in topics.impossible(step.action):
            yield (name,), text
    yield from impossible(step, scenario, others)


class _Topics:
    """The topics that steps so far have created, with their numbers of partitions."""

    def __init__(self, scenario: Scenario) -> None:
        self.partitions: dict[str, int | None] = {}  # None: clients or a refusal may decide
        self._deleted: dict[str, int] = {}  # by which step
        self._creators: dict[str, int] = {}  # of topics that are there for sure, by which step
        self._replicas: dict[str, int] = {}  # of topics that nobody else changes
        self._brokers = scenario.brokers
        self._internal: dict[str, int | None] = dict.fromkeys(INTERNAL_TOPICS)
        for topic, name in _PARTITIONS_OF.items():
            text = str(scenario.config.get(name, broker_configs().keys[name].default))
            self._internal[topic] = int(text) if text.isdecimal() else None
        self._is_open = scenario.listeners  # clients create topics as well

    def take(self, step: Step) -> None:
        """Take what a step creates."""
        action = step.action
        if isinstance(action, CreateTopic):
            assigned = action.assignment
            count = action.partitions if assigned is None else len(tuple(assigned))
            is_sure = not (step.may_fail or self._is_open)
            name = str(action.name)
            self.partitions[name] = count if is_sure else None
            self._deleted.pop(name, None)
            self._creators.pop(name, None)
            if is_sure:
                self._creators[name] = step.number
                most = max(map(len, assigned or ()), default=action.replicas_on(self._brokers))
                self._replicas[name] = most
        elif isinstance(action, DeleteTopic):
            names = action.name if isinstance(action.name, tuple) else (action.name,)
            for name in map(str, names):
                self._creators.pop(name, None)
            if not (step.may_fail or self._is_open):
                self._deleted |= dict.fromkeys(map(str, names), step.number)
        elif isinstance(action, AddPartitions):
            self.partitions[str(action.name)] = None if step.may_fail else action.total
            if action.assignment is not None:
                self._replicas.pop(str(action.name), None)
        elif isinstance(action, Reassign):
            for _, topic, _ in _topics(action):
                self._replicas.pop(topic, None)
        elif isinstance(action, Wipe) or getattr(action, "lose_tail", "none") != "none":
            self._creators.clear()  # the metadata itself may be lost

    def impossible(self, action: Action | None) -> Iterator[tuple[str, str]]:
        """Why a topic cannot be created, or grow, as an action asks, by the argument's name."""
        match action:
            case CreateTopic(name) if (creator := self._creators.get(str(name))) is not None:
                yield "name", f"there is a topic {name} already; step {creator} creates it"
            case AddPartitions(name, total) if str(name) in self._creators:
                count = self.partitions[str(name)]
                if count is not None and total <= count:
                    has = counted(count, "partition")
                    yield "total", f"{name} has {has} already; ask for more"

    def most_replicas(self, topic: str) -> int:
        """The most replicas that a partition of a topic can have."""
        return min(self._replicas.get(topic, self._brokers), self._brokers)

    def missing(self, topic: str, index: int | None, *, may_fail: bool = False) -> Iterator[str]:
        """Why a partition, or a topic, cannot be there.

        A step that may fail may name what is gone, but not what never was.
        """
        if topic not in self.partitions and topic not in self._internal:
            if not self._is_open:
                hint = instead(topic, sorted(self.partitions), "create it before")
                yield f"there is no topic {topic} then; {hint}"
            return
        if may_fail:
            return
        if topic in self._deleted:
            yield f"there is no topic {topic} then; step {self._deleted[topic]} deleted it"
            return
        count = self.partitions[topic] if topic in self.partitions else self._internal[topic]
        if index is not None and count is not None and index >= count:
            last = "0" if count == 1 else f"0 to {count - 1}"
            yield f"there is no partition {topic}-{index}; those of {topic} are {last}"


def _wrong_kind(
    action: Action | None, name: str, expression: Expression, scenario: Scenario
) -> Iterator[str]:
    """Why an argument of brokers, or one of controllers, can name no such node."""
    if action is None:
        return
    shape, asks = Shape.of(scenario), f"{name} of {action.method}"
    if not (isinstance(action, _TAKE_CLIENTS) or name in _LINK) and _names_clients(expression):
        yield f"{asks} is of processes of the cluster, which clients are not"
    if name in _NEED_BROKERS:
        yield from never_only(expression, "brokers", shape, asks)
    elif isinstance(action, _NEED_CONTROLLERS) and shape.controllers:
        yield from never_only(expression, "controllers", shape, asks)


def _names_clients(expression: Expression) -> bool:
    match expression:
        case Word("clients") | Call("client"):
            return True
        case Nodes(members):
            return any(map(_names_clients, members))
    return False


def _expressions(step: Step) -> Iterator[tuple[str, Expression]]:
    """The expressions of a step, with the names under which they are written."""
    for name, condition in (("until", step.until), ("expect", step.expect)):
        if condition is not None:
            yield name, condition.expression
    if step.action is None:
        return
    for name, argument in arguments_of(type(step.action)).items():
        value = getattr(step.action, name)
        if value is None or argument.kind not in (NODES, GROUPS):
            continue
        nodes = value if argument.kind is NODES else [node for group in value for node in group]
        for node in nodes:
            yield name, node.expression if isinstance(node, Selector) else Nodes((Word(str(node)),))


def _topics(action: Action | None) -> Iterator[tuple[str, str, int | None]]:
    """The topics and partitions that an action needs, with the names of its arguments."""
    if action is None or isinstance(action, CreateTopic):
        return
    for name, argument in arguments_of(type(action)).items():
        value = getattr(action, name)
        if value is None:
            continue
        if argument.kind is PARTITIONS:
            yield from ((name, topic, index) for topic, index in value)
        elif name in _OF_TOPIC or (isinstance(action, Transform) and name == "to"):
            index = getattr(action, "partition", None)
            for topic in value if isinstance(value, tuple) else (value,):
                yield name, str(topic), index if isinstance(index, int) else None


def _unknown(expression: Expression, scenario: Scenario, created: _Topics) -> Iterator[str]:
    match expression:
        case Call(name, arguments, _):
            for part in arguments:
                if isinstance(part, Word):
                    yield from _unknown_argument(name, part, scenario, created)
                else:
                    yield from _unknown(part, scenario, created)
            yield from _nobody(expression, scenario)
            yield from never_of_call(expression, Shape.of(scenario), created.most_replicas)
        case Nodes(members):
            for part in members:
                if isinstance(part, Word) and part.text.isdecimal():
                    yield from _unknown_node(int(part.text), scenario)
                yield from _unknown(part, scenario, created)
        case Not(of):
            yield from _unknown(of, scenario, created)
        case Both(_, left, right) | Comparison(_, left, right):
            yield from _unknown(left, scenario, created)
            yield from _unknown(right, scenario, created)
            if isinstance(expression, Comparison):
                shape = Shape.of(scenario)
                yield from never_of_comparison(expression, shape, created.most_replicas)
        case _:
            pass


def _unknown_node(node: int, scenario: Scenario) -> Iterator[str]:
    last = FIRST_CONTROLLER + scenario.controllers - 1
    if scenario.mode == "zookeeper":
        if not 1 <= node <= scenario.brokers and node != ZOOKEEPER_NODE:
            names = f"1 to {scenario.brokers}, and {ZOOKEEPER_NODE} for ZooKeeper"
            yield f"there is no node {node}; nodes are {names}"
    elif not 1 <= node <= scenario.brokers and not FIRST_CONTROLLER <= node <= last:
        names = f"1 to {scenario.brokers} and {FIRST_CONTROLLER} to {last}"
        yield f"there is no node {node}; nodes are {names}"


def _unknown_argument(name: str, word: Word, scenario: Scenario, created: _Topics) -> Iterator[str]:
    brokers = range(1, scenario.brokers + 1)
    controllers = range(FIRST_CONTROLLER, FIRST_CONTROLLER + scenario.controllers)
    number = int(word.text) if word.text.isdecimal() else None
    if name == "broker" and number is not None and number not in brokers:
        yield f"there is no broker {number}; brokers are 1 to {scenario.brokers}"
    elif name == "controller" and number is not None:
        if number not in controllers and number >= scenario.controllers:
            last = controllers[-1]
            yield f"there is no controller {number}; controllers are {FIRST_CONTROLLER} to {last}"
    elif FUNCTIONS[name].takes is Takes.PARTITION:
        yield from created.missing(*word.partition)
    elif number is not None and FUNCTIONS[name].takes in (Takes.NODES, Takes.NODES_OR_BROKERS):
        yield from _unknown_node(number, scenario)


def _nobody(call: Call, scenario: Scenario) -> Iterator[str]:
    """Why a selector selects nobody, whatever happens in a cluster of this shape."""
    if call.name == "rack":
        among = call.arguments[0] if call.arguments else Word("brokers")
        if not _RACKS & set(scenario.config):
            yield "no broker has a rack; give racks to all with config: broker.rack: a,b,c"
        elif (
            isinstance(among, Word)
            and among.text.isdecimal()
            and (FIRST_CONTROLLER <= int(among.text) < FIRST_CONTROLLER + scenario.controllers)
        ):
            yield f"node {among.text} is a controller, and only brokers have racks"
    elif call.name in _SMALL_PARTS:
        of = call.arguments[0] if call.arguments else Word("brokers")
        count = _count(of, scenario)
        if count is not None and 1 <= count <= _SMALL_PARTS[call.name]:
            yield f"{call.name} of {count} is nobody"


def _count(expression: Expression, scenario: Scenario) -> int | None:
    """The number of nodes that an expression always selects; None where that depends."""
    match expression:
        case Word("brokers"):
            return scenario.brokers
        case Word("controllers"):
            return scenario.controllers
        case Word(text) if text.isdecimal():
            return 1
        case Call("broker" | "controller", _, _):
            return 1
        case Nodes(members) if all(isinstance(member, Word) for member in members):
            return len(set(members))
    return None
