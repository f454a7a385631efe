"""Looking up selectors and conditions in a cluster, at the moment when a step fires.

Source:  the vocabulary follows Jepsen's node specs and TigerBeetle's role selectors.
"""

from __future__ import annotations

from collections.abc import Callable

from minicluster.errors import instead
from minicluster.scenario.errors import ScenarioError
from minicluster.scenario.expression import (
    Both,
    Call,
    Comparison,
    Expression,
    Nodes,
    Not,
    Word,
    parse,
)
from minicluster.scenario.view import ClusterView

NONE = -1
NAMED_SETS = ("brokers", "controllers", "all", "none")
Value = int | bool | tuple[int, ...]


def parse_at(text: str, where: str) -> Expression:
    """Parse and check an expression of a scenario file; errors begin with the place."""
    try:
        expression = parse(text)
        check(expression)
    except ScenarioError as error:
        raise ScenarioError(f"{where}: {error}") from None
    return expression


def check(expression: Expression) -> None:
    """Refuse a function that is not in the vocabulary, before anything runs."""
    match expression:
        case Call(name, arguments, named):
            if name not in FUNCTIONS:
                raise ScenarioError(f"{name}() is no selector; {instead(name, sorted(FUNCTIONS))}")
            if name in _TAKE_A_PARTITION:
                _ = _partition(expression)
            for argument in (*arguments, *named.values()):
                check(argument)
        case Nodes(members):
            for member in members:
                check(member)
        case Not(of):
            check(of)
        case Both(_, left, right) | Comparison(_, left, right):
            check(left)
            check(right)
        case Word(_):
            pass


def select(selector: str | Expression, view: ClusterView) -> tuple[int, ...]:
    """The nodes that a selector names now, ascending where it names a set.

    Errors:  ScenarioError if it names no nodes by its nature (a number, a condition).
    """
    expression = parse(selector) if isinstance(selector, str) else selector
    value = evaluate(expression, view)
    if isinstance(value, bool) or not isinstance(value, tuple | int):
        raise ScenarioError(f"{selector!r} is a condition, not a selector of nodes")
    if isinstance(value, int):
        value = (value,)
    known = {*view.broker_ids, *view.controller_ids}
    for node in value:
        if node != NONE and node not in known:
            names = ", ".join(str(n) for n in sorted(known))
            raise ScenarioError(f"{_shown(selector)}: there is no node {node}; nodes are {names}")
    return tuple(node for node in value if node != NONE)


def holds(condition: str | Expression, view: ClusterView) -> bool:
    """Whether a condition is true now."""
    expression = parse(condition) if isinstance(condition, str) else condition
    value = evaluate(expression, view)
    return bool(value)


def evaluate(expression: Expression, view: ClusterView) -> Value:
    """The value of an expression now: a number, a truth or a list of nodes."""
    match expression:
        case Word(text):
            return _word(text, view)
        case Nodes(members):
            return tuple(n for member in members for n in _as_nodes(evaluate(member, view)))
        case Not(of):
            return not evaluate(of, view)
        case Both("and", left, right):
            return bool(evaluate(left, view)) and bool(evaluate(right, view))
        case Both(_, left, right):
            return bool(evaluate(left, view)) or bool(evaluate(right, view))
        case Comparison(operator, left, right):
            return _compare(operator, evaluate(left, view), evaluate(right, view))
        case Call(name, _, _):
            if name not in FUNCTIONS:
                raise ScenarioError(f"{name}() is no selector; {instead(name, sorted(FUNCTIONS))}")
            return FUNCTIONS[name](expression, view)


def _word(text: str, view: ClusterView) -> Value:
    match text:
        case "brokers":
            return view.broker_ids
        case "controllers":
            return view.controller_ids
        case "all":
            return (*view.broker_ids, *view.controller_ids)
        case "none":
            return NONE
        case "true" | "false":
            return text == "true"
    if text.lstrip("-").isdecimal():
        return int(text)
    raise ScenarioError(
        f"{text!r} is no selector; write broker(1), leader(topic-0), brokers, controllers or all"
    )


