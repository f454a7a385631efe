"""The command ``what-if``: disturbances played on the cluster of a metadata log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from minicluster.cli.campaigns import seeds_of
from minicluster.cli.exit_codes import EXIT_FILES, EXIT_INVALID
from minicluster.cli.options import JSON, format_option, path_type, runs_option
from minicluster.cli.reports import write_report
from minicluster.cli.terminal import (
    complain,
    err,
    print_line,
    print_lines,
    progress,
)
from minicluster.durations import parse_duration_ms
from minicluster.errors import UserError
from minicluster.own_command import command_line
from minicluster.values import replace

if TYPE_CHECKING:
    from minicluster.what_if.outcome import WhatIf

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
    condition did not come true in time.
    """
    from minicluster.actors.play.what_if import checked_settings
    from minicluster.actors.recording.runs_place import runs_place
    from minicluster.verify.evidence.file_systems import is_uri, local_copy, uri_of
    from minicluster.verify.model import exit_code
    from minicluster.what_if.page import page
    from minicluster.what_if.text import lines_of

    numbers, variation = seeds_of(seeds, open_end=False)
    if variation:
        raise UserError(f"--seeds: {seeds!r} is of a campaign; give a seed or a range such as 1-50")
    watch_ms = parse_duration_ms(watch, what="--watch")
    config = checked_settings(settings)
    shown_log = uri_of(log) if is_uri(log) else str(log)
    with local_copy(log) as here, runs_place(runs) as place:
        file = place.folder / f"what-if-{_name(here)}.html"
        result = _played(here, scenario, list(numbers), config, watch_ms)
        result = replace(
            result, log=shown_log, repeat=_repeat(shown_log, scenario, seeds, watch, settings)
        )
        if form == JSON:
            print_lines([json.dumps(result.to_dict(), indent=2, ensure_ascii=False)])
        else:
            for line in lines_of(result, every_topic=every_topic):
                print_line(line)
        if not write_report(file, page(result)):
            return EXIT_FILES
        place.publish(file)
        if form != JSON:
            print_line("")
            print_line(f"page    {place.uri(file)}")
            print_line(f"repeat  {result.repeat}")
    code = exit_code(result.verdict)
    return EXIT_INVALID if code == 0 and result.happened(fail_on) else code


def _played(
    log: Path,
    scenario: tuple[str, ...],
    seeds: list[int],
    config: Mapping[str, Any],
    watch_ms: int,
) -> WhatIf:
    """Play each seed; the display shows each stage."""
    from minicluster.actors.play.what_if import what_if

    with progress() as shown:
        task = shown.add_task(f"reading {escape(str(log))}", total=None)

        def show(done: int, seed: int, stage: str) -> None:
            line = f"seed {seed} ({done + 1} of {len(seeds)}): {stage}"
            shown.update(task, description=escape(line if len(seeds) > 1 else stage))
            if not err.is_terminal and stage.startswith("starting"):
                complain(line)

        return what_if(log, scenario, seeds=seeds, config=config, watch_ms=watch_ms, on_stage=show)


def _repeat(
    log: str, scenario: tuple[str, ...], seeds: str, watch: str, settings: tuple[str, ...]
) -> str:
    words = ["what-if", log, *scenario, "--seeds", seeds, "--watch", watch]
    for setting in settings:
        words += ["--config", setting]
    return command_line(*words)


def _name(log: Path) -> str:
    """The part of a file name that a log gives.

    Errors:  UserError for a path without a name.
    """
    parts = [part for part in log.resolve().parts[-3:] if part not in ("/", "__cluster_metadata-0")]
    if not parts:
        raise UserError(f"{log}: is not a log")
    return "-".join(parts[-2:])[-120:]
