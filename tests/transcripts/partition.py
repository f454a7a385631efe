"""Play partition transcripts and say, per kind of event, how many agree.

``python -m tests.transcripts partition FILE… [--show N] [--format text|json]``
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minicluster.rules import Rules
from tests.transcripts.manager_player import ManagerPlayer, compare_manager
from tests.transcripts.partition_player import PartitionPlayer, compare_partition

Json = dict[str, Any]

_PLAYERS: Mapping[str, tuple[Callable[..., Any], Callable[..., list[str]], str]] = {
    "partition": (PartitionPlayer, compare_partition, ""),
    "alter_partition_manager": (ManagerPlayer, compare_manager, "manager "),
}


class NotATranscript(Exception):
    """The file holds something else; the text is one line."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One event where Kafka and the machine part."""

    file: str
    index: int
    kind: str
    event: Json
    what: list[str]


@dataclass(slots=True)
class Tally:
    """What was played: by kind of event, how many agree and how many differ."""

    agree: dict[str, int] = field(default_factory=dict)
    differ: dict[str, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    @property
    def events(self) -> int:
        """All events played."""
        return sum(self.agree.values()) + sum(self.differ.values())


def read(path: Path) -> tuple[Json, list[Json]]:
    """A transcript's header and its lines.

    Errors:  NotATranscript.
    """
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8") as file:
            header, *lines = (json.loads(line) for line in file)
    except (OSError, EOFError, ValueError) as why:
        raise NotATranscript(f"{path}: {why}") from None
    if not isinstance(header, dict) or header.get("transcript") not in _PLAYERS:
        raise NotATranscript(f"{path}: no partition transcript; its first line should say so")
    return header, lines


def play(path: Path, tally: Tally, rules: Rules | None = None) -> None:
    """Play one file into a tally; by default with the rules of 4.3 as shipped."""
    header, lines = read(path)
    player_of, compare, prefix = _PLAYERS[header["transcript"]]
    player = player_of(header, Rules.KAFKA_4_3.as_shipped() if rules is None else rules)
    for line in lines:
        kind = prefix + line["event"]["kind"]
        try:
            what = compare(line, player.play(line))
        except Exception as error:  # a machine that breaks differs, too
            what = [f"{type(error).__name__}: {error}"]
        counts = tally.differ if what else tally.agree
        counts[kind] = counts.get(kind, 0) + 1
        if what:
            tally.differences.append(Difference(path.name, line["i"], kind, line["event"], what))


def as_json(tally: Tally) -> Json:
    """The tally as data."""
    kinds = sorted({*tally.agree, *tally.differ})
    return {
        "events": tally.events,
        "agree": sum(tally.agree.values()),
        "differ": sum(tally.differ.values()),
        "operations": {
            kind: {"agree": tally.agree.get(kind, 0), "differ": tally.differ.get(kind, 0)}
            for kind in kinds
        },
    }


def as_text(tally: Tally) -> str:
    """The tally as a table."""
    table = as_json(tally)
    rows = [
        f"{kind:34} {counts['agree']:6} agree {counts['differ']:6} differ"
        for kind, counts in table["operations"].items()
    ]
    rows.append(f"{'all':34} {table['agree']:6} agree {table['differ']:6} differ")
    return "\n".join(rows)


def main(args: Sequence[str]) -> int:
    """Run the sub-command: 0 all agree, 1 some differ, 64 misuse."""
    parser = argparse.ArgumentParser(prog="python -m tests.transcripts partition")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show N differences")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args(args)
    tally = Tally()
    for path in options.files:
        try:
            play(path, tally)
        except NotATranscript as why:
            print(why, file=sys.stderr)
            return 64
    shown = tally.differences[: options.show]
    if options.format == "json":
        differences = [
            {"file": d.file, "i": d.index, "event": d.event, "what": d.what} for d in shown
        ]
        print(json.dumps({**as_json(tally), "differences": differences}, indent=2))
    else:
        for difference in shown:
            print(f"{difference.file} i={difference.index} {json.dumps(difference.event)}")
            print("".join(f"    {what}\n" for what in difference.what), end="")
        print(as_text(tally))
    return 1 if tally.differences else 0
