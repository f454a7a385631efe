"""``python -m tests.kafka.cluster_tests [--class-path PATH] CLASS…``: what comes of their tests.

PATH, as Java has it, is for classes that no jar of Kafka's has, such as those of its module
clients-integration-tests, which are compiled against the jars before; their names have packages.
``former.PlaintextConsumerTest`` is a class of 4.0's (``former.py``).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.kafka.cluster_tests.playing import HOLDS, count_by_outcome, play
from tests.kafka.jars import tests_missing

WITHIN_S = 3_600.0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.cluster_tests")
    parser.add_argument(
        "--class-path",
        metavar="PATH",
        type=lambda text: [str(Path(part).resolve()) for part in text.split(os.pathsep)],
        default=[],
        help="folders and jars of other classes",
    )
    parser.add_argument("classes", metavar="CLASS", nargs="+", help="with its package or without")
    return parser


def main(words: Sequence[str]) -> int:
    """Exit code 0 where no test failed."""
    arguments = _parser().parse_args(words)
    why = tests_missing()
    if why is not None:
        print(why, file=sys.stderr)
        return 69
    folder = Path(tempfile.mkdtemp(prefix="kafka-cluster-tests-"))
    try:
        tests = play(arguments.classes, folder, within_s=WITHIN_S, class_path=arguments.class_path)
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 64
    for test in sorted(tests, key=lambda test: test.outcome):
        if test.outcome != HOLDS and "combined" not in test.message:
            print(f"{test.test}: {test.outcome}: {test.message}")
    counts = count_by_outcome(tests)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    print(f"what the processes said: {folder}")
    return 0 if counts["fails"] == 0 and counts[HOLDS] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
