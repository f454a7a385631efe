"""The command line: play a scenario, verify runs and logs, show a log.

Exit codes: 0 valid, 1 invalid, 2 unknown; 64 and above where nothing was judged or not all could be
written, with one line that names the mistake; 70 for a fault of this program. click parses and
rich shows the progress: both are kept up by large projects.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from minicluster.cli_serve import do_command, serve_command
from minicluster.errors import MiniclusterError, UserError, instead, printable
from minicluster.log.format.limits import MAX_BATCH_BYTES, MAX_DECOMPRESSED_BYTES, ReadLimits
from minicluster.terminal import (
    complain,
    err,
    out,
    prepare,
    print_line,
    print_lines,
    progress,
    report_crash,
    shown_os_error,
)

if TYPE_CHECKING:
    from minicluster.actors.play.performer import Failure
    from minicluster.verify import Report

EXIT_USAGE = 64
EXIT_INTERNAL = 70
EXIT_FILES = 74
EXIT_INVALID = 1
EXIT_UNKNOWN = 2
TEXT, JSON = "text", "json"
PAGE = "report.html"


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


class _Size(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes: 8MiB, 20000000."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"([0-9]{1,12})(|KiB|MiB|GiB)", str(value))
        if match is None:
            self.fail(f"{value!r} is no size; write 8MiB or 20000000", param, ctx)
        return int(match[1]) << {"": 0, "KiB": 10, "MiB": 20, "GiB": 30}[match[2]]


def _limits(command: Callable[..., int]) -> Callable[..., int]:
    """The options for what reading one file may take."""

    @click.option(
        "--max-batch",
        type=_Size(),
        default=MAX_BATCH_BYTES,
        show_default="8MiB, as Kafka",
        help="The largest batch of a metadata log that is read.",
    )
    @click.option(
        "--max-unpacked",
        type=_Size(),
        default=MAX_DECOMPRESSED_BYTES,
        show_default="20MiB",
        help="What the compressed batches of one file may unpack to.",
    )
    @functools.wraps(command)
    def limited(*args: Any, max_batch: int, max_unpacked: int, **options: Any) -> int:
        limits = ReadLimits(batch_bytes=max_batch, decompressed_bytes=max_unpacked)
        return command(*args, limits=limits, **options)

    return limited


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="minicluster")
def app() -> None:
    """An Apache Kafka KRaft cluster inside a Python process, with chaos and proofs."""


app.add_command(serve_command)
app.add_command(do_command)


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
    """Play SCENARIO (a YAML file), verify what it left, and print the place of the report."""
    return _play(scenario, seed, runs, form, twice=twice, every_rule=every_rule)


@app.command("demo", hidden=True)
@click.argument("scenario", type=_path)
@_runs
def demo(scenario: Path, runs: Path) -> int:
    """Play the example of ``make demo``; its description is printed before it runs."""
    from minicluster.scenario import load_scenario

    loaded = load_scenario(scenario)
    print_line(f"{loaded.name}: {loaded.description}".rstrip(": "))
    return _play(scenario, None, runs, TEXT, twice=True, every_rule=True)


@app.command("replay")
@click.argument("run", type=_path)
@_runs
def replay(run: Path, runs: Path) -> int:
    """Play the scenario of RUN (a run folder) again from its seed and compare the traces."""
    from minicluster.actors.play.player import replay_run

    first, again = replay_run(run, runs=runs)
    if first == again.trace_hash:
        print_line(f"the same trace: {first}  ({again.path})")
        return 0
    complain(f"another trace: {first} then, {again.trace_hash} now ({again.path})")
    return 1


@app.command("chaos")
@click.option("--seeds", default="1-20", show_default=True, help="One seed or a range: 7, 1-200.")
@click.option("--fault", "faults", multiple=True, help="Plant a fault of the zoo (repeatable).")
@click.option("--shrink/--no-shrink", default=True, help="Look for the shortest failing script.")
@click.option(
    "--verify",
    "in_spark",
    is_flag=True,
    help="Keep every run and its report; Spark judges them all.",
)
@_runs
def chaos(seeds: str, faults: tuple[str, ...], shrink: bool, in_spark: bool, runs: Path) -> int:
    """Draw a scenario from each seed, play it under the online rules, and shrink what fails."""
    from minicluster.actors.play.campaign import campaign, keep, outcome_line, shortest

    failed = count = 0
    whole: list[Path] = []
    for outcome in campaign(_seeds(seeds), faults, runs=runs if in_spark else None):
        count += 1
        print_line(outcome_line(outcome))
        if outcome.path is not None:
            whole.append(outcome.path)
        if outcome.failure is None:
            continue
        failed += 1
        shrunk = shortest(outcome) if shrink else None
        kept = keep(outcome, shrunk, runs)
        for step in () if shrunk is None else shrunk.steps:
            print_line(f"    {step.text}")
        print_line(f"repeat  {_command()} replay {kept}")
    print_line(f"{count} seeds, {failed} failed")
    if in_spark:
        from minicluster.verify import verify

        report = verify(*whole)
        _print_report(report, TEXT, every_rule=False)
        written = [_leave_report(path, one) for path, one in zip(whole, report.each, strict=True)]
        if not all(written):
            return EXIT_FILES
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
@_limits
def verify_paths(
    paths: tuple[Path, ...],
    form: str,
    html: Path | None,
    master: str | None,
    remote: str | None,
    every_rule: bool,
    limits: ReadLimits,
) -> int:
    """Let Spark judge PATHS: runs, controller folders, metadata logs (Apache Kafka's too)."""
    from minicluster.verify import verify

    if html is not None and not html.parent.is_dir():  # before the work, not after it
        raise UserError(f"{html}: cannot be written: there is no folder {html.parent}")
    with progress() as shown:
        shown.add_task("verifying in Spark", total=None)
        report = verify(*paths, master=master, remote=remote, limits=limits)
    written = html is None or _write(html, report.to_html())
    _print_report(report, form, every_rule)
    if form == TEXT and not report.valid:
        accused = {finding.run for finding in report.findings}
        for run in report.runs:
            if run.repeat and (run.name in accused or not accused):
                print_line(f"repeat  {_command()} {run.repeat}")
    return report.exit_code if written else EXIT_FILES


@app.command("log")
@click.argument("path", type=_path)
@_format
@_limits
def show_log(path: Path, form: str, limits: ReadLimits) -> int:
    """Show the metadata log at PATH: a run, a controller folder, a log folder or one file."""
    from minicluster.log.directory import locate
    from minicluster.log.dump import dump_json, dump_text

    located = locate(path, limits=limits)
    if form == JSON:
        print_lines(json.dumps(item, separators=(",", ":")) for item in dump_json(located))
    else:
        print_lines(map(printable, dump_text(located)))
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
    with progress() as shown:
        task = shown.add_task("starting the cluster", total=len(scenario.steps))

        def show(done: int, text: str, now_ms: int) -> None:
            line = f"{now_ms / 1000:8.1f}s  {text}"
            shown.update(task, completed=done, description=escape(line))
            if not err.is_terminal:  # nothing moves there: one line per step
                complain(line)

        try:
            played = play(scenario, seed=seed, runs=runs, on_step=show, twice=twice)
        except UserError as error:
            error.args = (f"{path}: {error}",)
            raise
        shown.update(task, description="verifying in Spark")
        report = verify(played.path)
    written = _leave_report(played.path, report)
    _print_report(report, form, every_rule)
    if played.failure is not None:
        complain(f"the scenario did not go as written: {played.failure.text}", style="red")
    if form == TEXT:
        print_line(f"run     {played.path}")
        print_line(f"report  {(played.path / PAGE).resolve().as_uri()}")
        print_line(f"repeat  {_command()} replay {played.path}")
    return _exit_code(report, played.failure) if written else EXIT_FILES


def _command() -> str:
    """The name of this command as it was called, so that the line to repeat can be pasted."""
    called = sys.argv[0]
    here = Path(called).name == "minicluster" and shutil.which("minicluster") is None
    return called if here else "minicluster"


def _exit_code(report: Report, failure: Failure | None) -> int:
    """The report's code; a scenario that went another way is no longer valid."""
    if failure is None or report.exit_code != 0:
        return report.exit_code
    return EXIT_UNKNOWN if failure.is_unknown else EXIT_INVALID


def _print_report(report: Report, form: str, every_rule: bool) -> None:
    if form == JSON:
        print_lines([report.to_json()])
    else:
        from minicluster.verify.reporting.text import print_report

        print_report(out, report, every_rule=every_rule)


def _leave_report(run: Path, report: Report) -> bool:
    """Write the report of a run into its folder; False where that is impossible."""
    written = [
        _write(run / PAGE, report.to_html()),
        _write(run / "report.json", report.to_json() + "\n"),
    ]
    return all(written)


def _write(path: Path, text: str) -> bool:
    """Write a report; False, after one line that gives the reason, where that is impossible."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        complain(f"minicluster: {path}: cannot be written: {error.strerror or error}")
        return False
    return True


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Shapes:  arguments -> exit code. A user's mistake is one line on standard error, and so is a
             fault of the program, whose traceback goes to a file.
    """
    prepare()
    try:
        code = app(args=list(arguments), standalone_mode=False, prog_name="minicluster")
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        err.print(error.ctx.get_help() if error.ctx else "", markup=False)
        return EXIT_USAGE
    except click.ClickException as error:
        complain(f"minicluster: {error.format_message()}")
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        complain("minicluster: stopped")
        return 130
    except UserError as error:
        complain(f"minicluster: {error}")
        return error.exit_code
    except MiniclusterError as error:
        complain(f"minicluster: {error}")
        return EXIT_UNKNOWN
    except OSError as error:
        complain(f"minicluster: {shown_os_error(error)}")
        return EXIT_FILES
    except Exception as error:  # a fault of this program, never of its input
        report_crash(error, arguments)
        return EXIT_INTERNAL
