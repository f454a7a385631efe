"""Commands that show evidence and rules: ``trace`` and ``explain``."""

from __future__ import annotations

from pathlib import Path

import click

from minicluster.cli.options import path_type
from minicluster.cli.terminal import print_line, print_lines
from minicluster.errors import UserError, instead, printable

_UNITS = ("ms", "s", "m", "h")


@click.command("trace")
@click.argument("run", type=path_type)
@click.option("--around", metavar="OFFSET|MS", help="Show what is near: 47, or 10230ms, 10s.")
@click.option("--node", type=int, help="Only events of this node.")
@click.option("--api", metavar="NAME", help="Only requests of this API, such as AlterPartition.")
@click.option("--all", "every", is_flag=True, help="Fetches, heartbeats and appends as well.")
def show_trace(
    run: Path, around: str | None, node: int | None, api: str | None, every: bool
) -> int:
    """Show the trace of RUN (a run folder) as text: requests, partitions, elections, faults."""
    from minicluster.verify.evidence.reading import read_run
    from minicluster.verify.reporting.trace_text import trace_lines

    place = None if around is None else _place(around)
    lines = trace_lines(read_run(run, run.name), around=place, node=node, api=api, every=every)
    print_lines(map(printable, lines))
    return 0


def _place(text: str) -> tuple[str, int]:
    """An offset of the metadata log, or a moment where the text has a unit."""
    from minicluster.durations import parse_duration_ms

    if text.isdecimal():
        return "offset", int(text)
    if text.endswith(_UNITS):
        return "ms", parse_duration_ms(text, what="--around")
    raise UserError(f"--around: {text!r} is neither an offset, such as 47, nor a moment: 10230ms")


@click.command("explain")
@click.argument("rule_ids", nargs=-1, required=True, metavar="RULE...")
def explain(rule_ids: tuple[str, ...]) -> int:
    """Explain rules: what each promises, its source, an example that breaks it and one that not."""
    from minicluster.verify.rules.every import BY_ID

    for rule_id in rule_ids:
        if rule_id.upper() not in BY_ID:
            raise UserError(f"{rule_id!r} is no rule; {instead(rule_id.upper(), BY_ID)}")
    for number, rule_id in enumerate(rule_ids):
        if number:
            print_line("")
        _explain(rule_id.upper())
    return 0


def _explain(rule_id: str) -> None:
    from minicluster.verify.live import is_judged_live
    from minicluster.verify.rules.every import BY_ID
    from minicluster.verify.rules.examples import EXAMPLES

    rule = BY_ID[rule_id]
    print_line(f"{rule.id}  {rule.title}")
    print_line(f"  {rule.statement}")
    print_line(f"  source:    {rule.source}")
    tables = f" ({', '.join(rule.tables)})" if rule.tables else ""
    live = "; also while a cluster runs" if is_judged_live(rule) else ""
    print_line(f"  judged by: {rule.evidence}{tables}{live}")
    if (example := EXAMPLES.get(rule.id)) is not None:
        breaks, keeps = example
        print_line(f"  breaks it: {breaks}")
        print_line(f"  keeps it:  {keeps}")
