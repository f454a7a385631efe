"""docs/zoo.md: every planted fault, where it acts, what shows it, which rule finds it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from minicluster.faults import Faults
from minicluster.rules import Rules
from tests.house.pages import table
from tests.zoo.table import PLANTS, ROOT

_HOMES = ("minicluster", "actors")
_DECLARED = ("faults.py", "rules.py")


def switches() -> dict[str, str]:
    """The field of each zoo id: of ``Faults``, and of ``Rules`` for bugs of Kafka's own."""
    return {**Faults.switches(), **Rules.zoo()}


def parts() -> dict[str, str]:
    """The two tables of the page."""
    names, texts = switches(), _texts()
    code = {path: path.read_text(encoding="utf-8") for path in _files(_HOMES)}
    tests = {path: path.read_text(encoding="utf-8") for path in _files(("tests",))}
    told = [
        (
            plant.zoo,
            f"`{names[plant.zoo]}`",
            texts[plant.zoo],
            _naming(code, names[plant.zoo]),
            f"`{plant.story}.yaml`",
            " ".join(plant.primary),
            "yes",
        )
        for plant in PLANTS
    ]
    by_story = {plant.zoo for plant in PLANTS}
    rest = [
        (zoo, f"`{name}`", texts[zoo], _naming(code, name), shown_elsewhere(zoo, name, tests))
        for zoo, name in names.items()
        if zoo not in by_story
    ]
    head = ("zoo", "switch", "what goes wrong", "acts in")
    return {
        "stories": table((*head, "story", "primary rules", "killed"), told),
        "machines": table((*head, "shown by"), rest),
    }


def shown_elsewhere(zoo: str, name: str, tests: dict[Path, str] | None = None) -> str:
    """The tests outside the zoo that plant a fault, nothing if none does."""
    if tests is None:
        tests = {path: path.read_text(encoding="utf-8") for path in _files(("tests",))}
    word = re.compile(rf"\b({zoo}|{name})\b")
    found = [p for p, text in tests.items() if p.name.startswith("test_") and word.search(text)]
    if not found and zoo in Rules.zoo():
        return "docs/rules.md"
    return "<br>".join(f"`{path.relative_to(ROOT)}`" for path in found)


def _texts() -> dict[str, str]:
    planted = {f.metadata["zoo"]: f.metadata["text"] for f in fields(Faults)}
    return {**dict.fromkeys(Rules.zoo(), "a bug of Kafka's own (docs/rules.md)"), **planted}


def _files(folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).parts
            links = ("minicluster/actors", "minicluster/fixtures")
            if path.name in _DECLARED or "/".join(parts[:2]) in links:
                continue
            if parts[:2] != ("tests", "house") and parts != ("tests", "zoo", "test_zoo.py"):
                yield path


def _naming(code: dict[Path, str], name: str) -> str:
    word = re.compile(rf"\b{name}\b")
    found = [path for path, text in code.items() if word.search(text)]
    return "<br>".join(f"`{path.relative_to(ROOT)}`" for path in found)
