"""``python -m tests.bench.instructions [COMMIT …]``: millions of instructions of each, and of this
tree; ``--minutes 1,10``: of these minutes of the load as well, of this tree.
"""

from __future__ import annotations

import argparse

from tests.bench.instructions.counting import ROOT, lacking, millions, of_commit


def main() -> None:
    """Print a line for each commit."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.instructions")
    parser.add_argument("commits", nargs="*", metavar="COMMIT")
    parser.add_argument("--minutes", default="", help="minutes of the load, such as 1,10")
    arguments = parser.parse_args()
    if why := lacking():
        parser.exit(1, f"{why}\n")
    minutes = [int(minute) for minute in arguments.minutes.split(",") if minute]
    for commit in arguments.commits:
        _show(commit, of_commit(commit))
    _show("this tree", millions(ROOT, minutes))


def _show(commit: str, costs: dict[str, float]) -> None:
    shown = ", ".join(f"{name} {cost:.1f}" for name, cost in costs.items())
    print(f"{commit}: {shown}", flush=True)


if __name__ == "__main__":
    main()
