"""The command line: play a scenario, verify runs and logs, show a log.

Exit codes: 0 valid, 1 invalid, 2 unknown; 64 and above for misuse, with one line that says what
to change. click parses and rich shows the progress: both are kept up by large projects.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from minicluster.errors import MiniclusterError, UserError, instead

if TYPE_CHECKING:
    from minicluster.actors.play.player import Failure
    from minicluster.verify import Report

EXIT_USAGE = 64
EXIT_FILES = 74
EXIT_INVALID = 1
EXIT_UNKNOWN = 2
TEXT, JSON = "text", "json"


class _Output(Console):
    """A console whose reader may leave early, as ``head`` does; that is no error."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _write_no_more()


_out = _Output(highlight=False, soft_wrap=True)
_err = _Output(stderr=True, highlight=False, soft_wrap=True)

_path = click.Path(path_type=Path)
_runs = click.option(
    "--runs",
    type=_path,
    default=Path("runs"),
    show_default=True,
    help="Folder in which the run leaves its own folder.",
)
_format = click.option(
    "--format",
    "form",
    type=click.Choice([TEXT, JSON]),
    default=TEXT,
    show_default=True,
    help="For people or for programs.",
)
_rules = click.option(
    "--rules", "every_rule", is_flag=True, help="Show every rule, not only what is broken."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="minicluster")
def app() -> None:
    """An Apache Kafka KRaft cluster inside a Python process, with chaos and proofs."""


@app.command("run")
@click.argument("scenario", type=_path)
@click.option("--seed", type=click.IntRange(min=0), help="Seed instead of the scenario's own.")
@click.option("--twice", is_flag=True, help="Play it twice, so that rule X1 can compare.")
@_runs
@_format
@_rules
def run_scenario(
    scenario: Path, seed: int | None, twice: bool, runs: Path, form: str, every_rule: bool
) -> int:
    """Play SCENARIO (a YAML file), verify what it left, and say where the report is."""
    return _play(scenario, seed, runs, form, twice=twice, every_rule=every_rule)


@app.command("demo", hidden=True)
@click.argument("scenario", type=_path)
@_runs
def demo(scenario: Path, runs: Path) -> int:
    """Play the example of ``make demo``; its story is told before it runs."""
    from minicluster.scenario import load_scenario

    loaded = load_scenario(scenario)
    _out.print(f"{loaded.name}: {loaded.description}".rstrip(": "), markup=False)
    return _play(scenario, None, runs, TEXT, twice=True, every_rule=True)


@app.command("replay")
@click.argument("run", type=_path)
@_runs
def replay(run: Path, runs: Path) -> int:
    """Play the scenario of RUN (a run folder) again from its seed and compare the traces."""
    from minicluster.actors.play.player import replay_run

    first, again = replay_run(run, runs=runs)
    if first == again.trace_hash:
        _out.print(f"the same trace: {first}  ({again.path})", markup=False)
        return 0
    _err.print(f"another trace: {first} then, {again.trace_hash} now ({again.path})", markup=False)
    return 1


@app.command("chaos")
@click.option("--seeds", default="1-20", show_default=True, help="One seed or a range: 7, 1-200.")
@click.option("--fault", "faults", multiple=True, help="Plant a fault of the zoo (repeatable).")
@click.option("--shrink/--no-shrink", default=True, help="Look for the shortest failing script.")
@click.option("--verify", "in_spark", is_flag=True, help="Keep every run; Spark judges them all.")
@_runs
def chaos(seeds: str, faults: tuple[str, ...], shrink: bool, in_spark: bool, runs: Path) -> int:
    """Draw a scenario from each seed, play it under the online rules, and shrink what fails."""
    from minicluster.actors.play.campaign import campaign, keep, shortest, told

    failed = count = 0
    whole: list[Path] = []
    for outcome in campaign(_seeds(seeds), faults, runs=runs if in_spark else None):
        count += 1
        _out.print(told(outcome), markup=False)
        if outcome.path is not None:
            whole.append(outcome.path)
        if outcome.failure is None:
            continue
        failed += 1
        shrunk = shortest(outcome) if shrink else None
        kept = keep(outcome, shrunk, runs)
        for step in () if shrunk is None else shrunk.steps:
            _out.print(f"    {step.text}", markup=False)
        _out.print(f"repeat  {_command()} replay {kept}", markup=False)
    _out.print(f"{count} seeds, {failed} failed", markup=False)
    if in_spark:
        from minicluster.verify import verify

        report = verify(*whole)
        _print_report(report, TEXT, every_rule=False)
        return EXIT_INVALID if failed else report.exit_code
    return EXIT_INVALID if failed else 0


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


