"""The command ``compare``: two runs or logs side by side, or one log at two moments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from minicluster.cli.exit_codes import EXIT_INVALID
from minicluster.cli.options import JSON, format_option, limits_option, path_type
from minicluster.cli.terminal import print_line, print_lines
from minicluster.errors import UserError, counted
from minicluster.log.format.limits import ReadLimits

if TYPE_CHECKING:
    from minicluster.verify.evidence.run import Run

_WORDS = ("in kind", "in replicas", "in epochs")


@click.command("compare")
@click.argument("left", type=path_type)
@click.argument("right", type=path_type, required=False)
@click.option("--from", "start", metavar="PLACE", help="Of LEFT alone: compare its state here …")
@click.option("--to", "end", metavar="PLACE", help="… with its state here; else with its end.")
@format_option
@limits_option
def compare_command(
    left: Path,
    right: Path | None,
    start: str | None,
    end: str | None,
    form: str,
    limits: ReadLimits,
) -> int:
    """Compare two runs or metadata logs: their last images and each partition's history.

    With --from and --to: one log at two moments, the state of each partition, broker and config
    then. A PLACE is an offset, or a moment: 21:34:05, '2026-11-29 21:34' (UTC), in a run 90s since
    its start.

    Differences in kind come first: a topic, an ISR change or an election that one side alone has.
    Then those in replicas, then those in epochs. Ends with 0 if there is none, else with 1.
    """
    from minicluster.verify.evidence.reading import read_runs
    from minicluster.verify.reporting.comparison import Level, as_of, compare, compare_states

    if right is None and start is None:
        raise UserError("compare: give two logs, or one with --from PLACE")
    if right is not None and (start is not None or end is not None):
        raise UserError("compare: --from and --to are moments of one log; two are given")
    if right is None:
        (run,) = _one(read_runs([left], limits), left)
        before = as_of(run, start or "", what="--from")
        after = run if end is None else as_of(run, end, what="--to")
        comparison = compare_states(before, after)
        shown = f"{left} at {start}", f"{left} at {end or 'its end'}"
    else:
        first, second = read_runs([left, right], limits)
        comparison = compare(first, second)
        shown = str(left), str(right)
    if form == JSON:
        listed = [
            {"level": each.level.name.lower(), "about": each.about, "left": each.left,
             "right": each.right}
            for each in comparison.differences
        ]  # fmt: skip
        whole = {
            "same": comparison.is_same,
            "partitions": comparison.partitions,
            "differences": listed,
        }
        print_lines([json.dumps(whole, indent=2, ensure_ascii=False)])
        return 0 if comparison.is_same else EXIT_INVALID
    print_line(f"left   {shown[0]}")
    print_line(f"right  {shown[1]}")
    counts = ", ".join(f"{comparison.count(level)} {_WORDS[level]}" for level in Level)
    partitions = counted(comparison.partitions, "partition")
    what = "state" if right is None else "history"
    print_line(f"{comparison.same} of {partitions} with the same {what}; differences: {counts}")
    for each in comparison.differences:
        print_line("")
        print_line(f"{each.about}: differs {_WORDS[each.level]}")
        print_line(f"  left   {each.left}")
        print_line(f"  right  {each.right}")
    return 0 if comparison.is_same else EXIT_INVALID


def _one(runs: Sequence[Run], path: Path) -> Sequence[Run]:
    if len(runs) > 1:
        raise UserError(f"{path}: holds {len(runs)} logs; name one of them")
    return runs
