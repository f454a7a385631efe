"""``python -m tests.kafka.alter_partition``: seeds on both managers; ends with 1 on a difference.

``--record FOLDER`` writes what Kafka's manager did, for ``tests/transcripts``.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter

from tests.kafka.alter_partition.drawing import Events
from tests.kafka.jars import EARLIER_VERSION, VERSION
from tests.kafka.program import LineProgram
from tests.kafka.side_by_side import Json, Played, SideBySide, play_events
from tests.transcripts.manager_player import ManagerPlayer, compare_manager
from tests.transcripts.partition import RULES


def play(theirs: LineProgram, options: Namespace, seed: int) -> Played:
    """Play one seed, up to the first difference."""
    drawn = Events(seed)
    header = drawn.header(options.kafka)
    theirs.start(header)
    player, lines = ManagerPlayer(header, RULES[options.kafka].as_shipped()), [header]

    def step(line: Json) -> list[str]:
        return compare_manager(line, player.play(line))

    differences = play_events(theirs, drawn, lines, options.count, step)
    counts = Counter(line["event"]["kind"] for line in lines[1:])
    name = f"kafka-{options.kafka}-manager-seed-{seed}"
    return Played(name=name, lines=lines, counts=counts, differences=differences)


main = SideBySide(
    name="alter_partition",
    about=__doc__,
    unit="events",
    count=300,
    java_class="org.apache.kafka.server.compared.AlterPartitionProgram",
    play=play,
    releases=(VERSION, EARLIER_VERSION),
)

if __name__ == "__main__":
    sys.exit(main())
