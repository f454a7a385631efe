"""``python -m tests.kafka.quorum``: seeds on both nodes; ends with 1 on a difference.

``--record FOLDER`` writes what Kafka's node did, for ``tests/transcripts``.
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

from minicluster.quorum.errors import InconsistentState
from tests.kafka import recording
from tests.kafka.jars import test_jars_folder, tests_missing
from tests.kafka.program import LineProgram
from tests.kafka.quorum.drawing import Events
from tests.kafka.seeds import numbers
from tests.transcripts.quorum_player import Player

SOURCES = Path(__file__).with_name("java")
PROGRAM = "org.apache.kafka.raft.QuorumProgram"
POLLS = 5
Json = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.quorum", description=__doc__)
    parser.add_argument("--seeds", default="1-20", help="1-20, or 3,7,9")
    parser.add_argument("--events", type=int, default=600, help="of each seed")
    parser.add_argument("--record", type=Path, help="a folder for the recordings")
    options = parser.parse_args(arguments)
    reason = tests_missing()
    if reason is not None:
        print(reason, file=sys.stderr)
        return 1
    counts: Counter[str] = Counter()
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        # Its log in memory is in the test jar of Kafka's raft module.
        theirs = LineProgram(PROGRAM, [*SOURCES.glob("*.java")], test_jars_folder(), Path(folder))
        try:
            for seed in numbers(options.seeds):
                lines, differences = play(theirs, seed, options.events)
                counts.update(_names(lines))
                differ += bool(differences)
                if differences:
                    print(f"--- seed {seed}, event {len(lines) - 2}", *differences, "", sep="\n")
                if options.record is not None:
                    name = f"{lines[0]['name']}.jsonl.gz"
                    recording.write(options.record / name, lines)
        finally:
            theirs.close()
    print(f"{sum(counts.values())} events, {differ} seeds differ")
    for name, count in sorted(counts.items()):
        print(f"{count:8} {name}")
    return 1 if differ else 0


def play(theirs: LineProgram, seed: int, events: int) -> tuple[list[Json], Sequence[str]]:
    """The transcript of a seed up to the first difference, and that one."""
    drawn = Events(seed)
    header = drawn.header()
    theirs.start(header)
    player, lines = Player(header), [header]
    for number in range(events):
        event = drawn.next(player.log)
        done = theirs.send(event)
        if "fault" in done:
            ours = _after_fault(player, event)
            differences = [json.dumps(event), f"Kafka ends: {done['fault']}", ours]
            return lines, differences if ours else ()
        line = {"i": number, "event": {**event, **done.pop("named")}, **done}
        lines.append(line)
        try:
            differences = player.step(line)
        except Exception as error:  # an exception of ours is a difference
            differences = [f"{type(error).__name__}: {error}"]
        if differences:
            return lines, [json.dumps(line["event"]), *differences]
        drawn.follow(line)
    return lines, ()


def _after_fault(player: Player, event: Json) -> str:
    """What this node does where Kafka's ends itself; nothing to say where it does so, too."""
    try:
        player.play_on(event, POLLS)
    except InconsistentState:
        return ""
    except Exception as error:
        return f"here {type(error).__name__}: {error}"
    return f"here {player.machine.role} of epoch {player.machine.epoch}"


def _names(lines: Sequence[Json]) -> list[str]:
    return [
        f"{line['event']['kind']} {line['event'].get('api', '')} in {line['state']['role']}"
        for line in lines[1:]
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
