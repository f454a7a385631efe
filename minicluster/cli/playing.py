"""Commands that play a scenario: ``run`` and ``replay``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from minicluster.cli.exit_codes import EXIT_FILES, EXIT_INVALID
from minicluster.cli.options import (
    JSON,
    TEXT,
    format_option,
    junit_option,
    path_type,
    rules_option,
    runs_option,
)
from minicluster.cli.reports import leave_report, show_report, write_report
from minicluster.cli.terminal import (
    complain,
    err,
    print_line,
    print_lines,
    progress,
    shown_verification,
)
from minicluster.errors import Stopped, UserError, instead
from minicluster.own_command import command_line

if TYPE_CHECKING:
    from rich.progress import Progress

    from minicluster.actors.play.player import Played
    from minicluster.actors.play.replay import Before
    from minicluster.actors.recording.runs_place import RunsPlace
    from minicluster.scenario import Scenario
    from minicluster.verify import Report

PAGE = "report.html"


@click.command("run")
@click.argument("scenario", type=path_type)
@click.option("--seed", type=click.IntRange(min=0), help="Seed instead of the scenario's own.")
@click.option("--twice", is_flag=True, help="Play it twice, so that rule X1 can compare.")
@click.option("--no-verify", is_flag=True, help="Leave Spark out; the online rules alone judge.")
@junit_option
@runs_option
@format_option
@rules_option
def run_scenario(
    scenario: Path,
    seed: int | None,
    twice: bool,
    no_verify: bool,
    junit: Path | None,
    runs: Path,
    form: str,
    every_rule: bool,
) -> int:
    """Play SCENARIO (a YAML file), verify what it left, and print the place of the report."""
    if junit is not None and (no_verify or not junit.parent.is_dir()):
        why = "Spark judges nothing" if no_verify else f"there is no folder {junit.parent}"
        raise UserError(f"--junit: {junit} cannot be written: {why}")
    if no_verify:
        return _play_alone(scenario, seed, runs, form, twice=twice)
    return _play(scenario, seed, runs, form, twice=twice, every_rule=every_rule, junit=junit)


@click.command("replay")
@click.argument("run", type=path_type)
@click.option(
    "--no-verify", is_flag=True, help="Leave Spark out: compare what the play itself saw."
)
@runs_option
def replay(run: Path, no_verify: bool, runs: Path) -> int:
    """Play the scenario of RUN (a run folder) again from its seed; compare traces and verdicts.

    The verdict is compared with that of the run's report, if it has one.
    """
    from minicluster.actors.play.replay import changed_code, replay_run
    from minicluster.actors.recording.runs_place import runs_place
    from minicluster.verify.evidence.file_systems import local_copy

    with local_copy(run) as here, runs_place(runs) as place:
        try:
            before, again = replay_run(here, runs=place.folder)
        except KeyboardInterrupt as stopped:
            repeat = command_line("replay", run)
            raise _stopped(f"the replay of {run}", stopped, repeat) from None
        left = place.publish(again.path)
        same = _same_trace(run, before, again, left)
        for line in () if same else changed_code(here, again.path):
            complain(line)
        failure = None if again.failure is None else (again.failure.kind, again.failure.rule)
        verdicts = _shown_failure(before.failure), _shown_failure(failure)
        judged = None if no_verify else _verdict_of(here)
        if judged is not None:
            verdicts = judged, _judged(again.path)
            place.publish(again.path)  # with its report
    then, now = verdicts
    if then == now:
        print_line(f"the same verdict: {now}{'' if judged else ' (Spark did not judge it)'}")
    else:
        complain(f"another verdict: {then} then, {now} now ({left})")
    return 0 if same and then == now else EXIT_INVALID


def _same_trace(run: Path, before: Before, again: Played, left: str) -> bool:
    """Compare the traces, and report the outcome; what cannot be compared is not different."""
    then, now = before.trace_hash, again.trace_hash
    if then is None:
        complain(
            f"the traces are not compared: {run} is of format {before.format}, whose traces have "
            "other hashes"
        )
    elif then == now:
        print_line(f"the same trace: {now}  ({left})")
    else:
        complain(f"another trace: {then} then, {now} now ({left})")
    return then in (None, now)


def _shown_failure(failure: tuple[str, str | None] | None) -> str:
    if failure is None:
        return "it went as written"
    kind, rule = failure
    return kind if rule is None else f"{kind} {rule}"


def _judged(run: Path) -> str:
    """The verdict on a run, which gets its report."""
    from minicluster.verify import verify

    with shown_verification() as show:
        report = verify(run, on_progress=show)
    leave_report(run, report)
    return _shown_verdict(report.to_dict())


def _verdict_of(run: Path) -> str | None:
    """The verdict that a run's report has; None where there is no report that can be read."""
    try:
        return _shown_verdict(json.loads((run / "report.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _shown_verdict(report: dict[str, Any]) -> str:
    """A verdict with the rules that are not kept; X1 is left out, since it compares the traces."""
    grave = [
        f"{rule['id']} {rule['verdict']}"
        for rule in report["rules"]
        if rule["verdict"] in ("invalid", "unknown") and rule["id"] != "X1"
    ]
    return ", ".join([report["verdict"], *grave])


def _play(
    path: Path,
    seed: int | None,
    runs: Path,
    form: str,
    *,
    twice: bool,
    every_rule: bool,
    junit: Path | None = None,
) -> int:
    """Play, judge and report."""
    from minicluster.actors.recording.runs_place import runs_place
    from minicluster.verify.spark import session

    scenario = load(path)
    with runs_place(runs) as place:
        session.warm_up()  # the JVM starts while the scenario plays
        with progress() as shown:
            played = play_shown(path, scenario, seed, place.folder, twice, shown)
            left = place.publish(played.path)  # whatever becomes of its verification
            report = judge_shown(played, left, shown)
        has_page = leave_report(played.path, report)
        left = place.publish(played.path)
        page = place.uri(played.path / PAGE)
        has_junit = junit is None or write_report(junit, report.to_junit())
        show_report(report, form, every_rule)
        complain_about(played, place, left, is_reported=form == TEXT)
    if form == TEXT:
        print_line(f"run     {left}")
        if has_page:
            print_line(f"report  {page}")
        print_line(f"repeat  {command_line('replay', left)}")
    return report.exit_code if has_page and has_junit else EXIT_FILES


def _play_alone(path: Path, seed: int | None, runs: Path, form: str, *, twice: bool) -> int:
    """Play, and report what the play itself and the online rules saw."""
    from minicluster.actors.recording.runs_place import runs_place
    from minicluster.verify.model import exit_code

    scenario = load(path)
    with runs_place(runs) as place:
        with progress() as shown:
            played = play_shown(path, scenario, seed, place.folder, twice, shown)
        left = place.publish(played.path)
        complain_about(played, place, left, is_reported=False)
    idle = [f"fault {fault} was on but never acted" for fault in played.idle_faults]
    if form == JSON:
        failure = None if played.failure is None else played.failure.to_dict()
        outcome = {
            "verdict": str(played.verdict),
            "run": left,
            "failure": failure,
            "reasons": idle,
            "judged_in_spark": False,
        }
        print_lines([json.dumps(outcome, indent=2, ensure_ascii=False)])
    else:
        print_line(f"{str(played.verdict).upper()} by the online rules alone; Spark did not judge")
        for reason in idle:
            print_line(f"  unknown because {reason}")
        print_line(f"run     {left}")
        print_line(f"verify  {command_line('verify', left)}")
    return exit_code(played.verdict)


def load(path: Path) -> Scenario:
    from minicluster.scenario import load_scenario
    from minicluster.verify.rules.every import BY_ID as RULES_BY_ID

    scenario = load_scenario(path)
    for rule_id in scenario.exercises:
        if rule_id not in RULES_BY_ID:
            hint = instead(rule_id, RULES_BY_ID)
            raise UserError(f"{path}: exercises: unknown rule {rule_id!r}; {hint}")
    return scenario


def play_shown(
    path: Path,
    scenario: Scenario,
    seed: int | None,
    runs: Path,
    twice: bool,
    shown: Progress,
    *,
    is_told_later: bool = False,
) -> Played:
    """Play a scenario; the display shows each step, and standard error where nothing moves.

    Shapes:  is_told_later: the caller tells the story; nothing is printed here.
    """
    from minicluster.actors.play.player import play

    task = shown.add_task("starting the cluster", total=len(scenario.steps))

    def show(done: int, text: str, now_ms: int) -> None:
        line = f"{now_ms / 1000:8.1f}s  {text}"
        shown.update(task, completed=done, description=escape(line))
        if not is_told_later and not err.is_terminal:
            complain(line)

    try:
        return play(scenario, seed=seed, runs=runs, on_step=show, twice=twice)
    except KeyboardInterrupt as stopped:
        again = command_line("run", path, *(() if seed is None else ("--seed", seed)))
        raise _stopped(scenario.name, stopped, again) from None
    except UserError as error:
        if error.exit_code != EXIT_FILES:
            error.args = (f"{path}: {error}",)
        raise
    finally:
        shown.remove_task(task)


def judge_shown(played: Played, left: str, shown: Progress) -> Report:
    """Judge a run in Spark; the display shows how far it is."""
    from minicluster.verify import verify

    with shown_verification(shown) as show:
        try:
            return verify(played.path, on_progress=show)
        except KeyboardInterrupt:
            raise Stopped(
                "the verification was stopped; the run is whole, and to judge it: "
                f"{command_line('verify', left)}"
            ) from None


def _stopped(what: str, stopped: KeyboardInterrupt, again: str) -> Stopped:
    """Shapes:  stopped: of a play, with its moment; else it came while the folder was written."""
    when = str(stopped) or "after its last step"
    return Stopped(f"{what} was stopped {when}; it left no run folder; again: {again}")


def complain_about(played: Played, place: RunsPlace, left: str, *, is_reported: bool) -> None:
    """Report on standard error what a program's report does not tell people.

    Shapes:  is_reported: the report tells people how the scenario failed.
    """
    if played.failure is not None and not is_reported:
        first, *more = played.failure.text.splitlines()
        complain(f"the scenario did not go as written: {first}", style="red")
        for line in more:
            complain(line)
    beside = played.beside or place.beside(played.path)
    if beside is not None:
        complain(
            f"{beside} holds the run of another scenario of this name and stays; this run is {left}"
        )
