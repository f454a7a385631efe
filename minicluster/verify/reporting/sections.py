"""What the page shows of one run: findings with their causes, steps, figures, records.

A finding, its mark in a figure and its record link to each other. Each function gives what its part
of ``templates/page.html`` writes down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from minicluster.errors import counted
from minicluster.protocol.topics import INTERNAL_TOPICS
from minicluster.values import dataclass
from minicluster.verify.evidence.run import Run
from minicluster.verify.model import Finding
from minicluster.verify.reporting.causes import Chains, Line
from minicluster.verify.reporting.drawing import drawing
from minicluster.verify.reporting.happenings import Happening, happenings
from minicluster.verify.reporting.lanes import cluster_figure
from minicluster.verify.reporting.report_data import ReportData, RuleResult, groups
from minicluster.verify.reporting.scale import Clock, Scale
from minicluster.verify.reporting.story import Step, Story, listed_nodes
from minicluster.verify.reporting.svg import Figure
from minicluster.verify.reporting.timeline import PartitionLine, Timeline, timeline

DRAWN_PARTITIONS = 20
SHOWN_GROUPS = 20  # of one rule
SHOWN_OF_GROUP = 50
RECORDS_MAX = 1_500
HAPPENINGS_MAX = 400
QUIET_MAX = 5_000


@dataclass(frozen=True, slots=True)
class RunPage:
    """The contents of the page about one run, read once.

    Shapes:  number: of the run on the page; marks: its findings by their offsets; listed: the
             records that the page lists, but for idle ones.
    """

    number: int
    run: Run
    story: Story
    clock: Clock
    chains: Chains
    line: Timeline
    scale: Scale
    findings: tuple[Finding, ...]
    marks: dict[int, list[Finding]]
    listed: dict[int, Line]
    happened: tuple[Happening, ...]

    @classmethod
    def of(cls, number: int, chains: Chains, findings: Sequence[Finding]) -> RunPage:
        run, story, clock = chains.run, chains.story, chains.clock
        line = timeline(run)
        moments = [clock.of(line.offset) for line in chains.lines]
        for disturbance in story.disturbances:
            moments += [disturbance.start_ms, disturbance.end_ms or disturbance.start_ms]
        moments += [step.performed.at_ms for step in story.steps if step.performed]
        moments += [leader.start_ms for leader in story.leaders]
        scale = Scale(clock, moments, story.end_ms)
        listed = {line.offset: line for line in _listed(chains, findings)}
        happened = tuple(happenings(line, story, clock)) if run.is_run else ()
        marks: dict[int, list[Finding]] = {}
        for finding in findings:
            marks.setdefault(finding.offset, []).append(finding)
        return cls(
            number, run, story, clock, chains, line, scale, tuple(findings), marks, listed, happened
        )

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


@dataclass(frozen=True, slots=True)
class Case:
    """Findings whose sentences differ in numbers alone.

    Shapes:  page: of their run, if that could be read. left: how many more there are.
    """

    page: RunPage | None
    first: Finding
    others: Sequence[Finding]
    left: int


@dataclass(frozen=True, slots=True)
class BrokenRule:
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


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step of the scenario as it went, or something that happened.

    Shapes:  id: of its row; number: empty where it is no step; name: the class of the row.
    """

    id: str
    number: str
    name: str
    at: str
    text: str
    nodes: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Done:
    """The scenario: its steps as they went, what happened between them, planted faults, its text.

    Shapes:  left: how much more happened than is shown.
    """

    steps: tuple[ShownStep, ...]
    left: int
    faults: tuple[tuple[str, str], ...]
    scenario: str


def done(page: RunPage) -> Done:
    """What was done to the cluster of a run, and what came of it."""
    header, story = page.run.header, page.story
    scenario = page.run.path / "scenario.yaml"
    text = ""
    if story.steps and scenario.is_file():
        text = scenario.read_text(encoding="utf-8", errors="replace")
    rows = [
        (happening.at_ms, False, _happened(page, number, happening))
        for number, happening in enumerate(page.happened[:HAPPENINGS_MAX])
    ]
    for step in story.steps:
        at_ms = page.scale.end_ms if step.performed is None else step.performed.at_ms
        rows.append((at_ms, True, _step(page, step)))
    rows.sort(key=lambda row: row[:2])  # what a step waited for is before the next one
    return Done(
        tuple(row for _, _, row in rows),
        max(len(page.happened) - HAPPENINGS_MAX, 0),
        () if header is None else tuple((f, _acted(header.hits.get(f, 0))) for f in header.faults),
        text,
    )


def _acted(count: int) -> str:
    return f"acted {counted(count, 'time')}" if count else "never acted: the run proves nothing"


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


@dataclass(frozen=True, slots=True)
class Figures:
    """The cluster and the worst partitions; the others are rows of a table.

    Shapes:  left: what is not drawn, in one sentence; quiet: the first of those partitions.
    """

    figures: tuple[Figure, ...]
    left: str
    quiet: tuple[PartitionLine, ...]
    unlisted: int


def figures(page: RunPage) -> Figures:
    """The cluster over time, and the worst partitions: by findings, then by time out of order."""
    if not page.line.partitions and not page.line.brokers:
        return Figures((), "", (), 0)
    rejected = [
        (page.happening(number), happening)
        for number, happening in enumerate(page.happened)
        if happening.is_rejection
    ]
    parts = [cluster_figure(page.line, page.story, page.scale, rejected)]
    drawn, quiet = _choose(page)
    for partition in drawn:
        about = [
            (page.anchor(finding), moment, finding)
            for finding in page.findings
            if finding.topic == partition.topic
            and finding.partition in (-1, partition.partition)
            and (moment := page.chains.moment(finding)) is not None
        ]
        small = counted(len(partition.spans), "state")
        if said := _shortage(page, [partition]):
            small += f", {said}"
        disturbances = page.story.disturbances
        parts.append(drawing(page.line, partition, about, page.scale, disturbances, small))
    left = ""
    if quiet:
        said = _shortage(page, quiet) or "none of them without a leader or under min ISR"
        left = f"{counted(len(quiet), 'more partition')} not drawn: {said}."
    listed = tuple(quiet[:QUIET_MAX])
    return Figures(tuple(parts), left, listed, len(quiet) - len(listed))


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
