"""docs/reference/programs.md: where each fault of a program was found, and aiokafka's own tests."""

from __future__ import annotations

from collections import defaultdict

import yaml

from docs.generate.pages import table
from tests.programs.aiokafka_own.__main__ import LISTED
from tests.programs.zoo.table import FAULTS, module_of


def parts() -> dict[str, str]:
    """The tables of the page."""
    return {"faults": _faults(), "aiokafka": _aiokafka()}


def _faults() -> str:
    rows = [
        (
            f"[`{fault.name}`](../../tests/programs/zoo/{fault.name}.py)",
            (module_of(fault.name).__doc__ or "").partition("\n")[0],
            fault.disturbances,
            fault.seed,
            f"{fault.drawn} → {fault.left}",
            fault.survived,
        )
        for fault in FAULTS
    ]
    head = ("program", "its fault", "disturbances", "first seed", "shrunk", "seeds survived")
    return table(head, rows)


def _aiokafka() -> str:
    listed = yaml.safe_load(LISTED.read_text())
    because: dict[str, list[str]] = defaultdict(list)
    for name, reason in listed["others"].items():
        because[reason].append(f"`{name.rpartition('.')[2]}`")
    rows = [
        (len(listed["holds"]), "it holds", ""),
        *((len(names), reason, ", ".join(names)) for reason, names in because.items()),
    ]
    return table(("tests", "in the simulation", "which"), rows)