def _as_nodes(value: Value) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (int(value),)


def _compare(operator: str, left: Value, right: Value) -> bool:
    if operator in ("in", "not in"):
        inside = set(_as_nodes(left)) <= set(_as_nodes(right))
        return inside if operator == "in" else not inside
    if isinstance(left, tuple) and isinstance(right, tuple):
        a, b = frozenset(left), frozenset(right)
        answers = {
            "==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b,
        }  # fmt: skip
        return answers[operator]
    x = len(left) if isinstance(left, tuple) else int(left)
    y = len(right) if isinstance(right, tuple) else int(right)
    return {"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[
        operator
    ]


# --- the functions of the vocabulary ------------------------------------------------------------


def _only(call: Call) -> Expression:
    if len(call.arguments) != 1:
        raise ScenarioError(f"{call.name}() takes one argument, not {len(call.arguments)}")
    return call.arguments[0]


def _partition(call: Call) -> tuple[str, int]:
    argument = _only(call)
    if not isinstance(argument, Word):
        raise ScenarioError(f"{call.name}() takes a partition such as orders-0")
    return argument.partition


def _number(call: Call, name: str, default: int, view: ClusterView) -> int:
    value = evaluate(call.named[name], view) if name in call.named else default
    if isinstance(value, tuple):
        raise ScenarioError(f"{call.name}(): {name} is a number")
    return int(value)


def _broker(call: Call, view: ClusterView) -> Value:
    value = evaluate(_only(call), view)
    if value not in view.broker_ids:
        names = ", ".join(str(n) for n in view.broker_ids)
        raise ScenarioError(f"broker({value}): there is no such broker; brokers are {names}")
    return value


def _controller(call: Call, view: ClusterView) -> Value:
    value = evaluate(_only(call), view)
    ids = view.controller_ids
    if isinstance(value, int) and 0 <= value < len(ids):
        return ids[value]
    if value in ids:
        return value
    names = ", ".join(str(n) for n in ids)
    raise ScenarioError(
        f"controller({value}): give a number from 0 to {len(ids) - 1} or an id ({names})"
    )


def _active_controller(_call: Call, view: ClusterView) -> Value:
    active = view.active_controller_id
    return NONE if active is None else active


def _leader(call: Call, view: ClusterView) -> Value:
    return view.leader(*_partition(call))


def _follower(call: Call, view: ClusterView) -> Value:
    topic, index = _partition(call)
    leader = view.leader(topic, index)
    followers = [r for r in view.replicas(topic, index) if r != leader]
    n = _number(call, "n", 0, view)
    return followers[n] if 0 <= n < len(followers) else NONE


def _followers(call: Call, view: ClusterView) -> Value:
    topic, index = _partition(call)
    leader = view.leader(topic, index)
    return tuple(r for r in view.replicas(topic, index) if r != leader)


def _subset(size: Callable[[int], int]) -> Callable[[Call, ClusterView], Value]:
    def choose(call: Call, view: ClusterView) -> Value:
        of = list(_as_nodes(evaluate(call.arguments[0], view))) if call.arguments else []
        if not of:
            of = list(view.broker_ids)
        wanted, chosen = size(len(of)), []
        for n in range(wanted):
            chosen.append(of.pop(view.choose(f"{call.name}/{n}", len(of))))
        return tuple(sorted(chosen))

    return choose


def _of_partition(read: str) -> Callable[[Call, ClusterView], Value]:
    def ask(call: Call, view: ClusterView) -> Value:
        value: Value = getattr(view, read)(*_partition(call))
        return value

    return ask


def _of_nodes(read: str, *, every: bool = True) -> Callable[[Call, ClusterView], Value]:
    def ask(call: Call, view: ClusterView) -> Value:
        nodes = [n for n in _as_nodes(evaluate(_only(call), view)) if n != NONE]
        answers = [bool(getattr(view, read)(node)) for node in nodes]
        return bool(answers) and (all(answers) if every else any(answers))

    return ask


