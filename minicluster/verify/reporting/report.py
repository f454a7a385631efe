"""What a verification says: as data, as text for a terminal, as JSON, as one HTML page."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from minicluster.protocol.json_form import to_json
from minicluster.verify.inputs import Run
from minicluster.verify.operations import operations
from minicluster.verify.rules.model import Finding, Rule, Verdict

SHOWN_FINDINGS = 20
AROUND = 3

_COLOURS = {
    Verdict.VALID: "bold green",
    Verdict.INVALID: "bold red",
    Verdict.UNKNOWN: "bold yellow",
    Verdict.NO_CASES: "dim",
    Verdict.NOT_PROMISED: "dim",
    Verdict.NOT_APPLICABLE: "dim",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """One rule over all runs."""

    rule: Rule
    verdict: Verdict
    looked_at: int
    not_promised: int
    findings: tuple[Finding, ...]
    reasons: tuple[str, ...]
    by_run: tuple[tuple[str, Verdict, int], ...] = ()  # run, verdict there, looked at there

    @property
    def id(self) -> str:
        """The rule's id."""
        return self.rule.id

    def to_dict(self) -> dict[str, Any]:
        """The rule as JSON has it."""
        return {
            "id": self.id,
            "verdict": str(self.verdict),
            "looked_at": self.looked_at,
            "findings": [
                {
                    "run": finding.run,
                    "offset": finding.offset,
                    "topic": finding.topic or None,
                    "partition": None if finding.partition < 0 else finding.partition,
                    "broker": None if finding.broker < 0 else finding.broker,
                    "message": finding.message,
                }
                for finding in self.findings
            ],
            "title": self.rule.title,
            "source": self.rule.source,
            "reasons": list(self.reasons),
            "by_run": [
                {"run": run, "verdict": str(verdict), "looked_at": looked_at}
                for run, verdict, looked_at in self.by_run
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run in the report's heading."""

    name: str
    path: str
    records: int
    logs: int
    first_offset: int
    end_offset: int
    traced: bool
    notes: tuple[str, ...]
    seed: int | None = None
    repeat: str | None = None  # the command that plays it again, if a scenario made it

    @classmethod
    def of(cls, run: Run) -> RunSummary:
        """Sum up what was read."""
        header = run.header or {}
        seed = header.get("seed")
        return cls(
            name=run.name,
            path=str(run.path),
            records=run.records,
            logs=len(run.nodes),
            first_offset=run.committed[0].base_offset if run.committed else 0,
            end_offset=run.committed[-1].next_offset if run.committed else 0,
            traced=run.is_run,
            notes=run.notes,
            seed=seed if isinstance(seed, int) else None,
            repeat=f"replay {shlex.quote(str(run.path))}" if header.get("scenario") else None,
        )

    def __str__(self) -> str:
        what = f"{self.records} committed records"
        if self.records:
            what += f" ({self.first_offset} to {self.end_offset - 1})"
        if self.logs > 1:
            what += f" of {self.logs} controllers"
        if self.seed is not None:
            what += f", seed {self.seed}"
        return what


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The verdict on one or several runs."""

    verdict: Verdict
    rules: tuple[RuleResult, ...]
    runs: tuple[RunSummary, ...]
    reasons: tuple[str, ...]
    sources: tuple[Run, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether everything that was judged holds, and something was."""
        return self.verdict is Verdict.VALID

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in order of run and offset."""
        return tuple(sorted(one for result in self.rules for one in result.findings))

    def rule(self, rule_id: str) -> RuleResult:
        """The result of one rule.

        Errors:  KeyError if the report does not hold it.
        """
        for result in self.rules:
            if result.id == rule_id:
                return result
        raise KeyError(rule_id)

    @property
    def exit_code(self) -> int:
        """What the command line ends with."""
        return {Verdict.VALID: 0, Verdict.INVALID: 1}.get(self.verdict, 2)

    def around(self, finding: Finding) -> list[tuple[int, str]]:
        """The records around a finding, each as offset and one line."""
        run = next((run for run in self.sources if run.name == finding.run), None)
        if run is None or finding.offset < 0:  # what a trace shows may have no place in the log
            return []
        return records_around(run, finding.offset)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {
            "verdict": str(self.verdict),
            "runs": [
                {
                    "name": run.name,
                    "path": run.path,
                    "records": run.records,
                    "notes": list(run.notes),
                }
                for run in self.runs
            ],
            "rules": [result.to_dict() for result in self.rules],
            "reasons": list(self.reasons),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def to_html(self) -> str:
        """The report as one page that needs no network."""
        from minicluster.verify.reporting.page import page

        return page(self)

    def to_text(
        self, *, width: int | None = None, colour: bool = False, every_rule: bool = True
    ) -> str:
        """The report for a terminal: the verdict first, one line per rule, then the findings.

        Shapes:  every_rule False: one line if all is well, else the rules that are not.
        """
        from rich.console import Console

        out = StringIO()
        console = Console(
            file=out,
            width=width or 100,
            force_terminal=colour,
            color_system="standard" if colour else None,
            highlight=False,
        )
        self.print_to(console, every_rule=every_rule)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"

    def print_to(self, console: Any, *, every_rule: bool = True) -> None:
        """Print the report to a console of rich's, whole or only what is not well."""
        from rich.text import Text

        more = "" if every_rule else " (--rules shows each)"
        word = Text(str(self.verdict).upper(), _COLOURS[self.verdict])
        console.print(word, Text(self.summary + more))
        for run in self.runs:
            if every_rule or run.notes or not self.valid:
                console.print(Text(f"  {run.name}: {run}"))
            for note in run.notes:
                console.print(Text(f"    {note}", "dim"))
        for reason in self.reasons:
            console.print(Text(f"  unknown because {reason}", "yellow"))
        grave = (Verdict.INVALID, Verdict.UNKNOWN)
        shown = [result for result in self.rules if every_rule or result.verdict in grave]
        if shown:
            self._print_table(console, shown)
        for reason, ids in self._unknown().items():
            verb = "is" if len(ids) == 1 else "are"
            console.print(Text(f"{', '.join(ids)} {verb} unknown because {reason}", "yellow"))
        for result in self.rules:
            self._print_rule(console, result)

    def _print_table(self, console: Any, results: Sequence[RuleResult]) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 1), show_edge=False)
        table.add_column("rule")
        table.add_column("verdict")
        table.add_column("looked at", justify="right")
        table.add_column("what it says", overflow="fold")
        for result in results:
            shown = Text(str(result.verdict), _COLOURS[result.verdict])
            table.add_row(result.id, shown, f"{result.looked_at:,}", result.rule.title)
        console.print(table)

    def _unknown(self) -> dict[str, list[str]]:
        """Each reason why rules are unknown, once, with their ids."""
        found: dict[str, list[str]] = {}
        for result in self.rules:
            if result.verdict is Verdict.UNKNOWN:
                for reason in result.reasons:
                    found.setdefault(reason, []).append(result.id)
        return found

    def _print_rule(self, console: Any, result: RuleResult) -> None:
        from rich.text import Text

        if not result.findings:
            return
        count = len(result.findings)
        heading = f"\n{result.id}  {result.rule.title}: {count} finding{'s' * (count != 1)}"
        console.print(Text(heading, "bold red"))
        console.print(Text(f"  {result.rule.statement}"))
        console.print(Text(f"  source: {result.rule.source}", "dim"))
        for number, finding in enumerate(result.findings[:SHOWN_FINDINGS]):
            console.print(Text(f"  {place(finding)}: {finding.message}"))
            if number < AROUND:
                for offset, line in self.around(finding):
                    mark = ">" if offset == finding.offset else " "
                    console.print(Text(f"    {mark}{offset:>7}  {line}", "dim"), no_wrap=True)
        if count > SHOWN_FINDINGS:
            console.print(Text(f"  … and {count - SHOWN_FINDINGS} more", "dim"))

    @property
    def summary(self) -> str:
        """One line about how much was judged."""
        words = Counter(result.verdict for result in self.rules)
        parts = [
            f"{words[verdict]} {str(verdict).replace('_', ' ')}"
            for verdict in Verdict
            if words[verdict]
        ]
        looked = sum(result.looked_at for result in self.rules)
        return f"{looked:,} cases under {len(self.rules)} rules: {', '.join(parts)}"


