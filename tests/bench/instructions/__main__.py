"""``python -m tests.bench.instructions [COMMIT …]``: millions of instructions of each, and of this
tree; ``--of "idle,minute 10"``: of these works alone.
"""

from __future__ import annotations

import argparse

from tests.bench.instructions.counting import ROOT, WORKS, lacking, millions, of_commit


def main() -> None:
    """Print a line for each commit."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.instructions")
    parser.add_argument("commits", nargs="*", metavar="COMMIT")
    parser.add_argument("--of", default=",".join(WORKS), help="such as: idle,minute 10")
    arguments = parser.parse_args()
    if why := lacking():
        parser.exit(1, f"{why}\n")
    works = arguments.of.split(",")
    for commit in arguments.commits:
        _show(commit, of_commit(commit, works))
    _show("this tree", millions(ROOT, works))


def _show(commit: str, costs: dict[str, float]) -> None:
    shown = ", ".join(f"{name} {cost:.1f}" for name, cost in costs.items())
    print(f"{commit}: {shown}", flush=True)


if __name__ == "__main__":
    main()