def _unfenced(call: Call, view: ClusterView) -> Value:
    nodes = [n for n in _as_nodes(evaluate(_only(call), view)) if n != NONE]
    return bool(nodes) and not any(view.fenced(node) for node in nodes)


def _fully_in_sync(call: Call, view: ClusterView) -> Value:
    topic, index = _partition(call)
    return set(view.isr(topic, index)) == set(view.replicas(topic, index))


FUNCTIONS: dict[str, Callable[[Call, ClusterView], Value]] = {
    "active_controller": _active_controller,
    "broker": _broker,
    "controller": _controller,
    "follower": _follower,
    "followers": _followers,
    "fenced": _of_nodes("fenced"),
    "fully_in_sync": _fully_in_sync,
    "high_watermark": _of_partition("high_watermark"),
    "in_controlled_shutdown": _of_nodes("in_controlled_shutdown"),
    "isr": _of_partition("isr"),
    "leader": _leader,
    "leader_epoch": _of_partition("leader_epoch"),
    "majority": _subset(lambda n: n // 2 + 1),
    "minority": _subset(lambda n: (n - 1) // 2),
    "minority_third": _subset(lambda n: (n - 1) // 3),
    "one": _subset(lambda n: min(n, 1)),
    "partition_epoch": _of_partition("partition_epoch"),
    "reassigning": _of_partition("reassigning"),
    "recovering": _of_partition("recovering"),
    "replicas": _of_partition("replicas"),
    "running": _of_nodes("running"),
    "unfenced": _unfenced,
}

TEXTS: dict[str, str] = {
    "brokers": "all brokers",
    "controllers": "all controllers",
    "all": "all nodes, brokers first",
    "none": "nobody: `leader(orders-0) == none`",
    "broker(3)": "the broker with this id",
    "controller(0)": "the first controller; or a controller by its id: `controller(101)`",
    "active_controller()": "the controller that leads the quorum; nobody while there is none",
    "leader(orders-0)": "the partition's leader; nobody while there is none",
    "follower(orders-0, n=0)": "the n-th replica that does not lead, in the order of the replicas",
    "followers(orders-0)": "all replicas but the leader",
    "replicas(orders-0)": "all replicas, the preferred leader first",
    "isr(orders-0)": "the in-sync replicas",
    "one(brokers)": "one of them, drawn from the seed",
    "minority(brokers)": "less than half of them, drawn from the seed",
    "minority_third(brokers)": "less than a third of them, drawn from the seed",
    "majority(brokers)": "more than half of them, drawn from the seed",
    "fenced(brokers)": "whether all of them are fenced",
    "unfenced(brokers)": "whether none of them is fenced",
    "in_controlled_shutdown(broker(1))": "whether all their registrations say so (KIP-841)",
    "running(broker(1))": "whether all their processes run; a paused one runs",
    "fully_in_sync(orders-0)": "whether every replica is in the ISR",
    "recovering(orders-0)": "whether the leader was elected uncleanly and has not recovered yet",
    "reassigning(orders-0)": "whether the partition is on the way to other replicas",
    "leader_epoch(orders-0)": "a number: how often the leader has changed",
    "partition_epoch(orders-0)": "a number: how often the partition's state has changed",
    "high_watermark(orders-0)": "a number: the leader's high watermark, -1 where there is none",
}
"""What each named set and function says, written as it is used."""


_TAKE_A_PARTITION = frozenset(
    {
        "follower", "followers", "fully_in_sync", "high_watermark", "isr", "leader",
        "leader_epoch", "partition_epoch", "reassigning", "recovering", "replicas",
    }
)  # fmt: skip


def _shown(selector: str | Expression) -> str:
    return selector if isinstance(selector, str) else "selector"
