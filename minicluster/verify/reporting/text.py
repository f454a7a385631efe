"""The report for people as text: the verdict first, the rules that are broken, their findings.

Nothing is cropped. On a terminal lines wrap, and what is continued is indented; in a pipe or a file
each finding is one whole line, which grep finds.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
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
    WORDS,
    ReportData,
    RuleResult,
    groups,
    place,
)
from minicluster.verify.reporting.subjects import Subject, subjects

SHOWN_PLACES = 6
UNKNOWN_ROWS_MAX = 12  # more rules than that are one line for each reason
_WIDTH_MIN = 40

_COLOURS = dict.fromkeys(WITHOUT_CASES, "dim") | {
    Verdict.VALID: "bold green",
    Verdict.INVALID: "bold red",
    Verdict.UNKNOWN: "bold yellow",
}


def print_report(
    console: Console,
    report: ReportData,
    *,
    width: int | None,
    every_rule: bool = True,
    by_subject: bool = False,
) -> None:
    """Print the report: of the rules only those that are invalid or unknown, or every one.

    Shapes:  width: of the lines, None: they do not wrap. by_subject: one line for each subject of
             rules, where all is well too.
    """
    Printer(console, width).report(report, every_rule=every_rule, by_subject=by_subject)


class Printer:
    """Lines on a console that wrap with an indent."""

    def __init__(self, console: Console, width: int | None) -> None:
        self._console = console
        self._width = None if width is None else max(width, _WIDTH_MIN)

    def line(self, text: str | Text, style: str = "", *, hang: int = 0) -> None:
        """Print one line; characters that would steer the terminal are shown as their escapes.

        Shapes:  hang: the columns before what is continued, besides the indent of the line.
        """
        whole = text if isinstance(text, Text) else Text(printable(text), style)
        if self._width is None:
            self._console.print(whole, soft_wrap=True)
            return
        indent = len(whole.plain) - len(whole.plain.lstrip(" "))
        rest = whole[indent:]
        first, room = " " * indent, self._width - indent - hang
        hanging = max(cell_len(rest.plain) - room, 0)
        if hanging <= hang:
            self._console.print(Text(first) + rest, soft_wrap=True)
            return
        head, tail = rest[:hang], rest[hang:]
        for number, part in enumerate(tail.wrap(self._console, room, overflow="fold")):
            before = Text(first) + head if number == 0 else Text(" " * (indent + hang))
            part.rstrip()
            self._console.print(before + part, soft_wrap=True)

    def report(self, report: ReportData, *, every_rule: bool, by_subject: bool) -> None:
        more = "" if every_rule else " (--rules shows each)"
        word = Text(str(report.verdict).upper(), _COLOURS[report.verdict])
        if report.headline is not None:
            headline = Text(f" {report.headline}", _COLOURS[report.verdict])
            self.line(word + headline)
            self.line(f"  {report.summary}{more}")
        else:
            self.line(word + Text(f" {report.summary}{more}"), hang=2)
        for run in report.runs:
            if every_rule or run.notes or not report.valid:
                self.line(f"  {run.name}: {run}", hang=2)
            for note in run.notes:
                self.line(f"    {note}", "dim")
            if run.failure is not None:
                self._failure(run.name, run.failure)
        for reason in report.reasons:
            self.line(f"  unknown because {reason}", "yellow", hang=2)
        unknown = [result for result in report.rules if result.verdict is Verdict.UNKNOWN]
        grave = GRAVE if len(unknown) <= UNKNOWN_ROWS_MAX else (Verdict.INVALID,)
        if by_subject:
            self._subjects(subjects(report.rules))
        self._table([result for result in report.rules if every_rule or result.verdict in grave])
        if every_rule:
            self._without_cases(report)
        for reason, results in report.by_reason(Verdict.UNKNOWN).items():
            ids = ", ".join(result.id for result in results)
            verb = "is" if len(results) == 1 else "are"
            self.line(f"{ids} {verb} unknown because {reason}", "yellow", hang=2)
        for result in report.rules:
            self._rule(report, result)

    def _failure(self, run: str, failure: ScenarioFailure) -> None:
        first, *more = failure.text.splitlines()
        what = f"  {run}: the scenario did not go as written ({failure.verdict}): {first}"
        self.line(what, _COLOURS[failure.verdict], hang=2)
        for line in more:
            self.line(f"    {line}", "dim", hang=2)

    def _subjects(self, about: Sequence[Subject]) -> None:
        wide = max((len(subject.title) for subject in about), default=0)
        for subject in about:
            colour = "" if subject.verdict is Verdict.VALID else _COLOURS[subject.verdict]
            self.line(f"  {subject.title:<{wide}}  {subject.in_words}", colour, hang=wide + 2)

    def _table(self, results: Sequence[RuleResult]) -> None:
        if not results:
            return
        rows = [(result.id, str(result.verdict), f"{result.looked_at:,}") for result in results]
        heads = ("rule", "verdict", "checks")
        ids, verdicts, cases = (max(map(len, column)) for column in zip(heads, *rows, strict=True))
        hang = ids + verdicts + cases + 6
        self.line(f" {heads[0]:<{ids}}  {heads[1]:<{verdicts}}  {heads[2]:>{cases}}  title", "bold")
        for (rule_id, verdict, looked_at), result in zip(rows, results, strict=True):
            row = Text(f" {printable(rule_id):<{ids}}  ")
            row += Text(f"{verdict:<{verdicts}}", _COLOURS[result.verdict])
            row += Text(f"  {looked_at:>{cases}}  {printable(result.rule.title)}")
            self.line(row, hang=hang)

    def _without_cases(self, report: ReportData) -> None:
        """Why rules have judged nothing, or not all; the rules of each reason on one line."""
        ids: dict[str, list[str]] = {}
        for result in report.rules:
            if result.verdict in WITHOUT_CASES:
                for reason in result.reasons:
                    why = f"{WORDS[result.verdict]}: {reason}"
                    ids.setdefault(why, []).append(result.id)
            else:
                for why, rows in result.exempt.items():
                    what = f"{counted(rows, 'more case')} of {result.id} exempted because {why}"
                    ids.setdefault(what, [])
        for reason, rules in ids.items():
            self.line(f"{reason} ({', '.join(rules)})" if rules else reason, "dim", hang=2)

    def _causes(self, chains: Chains, finding: Finding) -> None:
        for cause in chains.of(finding):
            mark = ">" if cause.kind == "here" else " "
            what = str(cause.offset) if cause.offset >= 0 else cause.kind
            begin = f"{chains.clock.text(cause.at_ms):>10} {mark}{what:>7}  "
            hang = len(begin) - len(begin.lstrip())
            self.line(f"    {begin}{cause.text}", "dim", hang=len(begin) - hang)

    def _rule(self, report: ReportData, result: RuleResult) -> None:
        if not result.findings:
            return
        count = len(result.findings)
        self.line("")
        heading = f"{result.id}  {result.rule.title}: {counted(count, 'finding')}"
        self.line(heading, "bold red", hang=len(result.id) + 2)
        self.line(f"  {result.rule.statement}")
        self.line(f"  source: {result.rule.source}", "dim")
        alike = list(groups(result.findings))
        for number, (finding, *others) in enumerate(alike[:SHOWN_FINDINGS]):
            chains = report.chains(finding.run)
            message = finding.message if chains is None else chains.message(finding)
            self.line(f"  {place(finding)}: {message}")
            if number < AROUND and chains is not None:
                self._causes(chains, finding)
            if others:
                self.line(f"  {_more(others, chains)}", "dim")
        left = sum(map(len, alike[SHOWN_FINDINGS:]))
        if left:
            self.line(f"  … and {left} more", "dim")


def _more(others: Sequence[Finding], chains: Chains | None) -> str:
    """Findings like the one before, by their moments or places, each of these once."""
    places: dict[str, None] = {}
    for finding in others:
        moment = None if chains is None else chains.moment(finding)
        at = "" if chains is None or moment is None else f" at {chains.clock.text(moment)}"
        places[place(finding).partition(", ")[2] + at] = None
        if len(places) > SHOWN_PLACES:
            break
    shown = [*filter(None, places)][:SHOWN_PLACES]
    text = f"{len(others)} more like it: {'; '.join(shown)}"
    return text + ("; …" if len(places) > SHOWN_PLACES else "")
