"""The command ``what-if``: disturbances played on the cluster of a metadata log."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click
from rich.markup import escape

from minicluster.cli.campaigns import seeds_of
from minicluster.cli.exit_codes import EXIT_FILES, EXIT_INVALID
from minicluster.cli.options import JSON, format_option, path_type, runs_option
from minicluster.cli.reports import command_name
from minicluster.cli.terminal import (
    complain,
    err,
    print_line,
    print_lines,
    progress,
    shown_os_error,
)
from minicluster.durations import parse_duration_ms
from minicluster.errors import UserError

KINDS_OF_FAILURE = ("no-leader", "under-min-isr", "at-risk")


@click.command("what-if")
@click.argument("log", type=path_type)
@click.argument("scenario", nargs=-1, required=True)
@click.option("--seeds", default="1", show_default=True, help="One seed or a range: 7, 1-50.")
@click.option(
    "--watch",
    default="60s",
    show_default=True,
    help="How long each stage is watched, in the cluster's time.",
)
@click.option(
    "--config",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the cluster, such as broker.session.timeout.ms=18s (repeatable).",
)
@click.option(
    "--fail-on",
    type=click.Choice(KINDS_OF_FAILURE),
    multiple=True,
    help="End with 1 where a partition is so at any time (repeatable).",
)
@click.option("--every-topic", is_flag=True, help="Show all topics that are touched.")
@runs_option
@format_option
def what_if_command(
    log: Path,
    scenario: tuple[str, ...],
    seeds: str,
    watch: str,
    settings: tuple[str, ...],
    fail_on: tuple[str, ...],
    every_topic: bool,
    runs: Path,
    form: str,
) -> int:
    """Play SCENARIO on the cluster of LOG, and show what it does to the partitions.

    LOG is a KRaft metadata log or a checkpoint, Apache Kafka's or minicluster's. Each SCENARIO is a
    step in words, such as 'kill 5' or 'kill rack(3)', or a scenario file, whose steps are played.
    They are played one after the other; each is watched for a while.

    Ends with 0, with 1 where a promise is broken or --fail-on has come true, with 2 where a
    condition did not come.
    """
    from minicluster.actors.play.what_if import checked_settings, what_if
    from minicluster.actors.recording.run_place import check_writable
    from minicluster.verify.what_if.page import page
    from minicluster.verify.what_if.text import lines_of

    numbers, variation = seeds_of(seeds, open_end=False)
    if variation:
        raise UserError(f"--seeds: {seeds!r} is of a campaign; give a seed or a range such as 1-50")
    wanted = list(numbers)
    watch_ms = parse_duration_ms(watch, what="--watch")
    config = checked_settings(settings)
    check_writable(runs)
    with progress() as shown:
        task = shown.add_task(f"reading {escape(str(log))}", total=None)

        def show(done: int, seed: int, stage: str) -> None:
            line = f"seed {seed} ({done + 1} of {len(wanted)}): {stage}"
            shown.update(task, description=escape(line if len(wanted) > 1 else stage))
            if not err.is_terminal and stage.startswith("starting"):
                complain(line)

        found = what_if(
            log,
            scenario,
            seeds=wanted,
            config=config,
            watch_ms=watch_ms,
            on_stage=show,
            repeat=_repeat(log, scenario, seeds, watch, settings),
        )
    if form == JSON:
        print_lines([json.dumps(found.to_dict(), indent=2, ensure_ascii=False)])
    else:
        for line in lines_of(found, every_topic=every_topic):
            print_line(line)
    place = runs / f"what-if-{_name(log)}.html"
    try:
        place.write_text(page(found), encoding="utf-8")
    except OSError as error:
        complain(f"minicluster: {shown_os_error(error, 'the page is not written: ')}")
        return EXIT_FILES
    if form != JSON:
        print_line("")
        print_line(f"page    {place.resolve().as_uri()}")
        print_line(f"repeat  {found.repeat}")
    from minicluster.verify.rules.model import exit_code

    code = exit_code(found.verdict)
    return EXIT_INVALID if code == 0 and found.happened(fail_on) else code


def _repeat(
    log: Path, scenario: tuple[str, ...], seeds: str, watch: str, settings: tuple[str, ...]
) -> str:
    words = [command_name(), "what-if", str(log), *scenario, "--seeds", seeds, "--watch", watch]
    for setting in settings:
        words += ["--config", setting]
    return shlex.join(words)


def _name(log: Path) -> str:
    """The part of a file name that a log gives.

    Errors:  UserError for a path without a name.
    """
    parts = [part for part in log.resolve().parts[-3:] if part not in ("/", "__cluster_metadata-0")]
    if not parts:
        raise UserError(f"{log}: is no log")
    return "-".join(parts[-2:])[-120:]
