"""Programs that play seeds on Kafka's own classes, in a Java process, and on ours beside them.

What is a program's own is in its folder: what it draws (``drawing.py``), its Java sources
(``java/``, and ``java/<release>/`` for what differs between releases) and how a seed is played. Its
command line, seeds, counts, recordings and exit code are those of all.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.kafka.jars import VERSION, release_folder, release_missing
from tests.kafka.program import LineProgram

Json = dict[str, Any]
FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a seed.

    Shapes:  name: of its recording; lines: the transcript, which begins with its header;
             differences: texts that say where.
    """

    name: str
    lines: Sequence[Mapping[str, Any]]
    counts: Counter[str]
    differences: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """One of the programs; a call is its command.

    Shapes:  name: its package here; about: what ``--help`` says; unit and count: what a seed has,
             and how many by default; releases: the first one by default; jars and missing by
             release; options: those besides. play gets them all, with the release as ``kafka`` and
             how many as ``count``.
    """

    name: str
    about: str
    unit: str
    count: int
    java_class: str
    play: Callable[[LineProgram, argparse.Namespace, int], Played]
    releases: tuple[str, ...] = (VERSION,)
    jars: Callable[[str], Path] = release_folder
    missing: Callable[[str], str | None] = release_missing
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __call__(self, arguments: Sequence[str] | None = None) -> int:
        """Play the seeds; 1 where one differs."""
        options = self._parser().parse_args(arguments)
        reason = self.missing(options.kafka)
        if reason is not None:
            print(reason, file=sys.stderr)
            return 1
        counts: Counter[str] = Counter()
        steps = differ = 0
        with tempfile.TemporaryDirectory() as folder:
            theirs = LineProgram(
                self.java_class,
                self._sources(options.kafka),
                self.jars(options.kafka),
                Path(folder),
            )
            try:
                for seed in numbers(options.seeds):
                    played = self.play(theirs, options, seed)
                    steps += len(played.lines) - 1
                    counts += played.counts
                    differ += bool(played.differences)
                    for text in played.differences:
                        print(f"--- seed {seed}, {text}\n")
                    if options.record is not None:
                        _write(options.record / f"{played.name}.jsonl.gz", played.lines)
            finally:
                theirs.close()
        print(f"{steps} {self.unit}, {differ} seeds differ")
        for name, count in sorted(counts.items()):
            print(f"{count:8} {name}")
        return 1 if differ else 0

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m tests.kafka.{self.name}", description=self.about
        )
        parser.add_argument("--kafka", default=self.releases[0], choices=self.releases)
        for name, settings in self.options.items():
            parser.add_argument(name, **settings)
        parser.add_argument("--seeds", default="1-20", help="1-20, or 3,7,9")
        parser.add_argument(
            f"--{self.unit}", dest="count", type=int, default=self.count, help="of each seed"
        )
        parser.add_argument("--record", type=Path, help="a folder for the recordings")
        return parser

    def _sources(self, release: str) -> list[Path]:
        java = FOLDER / self.name / "java"
        return [*java.glob("*.java"), *(java / release).glob("*.java")]


class Drawn(Protocol):
    """What draws the events of a seed."""

    def next(self) -> Json:
        """The next event."""

    def follow(self, line: Json) -> None:
        """Take what came of it."""


def play_events(
    theirs: LineProgram,
    drawn: Drawn,
    lines: list[Json],
    count: int,
    step: Callable[[Json], list[str]],
) -> list[str]:
    """Add so many events and what came of them to a transcript, up to the first difference.

    Shapes:  lines begin with the header; step plays one of them on ours. Returns the differences.
    """
    for number in range(count):
        event = drawn.next()
        line = {"i": number, "event": event, **theirs.send(event)}
        lines.append(line)
        found = difference(f"event {number}", line, step)
        if found:
            return found
        drawn.follow(line)
    return []


def difference(where: str, line: Json, step: Callable[[Json], list[str]]) -> list[str]:
    """Play a line on ours: one text where they differ, with all that does; an exception is one."""
    try:
        differences = step(line)
    except Exception as error:
        differences = [f"{type(error).__name__}: {error}"]
    return ["\n".join([where, json.dumps(line["event"]), *differences])] if differences else []


def numbers(text: str) -> list[int]:
    """The seeds that are named: ``1-20``, or ``3,7,9``."""
    named: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        named += range(int(first), int(last or first) + 1)
    return named


def _write(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    # Without a date, so that the same recording has the same bytes.
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for line in lines:
            file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
