"""``python -m tests.kafka.cluster_tests CLASS…``: what comes of the tests of some classes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.kafka.cluster_tests.playing import HOLDS, count_by_outcome, full_name, play
from tests.kafka.jars import tests_missing

WITHIN_S = 3_600.0


def main(names: Sequence[str]) -> int:
    """Exit code 0 where no test failed."""
    if not names:
        print("usage: python -m tests.kafka.cluster_tests CLASS…", file=sys.stderr)
        return 64
    why = tests_missing()
    if why is not None:
        print(why, file=sys.stderr)
        return 69
    try:
        classes = [full_name(name) for name in names]
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 64
    folder = Path(tempfile.mkdtemp(prefix="kafka-cluster-tests-"))
    tests = play(classes, folder, within_s=WITHIN_S)
    for test in sorted(tests, key=lambda test: test.outcome):
        if test.outcome != HOLDS and "combined" not in test.message:
            print(f"{test.test}: {test.outcome}: {test.message}")
    counts = count_by_outcome(tests)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    print(f"what the processes said: {folder}")
    return 0 if counts["fails"] == 0 and counts[HOLDS] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
