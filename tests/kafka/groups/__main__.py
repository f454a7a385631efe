"""``python -m tests.kafka.groups``: seeds on both coordinators; ends with 1 where any differs.

``--record FOLDER`` writes what Kafka's coordinator did, for ``tests/transcripts``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.kafka import recording
from tests.kafka.groups.seeds import play
from tests.kafka.groups.theirs import Theirs
from tests.kafka.jars import VERSION, missing
from tests.kafka.seeds import numbers
from tests.transcripts.groups.compare import Outcome


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.groups", description=__doc__)
    parser.add_argument("--seeds", default="1-20", help="1-20, or 3,7,9")
    parser.add_argument("--operations", type=int, default=400, help="of each seed")
    parser.add_argument("--all", action="store_true", help="play the others after a difference")
    parser.add_argument("--record", type=Path, help="a folder for the recordings")
    options = parser.parse_args(arguments)
    reason = missing()
    if reason is not None:
        print(reason, file=sys.stderr)
        return 1
    counts: Counter[str] = Counter()
    operations = differ = 0
    with tempfile.TemporaryDirectory() as folder:
        theirs = Theirs(Path(folder))
        try:
            for seed in numbers(options.seeds):
                outcome = _play(theirs, seed, options.operations, options.record)
                operations += outcome.operations
                counts += outcome.counts
                if outcome.difference is not None:
                    differ += 1
                    print(
                        f"--- seed {seed}, operation {outcome.operations}\n{outcome.difference}\n"
                    )
                    if not options.all:
                        break
        finally:
            theirs.close()
    print(f"{operations} operations, {differ} seeds differ")
    for name, count in sorted(counts.items()):
        print(f"{count:8} {name}")
    return 1 if differ else 0


def _play(theirs: Theirs, seed: int, operations: int, folder: Path | None) -> Outcome:
    if folder is None:
        return play(theirs, seed, operations)
    path = folder / f"kafka-{VERSION}-groups-seed-{seed}.jsonl.gz"
    lines: list[dict[str, Any]] = []
    outcome = play(
        theirs,
        seed,
        operations,
        lambda command, step: lines.append({**command, **step.form()}),
    )
    recording.write(path, lines)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
