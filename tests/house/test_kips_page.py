"""docs/reference/kips.md names only files, tests and rules that exist."""

from __future__ import annotations

import re
from dataclasses import fields

from docs.generate.pages import DOCS
from minicluster.rules import Rules
from tests.house.references import is_there

PAGE = (DOCS / "reference/kips.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line[1:-1].split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| The text requires"))
]
NAMED = re.findall(r"`([^`]+)`", PAGE)
PATHS = [name for name in NAMED if name.startswith(("minicluster/", "actors/", "tests/"))]


def test_every_file_and_every_test_of_the_page_is_there() -> None:
    assert len(PATHS) > 150
    assert [path for path in PATHS if not is_there(path)] == []


def test_every_requirement_lives_somewhere_and_is_shown_or_is_called_not_built() -> None:
    assert len(ROWS) > 70
    for row in ROWS:
        assert len(row) == 4, row
        built = "`minicluster/" in row[1] or "`tests/" in row[1]
        assert (built and "::test_" in row[2]) or "not built" in row[3], row


def test_the_rules_of_the_page_are_fields() -> None:
    known = {f.name for f in fields(Rules)}
    switches = [cell.rsplit(";", 1)[-1] for row in ROWS for cell in row[3:] if ";" in cell]
    named = [name for text in switches for name in re.findall(r"`(\w+)`", text)]
    assert named and [name for name in named if name not in known] == []


def test_every_kip_of_the_protocol_has_its_table() -> None:
    for kip in (497, 589, 704, 841, 903, 858, 966, 1066, 853, 996):
        assert re.search(rf"^## .*KIP-{kip}\b", PAGE, re.M), kip
