"""``python -m tests.transcripts KIND FILE… [--show N] [--format text|json]``: the command line.

Exit code 0 when every step that is built agrees, 1 when one differs, 64 for misuse or when a file
cannot be played to its end; the others are played and counted nevertheless.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from minicluster.errors import UserError
from tests.transcripts.report import DIFFER, Outcome, Tally


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"{self.prog}: {message}", file=sys.stderr)
        sys.exit(UserError.exit_code)


def run(kind: str, play: Callable[[Path], Iterable[Outcome]], args: Sequence[str]) -> int:
    """Play the files that the arguments name and print how their steps came out."""
    parser = _Parser(prog=f"python -m tests.transcripts {kind}")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show N differences")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args(args)
    tally = Tally()
    unplayable = False
    for path in options.files:
        try:
            tally.add(play(path), options.show)
        except UserError as error:
            print(error, file=sys.stderr)
            unplayable = True
    if unplayable and not tally.counts:
        return UserError.exit_code
    if options.format == "json":
        print(json.dumps(tally.as_json(), indent=2))
    else:
        print(tally.as_text())
    if unplayable:
        return UserError.exit_code
    return 1 if tally.total(DIFFER) else 0
