"""Commands that show evidence and rules: ``trace`` and ``explain``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from minicluster.cli.options import path_type
from minicluster.cli.scenarios import fault_rows
from minicluster.cli.terminal import complain, print_line, print_lines
from minicluster.errors import UserError, instead, printable

if TYPE_CHECKING:
    from minicluster.verify.rules.rule import Rule

_UNITS = ("ms", "s", "m", "h")


@click.command("trace")
@click.argument("run", type=path_type)
@click.option("--around", metavar="OFFSET|MS", help="Show what is near: 47, or 10230ms, 10s.")
@click.option("--node", type=int, help="Only events of this node.")
@click.option(
    "--api",
    metavar="NAME",
    help="Only requests of this API, such as AlterPartition.",
)
@click.option("--all", "every", is_flag=True, help="Fetches, heartbeats and appends as well.")
def show_trace(
    run: Path, around: str | None, node: int | None, api: str | None, every: bool
) -> int:
    """Show the trace of RUN (a run folder) as text: requests, partitions, elections, faults."""
    from minicluster.verify.evidence.reading import read_run
    from minicluster.verify.model import Evidence
    from minicluster.verify.reporting.trace_text import trace_lines

    place, known = None if around is None else _place(around), read_run(run, run.name)
    for problem in known.problems:
        if problem.evidence is Evidence.TRACE:
            complain(f"left out: {problem.why}")
    lines = trace_lines(known, around=place, node=node, api=api, every=every)
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
@click.argument("ids", nargs=-1, required=True, metavar="RULE|FAULT...")
@click.option("--rules-from", type=path_type, help="A Python file with rules of your own.")
def explain(ids: tuple[str, ...], rules_from: Path | None) -> int:
    """Explain rules, with their source, and planted faults: what goes wrong.

    Of each rule one case is told that breaks it, and one that nearly does.
    """
    from minicluster.verify.rules.every import BY_ID
    from minicluster.verify.rules.own_rules import load_rules

    known = BY_ID
    if rules_from is not None:
        known = known | {rule.id: rule for rule in load_rules(rules_from).rules}
    faults = {str(zoo_id): str(text) for zoo_id, text in fault_rows()}
    for one in ids:
        if one.upper() not in (known | faults):
            hint = instead(one.upper(), (*known, *faults), "minicluster list has rules and faults")
            raise UserError(f"unknown rule or fault {one!r}; {hint}")
    for number, one in enumerate(map(str.upper, ids)):
        if number:
            print_line("")
        if one not in known:
            _explain_fault(one, faults[one])
            continue
        _explain(known[one])
    return 0


def _explain(rule: Rule) -> None:
    from minicluster.verify.live import is_judged_live

    print_line(f"{rule.id}  {rule.title}")
    print_line(f"  {rule.statement}")
    print_line(f"  source:    {rule.source}")
    tables = f" ({', '.join(rule.tables)})" if rule.tables else ""
    live = "; also while a cluster runs" if is_judged_live(rule) else ""
    print_line(f"  judged by: {rule.evidence}{tables}{live}")
    for heading, sentence in (("breaks it:", rule.breaks), ("keeps it: ", rule.keeps)):
        if sentence:
            print_line(f"  {heading} {sentence}")


def _explain_fault(zoo_id: str, text: str) -> None:
    from minicluster.faults import Faults

    live = f", mutate, chaos --fault {zoo_id}" if zoo_id in Faults.switches() else ""
    print_line(f"{zoo_id}  {text}")
    print_line(f"  planted by: faults: [{zoo_id}] in a scenario{live}")
