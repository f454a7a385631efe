"""``python -m tests.kafka.partitions``: seeds on both partitions; ends with 1 on a difference.

``--record FOLDER`` writes what Kafka's partition did, for ``tests/transcripts``.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter

from tests.kafka.jars import EARLIER_VERSION, VERSION
from tests.kafka.partitions.drawing import Events
from tests.kafka.program import LineProgram
from tests.kafka.side_by_side import Json, Played, SideBySide, play_events
from tests.transcripts.partition import RULES
from tests.transcripts.partition_player import PartitionPlayer, compare_partition


def play(theirs: LineProgram, options: Namespace, seed: int) -> Played:
    """Play one seed, up to the first difference."""
    drawn = Events(seed)
    header = drawn.header(options.kafka)
    theirs.start(header)
    player, lines = PartitionPlayer(header, RULES[options.kafka].as_shipped()), [header]

    def step(line: Json) -> list[str]:
        return compare_partition(line, player.play(line))

    differences = play_events(theirs, drawn, lines, options.count, step)
    counts = Counter(_name(line) for line in lines[1:])
    name = f"kafka-{options.kafka}-partition-seed-{seed}"
    return Played(name=name, lines=lines, counts=counts, differences=differences)


def _name(line: Json) -> str:
    error = line["result"].get("error", "NONE")
    return line["event"]["kind"] + ("" if error == "NONE" else f" {error}")


main = SideBySide(
    name="partitions",
    about=__doc__,
    unit="events",
    count=400,
    java_class="org.apache.kafka.server.compared.PartitionProgram",
    play=play,
    releases=(VERSION, EARLIER_VERSION),
)

if __name__ == "__main__":
    sys.exit(main())
