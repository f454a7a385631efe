"""The program of a second play: a scenario on standard input, its trace hash on standard output."""

from __future__ import annotations

import json
import sys

from minicluster.actors.play.player import play_once
from minicluster.errors import UserError
from minicluster.scenario.reading import scenario_of


def main() -> int:
    """Play the scenario on standard input and print its trace hash."""
    try:
        scenario = scenario_of(json.load(sys.stdin), where="scenario")
        cluster, _ = play_once(scenario)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{cluster.trace_hash}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
