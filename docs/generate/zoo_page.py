"""docs/reference/zoo.md: every planted fault, where it acts, what shows it, which rule finds it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path

import minicluster.zoo  # noqa: F401  (plants the faults)
from docs.generate.pages import table
from docs.generate.rules_page import described
from docs.generate.rules_shown import SHOWN_BY
from minicluster.faults import Faults
from minicluster.planting import PLANTED_AT
from minicluster.rules import Rules
from tests.zoo import measure_campaign
from tests.zoo.table import LEFT_OUT, MACHINES, PLANTS, ROOT
from tests.zoo.test_cluster_faults import STORIES as PROGRAMS

ZOO = ROOT / "minicluster" / "zoo"
_HOMES = ("minicluster", "actors")
_DECLARED = ("faults.py", "planting.py", "rules.py")


def switches() -> dict[str, str]:
    """The field of each zoo id: of ``Faults``, and of ``Rules`` for bugs of Kafka's own."""
    return {**Faults.switches(), **Rules.zoo()}


def parts() -> dict[str, str]:
    """The tables of the page."""
    names, texts = switches(), _texts()
    reported = [
        (
            plant.zoo,
            f"`{names[plant.zoo]}`",
            texts[plant.zoo],
            _naming(names[plant.zoo]),
            f"`{plant.story}.yaml`",
            " ".join(plant.primary),
            "yes",
        )
        for plant in PLANTS
    ]
    in_python = [
        (zoo, f"`{names[zoo]}`", texts[zoo], _naming(names[zoo]), f"`{story.__name__}`", rule)
        for zoo, (story, rule) in PROGRAMS.items()
    ]
    rest = [
        (
            zoo,
            f"`{names[zoo]}`",
            texts[zoo],
            _naming(names[zoo]),
            rules,
            why,
            shown_elsewhere(zoo, names[zoo]),
        )
        for zoo, (rules, why) in MACHINES.items()
        if zoo not in PROGRAMS
    ]
    head = ("zoo", "switch", "what goes wrong", "acts in")
    return {
        "stories": table((*head, "story", "primary rules", "killed"), reported),
        "programs": table((*head, "story", "primary rule"), in_python),
        "machines": table((*head, "rules", "why a machine", "shown by"), rest),
        "campaign": _campaign(),
        "left-out": table(
            ("zoo", "fault", "why there is no switch"),
            [(zoo, fault, why) for zoo, (fault, why) in LEFT_OUT.items()],
        ),
    }


def _campaign() -> str:
    """The seeds that a campaign needed for each fault, and how many faults it found."""
    measured = measure_campaign.results()
    known, rows = measure_campaign.faults(), []
    for zoo, found in measured.items():
        seeds = [number or "-" for number in (found.acted, found.found, found.primary)]
        tried = spans(found.tried)
        rows.append((zoo, " ".join(known[zoo]), tried, *seeds, " ".join(found.rules)))
    of_all = f"{len(measured)} of {len(known)} faults measured"
    any_rule = sum(found.found is not None for found in measured.values())
    by_primary = sum(found.primary is not None for found in measured.values())
    summary = f"{of_all}: {any_rule} found by any rule, {by_primary} by the primary one."
    head = ("zoo", "primary rules", "seeds tried", "acted", "found", "by primary", "found by")
    others = ", ".join(zoo for zoo in known if zoo not in measured)
    return f"{summary}\n\n{table(head, rows)}\n\nNot measured: {others or 'none'}."


def spans(numbers: Sequence[int]) -> str:
    """Numbers in order as spans: 1-3 7."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1] = [found[-1][0], number]
        else:
            found.append([number])
    return " ".join("-".join(map(str, span)) for span in found)


def shown_elsewhere(zoo: str, name: str) -> str:
    """The tests outside the zoo that plant a fault, nothing if none does."""
    found = [path for path in _using("tests", zoo, name) if path.name.startswith("test_")]
    names = [str(path.relative_to(ROOT)) for path in found]
    if not names and zoo in Rules.zoo():
        names = list(SHOWN_BY[name])
    return "<br>".join(f"`{name}`" for name in names)


def _texts() -> dict[str, str]:
    planted = {f.metadata["zoo"]: f.metadata["text"] for f in fields(Faults)}
    bugs = {reported.name: re.sub(r"^[\w.-]+: ", "", reported.text) for reported in described()}
    return {**{zoo: bugs[name] for zoo, name in Rules.zoo().items()}, **planted}


def _files(folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).parts
            links = ("minicluster/actors", "minicluster/fixtures")
            if path.name in _DECLARED or "/".join(parts[:2]) in links:
                continue
            if parts[:2] != ("tests", "house") and parts != ("tests", "zoo", "test_zoo.py"):
                yield path


@cache
def _words(folder: str) -> dict[Path, frozenset[str]]:
    """The words of each file of a folder."""
    texts = {path: path.read_text(encoding="utf-8") for path in _files((folder,))}
    return {path: frozenset(re.findall(r"\w+", text)) for path, text in texts.items()}


def _using(folder: str, *names: str) -> list[Path]:
    """The files of a folder that have one of these words."""
    return [path for path, words in _words(folder).items() if not words.isdisjoint(names)]


def _naming(name: str) -> str:
    """The steps that a fault is planted at, and the files that read the switch themselves."""
    found = [
        f"`{step.__module__.replace('.', '/')}.py` `{step.__name__}`"
        for step in PLANTED_AT.get(name, ())
        if step.__module__.startswith("minicluster.")  # a test may plant at its own
    ]
    for path in (path for folder in _HOMES for path in _using(folder, name)):
        if path.parent != ZOO:
            found.append(f"`{path.relative_to(ROOT)}`")
    return "<br>".join(dict.fromkeys(found))
