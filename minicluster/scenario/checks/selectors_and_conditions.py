"""Which nodes a selector can select, and which conditions can hold, in a cluster of a shape.

What depends on the run (a leader, the ISR, a draw) may be anything that the shape allows; so what
is found here can never be right, whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from minicluster.scenario.expression import Call, Comparison, Expression, Nodes, Word
from minicluster.scenario.functions import FUNCTIONS, NOBODY, Type
from minicluster.scenario.scenario import FIRST_CONTROLLER, Scenario
from minicluster.scenario.view import ZOOKEEPER_NODE
from minicluster.values import Value

BROKER_CONDITIONS = ("fenced", "unfenced", "in_controlled_shutdown")
_ONE_NODE = ("broker", "controller", "active_controller", "leader", "follower")
_OF_REPLICAS = ("leader", "follower", "followers", "replicas", "isr")

Replicas = Callable[[str], int]
"""The most replicas that a partition of a topic can have."""


class Shape(Value):
    """The nodes of a scenario's cluster."""

    brokers: frozenset[int]
    controllers: frozenset[int]
    others: frozenset[int]  # ZooKeeper

    @classmethod
    def of(cls, scenario: Scenario) -> Shape:
        """The shape of this scenario's cluster."""
        brokers = frozenset(range(1, scenario.brokers + 1))
        if scenario.mode == "zookeeper":
            return cls(brokers, frozenset(), frozenset({ZOOKEEPER_NODE}))
        last = FIRST_CONTROLLER + scenario.controllers
        return cls(brokers, frozenset(range(FIRST_CONTROLLER, last)), frozenset())

    @property
    def all(self) -> frozenset[int]:
        """Every node."""
        return self.brokers | self.controllers | self.others

    def nodes(self, expression: Expression) -> frozenset[int] | None:
        """All nodes that an expression may select; None for clients, and for anything else."""
        match expression:
            case Word("brokers"):
                return self.brokers
            case Word("controllers"):
                return self.controllers
            case Word("all"):
                return self.brokers | self.controllers
            case Word("none"):
                return frozenset()
            case Word(text) if text.isdecimal():
                return frozenset({int(text)}) & self.all
            case Nodes(members):
                sets = [self.nodes(member) for member in members]
                return None if None in sets else frozenset().union(*sets)  # type: ignore[arg-type]
            case Call():
                return self._of_call(expression)
        return None

    def _of_call(self, call: Call) -> frozenset[int] | None:
        function = FUNCTIONS[call.name]
        if function.type is not Type.NODES or call.name == "client":
            return None
        if call.name in (*_OF_REPLICAS, "rack", "broker"):
            named = self.nodes(call.arguments[0]) if call.name == "broker" else None
            return self.brokers if named is None else named & self.brokers
        if call.name == "controller":
            named = self.nodes(call.arguments[0])
            of_id = self.controllers if named is None else named & self.controllers
            return of_id or self.controllers  # a small number counts them from 0
        if call.name == "active_controller":
            return self.controllers or self.brokers
        return self.nodes(call.arguments[0]) if call.arguments else self.brokers


def never_of_call(call: Call, shape: Shape, replicas: Replicas) -> Iterator[str]:
    """Why a function with these arguments has no value, or always the same, whatever happens."""
    if call.name in BROKER_CONDITIONS:
        yield from never_only(call.arguments[0], "brokers", shape, f"{call.name}()")
    elif call.name == "follower" and isinstance(call.named.get("n"), Word):
        number = int(call.named["n"].text)  # type: ignore[union-attr]
        topic, index = call.arguments[0].partition  # type: ignore[union-attr]
        most = replicas(topic)
        if not 0 <= number < most:
            count = "1 replica" if most == 1 else f"{most} replicas"
            yield f"{topic}-{index} has no follower n={number}; it has {count} with its leader's"


