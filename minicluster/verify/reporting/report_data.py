"""A report as data: the verdict, each rule's result, each run, and the records around a finding."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from minicluster.errors import counted
from minicluster.values import dataclass
from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.run_header import RunHeader
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.evidence.source import Source
from minicluster.verify.model import Evidence, Finding, Verdict, exit_code, headline
from minicluster.verify.reporting.causes import Chains
from minicluster.verify.rules.every import BY_ID
from minicluster.verify.rules.rule import Rule

GRAVE = (Verdict.INVALID, Verdict.UNKNOWN)
WITHOUT_CASES = (Verdict.NO_CASES, Verdict.NOT_PROMISED, Verdict.NOT_APPLICABLE)
WORDS = {
    Verdict.VALID: "valid",
    Verdict.INVALID: "invalid",
    Verdict.UNKNOWN: "unknown",
    Verdict.NO_CASES: "nothing to check",
    Verdict.NOT_PROMISED: "not promised",
    Verdict.NOT_APPLICABLE: "not applicable",
}
SHOWN_FINDINGS = 20
AROUND = 3
_NUMBERS = re.compile(r"\d+")

# Why a rule is not applicable, and what is said of one such rule and of several.
FOR_ZOOKEEPER = "it is about clusters with ZooKeeper"
FOR_KRAFT = "it is about clusters with KRaft"
NEEDS_TRACE = "it needs the trace of a run"
NEEDS_PROGRAMS = "it is about runs with programs inside (app)"
_NOT_APPLICABLE: Mapping[str, tuple[str, str]] = {
    FOR_ZOOKEEPER: ("is for ZooKeeper", "are for ZooKeeper"),
    FOR_KRAFT: ("is for KRaft", "are for KRaft"),
    NEEDS_TRACE: ("needs the trace of a run", "need the trace of a run"),
    NEEDS_PROGRAMS: ("is for runs with programs inside", "are for runs with programs inside"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """One rule over all runs."""

    rule: Rule
    verdict: Verdict
    looked_at: int
    not_promised: int
    findings: tuple[Finding, ...]
    reasons: tuple[str, ...]  # why it is unknown, or has judged nothing
    exempt: Mapping[str, int] = field(default_factory=dict)  # cases not judged, by the reason
    by_run: tuple[tuple[str, Verdict, int], ...] = ()  # run, verdict there, looked at there

    @property
    def id(self) -> str:
        """The rule's id."""
        return self.rule.id

    @property
    def first(self) -> str:
        """The first finding, or the first reason, with the number of the others."""
        lines = [finding.message for finding in self.findings] or [*self.reasons, ""]
        return f"{lines[0]} (and {len(lines) - 1} more)" if len(self.findings) > 1 else lines[0]

    def __repr__(self) -> str:
        return f"<{self.id} {self.verdict}, {counted(self.looked_at, 'case')}: {self.first}>"

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
                    "event": None if finding.event < 0 else finding.event,
                    "request": None if finding.request < 0 else finding.request,
                    "message": finding.message,
                }
                for finding in self.findings
            ],
            "title": self.rule.title,
            "source": self.rule.source,
            "reasons": list(self.reasons),
            "exempt": dict(self.exempt),
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
    failure: ScenarioFailure | None = None  # of its scenario
    minicluster: str | None = None  # the version that played it
    on_zookeeper: bool = False
    title: str = ""  # of its scenario
    description: str = ""

    @classmethod
    def of(cls, run: Run) -> RunSummary:
        """Sum up what was read."""
        header = run.header or RunHeader()
        scenario = header.scenario or {}
        return cls(
            name=run.name,
            path=str(run.path),
            records=run.extent.records,
            logs=run.extent.logs,
            first_offset=run.extent.first_offset,
            end_offset=run.extent.end_offset,
            traced=run.is_run,
            notes=run.notes,
            seed=header.seed,
            failure=header.failure,
            minicluster=header.minicluster,
            on_zookeeper=run.on_zookeeper,
            title=str(scenario.get("name") or ""),
            description=str(scenario.get("description") or ""),
            repeat=f"replay {shlex.quote(str(run.path))}" if header.has_scenario else None,
        )

    def __str__(self) -> str:
        kind = "operation" if self.on_zookeeper else "committed record"
        what = counted(self.records, kind) + " of ZooKeeper" * self.on_zookeeper
        if self.records:
            what += f" ({self.first_offset} to {self.end_offset - 1})"
        if self.logs > 1:
            what += f" of {self.logs} controllers"
        if self.seed is not None:
            what += f", seed {self.seed}"
        return what


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    """The verdict on one or several runs."""

    verdict: Verdict
    rules: tuple[RuleResult, ...]
    runs: tuple[RunSummary, ...]
    reasons: tuple[str, ...]
    sources: tuple[Source, ...] = ()
    _chains: dict[str, Chains | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def valid(self) -> bool:
        """No rule is broken or unknown, and at least one was judged."""
        return self.verdict is Verdict.VALID

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in order of run and offset."""
        return tuple(sorted(finding for result in self.rules for finding in result.findings))

    def rule(self, rule_id: str) -> RuleResult:
        """The result of one rule.

        Errors:  KeyError if the report does not hold it.
        """
        for result in self.rules:
            if result.id == rule_id:
                return result
        raise KeyError(rule_id)

    def by_reason(self, *verdicts: Verdict) -> dict[str, list[RuleResult]]:
        """The rules with one of some verdicts, by the reason for it."""
        by_reason: dict[str, list[RuleResult]] = {}
        for result in self.rules:
            for reason in result.reasons if result.verdict in verdicts else ():
                by_reason.setdefault(reason, []).append(result)
        return by_reason

    @property
    def exit_code(self) -> int:
        """The exit code of the command line."""
        return exit_code(self.verdict)

    def around(self, finding: Finding) -> list[tuple[int, str]]:
        """The records that lead to a finding and its own, each as offset and one line.

        A finding of the trace alone has no record of its own.
        """
        chains = self.chains(finding.run)
        if chains is None:
            return []
        return [(cause.offset, cause.text) for cause in chains.of(finding) if cause.offset >= 0]

    def chains(self, run: str) -> Chains | None:
        """The cause chains of a run, read once; None where it is too long, or gone by now."""
        if run not in self._chains:
            source = next((source for source in self.sources if source.name == run), None)
            contents = None if source is None else source.read()
            chains = None if contents is None else Chains(contents, self.findings)
            self._chains[run] = chains
        return self._chains[run]

    def hold(self) -> None:
        """Read all that the report shows of its runs, before their folders are gone."""
        for source in self.sources:
            self.chains(source.name)

    @property
    def headline(self) -> str | None:
        """The worst that a run can show, in a few words: what was promised to clients is gone."""
        return headline(finding for result in self.rules for finding in result.findings)

    @property
    def summary(self) -> str:
        """How much was checked, and why other rules checked nothing, in one line for people."""
        words = Counter(result.verdict for result in self.rules)
        judged = sum(words[verdict] for verdict in (Verdict.VALID, *GRAVE))
        looked = sum(result.looked_at for result in self.rules)
        said = [f"{counted(judged, 'rule')} checked {counted(looked, 'time')}"]
        said.append(f"{words[Verdict.INVALID] or 'none'} broken")
        if words[Verdict.UNKNOWN]:
            said.append(f"{words[Verdict.UNKNOWN]} unknown")
        return "; ".join([", ".join(said), *self._without_cases(words)])

    def _without_cases(self, words: Mapping[Verdict, int]) -> Iterator[str]:
        evidence = "in this run" if len(self.runs) == 1 else "in these runs"
        if words[Verdict.NO_CASES]:
            yield f"{words[Verdict.NO_CASES]} had nothing to check {evidence}"
        if count := words[Verdict.NOT_PROMISED]:
            yield f"{count} {'is' if count == 1 else 'are'} not promised by its release"
        for reason, (one, several) in _NOT_APPLICABLE.items():
            if count := sum(reason in result.reasons for result in self.rules):
                yield f"{count} {one if count == 1 else several}"


def groups(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Findings whose sentences differ in numbers alone, in the order of the first of each."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.run, _NUMBERS.sub("#", finding.message)), []).append(finding)
    yield from alike.values()


def place(finding: Finding) -> str:
    """Where a finding is, in one phrase."""
    return ", ".join(places(finding))


def places(finding: Finding) -> list[str]:
    """Where a finding is: its run, its offset, its partition, its broker."""
    parts = [finding.run]
    if finding.offset >= 0:
        of_znodes = finding.rule in BY_ID and BY_ID[finding.rule].evidence is Evidence.ZNODES
        parts.append(f"{'zxid' if of_znodes else 'offset'} {finding.offset}")
    if finding.topic:
        name = finding.topic if finding.partition < 0 else f"{finding.topic}-{finding.partition}"
        parts.append(name)
    if finding.broker >= 0:
        parts.append(f"broker {finding.broker}")
    return parts
