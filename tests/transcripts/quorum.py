"""``python -m tests.transcripts quorum FILE… [--show N] [--format text|json]``.

Exit code 0 when every step agrees, 1 when one differs, 64 for a file that cannot
be played.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from minicluster.errors import UserError
from tests.transcripts.quorum_player import play
from tests.transcripts.report import DIFFER, Tally


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"{self.prog}: {message}", file=sys.stderr)
        sys.exit(UserError.exit_code)


def main(args: Sequence[str]) -> int:
    """Run the sub-command."""
    parser = _Parser(prog="python -m tests.transcripts quorum")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show N differences")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args(args)
    tally = Tally()
    try:
        for path in options.files:
            tally.add(play(path), options.show)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if options.format == "json":
        print(json.dumps(tally.as_json(), indent=2))
    else:
        print(tally.as_text())
    return 1 if tally.total(DIFFER) else 0
