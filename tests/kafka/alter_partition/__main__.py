"""``python -m tests.kafka.alter_partition``: seeds on both managers; ends with 1 on a difference.

``--record FOLDER`` writes what Kafka's manager did, for ``tests/transcripts``.
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
from tests.kafka.alter_partition.drawing import Events
from tests.kafka.jars import EARLIER_VERSION, VERSION, release_folder, release_missing
from tests.kafka.program import LineProgram
from tests.kafka.seeds import numbers
from tests.transcripts.manager_player import ManagerPlayer, compare_manager
from tests.transcripts.partition import RULES

SOURCES = Path(__file__).with_name("java")
PROGRAM = "org.apache.kafka.server.compared.AlterPartitionProgram"
BROKER_ID, RETRY_MS, START_MS = 1, 50, 1_000_000
Json = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.kafka.alter_partition", description=__doc__
    )
    parser.add_argument("--kafka", default=VERSION, choices=(VERSION, EARLIER_VERSION))
    parser.add_argument("--seeds", default="1-20", help="1-20, or 3,7,9")
    parser.add_argument("--events", type=int, default=300, help="of each seed")
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
                counts.update(line["event"]["kind"] for line in lines[1:])
                differ += bool(differences)
                for difference in differences:
                    print(f"--- seed {seed}, event {len(lines) - 2}\n{difference}\n")
                if options.record is not None:
                    name = f"kafka-{options.kafka}-manager-seed-{seed}.jsonl.gz"
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
    header = {
        "transcript": "alter_partition_manager",
        "kafka": kafka,
        "seed": seed,
        "broker_id": BROKER_ID,
        "retry_ms": RETRY_MS,
        "start_ms": START_MS,
    }
    theirs.start(header)
    player, drawn, lines = ManagerPlayer(header, RULES[kafka].as_shipped()), Events(seed), [header]
    in_flight, sent = False, []
    for number in range(events):
        event = drawn.next(in_flight=in_flight, sent=sent)
        line = {"i": number, "event": event, **theirs.send(event)}
        lines.append(line)
        in_flight = line["state"]["in_flight"]
        sent = line["requests"][-1]["partitions"] if line["requests"] else sent
        differences = compare_manager(line, player.play(line))
        if differences:
            return lines, [json.dumps(event), *differences]
    return lines, ()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