@app.command("verify")
@click.argument("paths", type=_path, nargs=-1, required=True)
@_format
@click.option("--html", type=_path, help="Also write the report as one HTML page.")
@click.option("--master", help="Spark master to use instead of a local JVM.")
@click.option("--remote", help="Spark Connect server to use.")
@_rules
def verify_paths(
    paths: tuple[Path, ...],
    form: str,
    html: Path | None,
    master: str | None,
    remote: str | None,
    every_rule: bool,
) -> int:
    """Let Spark judge PATHS: runs, controller folders, metadata logs (Apache Kafka's too)."""
    from minicluster.verify import verify

    if html is not None and not html.parent.is_dir():  # said before the work, not after it
        raise UserError(f"{html}: cannot be written: there is no folder {html.parent}")
    with _progress() as progress:
        progress.add_task("verifying in Spark", total=None)
        report = verify(*paths, master=master, remote=remote)
    if html is not None:
        _write(html, report.to_html())
    _print_report(report, form, every_rule)
    if form == TEXT and not report.valid:
        accused = {finding.run for finding in report.findings}
        for run in report.runs:
            if run.repeat and (run.name in accused or not accused):
                _out.print(f"repeat  {_command()} {run.repeat}", markup=False)
    return report.exit_code


@app.command("log")
@click.argument("path", type=_path)
@_format
def show_log(path: Path, form: str) -> int:
    """Show the metadata log at PATH: a run, a controller folder, a log folder or one file."""
    from minicluster.log.directory import locate
    from minicluster.log.dump import dump_json, dump_text

    located = locate(path)
    if form == JSON:
        _print_lines(json.dumps(item, separators=(",", ":")) for item in dump_json(located))
    else:
        _print_lines(dump_text(located))
    return 0


def _play(
    path: Path, seed: int | None, runs: Path, form: str, *, twice: bool, every_rule: bool
) -> int:
    from minicluster.actors.play.player import play
    from minicluster.scenario import load_scenario
    from minicluster.verify import verify
    from minicluster.verify.rules import BY_ID as RULES_BY_ID
    from minicluster.verify.spark import session

    scenario = load_scenario(path)
    for rule_id in scenario.exercises:
        if rule_id not in RULES_BY_ID:
            what = instead(rule_id, RULES_BY_ID)
            raise UserError(f"{path}: exercises: {rule_id!r} is no rule; {what}")
    session.warm_up(training=True)  # the JVM starts while the scenario plays
    with _progress() as progress:
        task = progress.add_task("starting the cluster", total=len(scenario.steps))

        def show(done: int, text: str, now_ms: int) -> None:
            line = f"{now_ms / 1000:8.1f}s  {text}"
            progress.update(task, completed=done, description=escape(line))
            if not _err.is_terminal:  # nothing moves there: one line per step
                _err.print(line, markup=False)

        try:
            played = play(scenario, seed=seed, runs=runs, on_step=show, twice=twice)
        except UserError as error:
            error.args = (f"{path}: {error}",)
            raise
        progress.update(task, description="verifying in Spark")
        report = verify(played.path)
    html = played.path / "report.html"
    _write(html, report.to_html())
    _write(played.path / "report.json", report.to_json() + "\n")
    _print_report(report, form, every_rule)
    if played.failure is not None:
        _err.print(f"the scenario did not go as written: {played.failure.text}", style="red")
    if form == TEXT:
        _out.print(f"run     {played.path}", markup=False)
        _out.print(f"report  {html.resolve().as_uri()}", markup=False)
        _out.print(f"repeat  {_command()} replay {played.path}", markup=False)
    return _exit_code(report, played.failure)


def _command() -> str:
    """How this command line was called, so that what it says to repeat can be pasted."""
    called = sys.argv[0]
    here = Path(called).name == "minicluster" and shutil.which("minicluster") is None
    return called if here else "minicluster"


def _exit_code(report: Report, failure: Failure | None) -> int:
    """The report's code; a scenario that went another way is no longer valid."""
    if failure is None or report.exit_code != 0:
        return report.exit_code
    return EXIT_UNKNOWN if failure.kind in ("until", "unanswered") else EXIT_INVALID


def _print_report(report: Report, form: str, every_rule: bool) -> None:
    if form == JSON:
        _print_lines([report.to_json()])
    else:
        from minicluster.verify.reporting.text import print_report

        print_report(_out, report, every_rule=every_rule)


def _print_lines(lines: Iterable[str]) -> None:
    """Print for programs; a reader that has read enough ends it."""
    try:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _write_no_more()


def _write_no_more() -> None:
    """Let what is still in the buffer go nowhere, so that leaving says nothing about the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def _progress() -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=_err, transient=True, disable=not _err.is_terminal)


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Shapes:  arguments -> exit code. A user's mistake is one line on standard error.
    """
    try:
        code = app(args=list(arguments), standalone_mode=False, prog_name="minicluster")
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        _err.print(error.ctx.get_help() if error.ctx else "", markup=False)
        return EXIT_USAGE
    except click.ClickException as error:
        _err.print(f"minicluster: {error.format_message()}", markup=False)
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        _err.print("minicluster: stopped")
        return 130
    except UserError as error:
        _err.print(f"minicluster: {error}", markup=False)
        return error.exit_code
    except MiniclusterError as error:
        _err.print(f"minicluster: {error}", markup=False)
        return EXIT_UNKNOWN
    except OSError as error:
        _err.print(f"minicluster: {error.filename}: {error.strerror}", markup=False)
        return EXIT_FILES
