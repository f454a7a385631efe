"""``python -m tests.kafka.quorum``: seeds on both nodes; ends with 1 on a difference.

``--record FOLDER`` writes what Kafka's node did, for ``tests/transcripts``.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections import Counter
from pathlib import Path

from minicluster.quorum.errors import InconsistentState
from tests.kafka.jars import test_jars_folder, tests_missing
from tests.kafka.program import LineProgram
from tests.kafka.quorum.drawing import Events
from tests.kafka.side_by_side import Json, Played, SideBySide, difference
from tests.transcripts.quorum_player import Player

POLLS = 5


def play(theirs: LineProgram, options: Namespace, seed: int) -> Played:
    """Play one seed, up to the first difference."""
    drawn = Events(seed)
    header = drawn.header()
    theirs.start(header)
    lines = [header]
    differences = _play(theirs, drawn, lines, options.count)
    counts = Counter(_name(line) for line in lines[1:])
    return Played(name=header["name"], lines=lines, counts=counts, differences=differences)


def _play(theirs: LineProgram, drawn: Events, lines: list[Json], count: int) -> list[str]:
    player = Player(lines[0])
    for number in range(count):
        event = drawn.next(player.log)
        done = theirs.send(event)
        where = f"event {number}"
        if "fault" in done:
            ours = _after_fault(player, event)
            ends = f"{where}\n{json.dumps(event)}\nKafka ends: {done['fault']}\n{ours}"
            return [ends] if ours else []
        line = {"i": number, "event": {**event, **done.pop("named")}, **done}
        lines.append(line)
        found = difference(where, line, player.step)
        if found:
            return found
        drawn.follow(line)
    return []


def _after_fault(player: Player, event: Json) -> str:
    """What this node does where Kafka's ends itself; nothing to say where it does so, too."""
    try:
        player.play_on(event, POLLS)
    except InconsistentState:
        return ""
    except Exception as error:
        return f"here {type(error).__name__}: {error}"
    return f"here {player.machine.role} of epoch {player.machine.epoch}"


def _name(line: Json) -> str:
    event = line["event"]
    return f"{event['kind']} {event.get('api', '')} in {line['state']['role']}"


def _jars(_: str) -> Path:
    return test_jars_folder()  # its log in memory is in the test jar of Kafka's raft module


main = SideBySide(
    name="quorum",
    about=__doc__,
    unit="events",
    count=600,
    java_class="org.apache.kafka.raft.QuorumProgram",
    play=play,
    jars=_jars,
    missing=lambda _: tests_missing(),
)

if __name__ == "__main__":
    sys.exit(main())