def place(finding: Finding) -> str:
    """Where a finding is, in one phrase."""
    parts = [finding.run]
    if finding.offset >= 0:
        parts.append(f"offset {finding.offset}")
    if finding.topic:
        name = finding.topic if finding.partition < 0 else f"{finding.topic}-{finding.partition}"
        parts.append(name)
    if finding.broker >= 0:
        parts.append(f"broker {finding.broker}")
    return ", ".join(parts)


def records_around(run: Run, offset: int, count: int = AROUND) -> list[tuple[int, str]]:
    """The records of the committed log next to an offset, those of its operation among them."""
    near: list[tuple[int, str]] = []
    for operation in operations(run.committed):
        if operation.end < offset - 4 * count:
            continue
        for entry in operation.entries:
            if abs(entry.offset - offset) <= count:
                near.append((entry.offset, describe(entry.record, entry.version)))
        if operation.end > offset + count:
            break
    return near


def describe(record: Any, version: int) -> str:
    """A record in one line, without what it leaves as it was."""
    value = to_json(record, version)
    fields = " ".join(
        f"{name}={_short(field)}" for name, field in value.items() if field not in (None, [])
    )
    return f"{type(record).__name__.removesuffix('Record')} {fields}"


def _short(value: Any) -> str:
    if isinstance(value, list):
        if len(value) > 8 or any(isinstance(item, dict) for item in value):
            return f"[{len(value)}]"
        return "[" + ",".join(_short(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{…}"
    return str(value)
