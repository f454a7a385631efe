"""``minicluster demo``: a scenario with its story, its verdict, and a proof that this can fail."""

from __future__ import annotations

import textwrap
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from minicluster.cli.exit_codes import EXIT_FILES, EXIT_UNKNOWN
from minicluster.cli.options import TEXT, path_type, rules_option, runs_option
from minicluster.cli.playing import PAGE, complain_about, judge_shown, load, play_shown
from minicluster.cli.reports import leave_report, show_report
from minicluster.cli.terminal import console, out, print_line, progress
from minicluster.errors import UserError
from minicluster.own_command import command_line
from minicluster.values import replace

if TYPE_CHECKING:
    from minicluster.actors.recording.runs_place import RunsPlace
    from minicluster.scenario import Scenario

_TEXT_WIDTH = 100


@click.command("demo")
@click.argument("scenario", type=path_type)
@click.option(
    "--fault", metavar="ID", help="Then play it with this fault planted, which has to be found."
)
@runs_option
@rules_option
def demo(scenario: Path, fault: str | None, runs: Path, every_rule: bool) -> int:
    """Play SCENARIO twice, tell its story, and print the verdict by subject and the page's place.

    \b
      minicluster demo examples/fenced_follower.yaml --fault Z01
    """
    from minicluster.actors.recording.runs_place import runs_place
    from minicluster.verify.evidence.reading import read_run
    from minicluster.verify.reporting.story_text import print_story
    from minicluster.verify.spark import session

    loaded = load(scenario)
    meaning = None if fault is None else _meaning(fault)
    print_line(loaded.name)
    for line in textwrap.wrap(loaded.description, min(out.width, _TEXT_WIDTH) - 2):
        print_line(f"  {line}")
    print_line(f"Played twice from seed {loaded.seed}, in two processes; time is virtual.")
    print_line("")
    with runs_place(runs) as place:
        session.warm_up()  # the JVM starts while the scenario plays
        with progress() as shown:
            played = play_shown(
                scenario, loaded, None, place.folder, True, shown, is_told_later=True
            )
            left = place.publish(played.path)
            width = out.width if out.is_terminal else None
            print_story(console(), read_run(played.path, played.path.name), width=width)
            print_line("")
            report = judge_shown(played, left, shown)
        has_page = leave_report(played.path, report)
        left = place.publish(played.path)
        show_report(report, TEXT, every_rule, by_subject=not every_rule)
        complain_about(played, place, left, is_reported=True)
        print_line(f"run     {left}")
        if has_page:
            print_line(f"report  {place.uri(played.path / PAGE)}")
        print_line(f"repeat  {command_line('replay', left)}")
        if not has_page:
            return EXIT_FILES
        if fault is not None and meaning is not None:
            print_line("")
            planted = replace(loaded, faults=(*loaded.faults, fault))
            if not _is_found(scenario, planted, fault, meaning, place):
                return EXIT_UNKNOWN
    return report.exit_code


def _meaning(fault: str) -> str:
    """The sentence about a planted fault.

    Errors:  UserError for an unknown fault.
    """
    from minicluster.faults import NO_FAULT, Faults

    known = {switch.metadata["zoo"]: switch.metadata["text"] for switch in fields(Faults)}
    if fault not in known:
        raise UserError(f"--fault: {fault!r} {NO_FAULT}")
    return str(known[fault])


def _is_found(path: Path, planted: Scenario, fault: str, meaning: str, place: RunsPlace) -> bool:
    """Play a scenario with a fault, and tell which rules find it: the check can fail."""
    from minicluster.verify import verify
    from minicluster.verify.reporting.text import Printer

    printer = Printer(console(), out.width if out.is_terminal else None)
    printer.line(f"Can this check fail? Played again with fault {fault} planted: {meaning}.")
    with progress() as shown:
        played = play_shown(path, planted, None, place.folder, False, shown, is_told_later=True)
        report = verify(played.path, engine="process")
    leave_report(played.path, report)
    place.publish(played.path)
    outcome = "as it should be" if report.findings else "the fault was not found"
    print_line(f"{str(report.verdict).upper()}: {outcome}")
    for result in report.rules:
        if result.findings:
            printer.line(f"  {result.id}  {result.rule.title}: {result.first}", hang=4)
    print_line(f"report  {place.uri(played.path / PAGE)}")
    return bool(report.findings)
