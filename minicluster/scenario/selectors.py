"""Looking up selectors and conditions in a cluster, at the moment when a step fires.

Source:  the vocabulary follows Jepsen's node specs and TigerBeetle's role selectors.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from minicluster.errors import UserError, counted, instead
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
from minicluster.scenario.functions import (
    FUNCTIONS,
    NAMED_SETS,
    NOBODY,
    Takes,
    Type,
    Value,
    as_nodes,
)
from minicluster.scenario.view import ZOOKEEPER_NODE, ClusterView

_NUMBER = re.compile(r"-?[0-9]{1,10}")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def parse_selector(text: str, where: str) -> Expression:
    """Parse a selector of nodes and check all that can be known before it is looked up.

    Errors:  ScenarioError that begins with the place.
    """
    return _parse(text, where, (Type.NODES, Type.NUMBER), "a selector of nodes")


def parse_condition(text: str, where: str) -> Expression:
    """Parse a condition; an expression that always holds, or never, is none."""
    expression = _parse(text, where, (Type.TRUTH,), "a condition")
    if _is_constant(expression):
        raise ScenarioError(
            f"{where}: {text[:80]!r} reads nothing of the cluster; "
            "write one such as isr(orders-0) == 2"
        )
    return expression


def _is_constant(expression: Expression) -> bool:
    """Nothing but numbers and truths, such as 1 == 1."""
    match expression:
        case Word(text):
            return text not in NAMED_SETS
        case Call():
            return False
        case Nodes(members):
            return all(_is_constant(member) for member in members)
        case Not(of):
            return _is_constant(of)
        case Both(_, left, right) | Comparison(_, left, right):
            return _is_constant(left) and _is_constant(right)
        case _:
            assert_never(expression)


def _parse(text: str, where: str, wanted: tuple[Type, ...], kind: str) -> Expression:
    try:
        expression = parse(text)
        type_ = check(expression)
    except UserError as error:
        raise ScenarioError(f"{where}: {error}") from None
    if type_ not in wanted:
        example = "isr(orders-0) == 2" if Type.TRUTH in wanted else "leader(orders-0)"
        raise ScenarioError(
            f"{where}: {text[:80]!r} is {type_.value}, not {kind}; write one such as {example}"
        )
    return expression


def check(expression: Expression) -> Type:
    """The type of an expression.

    Errors:  ScenarioError for a word or function that is not in the vocabulary, for an argument
             that a function does not take, for a condition where a number or nodes are needed.
    """
    match expression:
        case Word(text, is_quoted):
            if is_quoted:
                raise ScenarioError(f"{text[:60]!r} is text, which client() and app() take")
            return _type_of_word(text)
        case Nodes(members):
            for member in members:
                _need(member, Type.NODES, Type.NUMBER)
            return Type.NODES
        case Not(of):
            return _need(of, Type.TRUTH)
        case Both(_, left, right):
            _need(left, Type.TRUTH)
            return _need(right, Type.TRUTH)
        case Comparison(sign, left, right):
            types = {check(left), check(right)}
            if Type.TRUTH in types and (len(types) > 1 or sign not in ("==", "!=")):
                raise ScenarioError(f"{sign!r} does not compare a condition")
            return Type.TRUTH
        case Call():
            return _check_call(expression)
        case _:
            assert_never(expression)


def _need(expression: Expression, *wanted: Type) -> Type:
    type_ = check(expression)
    if type_ not in wanted:
        raise ScenarioError(f"{type_.value} is given where {wanted[0].value} is needed")
    return type_


def _type_of_word(text: str) -> Type:
    if text in NAMED_SETS:
        return Type.NODES
    if text in ("true", "false"):
        return Type.TRUTH
    if _NUMBER.fullmatch(text):
        return Type.NUMBER
    if text in FUNCTIONS:
        raise ScenarioError(f"{text} is written with parentheses, as {FUNCTIONS[text].form}")
    otherwise = "write broker(1), leader(topic-0), brokers, controllers or all"
    raise ScenarioError(
        f"unknown selector {text[:60]!r}; {instead(text, (*NAMED_SETS, *FUNCTIONS), otherwise)}"
    )


def _check_call(call: Call) -> Type:
    name, arguments = call.name, call.arguments
    if name not in FUNCTIONS:
        raise ScenarioError(f"unknown selector {name[:60]}(); {instead(name, sorted(FUNCTIONS))}")
    function = FUNCTIONS[name]
    may_be_left_out = function.takes in (Takes.NOTHING, Takes.NODES_OR_BROKERS)
    most = 0 if function.takes is Takes.NOTHING else 1
    if len(arguments) > most or (not arguments and not may_be_left_out):
        raise ScenarioError(
            f"{name}() takes {function.takes.value}, not {counted(len(arguments), 'argument')}"
        )
    for word, value in call.named.items():
        if word != "n" or not function.numbered:
            takes = "n alone, as in n=1" if function.numbered else "no argument with a name"
            raise ScenarioError(f"{name}(): {word[:60]}= is not known; it takes {takes}")
        _need(value, Type.NUMBER)
    if function.takes in (Takes.PARTITION, Takes.CLIENT_ID, Takes.APP):
        if not isinstance(arguments[0], Word):
            raise ScenarioError(f"{name}() takes {function.takes.value}")
        if function.takes is Takes.PARTITION:
            _ = arguments[0].partition
    elif arguments:
        _need(arguments[0], Type.NODES, Type.NUMBER)
    return function.type


def select(selector: str | Expression, view: ClusterView) -> tuple[int, ...]:
    """The nodes that a selector names now, ascending where it names a set.

    Errors:  ScenarioError if it names no nodes by its nature (a number, a condition).
    """
    expression = parse(selector) if isinstance(selector, str) else selector
    if check(expression) is Type.TRUTH:
        raise ScenarioError(f"{selector!r} is a condition, not a selector of nodes")
    value = as_nodes(evaluate(expression, view))
    known = {*view.broker_ids, *(view.controller_ids or (ZOOKEEPER_NODE,))}
    for node in value:
        if node >= 0 and node not in known:  # ids of clients are below those of nobody
            names = ", ".join(map(str, sorted(known)))
            raise ScenarioError(f"there is no node {node}; nodes are {names}")
    return tuple(node for node in value if node != NOBODY)


def holds(condition: str | Expression, view: ClusterView) -> bool:
    """True if a condition holds now."""
    if isinstance(condition, str):
        condition = parse_condition(condition, "condition")
    return bool(evaluate(condition, view))


def evaluate(expression: Expression, view: ClusterView) -> Value:
    """The value of an expression now: a number, a truth or a list of nodes."""
    match expression:
        case Word(text):
            return _word(text, view)
        case Nodes(members):
            return tuple(node for member in members for node in as_nodes(evaluate(member, view)))
        case Not(of):
            return not evaluate(of, view)
        case Both("and", left, right):
            return bool(evaluate(left, view)) and bool(evaluate(right, view))
        case Both(_, left, right):
            return bool(evaluate(left, view)) or bool(evaluate(right, view))
        case Comparison(sign, left, right):
            return _compare(sign, evaluate(left, view), evaluate(right, view))
        case Call(name, arguments, named):
            function = FUNCTIONS[name]
            n = as_nodes(evaluate(named["n"], view))[0] if "n" in named else 0
            argument: object = None
            if function.takes is Takes.PARTITION:
                assert isinstance(arguments[0], Word)
                argument = arguments[0].partition
            elif function.takes in (Takes.CLIENT_ID, Takes.APP):
                assert isinstance(arguments[0], Word)
                argument = arguments[0].text
            elif function.takes is not Takes.NOTHING:
                argument = as_nodes(evaluate(arguments[0], view)) if arguments else ()
            return function.value(view, name, argument, n)


def _word(text: str, view: ClusterView) -> Value:
    match text:
        case "brokers":
            return view.broker_ids
        case "controllers":
            return view.controller_ids
        case "all":
            return (*view.broker_ids, *view.controller_ids)
        case "clients":
            return view.clients.ids
        case "apps":
            return view.apps
        case "none":
            return NOBODY
        case "true" | "false":
            return text == "true"
    return int(text)


def _compare(sign: str, left: Value, right: Value) -> bool:
    """Compare two sets of nodes as sets, or a set of nodes and a number by how many it has."""
    if sign in ("in", "not in"):
        inside = set(as_nodes(left)) <= set(as_nodes(right))
        return inside if sign == "in" else not inside
    if isinstance(left, tuple) and isinstance(right, tuple):
        return _COMPARE[sign](frozenset(left), frozenset(right))
    return _COMPARE[sign](_number(left), _number(right))


def _number(value: Value) -> int:
    return len(value) if isinstance(value, tuple) else int(value)
