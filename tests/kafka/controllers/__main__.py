"""``python -m tests.kafka.controllers``: seeds on both controllers; ends with 1 where any differs.

``--record FOLDER`` writes what Kafka's controller did, for ``tests/transcripts``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minicluster.metadata.metadata_version import MetadataVersion
from tests.kafka import recording
from tests.kafka.controllers.seeds import Release, play
from tests.kafka.controllers.theirs import Theirs
from tests.kafka.jars import EARLIER_VERSION, VERSION, release_missing
from tests.kafka.seeds import numbers
from tests.transcripts.report import AGREE


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.controllers", description=__doc__)
    parser.add_argument("--kafka", default=VERSION, choices=(VERSION, EARLIER_VERSION))
    parser.add_argument("--metadata-version", default="4.3-IV0", type=MetadataVersion.parse)
    parser.add_argument("--elr", action="store_true", help="with eligible leader replicas")
    parser.add_argument("--features", action="store_true", help="with updates of features")
    parser.add_argument("--seeds", default="1-20", help="1-20, or 3,7,9")
    parser.add_argument("--operations", type=int, default=400, help="of each seed")
    parser.add_argument("--all", action="store_true", help="play on after a difference")
    parser.add_argument("--record", type=Path, help="a folder for the recordings")
    options = parser.parse_args(arguments)
    reason = release_missing(options.kafka)
    if reason is not None:
        print(reason, file=sys.stderr)
        return 1
    release = Release(
        kafka=options.kafka,
        metadata_version=options.metadata_version,
        elr=options.elr,
        updates_features=options.features,
    )
    counts: Counter[str] = Counter()
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        theirs = Theirs(release.kafka, Path(folder))
        try:
            for seed in numbers(options.seeds):
                lines: list[dict[str, Any]] = []
                for outcome in play(theirs, release, seed, options.operations, lines.append):
                    counts[outcome.operation] += 1
                    if outcome.verdict != AGREE:
                        differ += 1
                        print(f"--- {outcome.where} {outcome.operation}\n{outcome.detail}\n")
                        if not options.all:
                            break
                if options.record is not None:
                    _write(options.record, lines)
                if differ and not options.all:
                    break
        finally:
            theirs.close()
    print(f"{sum(counts.values())} operations, {differ} differ")
    for name, count in sorted(counts.items()):
        print(f"{count:8} {name}")
    return 1 if differ else 0


def _write(folder: Path, lines: Sequence[dict[str, Any]]) -> None:
    header = lines[0]
    elr = "-elr" if header["eligible_leader_replicas_version"] else ""
    version, seed = header["metadata_version"], header["seed"]
    path = folder / f"kafka-{header['kafka']}-mv-{version}{elr}-seed-{seed}.jsonl.gz"
    recording.write(path, lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
