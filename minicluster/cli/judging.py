"""Commands over what runs leave: ``verify`` and ``log``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from minicluster.cli.exit_codes import EXIT_CONTENT, EXIT_FILES
from minicluster.cli.options import (
    JSON,
    TEXT,
    format_option,
    junit_option,
    limits_option,
    path_type,
    rules_option,
)
from minicluster.cli.reports import show_report, write_report
from minicluster.cli.terminal import complain, print_line, print_lines, shown_verification
from minicluster.errors import UserError, printable
from minicluster.log.format.limits import ReadLimits
from minicluster.own_command import command_line

if TYPE_CHECKING:
    from minicluster.verify.verifying import Engine


@click.command("verify")
@click.argument("paths", type=path_type, nargs=-1, required=True)
@format_option
@click.option("--html", type=path_type, help="Also write the report as one HTML page.")
@junit_option
@click.option(
    "--engine",
    type=click.Choice(["spark", "process"]),
    default="spark",
    show_default=True,
    help="Judge in Spark, or in this process without a JVM.",
)
@click.option("--master", help="Spark master to use instead of a local JVM.")
@click.option("--remote", help="Spark Connect server to use.")
@click.option("--rules-from", type=path_type, help="A Python file with rules of your own.")
@rules_option
@limits_option
def verify_paths(
    paths: tuple[Path, ...],
    form: str,
    html: Path | None,
    junit: Path | None,
    engine: Engine,
    master: str | None,
    remote: str | None,
    rules_from: Path | None,
    every_rule: bool,
    limits: ReadLimits,
) -> int:
    """Judge PATHS: runs, metadata logs (also Kafka's), and folders of such."""
    from minicluster.verify import verify

    for file in (html, junit):  # before the work, not after it
        if file is not None and not file.parent.is_dir():
            raise UserError(f"{file}: cannot be written: there is no folder {file.parent}")
    with shown_verification() as show:
        report = verify(
            *paths,
            engine=engine,
            master=master,
            remote=remote,
            rules_from=rules_from,
            limits=limits,
            on_progress=show,
        )
    written = html is None or write_report(html, report.to_html())
    written &= junit is None or write_report(junit, report.to_junit())
    show_report(report, form, every_rule)
    if form == TEXT and not report.valid:
        accused = {finding.run for finding in report.findings}
        for run in report.runs:
            if run.repeat and (run.name in accused or not accused):
                print_line(f"repeat  {command_line(*shlex.split(run.repeat))}")
    return report.exit_code if written else EXIT_FILES


@click.command("log")
@click.argument("path", type=path_type)
@click.option("--from", "start", metavar="PLACE", help="Only from here on: 47, 21:34, 90s.")
@click.option("--to", "end", metavar="PLACE", help="Only up to here.")
@click.option(
    "--around", metavar="PLACE", help="Only what is near: 10 offsets, or 10 s, to either side."
)
@click.option(
    "--type",
    "types",
    metavar="NAME",
    multiple=True,
    help="Only records of this type, such as PartitionChange (repeatable).",
)
@format_option
@limits_option
def show_log(
    path: Path,
    start: str | None,
    end: str | None,
    around: str | None,
    types: tuple[str, ...],
    form: str,
    limits: ReadLimits,
) -> int:
    """Show the log at PATH: a run, a controller folder, a log folder or one file.

    A PLACE is an offset, or a moment: 21:34:05, '2026-11-29 21:34' (UTC), in a run 90s since its
    start. A log that is shown in part comes without its checkpoints. Ends with 65 where a
    checkpoint is damaged.

    Metadata logs, and those of __consumer_offsets and __transaction_state, are decoded. Of a
    broker's log directory, or of RUN/broker-1.zip, it is those of its internal topics;
    RUN/broker-1.zip/d0/__consumer_offsets-3 is one of them. Of a run on ZooKeeper it is the log of
    ZooKeeper's transactions.
    """
    from minicluster.cli.broker_logs import located
    from minicluster.cli.log_places import shown_part
    from minicluster.log.dump import DAMAGED, dump_json, dump_text, span_of
    from minicluster.moments import Span
    from minicluster.verify.evidence.file_systems import local_copy
    from minicluster.verify.evidence.znode_log import LOG_PATH, lines_of
    from minicluster.zookeeper.log.text import log_lines

    with local_copy(path) as here:
        if (here / LOG_PATH).is_file():
            lines = list(lines_of(here / LOG_PATH))
            times = [line["ms"] for _, line in lines]
            span = Span(min(times, default=0), max(times, default=0))
            part = shown_part(span, start, end, around, types)
            kept = [
                (number, line)
                for number, line in lines
                if part.keeps_at(line["zxid"], line["ms"], line["op"])
            ]
            if form == JSON:
                print_lines(json.dumps(line, separators=(",", ":")) for _, line in kept)
            else:
                print_lines(map(printable, log_lines(iter(kept))))
            part.check(span)
            return 0
        with located(here, limits) as logs:
            places = start, end, around
            span = span_of(logs) if any(places) else Span(0, 0)
            part = shown_part(span, *places, types)
            is_whole = not types and not part.is_part
            damages: list[str] = []

            def items() -> Iterator[Mapping[str, Any]]:
                keeps = None if is_whole else part.keeps
                for item in dump_json(logs, keeps, checkpoints=not part.is_part):
                    if item.get("note") == DAMAGED:
                        damages.append(item["why"])
                    yield item

            if form == JSON:
                print_lines(json.dumps(item, separators=(",", ":")) for item in items())
            else:
                print_lines(map(printable, dump_text(items())))
            if not is_whole:
                part.check(span)
            for why in damages:
                complain(f"minicluster: {why}")
    return EXIT_CONTENT if damages else 0
