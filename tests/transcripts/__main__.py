"""``python -m tests.transcripts KIND FILE…``: play recorded transcripts against the machines."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from minicluster.errors import UserError
from tests.transcripts.runner import run

# Each module has ``play(path) -> outcomes``; only the one that is named is imported.
PLAYERS = {
    "clients": "tests.transcripts.clients",
    "controller": "tests.transcripts.controller_player",
    "groups": "tests.transcripts.groups.play",
    "partition": "tests.transcripts.partition",
    "quorum": "tests.transcripts.quorum_player",
    "zookeeper": "tests.transcripts.zookeeper.play",
}


def main(args: Sequence[str]) -> int:
    """Hand the arguments to the player of the kind that the first one names."""
    if not args or args[0] not in PLAYERS:
        print(f"usage: python -m tests.transcripts {'|'.join(PLAYERS)} FILE…", file=sys.stderr)
        return UserError.exit_code
    kind = args[0]
    return run(kind, importlib.import_module(PLAYERS[kind]).play, args[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
