"""The words of docstrings, comments and scenarios: a Kafka engineer stops at none of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

import minicluster
from minicluster import verify
from tests.house.sources import (
    PACKAGES,
    ROOT,
    comments_of,
    docstrings_of,
    module_of,
    nodes_of,
    sources,
    tree_of,
)

NOT_HERE = re.compile(
    r"\b(answer(s|ed|ing)?|ask(s|ed|ing)?|questions?|repl(y|ies|ied|ying)|cuts?|cutting"
    r"|stands?|standing|stood|hear(s|d|ing)?|tell(s|ing)?|told|say(s|ing)?|said"
    r"|obey(s|ed|ing)?|knows?|knew|parted|parting|all the same|be it|too(?=[.,;:)]|\Z))\b",
    re.IGNORECASE,
)
"""Kafka's words are respond, request, response, truncate, diverge, report, state and so on."""

NOT_IN_NAMES = re.compile(
    r"answer(s|ed|ing)?|unanswered|asks?|asked|ask(er|ing)|questions?|repl(y|ies|ied|ying)"
    r"|hears?|heard|hearing|tells?|telling|told|untold|says?|saying|said|speaks?|spoken?|talks?"
    r"|obey(s|ed|ing)?|knows?|knew|stands?|standing|stood|parted|parting"
)
"""Words of people in identifiers; a ``cut`` is a disturbance of the network, and a name."""

KAFKAS_NAMES = {"BrokerHeartbeatReply", "BrokerRegistrationReply"}

EVERYWHERE = tuple(sources(*PACKAGES, "tests", "examples"))

CODE = re.compile(r"``.*?``|`.*?`|\"[^\"\n]*\"", re.DOTALL)
OPENING = re.compile(r"\s*(What|Who|Whether|How)\b")

SECTION = re.compile(r"^(Shapes|Units|Errors|Source|Versions):", re.MULTILINE)


def _prose(path: Path) -> Iterator[tuple[str, int]]:
    yield from docstrings_of(path)
    yield from comments_of(path)


def _where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def test_docstrings_and_comments_use_kafkas_words() -> None:
    wrong = [
        f"{_where(path, line)} {match[0]}"
        for path in EVERYWHERE
        if NOT_HERE.search(path.read_text())  # else there is nothing to look for
        for text, line in _prose(path)
        for match in NOT_HERE.finditer(CODE.sub("", text))
    ]
    assert not wrong, "\n".join(wrong)


def _prose_of_scenario(path: Path) -> str:
    """The name, the description and the comments of a scenario file."""
    text = path.read_text()
    header = yaml.safe_load(text)
    comments = re.findall(r"(?:^|\s)# (.*)", text)
    return "\n".join([header.get("name", ""), header.get("description", ""), *comments])


def test_scenarios_use_kafkas_words() -> None:
    files = [path for folder in ("examples", "tests") for path in (ROOT / folder).rglob("*.yaml")]
    wrong = [
        f"{path.relative_to(ROOT)} {match[0]}"
        for path in sorted(files)
        for match in NOT_HERE.finditer(CODE.sub("", _prose_of_scenario(path)))
    ]
    assert files and not wrong, "\n".join(wrong)


def _declared(path: Path) -> Iterator[tuple[str, int]]:
    """The names that a file gives to something, its own among them."""
    yield path.stem, 1
    for node in nodes_of(path):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.alias(asname=str(name)):
                yield name, node.lineno


def _words_of(name: str) -> list[str]:
    """The words of an identifier in lower case."""
    words = (re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", part) for part in name.split("_"))
    return [word.lower() for part in words for word in part]


def test_identifiers_use_kafkas_words() -> None:
    wrong = [
        f"{_where(path, line)} {name}"
        for path in EVERYWHERE
        for name, line in _declared(path)
        if name not in KAFKAS_NAMES and any(map(NOT_IN_NAMES.fullmatch, _words_of(name)))
    ]
    assert not wrong, "\n".join(wrong)


def test_docstrings_begin_with_the_thing_or_the_action() -> None:
    wrong = [
        f"{_where(path, line)} {text.split()[0]}"
        for path in EVERYWHERE
        for text, line in docstrings_of(path)
        if OPENING.match(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_file_has_a_header() -> None:
    wrong = [
        path.relative_to(ROOT).as_posix()
        for path in sources()
        if not ast.get_docstring(tree_of(path)) and path.name != "__init__.py"
    ]
    assert not wrong, "\n".join(wrong)


def _needs_sections(path: Path) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    """The machines with their inputs, the effects, and what users import."""
    homes = [
        (home, name)
        for face in (minicluster, verify)
        for name, home in face._HOMES.items()
        if home == module_of(path)
    ]
    for node in tree_of(path).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            if any(name == node.name for _, name in homes):
                yield node
            elif path.name == "machine.py" and node.name.endswith("Machine"):
                yield node
                yield from (
                    inner
                    for inner in getattr(node, "body", ())
                    if isinstance(inner, ast.FunctionDef) and inner.name.startswith("on_")
                )


def test_machines_and_public_names_state_their_shapes_units_errors_or_source() -> None:
    wrong = [
        f"{_where(path, node.lineno)} {node.name}"
        for path in sources()
        for node in _needs_sections(path)
        if not SECTION.search(ast.get_docstring(node) or "")
    ]
    assert not wrong, "\n".join(wrong)


def test_every_effect_has_a_docstring() -> None:
    wrong = [
        f"{_where(path, node.lineno)} {node.name}"
        for path in sources()
        if path.name == "effects.py"
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not ast.get_docstring(node)
    ]
    assert not wrong, "\n".join(wrong)