def never_only(expression: Expression, kind: str, shape: Shape, asks: str) -> Iterator[str]:
    """Why an expression cannot select what is asked for: only brokers, or only controllers.

    Shapes:  asks: who asks, for the text: a function, or an argument of an action.
    """
    allowed = shape.brokers if kind == "brokers" else shape.controllers
    possible = shape.nodes(expression) or frozenset()
    outside = possible - allowed
    if outside and (outside == possible or _is_constant(expression)):
        names = ", ".join(map(str, sorted(outside)))
        node, is_none = ("node", "is not") if len(outside) == 1 else ("nodes", "are not")
        yield f"{asks} is of {kind}, which {node} {names} {is_none}; {_range(kind, allowed)}"


def _range(kind: str, nodes: frozenset[int]) -> str:
    return f"{kind} are {min(nodes)} to {max(nodes)}" if nodes else f"there are no {kind}"


def _is_constant(expression: Expression) -> bool:
    """It selects the same nodes whenever it is looked up."""
    return isinstance(expression, Word) or (
        isinstance(expression, Nodes) and all(map(_is_constant, expression.members))
    )


def never_of_comparison(comparison: Comparison, shape: Shape, replicas: Replicas) -> Iterator[str]:
    """Why a comparison can never hold."""
    operator, left, right = comparison.operator, comparison.left, comparison.right
    if operator in ("==", "in"):
        left_ids, right_ids = _ids(left, shape), _ids(right, shape)
        is_of_nodes = operator == "in" or (_is_one(left) and _is_one(right))
        # While there is no leader, leader() is nobody.
        may_be_nobody = NOBODY in _numbers(left) + _numbers(right)
        if is_of_nodes and not may_be_nobody and left_ids is not None and right_ids is not None:
            among = _among(right_ids if _is_number(left) else left_ids)
            word = "in " if operator == "in" else ""
            if not left_ids & right_ids:
                yield f"{_shown(left)} is never {word}{_shown(right)}; {among}"
    if operator in ("==", ">=", ">"):
        for set_, number in ((left, right), (right, left)):
            if operator != "==" and set_ is right:
                continue
            most = _most(set_, shape, replicas)
            if most is None or not _is_number(number):
                continue
            [wanted] = _numbers(number)
            if wanted > most or (operator == ">" and wanted == most):
                yield f"{_shown(set_)} never has {operator} {wanted} nodes; it has {most} at most"


def _ids(expression: Expression, shape: Shape) -> frozenset[int] | None:
    """The values that a side of a comparison may have, numbers of no node included."""
    if _is_number(expression):
        return frozenset(_numbers(expression))
    return shape.nodes(expression)


def _most(expression: Expression, shape: Shape, replicas: Replicas) -> int | None:
    """The most nodes of a set that is compared with a number; None for anything else."""
    if _is_one(expression):
        return None
    match expression:
        case Call("followers" | "replicas" | "isr", (Word() as named,), _):
            return replicas(named.partition[0])
        case Call() | Word("brokers" | "controllers" | "all"):
            nodes = shape.nodes(expression)
            return None if nodes is None else len(nodes)
    return None


def _is_one(expression: Expression) -> bool:
    """True for a number, and for a function of one node."""
    return _is_number(expression) or (isinstance(expression, Call) and expression.name in _ONE_NODE)


def _is_number(expression: Expression) -> bool:
    return bool(_numbers(expression))


def _numbers(expression: Expression) -> list[int]:
    if isinstance(expression, Word) and expression.text.lstrip("-").isdecimal():
        return [int(expression.text)]
    return [NOBODY] if expression == Word("none") else []


def _shown(expression: Expression) -> str:
    if isinstance(expression, Call):
        words = ", ".join(_shown(argument) for argument in expression.arguments)
        return f"{expression.name}({words})"
    if isinstance(expression, Nodes):
        return f"[{', '.join(map(_shown, expression.members))}]"
    return expression.text if isinstance(expression, Word) else "a condition"


def _among(nodes: frozenset[int]) -> str:
    names = sorted(nodes)
    if not names:
        return "it is nobody"
    return f"it is {names[0]}" if len(names) == 1 else f"it is one of {names[0]} to {names[-1]}"
