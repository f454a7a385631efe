"""The agreement of the machines with Kafka: every recorded response, counted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from docs.generate.conformance_rows import GROUPS, LEFT_OUT, row_ids
from docs.generate.pages import table
from docs.generate.short_table import Line
from minicluster.log.dump import dump_json
from minicluster.log.locating import locate
from tests.log.test_real_logs import DUMPS, dumped_controller, expected
from tests.transcripts import controller_player, partition, quorum_player
from tests.transcripts.report import AGREE, DIFFER, HASH_ORDER, NOT_BUILT, Tally
from tests.wire.compare import compare

TESTS = Path(__file__).resolve().parents[2] / "tests"
DATA = TESTS / "data"


@dataclass(slots=True)
class Measured:
    """The parts of the page, and the short table."""

    parts: dict[str, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)


@cache
def measure() -> Measured:
    """Hold everything that was recorded against the code; takes some seconds."""
    measured = Measured()
    for part in (_wire, _controller, _partition, _quorum, _logs, _rows):
        measured.parts[part.__name__.strip("_")] = part(measured.lines)
    return measured


def _wire(lines: list[Line]) -> str:
    rows: list[tuple[str, str, int, int, int, int]] = []
    for path in sorted((DATA / "wire").glob("*.jsonl.gz")):
        release = path.name.removesuffix(".jsonl.gz").replace("kafka-", "Kafka ")
        tallies = compare(path, 0).values()
        of_release = []
        for kind in dict.fromkeys(tally.kind for tally in tallies):
            some = [tally for tally in tallies if tally.kind == kind]
            agree = sum(tally.agree for tally in some)
            differ = sum(tally.differ for tally in some)
            missing = sum(tally.not_declared for tally in some)
            of_release.append((release, kind, len(some), agree, differ, missing))
        total = [sum(counts) for counts in zip(*(row[3:] for row in of_release), strict=True)]
        lines.append(Line(f"wire, {release}", *total))
        rows += of_release
    return table(("release", "kind", "messages", "agree", "differ", "not declared"), rows)


def _release(path: Path) -> str:
    match = re.match(r"kafka-([\d.]+\d)", path.name)
    return f"Kafka {match[1]}" if match else "Kafka 4.3.0"


def _tallies(kind: str, play: object) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    for path in sorted((DATA / f"{kind}-transcripts").glob("*.jsonl.gz")):
        tallies.setdefault(_release(path), Tally()).add(play(path), 0)  # type: ignore[operator]
    return tallies


def _transcripts(kind: str, play: object, lines: list[Line]) -> str:
    """One table: an operation a line, the releases side by side."""
    tallies = _tallies(kind, play)
    head = ["operation"]
    for release, tally in tallies.items():
        head += [f"{release}: agree", "differ", "not built"]
        differ = tally.total(DIFFER) + tally.total(HASH_ORDER)
        lines.append(Line(f"{kind}, {release}", tally.total(AGREE), differ, tally.total(NOT_BUILT)))
    rows: list[list[object]] = []
    for name in sorted({name for tally in tallies.values() for name in tally.counts}):
        row: list[object] = [name]
        for tally in tallies.values():
            counts = tally.counts.get(
                name, dict.fromkeys((AGREE, DIFFER, HASH_ORDER, NOT_BUILT), 0)
            )
            row += [counts[AGREE], counts[DIFFER] + counts[HASH_ORDER], counts[NOT_BUILT]]
        rows.append(row)
    whole: list[object] = ["all"]
    for tally in tallies.values():
        differ = tally.total(DIFFER) + tally.total(HASH_ORDER)
        whole += [tally.total(AGREE), differ, tally.total(NOT_BUILT)]
    return table(head, [*rows, whole])


def _controller(lines: list[Line]) -> str:
    return _transcripts("controller", controller_player.play, lines)


def _partition(lines: list[Line]) -> str:
    return _transcripts("partition", partition.play, lines)


def _quorum(lines: list[Line]) -> str:
    return _transcripts("quorum", quorum_player.play, lines)


def _logs(lines: list[Line]) -> str:
    rows = []
    agree = differ = 0
    for dump in DUMPS:
        ours = list(dump_json(locate(dumped_controller(dump))))
        theirs = expected(dump)
        if dump.parent.name == "cluster-3.3":  # that tool prints no LeaderChange, no bootstrap
            ours = [batch for batch in ours if batch["file"] != "bootstrap.checkpoint"]
            for batches in (ours, theirs):
                for batch in batches:
                    if batch["is_control"] and batch["records"][0].get("control") == "LeaderChange":
                        batch["records"][0]["data"] = None
        same = sum(one == other for one, other in zip(ours, theirs, strict=False))
        other = max(len(ours), len(theirs)) - same
        records = sum(len(batch["records"]) for batch in theirs)
        rows.append((dump.parent.name, dump.name, len(theirs), records, same, other))
        agree, differ = agree + same, differ + other
    lines.append(Line("batches of real logs", agree, differ, 0))
    return table(("log", "dump", "batches", "records", "agree", "differ"), rows)


# --- conformance rows: which of them a test names ----------------------------------------------

_UPPER = re.compile(r"(?<![\w.])([A-J])(\d{2}[a-c]?)(?:-([A-J])(\d{2}))?(?![\d])")
_IN_NAME = re.compile(r"_([A-Ja-j]\d{2}[a-c]?)(?=_|$)")
_ROOMS = {
    **dict.fromkeys("ABCDE", ("controller", "metadata", "replica")),
    **dict.fromkeys("FG", ("replica",)),
    "H": ("metadata",),
    "I": ("quorum",),
    "J": ("protocol", "log", "quorum"),
}


def _mentions(text: str) -> Iterator[str]:
    for group, number, other, last in _UPPER.findall(text):
        yield group + number
        if other == group:
            for n in range(int(number[:2]) + 1, int(last) + 1):
                yield f"{group}{n:02}"


def named_rows(room: str) -> tuple[set[str], set[str]]:
    """The rows that tests of a room name, and those in the span that a file's heading names."""
    named: set[str] = set()
    headed: set[str] = set()
    for path in sorted((TESTS / room).glob("test_*.py")):
        text = path.read_text()
        heading = ast.get_docstring(ast.parse(text), clean=False) or ""
        headed.update(_mentions(heading))
        body = text.replace(heading, "", 1)
        named.update(_mentions(body))
        for name in re.findall(r"def (test_\w+)", body):
            named.update(row[0].upper() + row[1:] for row in _IN_NAME.findall(name))
    return named, headed


def _rows(lines: list[Line]) -> str:
    rows: list[tuple[str, str, int, int, int, int]] = []
    found = {room: named_rows(room) for rooms in _ROOMS.values() for room in rooms}
    for group, (title, _) in GROUPS.items():
        ids = set(row_ids(group)) - set(LEFT_OUT)
        named = {row for room in _ROOMS[group] for row in found[room][0]} & ids
        headed = {row for room in _ROOMS[group] for row in found[room][1]} & ids - named
        missing = len(ids - named - headed)
        lines.append(Line(f"rows {group} with a test", len(named | headed), 0, missing))
        rows.append((group, title, len(ids), len(named), len(headed), missing))
    ids_of_all, named_of_all, headed_of_all, missing_of_all = (
        sum(counts) for counts in zip(*(row[2:] for row in rows), strict=True)
    )
    rows.append(("", "all", ids_of_all, named_of_all, headed_of_all, missing_of_all))
    head = ("", "group", "rows", "named by a test", "in the span of a test file", "not named")
    left_out = [f"{row}: {why}." for row, why in LEFT_OUT.items()]
    return table(head, rows) + "\n\nLeft out: " + " ".join(left_out)
