"""A step as one line of text, as it is typed at a shell: the action and its arguments.

    kill leader(orders-0)                       kill node=leader(orders-0) lose_tail=unflushed
    isolate broker(1) lasting=5s                partition groups=[broker(1), brokers]
    until fully_in_sync(orders-0) within=30s    expect leader(orders-0) == broker(2)
    {do: kill, node: leader(orders-0)}          the form of a scenario file

The first arguments, those that a method takes without their names, need none here. Each value is a
value of YAML with selectors unquoted, also in lists. The words become the mapping of a scenario
file, which ``reading`` checks: there is one list of actions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from minicluster.errors import UserError, instead
from minicluster.scenario.actions.action import Action, arguments_of, fields_of
from minicluster.scenario.checks.limits import LEVELS_MAX, checked_text, shown
from minicluster.scenario.errors import ScenarioError
from minicluster.scenario.reading import step_of
from minicluster.scenario.scenario import Step
from minicluster.scenario.vocabulary import ACTIONS
from minicluster.scenario.yaml_text import read_yaml

STEP_TEXT_MAX = 4_000  # characters
_NAMED = re.compile(r"([A-Za-z_]+)=(?!=)(.*)", re.DOTALL)
_WITHIN = re.compile(r"(.*?)\s+(?:within\s*=\s*|within\s+|\(within\s+)([^\s()]+)\)?", re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CALL = re.compile(r"[A-Za-z_]+\(")


def parse_step(text: str, number: int = 1) -> Step:
    """Read a step from one line, or from the mapping of a scenario file.

    Errors:  ScenarioError in one line: the word that is wrong, and what to write instead.
    """
    try:
        text = checked_text(text, "step", STEP_TEXT_MAX).strip()
    except UserError as error:
        raise ScenarioError(str(error)) from None
    if not text:
        raise ScenarioError("step: it is empty; write one such as kill leader(orders-0)")
    where = shown(text)
    value = read_yaml(text, where).value if text[0] in "{-" else _mapping(text, where)
    if isinstance(value, list) and len(value) == 1:
        [value] = value
    step = step_of(number, value, where)
    if step.at_ms is not None or step.after_ms:
        raise ScenarioError(f"{where}: this step fires at once; leave out at and after")
    return step


def _mapping(text: str, where: str) -> dict[str, Any]:
    """The words as the mapping of a scenario file."""
    word, _, rest = text.partition(" ")
    rest = rest.strip()
    if word == "expect":
        return {"expect": rest}
    if word == "until":
        match = _WITHIN.fullmatch(rest)
        return {"until": rest} if match is None else {"until": match[1], "within": match[2]}
    if word not in ACTIONS:
        hint = instead(word, (*ACTIONS, "until", "expect"))
        raise ScenarioError(f"{where}: unknown action {shown(word)}; {hint}")
    return {"do": word, **_arguments(ACTIONS[word], rest, where)}


def _arguments(action: type[Action], text: str, where: str) -> dict[str, Any]:
    in_order = [field.name for field in fields_of(action) if not field.kw_only]
    arguments: dict[str, Any] = {}
    for piece in _pieces(text, where):
        match = _NAMED.fullmatch(piece)
        if match is not None:
            name, piece = match[1], match[2]
            in_order.clear()
        elif in_order:
            name = in_order[0]
        else:
            takes = ", ".join(arguments_of(action)) or "nothing"
            left = next((name for name in arguments_of(action) if name not in arguments), None)
            named = "" if left is None else f"write one, as in {left}={shown(piece)[1:-1]}; "
            raise ScenarioError(
                f"{where}: {shown(piece)} has no name; {named}{action.method} takes {takes}"
            )
        if name in arguments:
            raise ScenarioError(f"{where}: {shown(name)} is given twice")
        if name in in_order:
            in_order.remove(name)
        arguments[name] = _value(piece, where)
    return arguments


def _pieces(text: str, where: str) -> Iterator[str]:
    """The arguments: what spaces separate outside of brackets and quotes."""
    open_brackets: list[str] = []
    quote = ""
    start = 0
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _CLOSING:
            open_brackets.append(_CLOSING[char])
            if len(open_brackets) > LEVELS_MAX:
                raise ScenarioError(f"{where}: brackets nest deeper than {LEVELS_MAX} levels")
        elif open_brackets and char == open_brackets[-1]:
            open_brackets.pop()
        elif char in ")]}":
            why = (
                f"{open_brackets[-1]!r} is missing" if open_brackets else f"{char!r} closes nothing"
            )
            raise ScenarioError(f"{where}: {why}")
        elif char.isspace() and not open_brackets:
            if start < place:
                yield text[start:place]
            start = place + 1
    if quote or open_brackets:
        raise ScenarioError(f"{where}: {quote or open_brackets[-1]!r} is missing")
    if start < len(text):
        yield text[start:]


def _value(piece: str, where: str) -> Any:
    """A value of YAML; the calls in a list need no quotes."""
    if piece[:1] in ("[", "{"):
        piece = "".join(_with_quoted_calls(piece, where))
    return read_yaml(piece, where).value


def _with_quoted_calls(piece: str, where: str) -> Iterator[str]:
    """A list or mapping with quotes around ``leader(orders-0)``, whose commas are its own."""
    place, quote = 0, ""
    while place < len(piece):
        call = None if quote else _CALL.match(piece, place)
        if call is None:
            char = piece[place]
            if char in "\"'" and (not quote or char == quote):
                quote = "" if quote else char
            yield char
            place += 1
            continue
        end = _end_of_call(piece, call.end(), where)
        yield f"'{piece[place:end]}'"
        place = end


def _end_of_call(piece: str, place: int, where: str) -> int:
    level = 1
    while level and place < len(piece):
        level += {"(": 1, ")": -1}.get(piece[place], 0)
        place += 1
    if level:
        raise ScenarioError(f"{where}: ')' is missing")
    return place
