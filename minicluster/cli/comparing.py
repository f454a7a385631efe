"""The command ``compare``: two runs or logs side by side."""

from __future__ import annotations

import json
from pathlib import Path

import click

from minicluster.cli.exit_codes import EXIT_INVALID
from minicluster.cli.options import JSON, format_option, limits_option, path_type
from minicluster.cli.terminal import print_line, print_lines
from minicluster.errors import counted
from minicluster.log.format.limits import ReadLimits

_WORDS = ("in kind", "in replicas", "in epochs")


@click.command("compare")
@click.argument("left", type=path_type)
@click.argument("right", type=path_type)
@format_option
@limits_option
def compare_command(left: Path, right: Path, form: str, limits: ReadLimits) -> int:
    """Compare two runs or metadata logs: their last images and each partition's history.

    Differences in kind come first: a topic, an ISR change or an election that one side alone has.
    Then those in replicas, then those in epochs. Ends with 0 if there is none, else with 1.
    """
    from minicluster.verify.comparison import Level, compare
    from minicluster.verify.evidence.reading import read_runs

    first, second = read_runs([left, right], limits)
    comparison = compare(first, second)
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
    print_line(f"left   {left}")
    print_line(f"right  {right}")
    counts = ", ".join(f"{comparison.count(level)} {_WORDS[level]}" for level in Level)
    partitions = counted(comparison.partitions, "partition")
    print_line(f"{comparison.same} of {partitions} with the same history; differences: {counts}")
    for each in comparison.differences:
        print_line("")
        print_line(f"{each.about}: differs {_WORDS[each.level]}")
        print_line(f"  left   {each.left}")
        print_line(f"  right  {each.right}")
    return 0 if comparison.is_same else EXIT_INVALID
