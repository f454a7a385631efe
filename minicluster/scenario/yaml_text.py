"""YAML as plain values: text, numbers, truths, null, lists, and mappings whose names are text.

PyYAML splits the text into events; the values are built here, so that nothing but plain values
comes out, each with its line and column, and nothing grows beyond the text. Anchors, aliases and
tags are rejected: a scenario needs none, and an alias of an alias is a file of 500 bytes with a
billion values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml

from minicluster.errors import UserError
from minicluster.scenario.checks.limits import DIGITS_MAX, LEVELS_MAX, checked_text
from minicluster.scenario.document import QUOTE_HINT, Document, Path
from minicluster.scenario.errors import ScenarioError

_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_BOOL, _NULL = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:null"


_NOTHING, _NO_DASH = "{do: heal}", "\0"
_INSIDE = ("", " ", "-", "#", "]", "}")  # a line that begins so begins no part of the header


class NotYaml(ScenarioError):
    """A text that is not YAML, or no plain values; ``line`` begins what cannot be read."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


def without_item(text: str, line: int) -> str:
    """A text without the step, or the part of the header, that cannot be read at a line.

    Shapes:  lines count from 1 and stay where they are; the same text where the line is in no part.
    """
    lines = text.split("\n")
    headings = (number for number, each in enumerate(lines) if each.startswith("steps:"))
    steps = next(headings, len(lines))
    dashes = (re.match(r" *- ", each) for each in lines[steps + 1 :])
    dash = next((match[0] for match in dashes if match), _NO_DASH)

    def is_step(number: int) -> bool:
        return number > steps and lines[number].startswith(dash)

    def begins(number: int) -> bool:
        return is_step(number) or lines[number][:1] not in _INSIDE

    first = next(filter(begins, range(min(line, len(lines)) - 1, -1, -1)), steps)
    if first == steps:
        return text
    last = next(filter(begins, range(first + 1, len(lines))), len(lines))
    # A step in its place: without one, the numbers of all later steps would be others.
    instead = dash + _NOTHING if is_step(first) else ""
    lines[first:last] = [instead, *[""] * (last - first - 1)]
    return "\n".join(lines)


def read_yaml(text: str, where: str) -> Document:
    """Read a text of one YAML document.

    Errors:  NotYaml in one line with the line and the column.
    """
    builder = _Builder(text, where)
    try:
        return builder.document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        why = f"{problem or 'cannot be read'} ({QUOTE_HINT})"
        if "'\\t'" in str(problem):
            why = "a tab; YAML is indented with spaces"
        if isinstance(error, yaml.reader.ReaderError):
            line = text.count("\n", 0, error.position) + 1
            column = error.position - text.rfind("\n", 0, error.position)
            place, why = f":{line}:{column}", f"{error.reason}"
        else:
            begin = getattr(error, "context_mark", None) or mark  # of the list that is not closed
            line = begin.line + 1 if begin else 0
        raise NotYaml(f"{where}{place}: not YAML: {why}", line) from None


class _Builder:
    def __init__(self, text: str, where: str) -> None:
        self.where = where
        self.places: dict[Path, tuple[int, int]] = {}
        self._events: Iterator[Any] = iter(yaml.parse(text, yaml.SafeLoader))
        self._resolver: Any = yaml.resolver.Resolver()
        self._numbers = yaml.constructor.SafeConstructor()

    def document(self) -> Document:
        event = self._next()
        while not isinstance(event, yaml.NodeEvent | yaml.StreamEndEvent):
            event = self._next()
        value = None if isinstance(event, yaml.StreamEndEvent) else self._value(event, ())
        event = self._next() if not isinstance(event, yaml.StreamEndEvent) else event
        while not isinstance(event, yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                self._reject(event, "a second document begins; a scenario is one")
            event = self._next()
        return Document(self.where, value, self.places)

    def _next(self) -> Any:
        return next(self._events)

    def _reject(self, event: Any, why: str) -> NoReturn:
        mark = event.start_mark
        line = mark.line + 1
        raise NotYaml(f"{self.where}:{line}:{mark.column + 1}: {why}", line)

    def _value(self, event: Any, path: Path) -> Any:
        self.places[path] = (event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, yaml.AliasEvent):
            self._reject(event, f"*{event.anchor} is an alias; write the value out")
        if event.anchor is not None:
            self._reject(event, f"&{event.anchor} is an anchor, which nothing may refer to")
        if event.tag is not None and event.tag != "!":
            self._reject(event, f"{event.tag} is a tag; write plain text, numbers, true or false")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if len(path) >= LEVELS_MAX:
            self._reject(event, f"lists and mappings nest deeper than {LEVELS_MAX} levels")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(path)
        return self._mapping(path)

    def _list(self, path: Path) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._value(event, (*path, len(items))))
        return items

    def _mapping(self, path: Path) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            name = self._name(event)
            if name in items:  # one of the two values would be lost
                self._reject(event, f"{name[:60]!r} is given twice")
            items[name] = self._value(self._next(), (*path, name))
        return items

    def _name(self, event: Any) -> str:
        """A name is its text, also where YAML 1.1 sees a truth, as in ``off: true``."""
        if not isinstance(event, yaml.ScalarEvent) or event.tag not in (None, "!") or event.anchor:
            self._reject(event, "a name is plain text, no list, mapping, alias or tag")
        if not event.value or (event.implicit[0] and event.value in ("~", "null", "<<")):
            self._reject(event, f"{event.value!r} is not a name")
        return self._text(event)

    def _text(self, event: Any) -> str:
        try:
            return checked_text(event.value, "text")
        except UserError as error:
            self._reject(event, str(error).removeprefix("text: "))

    def _scalar(self, event: Any) -> Any:
        """A value by the core types of YAML 1.1; a date is text."""
        text = self._text(event)
        if not event.implicit[0]:
            return text
        tag = self._resolver.resolve(yaml.ScalarNode, text, event.implicit)
        if tag == _NULL:
            return None
        if tag not in (_INT, _FLOAT, _BOOL):
            return text
        if len(text) > DIGITS_MAX and tag != _BOOL:
            self._reject(event, f"a number of {len(text)} characters; {DIGITS_MAX} are allowed")
        node = yaml.ScalarNode(tag, text)
        try:
            if tag == _BOOL:
                return self._numbers.construct_yaml_bool(node)
            if tag == _INT:
                return self._numbers.construct_yaml_int(node)
            return self._numbers.construct_yaml_float(node)
        except ValueError:
            self._reject(event, f"{text!r} looks like a number and is none; quote it if it is text")
