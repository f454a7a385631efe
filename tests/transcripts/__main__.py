"""``python -m tests.transcripts KIND FILE…``: play recorded transcripts against the machines."""

from __future__ import annotations

import importlib
import sys

# Each module has ``main(args) -> exit code``.
KINDS = {
    "controller": "tests.transcripts.controller",
    "partition": "tests.transcripts.partition",
    "quorum": "tests.transcripts.quorum",
}


def main(args: list[str]) -> int:
    """Hand the arguments to the player of the kind that the first one names."""
    if not args or args[0] not in KINDS:
        print(f"usage: python -m tests.transcripts {'|'.join(KINDS)} FILE…", file=sys.stderr)
        return 64
    return int(importlib.import_module(KINDS[args[0]]).main(args[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
