"""``python -m tests.kafka.partitions``: seeds on both partitions; ends with 1 on a difference.

``--record FOLDER`` writes what Kafka's partition did, for ``tests/transcripts``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.kafka import recording
from tests.kafka.jars import EARLIER_VERSION, VERSION, release_folder, release_missing
from tests.kafka.partitions.drawing import Events
from tests.kafka.program import LineProgram
from tests.kafka.seeds import numbers
from tests.transcripts.partition import RULES
from tests.transcripts.partition_player import PartitionPlayer, compare_partition

SOURCES = Path(__file__).with_name("java")
PROGRAM = "org.apache.kafka.server.compared.PartitionProgram"
Json = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.partitions", description=__doc__)
    parser.add_argument("--kafka", default=VERSION, choices=(VERSION, EARLIER_VERSION))
    parser.add_argument("--seeds", default="1-20", help="1-20, or 3,7,9")
    parser.add_argument("--events", type=int, default=400, help="of each seed")
    parser.add_argument("--record", type=Path, help="a folder for the recordings")
    options = parser.parse_args(arguments)
    reason = release_missing(options.kafka)
    if reason is not None:
        print(reason, file=sys.stderr)
        return 1
    counts: Counter[str] = Counter()
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        sources = [*SOURCES.glob("*.java"), *(SOURCES / options.kafka).glob("*.java")]
        theirs = LineProgram(PROGRAM, sources, release_folder(options.kafka), Path(folder))
        try:
            for seed in numbers(options.seeds):
                lines, differences = play(theirs, options.kafka, seed, options.events)
                counts.update(_name(line) for line in lines[1:])
                differ += bool(differences)
                for difference in differences:
                    print(f"--- seed {seed}, event {len(lines) - 2}\n{difference}\n")
                if options.record is not None:
                    name = f"kafka-{options.kafka}-partition-seed-{seed}.jsonl.gz"
                    recording.write(options.record / name, lines)
        finally:
            theirs.close()
    print(f"{sum(counts.values())} events, {differ} seeds differ")
    for name, count in sorted(counts.items()):
        print(f"{count:8} {name}")
    return 1 if differ else 0


def play(
    theirs: LineProgram, kafka: str, seed: int, events: int
) -> tuple[list[Json], Sequence[str]]:
    """The transcript of a seed up to the first difference, and that one."""
    drawn = Events(seed)
    header = drawn.header(kafka)
    theirs.start(header)
    player, lines = PartitionPlayer(header, RULES[kafka].as_shipped()), [header]
    for number in range(events):
        event = drawn.next()
        line = {"i": number, "event": event, **theirs.send(event)}
        lines.append(line)
        try:
            differences = compare_partition(line, player.play(line))
        except Exception as error:  # an exception of ours is a difference
            differences = [f"{type(error).__name__}: {error}"]
        if differences:
            return lines, [json.dumps(event), *differences]
        drawn.follow(line)
    return lines, ()


def _name(line: Json) -> str:
    error = line["result"].get("error", "NONE")
    return line["event"]["kind"] + ("" if error == "NONE" else f" {error}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
