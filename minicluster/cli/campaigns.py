"""The command ``chaos``: many random scenarios, each from its seed."""

from __future__ import annotations

from pathlib import Path

import click

from minicluster.cli.exit_codes import EXIT_FILES
from minicluster.cli.options import TEXT, runs_option
from minicluster.cli.reports import command_name, leave_report, show_report
from minicluster.cli.terminal import print_line
from minicluster.errors import UserError


@click.command("chaos")
@click.option("--seeds", default="1-20", show_default=True, help="One seed or a range: 7, 1-200.")
@click.option("--fault", "faults", multiple=True, help="Plant a fault of the zoo (repeatable).")
@click.option("--shrink/--no-shrink", default=True, help="Look for the shortest failing script.")
@click.option(
    "--verify",
    "in_spark",
    is_flag=True,
    help="Keep every run and its report; Spark judges them all.",
)
@runs_option
def chaos(seeds: str, faults: tuple[str, ...], shrink: bool, in_spark: bool, runs: Path) -> int:
    """Draw a scenario from each seed, play it under the online rules, and shrink what fails."""
    from minicluster.actors.play.campaign import Tally, campaign, keep, outcome_line, shortest
    from minicluster.actors.recording.run_place import check_writable
    from minicluster.verify.rules.model import exit_code, gravest

    check_writable(runs)
    tally = Tally()
    whole: list[Path] = []
    for outcome in campaign(_seeds(seeds), faults, runs=runs if in_spark else None):
        tally.count(outcome)
        print_line(outcome_line(outcome))
        if outcome.path is not None:
            whole.append(outcome.path)
        if outcome.failure is None:
            continue
        shrunk = shortest(outcome) if shrink else None
        kept = keep(outcome, shrunk, runs)
        for step in () if shrunk is None else shrunk.steps:
            print_line(f"    {step.text}")
        print_line(f"repeat  {command_name()} replay {kept}")
    for line in tally.lines():
        print_line(line)
    if not in_spark:
        print_line("looked with the online rules alone; with --verify Spark judges every run")
        return exit_code(tally.verdict)
    from minicluster.verify import verify

    report = verify(*whole)
    show_report(report, TEXT, every_rule=False)
    written = [leave_report(path, one) for path, one in zip(whole, report.each, strict=True)]
    if not all(written):
        return EXIT_FILES
    return exit_code(gravest([tally.verdict, report.verdict]))


def _seeds(text: str) -> range:
    """The seeds that a text names.

    Errors:  UserError for anything but a number or two with a dash.
    """
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise UserError(f"--seeds: {text!r} is neither a seed nor a range such as 1-200")
    seeds = range(int(first), int(last if dash else first) + 1)
    if not seeds:
        raise UserError(f"--seeds: {text!r} names no seed: the first is above the last")
    return seeds
