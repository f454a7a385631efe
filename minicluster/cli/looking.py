"""Commands that show evidence and rules: ``trace`` and ``explain``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from minicluster.cli.options import path_type
from minicluster.cli.scenarios import fault_rows
from minicluster.cli.terminal import print_line, print_lines
from minicluster.errors import UserError, instead, printable

if TYPE_CHECKING:
    from minicluster.verify.rules.example import Example
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
@click.argument("ids", nargs=-1, required=True, metavar="RULE|FAULT...")
@click.option("--log", "with_logs", is_flag=True, help="Show the log and trace of each example.")
@click.option("--rules-from", type=path_type, help="A Python file with rules of your own.")
def explain(ids: tuple[str, ...], with_logs: bool, rules_from: Path | None) -> int:
    """Explain rules, with source and examples, and planted faults: what goes wrong.

    Some of the examples break the rule, the others are near misses that keep it; all are judged by
    the test suite.
    """
    from minicluster.verify.own_rules import load_rules
    from minicluster.verify.rules.every import BY_ID
    from minicluster.verify.rules.example import examples_of
    from minicluster.verify.rules.examples.every import EXAMPLES

    known, examples = BY_ID, EXAMPLES
    if rules_from is not None:
        own = load_rules(rules_from)
        known = known | {rule.id: rule for rule in own.rules}
        examples += own.examples
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
        rule = known[one]
        _explain(rule)
        _show_examples(examples_of(rule, examples), with_logs)
    return 0


def _explain(rule: Rule) -> None:
    from minicluster.verify.live import is_judged_live

    print_line(f"{rule.id}  {rule.title}")
    print_line(f"  {rule.statement}")
    print_line(f"  source:    {rule.source}")
    tables = f" ({', '.join(rule.tables)})" if rule.tables else ""
    live = "; also while a cluster runs" if is_judged_live(rule) else ""
    print_line(f"  judged by: {rule.evidence}{tables}{live}")


def _explain_fault(zoo_id: str, text: str) -> None:
    from minicluster.faults import Faults

    live = f", mutate, chaos --fault {zoo_id}" if zoo_id in Faults.switches() else ""
    print_line(f"{zoo_id}  {text}")
    print_line(f"  planted by: faults: [{zoo_id}] in a scenario{live}")


def _show_examples(examples: Sequence[Example[Any]], with_logs: bool) -> None:
    """What each builds, below one heading or, with their logs, one heading for each.

    Most begin with the same cluster: what a log has in common with the one before is left out.
    """
    heading, before = "", list[str]()
    for example in examples:
        previous, heading = heading, "breaks it: " if example.is_broken else "keeps it:  "
        again = previous == heading and not with_logs
        print_line(f"  {' ' * len(heading) if again else heading}{example.sentence}")
        if with_logs:
            lines = [*_evidence_of(example)]
            pairs = zip(before, lines, strict=False)
            same = len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])
            if same:
                print_line(f"    … {same} lines as before")
            print_lines(f"    {printable(line)}" for line in lines[same:])
            before = lines


def _evidence_of(example: Example[Any]) -> Iterator[str]:
    """The log of an example, and the trace beside it, as ``log`` and ``trace`` show them."""
    from tempfile import TemporaryDirectory

    from minicluster.log.dump import dump_json, dump_text
    from minicluster.log.locating import locate
    from minicluster.verify.evidence.reading import read_run
    from minicluster.verify.evidence.znode_log import LOG_PATH, lines_of
    from minicluster.verify.reporting.trace_text import trace_lines
    from minicluster.zookeeper.log.text import log_lines

    with TemporaryDirectory(prefix="minicluster-") as folder:
        path = example().write(Path(folder) / example.name)
        if (path / LOG_PATH).is_file():
            yield from log_lines(lines_of(path / LOG_PATH))
            return
        yield from dump_text(dump_json(locate(path)))
        if (path / "trace").is_dir():
            yield from trace_lines(read_run(path, example.name), every=True)
