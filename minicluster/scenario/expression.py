"""Selectors and conditions: the small language in which steps name nodes and states.

    broker(3)   leader(orders-0)   follower(orders-0, n=1)   minority(controllers)
    isr(orders-0) == 2   leader(orders-0) != broker(1) and not fenced(broker(2))

A name in lower case is a function or a named set; a word such as ``orders-0`` is a partition. The
text is parsed when a scenario is read, so that a slip is found before anything runs; it is looked
up in the cluster when its step fires.
"""

from __future__ import annotations

import re

from msgspec import field

from minicluster.errors import UserError
from minicluster.scenario.checks.limits import LEVELS_MAX, checked_text
from minicluster.scenario.errors import ScenarioError
from minicluster.values import Value

EXPRESSION_MAX = 2_000  # characters

_TOKEN = r"\s*(?:(==|!=|<=|>=|<|>)|([()\[\],=])|([A-Za-z0-9._-]+|\"[^\"]*\"|'[^']*'))"
_WORDS = {"and", "or", "not", "in"}
_PARTITION = r"(.+)-([0-9]{1,9})"


class Word(Value):
    """A bare word: a partition, a topic, a named set, a number or a name; or text in quotes."""

    text: str
    is_quoted: bool = False

    @property
    def is_partition(self) -> bool:
        """True for ``topic-index``."""
        return re.fullmatch(_PARTITION, self.text) is not None

    @property
    def partition(self) -> tuple[str, int]:
        """The word as topic and partition index.

        Errors:  ScenarioError if it is not ``topic-index``.
        """
        match = re.fullmatch(_PARTITION, self.text)
        if not match:
            raise ScenarioError(f"{self.text!r} is not a partition; write topic-index: orders-0")
        return match[1], int(match[2])


class Call(Value):
    """A function of the vocabulary with its arguments."""

    name: str
    arguments: tuple[Expression, ...] = ()
    named: dict[str, Expression] = field(default_factory=dict)


class Nodes(Value):
    """A list of node ids or selectors in brackets."""

    members: tuple[Expression, ...]


class Not(Value):
    """The opposite of a condition."""

    of: Expression


class Both(Value):
    """Two conditions joined by ``and`` or ``or``."""

    word: str
    left: Expression
    right: Expression


class Comparison(Value):
    """Two values compared: ``== != < <= > >= in``, and ``not in``."""

    operator: str
    left: Expression
    right: Expression


Expression = Word | Call | Nodes | Not | Both | Comparison


def parse(text: str) -> Expression:
    """Parse a selector or a condition.

    Errors:  ScenarioError that shows the text and where it stops making sense.
    """
    try:
        checked_text(text, "a selector or condition", EXPRESSION_MAX)
    except UserError as error:
        raise ScenarioError(str(error)) from None
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.columns: list[int] = []
        self.at = self.levels = 0
        position, end, token = 0, len(text.rstrip()), re.compile(_TOKEN)
        while position < end:
            match = token.match(text, position)
            if not match:
                odd = text[position:].lstrip()[0]
                self.columns.append(text.index(odd, position))
                self.at = len(self.columns) - 1
                raise self.error(f"{odd!r} means nothing here")
            self.tokens.append(match[1] or match[2] or match[3])
            self.columns.append(match.start(match.lastindex or 0))
            position = match.end()

    def whole(self) -> Expression:
        expression = self.either()
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            why = "'=' compares nothing; write '=='" if token == "=" else f"{token!r} is too much"
            raise self.error(why)
        return expression

    def error(self, why: str) -> ScenarioError:
        column = self.columns[self.at] if self.at < len(self.columns) else len(self.text)
        shown = self.text if len(self.text) <= 80 else f"{self.text[:79]}…"
        return ScenarioError(f"{shown!r} cannot be understood at character {column + 1}: {why}")

    def peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, *wanted: str) -> str | None:
        if (token := self.peek()) in wanted:
            self.at += 1
            return token
        return None

    def need(self, wanted: str) -> None:
        if not self.take(wanted):
            raise self.error(f"{wanted!r} is missing")

    def either(self) -> Expression:
        left = self.both()
        while self.take("or"):
            left = Both("or", left, self.both())
        return left

    def both(self) -> Expression:
        left = self.negated()
        while self.take("and"):
            left = Both("and", left, self.negated())
        return left

    def negated(self) -> Expression:
        times = 0
        while self.take("not"):
            times += 1
        comparison = self.comparison()
        return Not(comparison) if times % 2 else comparison

    def comparison(self) -> Expression:
        left = self.term()
        if operator := self.take("==", "!=", "<=", ">=", "<", ">", "in"):
            return Comparison(operator, left, self.term())
        if self.peek() == "not":
            self.take("not")
            self.need("in")
            return Comparison("not in", left, self.term())
        return left

    def term(self) -> Expression:
        self.levels += 1
        if self.levels > LEVELS_MAX:
            raise self.error(f"parentheses and lists nest deeper than {LEVELS_MAX} levels")
        expression = self.one_term()
        self.levels -= 1
        return expression

    def one_term(self) -> Expression:
        if self.take("("):
            inner = self.either()
            self.need(")")
            return inner
        if self.take("["):
            return Nodes(self.arguments("]")[0])
        token = self.peek()
        if token is None:
            raise self.error("something is missing at the end")
        if token[0] in "\"'":
            self.at += 1
            return Word(token[1:-1], is_quoted=True)
        if token in _WORDS or not re.fullmatch(r"[A-Za-z0-9._-]+", token):
            raise self.error(f"{token!r} is in the wrong place")
        self.at += 1
        if not self.take("("):
            return Word(token)
        arguments, named = self.arguments(")")
        return Call(token, arguments, named)

    def arguments(self, end: str) -> tuple[tuple[Expression, ...], dict[str, Expression]]:
        positional: list[Expression] = []
        named: dict[str, Expression] = {}
        while not self.take(end):
            if positional or named:
                self.need(",")
            value = self.term()
            if isinstance(value, Word) and self.take("="):
                if value.text in named:
                    raise self.error(f"{value.text!r} is given twice")
                named[value.text] = self.term()
            elif named:
                raise self.error("an argument without a name comes before those with one")
            else:
                positional.append(value)
        return tuple(positional), named
