"""The report as one HTML page: no script to load, no font, no network.

A finding, its mark in a figure and its record link to each other. What is shown of one run is a
``RunPage``; ``templates/page.html`` writes it down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from minicluster.errors import counted
from minicluster.own_command import command_line
from minicluster.protocol.topics import INTERNAL_TOPICS
from minicluster.values import Value
from minicluster.verify.evidence.run_header import RunHeader
from minicluster.verify.model import Finding, Verdict
from minicluster.verify.reporting.causes import Chains, Line
from minicluster.verify.reporting.drawing import LEGEND, drawing
from minicluster.verify.reporting.happenings import Happening, happenings
from minicluster.verify.reporting.lanes import cluster_figure
from minicluster.verify.reporting.report_data import (
    WITHOUT_CASES,
    WORDS,
    ReportData,
    RuleResult,
    groups,
    places,
)
from minicluster.verify.reporting.scale import Scale
from minicluster.verify.reporting.story import Step, listed_nodes
from minicluster.verify.reporting.subjects import subjects
from minicluster.verify.reporting.svg import Figure
from minicluster.verify.reporting.templating import rendered
from minicluster.verify.reporting.timeline import PartitionLine, timeline
from minicluster.version import VERSION

DRAWN_PARTITIONS = 20
SHOWN_GROUPS = 20  # of one rule
SHOWN_OF_GROUP = 50
RECORDS_MAX = 1_500
HAPPENINGS_MAX = 400
QUIET_MAX = 5_000
_TALLIES = WORDS | {
    Verdict.VALID: "kept",
    Verdict.INVALID: "broken",
    Verdict.NO_CASES: "had nothing to check",
}
_MEANINGS = {
    Verdict.VALID: "Everything that was judged holds.",
    Verdict.INVALID: "At least one promise is broken.",
    Verdict.UNKNOWN: "Nothing was found broken, but something could not be judged.",
}


def page(report: ReportData) -> str:
    """The whole page: a summary, findings, what was done, figures, rules, records."""
    findings = report.findings
    read = [chains for source in report.sources if (chains := report.chains(source.name))]
    pages = [
        RunPage(number, chains, [finding for finding in findings if finding.run == chains.run.name])
        for number, chains in enumerate(read, 1)
    ]
    counts = Counter(result.verdict for result in report.rules)
    meaning = _MEANINGS[report.verdict]
    if report.verdict is Verdict.INVALID and not counts[Verdict.INVALID]:
        meaning = "A scenario did not go as written; no promise was found broken."
    return rendered(
        "page.html",
        report=report,
        words=WORDS,
        places=places,
        meaning=meaning,
        tallies=[
            (verdict, counts[verdict], word)
            for verdict, word in _TALLIES.items()
            if counts[verdict]
        ],
        without=report.by_reason(*WITHOUT_CASES),
        most=max((result.looked_at for result in report.rules), default=0) or 1,
        broken=broken_rules(report, pages),
        pages=pages,
        happenings_max=HAPPENINGS_MAX,
        quiet_max=QUIET_MAX,
        undrawn=[source for source in report.sources if source.is_too_long],
        subjects=subjects(report.rules),
        legend=LEGEND,
        command_line=command_line,
        made=f"minicluster {VERSION}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


class RunPage:
    """The content of the page of one run, read once; the template asks for it by these names.

    Shapes:  number: of the run on the page; marks: its findings by their offsets; listed: the
             records that the page lists, but for idle ones.
    """

    def __init__(self, number: int, chains: Chains, findings: Sequence[Finding]) -> None:
        self.number, self.chains, self.findings = number, chains, tuple(findings)
        self.run, self.story, self.clock = chains.run, chains.story, chains.clock
        self.line = timeline(self.run)
        moments = [self.clock.of(line.offset) for line in chains.lines]
        for disturbance in self.story.disturbances:
            moments += [disturbance.start_ms, disturbance.end_ms or disturbance.start_ms]
        moments += [step.performed.at_ms for step in self.story.steps if step.performed]
        moments += [leader.start_ms for leader in self.story.leaders]
        self.scale = Scale(self.clock, moments, self.story.end_ms)
        self.listed = {line.offset: line for line in _listed(chains, findings)}
        is_run = self.run.is_run
        self.happened = happenings(self.line, self.story, self.clock) if is_run else []
        self.marks: dict[int, list[Finding]] = {}
        for finding in findings:
            self.marks.setdefault(finding.offset, []).append(finding)
        self.drawn, self.quiet = _choose(self)
        self.not_drawn = _not_drawn(self)

    def anchor(self, finding: Finding) -> str:
        """The id of a finding on the page."""
        return f"f{self.number}-{finding.rule}-{self.findings.index(finding)}"

    def happening(self, number: int) -> str:
        """The id of something that happened, where the page lists it."""
        return f"h{self.number}-{number}" if number < HAPPENINGS_MAX else ""

    def record(self, offset: int) -> str:
        """The id of a record on the page."""
        return f"r{self.number}-{offset}"

    def link(self, offset: int) -> str:
        """The id of a record, where the page lists it."""
        return self.record(offset) if offset in self.listed else ""

    def at(self, at_ms: int | None) -> str:
        """A moment in words, if it is known."""
        return "" if at_ms is None else self.clock.text(at_ms)

    @property
    def faults(self) -> Iterator[tuple[str, str]]:
        """The planted faults, each with what it did."""
        header = self.run.header or RunHeader()
        for fault in header.faults:
            hits = header.hits.get(fault)
            never = "never acted: the run proves nothing"
            yield fault, f"acted {counted(hits, 'time')}" if hits else never

    @property
    def scenario(self) -> str:
        """The text of the scenario, where its steps are known."""
        file = self.run.path / "scenario.yaml"
        is_there = self.story.steps and file.is_file()
        return file.read_text(encoding="utf-8", errors="replace") if is_there else ""

    @property
    def steps(self) -> list[ShownStep]:
        """The steps of the scenario as they went, and what happened between them."""
        rows = [
            (happening.at_ms, False, _happened(self, number, happening))
            for number, happening in enumerate(self.happened[:HAPPENINGS_MAX])
        ]
        for step in self.story.steps:
            at_ms = self.scale.end_ms if step.performed is None else step.performed.at_ms
            rows.append((at_ms, True, _step(self, step)))
        rows.sort(key=lambda row: row[:2])  # what a step waited for is before the next one
        return [row for _, _, row in rows]

    @property
    def figures(self) -> Iterator[Figure]:
        """The cluster over time, and the worst partitions."""
        if not self.line.partitions and not self.line.brokers:
            return
        rejected = [
            (self.happening(number), happening)
            for number, happening in enumerate(self.happened)
            if happening.is_rejection
        ]
        yield cluster_figure(self.line, self.story, self.scale, rejected)
        for partition in self.drawn:
            about = [
                (self.anchor(finding), moment, finding)
                for finding in self.findings
                if finding.topic == partition.topic
                and finding.partition in (-1, partition.partition)
                and (moment := self.chains.moment(finding)) is not None
            ]
            small = counted(len(partition.spans), "state")
            if said := _shortage(self, [partition]):
                small += f", {said}"
            yield drawing(self.line, partition, about, self.scale, self.story.disturbances, small)


def _listed(chains: Chains, findings: Sequence[Finding]) -> list[Line]:
    """The records that the page lists: all, or the first ones and those of findings."""
    if len(chains.lines) <= RECORDS_MAX:
        return chains.lines
    wanted = {finding.offset for finding in findings}
    wanted |= {
        cause.offset for finding in findings[:SHOWN_OF_GROUP] for cause in chains.of(finding)
    }
    wanted |= {line.offset for line in chains.lines[: RECORDS_MAX // 2]}
    return [line for line in chains.lines if line.offset in wanted]


# --- findings ------------------------------------------------------------------------------------


class Case(Value):
    """Findings whose sentences differ in numbers alone.

    Shapes:  page: of their run, if that could be read. left: how many more there are.
    """

    page: RunPage | None
    first: Finding
    others: Sequence[Finding]
    left: int


class BrokenRule(Value):
    """A rule with findings."""

    result: RuleResult
    cases: tuple[Case, ...]
    left: int


def broken_rules(report: ReportData, pages: Sequence[RunPage]) -> list[BrokenRule]:
    """The rules that are broken, the earliest finding first."""
    by_run = {page.run.name: page for page in pages}
    broken = [result for result in report.rules if result.findings]
    broken.sort(key=lambda result: min(_moment(by_run, finding) for finding in result.findings))
    return [_broken(result, by_run) for result in broken]


def _broken(result: RuleResult, by_run: Mapping[str, RunPage]) -> BrokenRule:
    alike = list(groups(result.findings))
    cases = tuple(
        Case(
            by_run.get(first.run),
            first,
            others[:SHOWN_OF_GROUP],
            max(len(others) - SHOWN_OF_GROUP, 0),
        )
        for first, *others in alike[:SHOWN_GROUPS]
    )
    return BrokenRule(result, cases, sum(map(len, alike[SHOWN_GROUPS:])))


def _moment(by_run: Mapping[str, RunPage], finding: Finding) -> tuple[int, int, str]:
    """The moment of a finding, then its offset; first of all those whose moment nothing shows."""
    page = by_run.get(finding.run)
    moment = None if page is None else page.chains.moment(finding)
    return -1 if moment is None else moment, finding.offset, finding.rule


# --- what was done -------------------------------------------------------------------------------


class ShownStep(Value):
    """A step of the scenario as it went, or something that happened.

    Shapes:  id: of its row; number: empty where it is not a step; name: the class of the row.
    """

    id: str
    number: str
    name: str
    at: str
    text: str
    nodes: str
    outcome: str


def _step(page: RunPage, step: Step) -> ShownStep:
    performed = step.performed
    row_id, number = f"step-{step.number}", str(step.number)
    if performed is None:
        return ShownStep(row_id, number, "not_applicable", "", step.text, "", "not reached")
    took = performed.ended_ms - performed.at_ms
    nodes = ", ".join(
        f"{key}: {listed_nodes(value, page.story.clients)}"
        for key, value in performed.resolved.items()
    )
    lasted = f"took {took / 1000:g}s" if took > 0 else None
    outcome, name = "; ".join(filter(None, [performed.result, lasted])), ""
    if performed.note:
        outcome, name = performed.note, "failed" if performed.failed else "noted"
    at = page.clock.text(performed.at_ms)
    return ShownStep(row_id, number, name, at, step.text, nodes, outcome)


def _happened(page: RunPage, number: int, happening: Happening) -> ShownStep:
    name = "happened rejected" if happening.is_rejection else "happened"
    at = page.clock.text(happening.at_ms)
    return ShownStep(page.happening(number), "", name, at, happening.text, "", happening.more)


# --- figures -------------------------------------------------------------------------------------


def _choose(page: RunPage) -> tuple[list[PartitionLine], list[PartitionLine]]:
    """The partitions to draw, the worst first, and the others in order of name.

    What happens to brokers happens to the fifty partitions of each internal topic as well: without
    findings, the user's own that had any shortage come before them.
    """
    broken = Counter((partition.topic, partition.partition) for partition in page.findings)

    def badness(partition: PartitionLine) -> tuple[int, bool, bool, int, int, int]:
        without, under = _short_ms(page, partition)
        is_short = without + under > 0
        return (
            -broken[partition.topic, partition.partition],
            not is_short,
            partition.topic in INTERNAL_TOPICS,
            -without,
            -under,
            -len(partition.spans),
        )

    ranked = sorted(page.line.partitions, key=badness)
    drawn = ranked[:DRAWN_PARTITIONS]
    chosen = {id(partition) for partition in drawn}
    return drawn, [partition for partition in page.line.partitions if id(partition) not in chosen]


def _not_drawn(page: RunPage) -> str:
    """The sentence about the partitions that are not drawn."""
    if not page.quiet:
        return ""
    said = _shortage(page, page.quiet) or "none of them without a leader or under min ISR"
    return f"{counted(len(page.quiet), 'more partition')} not drawn: {said}."


def _short_ms(page: RunPage, partition: PartitionLine) -> tuple[int, int]:
    """The time without a leader, and with one but under min ISR; offsets where no time is kept."""
    without = under = 0
    for span in partition.spans:
        lasts = page.scale.moment(span.end) - page.scale.moment(span.start)
        if span.leader < 0:
            without += lasts
        elif len(span.isr) < span.min_isr:
            under += lasts
    return without, under


def _shortage(page: RunPage, partitions: Sequence[PartitionLine]) -> str:
    """For how long partitions were without a leader or under min ISR, in words."""
    times = [_short_ms(page, partition) for partition in partitions]
    parts = []
    for number, what in enumerate(("without a leader", "under min ISR")):
        short = [lasting[number] for lasting in times if lasting[number] > 0]
        if not short:
            continue
        unit = f"{max(short) / 1000:g}s" if page.clock.is_timed else counted(max(short), "offset")
        who = "" if len(partitions) == 1 else f"{len(short):,} "
        longest = unit if len(partitions) == 1 else f"up to {unit}"
        parts.append(f"{who}{what} for {longest}")
    return ", ".join(parts)
