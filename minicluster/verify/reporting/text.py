"""The report for a terminal: the verdict first, one line per rule, then the findings."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from minicluster.errors import counted, printable
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.model import Finding, Verdict
from minicluster.verify.reporting.causes import Chains
from minicluster.verify.reporting.report_data import (
    AROUND,
    GRAVE,
    SHOWN_FINDINGS,
    WITHOUT_CASES,
    ReportData,
    RuleResult,
    groups,
    place,
)

SHOWN_PLACES = 6

_COLOURS = {
    Verdict.VALID: "bold green",
    Verdict.INVALID: "bold red",
    Verdict.UNKNOWN: "bold yellow",
    Verdict.NO_CASES: "dim",
    Verdict.NOT_PROMISED: "dim",
    Verdict.NOT_APPLICABLE: "dim",
}


def print_report(console: Console, report: ReportData, *, every_rule: bool = True) -> None:
    """Print the whole report, or only the rules that are invalid or unknown."""
    more = "" if every_rule else " (--rules shows each)"
    word = _line(str(report.verdict).upper(), _COLOURS[report.verdict])
    if report.headline is not None:
        console.print(word, _line(report.headline, _COLOURS[report.verdict]))
        console.print(_line(f"  {report.summary}{more}"))
    else:
        console.print(word, _line(report.summary + more))
    for run in report.runs:
        if every_rule or run.notes or not report.valid:
            console.print(_line(f"  {run.name}: {run}"))
        for note in run.notes:
            console.print(_line(f"    {note}", "dim"))
        if run.failure is not None:
            _print_failure(console, run.name, run.failure)
    for reason in report.reasons:
        console.print(_line(f"  unknown because {reason}", "yellow"))
    shown = [result for result in report.rules if every_rule or result.verdict in GRAVE]
    if shown:
        _print_table(console, shown)
    if every_rule:
        _print_without_cases(console, report)
    for reason, ids in _unknown(report).items():
        verb = "is" if len(ids) == 1 else "are"
        console.print(_line(f"{', '.join(ids)} {verb} unknown because {reason}", "yellow"))
    for result in report.rules:
        _print_rule(console, report, result)


def _print_failure(console: Console, run: str, failure: ScenarioFailure) -> None:
    first, *more = failure.text.splitlines()
    what = f"  {run}: the scenario did not go as written ({failure.verdict}): {first}"
    console.print(_line(what, _COLOURS[failure.verdict]))
    for line in more:
        console.print(_line(f"    {line}", "dim"))


def _print_table(console: Console, results: Sequence[RuleResult]) -> None:
    table = Table(box=None, padding=(0, 1), show_edge=False)
    table.add_column("rule")
    table.add_column("verdict")
    table.add_column("cases", justify="right")
    table.add_column("title", overflow="fold")
    for result in results:
        shown = _line(str(result.verdict), _COLOURS[result.verdict])
        table.add_row(result.id, shown, f"{result.looked_at:,}", result.rule.title)
    console.print(table)


def _print_without_cases(console: Console, report: ReportData) -> None:
    """Why rules have judged nothing, or not all; the rules of each reason on one line."""
    ids: dict[str, list[str]] = {}
    for result in report.rules:
        if result.verdict in WITHOUT_CASES:
            for reason in result.reasons:
                ids.setdefault(f"{str(result.verdict).replace('_', ' ')}: {reason}", []).append(
                    result.id
                )
        else:
            for why, rows in result.exempt.items():
                what = f"{counted(rows, 'more case')} of {result.id} exempted because {why}"
                ids.setdefault(what, [])
    for reason, rules in ids.items():
        console.print(_line(f"{reason} ({', '.join(rules)})" if rules else reason, "dim"))


def _unknown(report: ReportData) -> dict[str, list[str]]:
    """Each reason why rules are unknown, once, with their ids."""
    found: dict[str, list[str]] = {}
    for result in report.rules:
        if result.verdict is Verdict.UNKNOWN:
            for reason in result.reasons:
                found.setdefault(reason, []).append(result.id)
    return found


def _print_causes(console: Console, chains: Chains, finding: Finding) -> None:
    for cause in chains.of(finding):
        mark = ">" if cause.kind == "here" else " "
        what = str(cause.offset) if cause.offset >= 0 else cause.kind
        line = f"    {chains.clock.text(cause.at_ms):>10} {mark}{what:>7}  {cause.text}"
        console.print(_line(line, "dim"), no_wrap=True)


def _print_rule(console: Console, report: ReportData, result: RuleResult) -> None:
    if not result.findings:
        return
    count = len(result.findings)
    heading = f"{result.id}  {result.rule.title}: {counted(count, 'finding')}"
    console.print()
    console.print(_line(heading, "bold red"))
    console.print(_indented(result.rule.statement))
    console.print(_indented(f"source: {result.rule.source}", "dim"))
    alike = list(groups(result.findings))
    for number, (finding, *others) in enumerate(alike[:SHOWN_FINDINGS]):
        chains = report.chains(finding.run)
        message = finding.message if chains is None else chains.message(finding)
        console.print(_indented(f"{place(finding)}: {message}"))
        if number < AROUND and chains is not None:
            _print_causes(console, chains, finding)
        if others:
            console.print(_indented(_more(others, chains), "dim"))
    left = sum(map(len, alike[SHOWN_FINDINGS:]))
    if left:
        console.print(_line(f"  … and {left} more", "dim"))


def _more(others: Sequence[Finding], chains: Chains | None) -> str:
    """Findings like the one before, by their moments or places."""
    places = []
    for one in others[:SHOWN_PLACES]:
        moment = None if chains is None else chains.moment(one)
        at = "" if chains is None or moment is None else f" at {chains.clock.text(moment)}"
        places.append(place(one).partition(", ")[2] + at)
    text = f"{len(others)} more like it: {'; '.join(filter(None, places))}"
    return text + ("; …" if len(others) > SHOWN_PLACES else "")


def _indented(text: str, style: str = "") -> Padding:
    """Text whose lines all begin two columns in, however it wraps."""
    return Padding(_line(text, style), (0, 0, 0, 2))


def _line(text: str, style: str = "") -> Text:
    """One line; characters that would steer the terminal are shown as their escapes."""
    return Text(printable(text), style)
