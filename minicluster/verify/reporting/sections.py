"""Sections of the page about one run: findings with their causes, steps, timelines, records.

A finding, its mark in a figure and its record link to each other.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from minicluster.errors import counted
from minicluster.verify.evidence.run import Run
from minicluster.verify.model import Finding
from minicluster.verify.reporting.causes import Cause, Chains, Line
from minicluster.verify.reporting.drawing import drawing
from minicluster.verify.reporting.lanes import cluster_figure
from minicluster.verify.reporting.report_data import ReportData, RuleResult, groups, place
from minicluster.verify.reporting.scale import Clock, Scale
from minicluster.verify.reporting.story import Step, Story
from minicluster.verify.reporting.timeline import PartitionLine, Timeline, timeline

DRAWN_PARTITIONS = 40
SHOWN_GROUPS = 20  # of one rule
SHOWN_OF_GROUP = 50
RECORDS_MAX = 1_500
QUIET_MAX = 5_000


@dataclass(frozen=True, slots=True)
class RunPage:
    """The contents of the page about one run, read once.

    Shapes:  number: of the run on the page; anchors: of the findings, by which they are linked.
    """

    number: int
    run: Run
    story: Story
    clock: Clock
    chains: Chains
    line: Timeline
    scale: Scale
    found: tuple[Finding, ...]
    listed: dict[int, Line]

    @classmethod
    def of(cls, number: int, chains: Chains, found: Sequence[Finding]) -> RunPage:
        run, story, clock = chains.run, chains.story, chains.clock
        line = timeline(run)
        moments = [clock.of(one.offset) for one in chains.lines]
        for disturbance in story.disturbances:
            moments += [disturbance.start_ms, disturbance.end_ms or disturbance.start_ms]
        moments += [step.performed.at_ms for step in story.steps if step.performed]
        moments += [leader.start_ms for leader in story.leaders]
        scale = Scale(clock, moments, story.end_ms)
        listed = {one.offset: one for one in _listed(chains, found)}
        return cls(number, run, story, clock, chains, line, scale, tuple(found), listed)

    def anchor(self, finding: Finding) -> str:
        """The id of a finding on the page."""
        return f"f{self.number}-{finding.rule}-{self.found.index(finding)}"

    def record(self, offset: int) -> str:
        """The id of a record on the page."""
        return f"r{self.number}-{offset}"

    def link(self, offset: int, text: str) -> str:
        """A text that leads to a record, where the page lists it."""
        return f'<a href="#{self.record(offset)}">{text}</a>' if offset in self.listed else text


def _listed(chains: Chains, found: Sequence[Finding]) -> list[Line]:
    """The records that the page lists: all, or the first ones and those of findings."""
    if len(chains.lines) <= RECORDS_MAX:
        return chains.lines
    wanted = {one.offset for one in found}
    wanted |= {cause.offset for one in found[:SHOWN_OF_GROUP] for cause in chains.of(one)}
    wanted |= {line.offset for line in chains.lines[: RECORDS_MAX // 2]}
    return [line for line in chains.lines if line.offset in wanted]


# --- findings ------------------------------------------------------------------------------------


def findings(report: ReportData, pages: Sequence[RunPage]) -> str:
    """The rules that are broken, the earliest finding first, each with its causes."""
    broken = [result for result in report.rules if result.findings]
    if not broken:
        return ""
    by_run = {page.run.name: page for page in pages}
    broken.sort(key=lambda result: min(_moment(by_run, one) for one in result.findings))
    parts = ["<h2>Findings</h2>"]
    for result in broken:
        parts.append(_rule_heading(result))
        alike = list(groups(result.findings))
        for number, group in enumerate(alike[:SHOWN_GROUPS]):
            page = by_run.get(group[0].run)
            parts.append(_group(page, group, unfolded=number == 0))
        if len(alike) > SHOWN_GROUPS:
            left = sum(map(len, alike[SHOWN_GROUPS:]))
            parts.append(f'<p class="dim">… and {left} more, in report.json</p>')
        parts.append("</section>")
    return "".join(parts)


def _moment(by_run: Mapping[str, RunPage], finding: Finding) -> tuple[int, int, str]:
    """The moment of a finding, then its offset; first of all those whose moment nothing shows."""
    page = by_run.get(finding.run)
    moment = None if page is None else page.chains.moment(finding)
    return -1 if moment is None else moment, finding.offset, finding.rule


def _rule_heading(result: RuleResult) -> str:
    count = len(result.findings)
    return (
        f'<section class="finding" id="finding-{result.id}">'
        f"<h3><span class='id'>{result.id}</span> {escape(result.rule.title)}"
        f" <small>{counted(count, 'finding')}</small></h3>"
        f"<p>{escape(result.rule.statement)}</p>"
        f'<p class="dim">Source: {escape(result.rule.source)}</p>'
    )


def _group(page: RunPage | None, group: list[Finding], *, unfolded: bool) -> str:
    first, *others = group
    body = _finding(page, first)
    if page is not None:
        body += _chain(page, page.chains.of(first), unfolded=unfolded)
    if others:
        items = "".join(f"<li>{_finding(page, one)}</li>" for one in others[:SHOWN_OF_GROUP])
        left = len(others) - SHOWN_OF_GROUP
        more = f"<li>… and {left} more, in report.json</li>" if left > 0 else ""
        body += (
            f"<details><summary>{len(others)} more like it</summary>"
            f'<ul class="others">{items}{more}</ul></details>'
        )
    return f'<div class="case">{body}</div>'


def _finding(page: RunPage | None, finding: Finding) -> str:
    if page is None:
        return f"<p><b>{escape(finding.message)}</b></p>"
    where = escape(place(finding))
    if finding.offset >= 0:
        link = page.link(finding.offset, f"offset {finding.offset}")
        where = where.replace(f"offset {finding.offset}", link, 1)
    if (moment := page.chains.moment(finding)) is not None:
        where += f", {escape(page.clock.text(moment))}"
    return (
        f'<p id="{page.anchor(finding)}"><b>{escape(page.chains.message(finding))}</b></p>'
        f'<p class="dim">{where}</p>'
    )


def _chain(page: RunPage, causes: Sequence[Cause], *, unfolded: bool) -> str:
    if not causes:
        return ""
    rows = "".join(_cause(page, one) for one in causes)
    return (
        f"<details{' open' if unfolded else ''}><summary>what led to it</summary>"
        f'<div class="scroll"><table class="records">{rows}</table></div></details>'
    )


def _cause(page: RunPage, cause: Cause) -> str:
    kind = cause.kind
    offset = ""
    if cause.offset >= 0:
        kind = "record"
        offset = page.link(cause.offset, str(cause.offset))
    name = ' class="here"' if cause.kind == "here" else ""
    return (
        f"<tr{name}><td>{escape(page.clock.text(cause.at_ms))}</td><td>{kind} {offset}</td>"
        f"<td>{escape(cause.text)}</td></tr>"
    )


# --- what was done -------------------------------------------------------------------------------


def done(page: RunPage) -> str:
    """The scenario: its steps as they went, its planted faults, its text."""
    header, story = page.run.header, page.story
    if header is None or not (story.steps or header.faults or story.disturbances):
        return ""
    parts = [
        '<div class="scroll"><table class="rules steps"><thead><tr><th>Step</th><th>At</th>'
        "<th>What was done</th><th>Nodes</th><th>Outcome</th></tr></thead><tbody>"
    ]
    parts += [_step(page, step) for step in story.steps]
    parts.append("</tbody></table></div>")
    if not story.steps:
        parts = [_disturbance_list(page)]
    for fault in header.faults:
        count = header.hits.get(fault, 0)
        acted = (
            f"acted {counted(count, 'time')}" if count else "never acted, so the run proves nothing"
        )
        parts.append(f"<p>Planted fault <b>{escape(fault)}</b> {acted}.</p>")
    scenario = page.run.path / "scenario.yaml"
    if story.steps and scenario.is_file():
        text = scenario.read_text(encoding="utf-8", errors="replace")
        parts.append(
            f"<details><summary>scenario.yaml</summary><pre>{escape(text)}</pre></details>"
        )
    return "<h2>What was done</h2>" + "".join(parts)


def _step(page: RunPage, step: Step) -> str:
    performed = step.performed
    at, nodes, outcome, name = "", "", "not reached", "not_applicable"
    if performed is not None:
        at, name = page.clock.text(performed.at_ms), ""
        took = performed.ended_ms - performed.at_ms
        nodes = ", ".join(f"{key}: {_ids(value)}" for key, value in performed.resolved.items())
        outcome = f"took {took / 1000:g}s" if took > 0 else ""
        if performed.note:
            outcome, name = performed.note, "failed" if performed.failed else "noted"
    return (
        f'<tr class="{name}" id="step-{step.number}"><td class="id">{step.number}</td>'
        f"<td>{escape(at)}</td><td>{escape(step.text)}</td><td>{escape(nodes)}</td>"
        f"<td>{escape(outcome)}</td></tr>"
    )


def _ids(value: object) -> str:
    return json.dumps(value).strip("[]").replace('"', "") or "nobody"


def _disturbance_list(page: RunPage) -> str:
    rows = "".join(
        f"<tr><td>{escape(page.clock.text(one.start_ms))}</td><td>"
        f"{'' if one.end_ms is None else escape(page.clock.text(one.end_ms))}</td>"
        f"<td>{escape(one.text)}</td></tr>"
        for one in page.story.disturbances
    )
    return (
        '<div class="scroll"><table class="rules steps"><thead><tr><th>From</th><th>To</th>'
        f"<th>Disturbance</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


# --- timelines -----------------------------------------------------------------------------------


def figures(page: RunPage) -> str:
    """The cluster, the partitions with findings and the liveliest, and a table of the quiet."""
    if not page.line.partitions and not page.line.brokers:
        return ""
    parts = [cluster_figure(page.line, page.story, page.scale)]
    drawn, quiet = _choose(page.line, page.found)
    for partition in drawn:
        about = [
            (page.anchor(one), moment, one)
            for one in page.found
            if one.topic == partition.topic
            and one.partition in (-1, partition.partition)
            and (moment := page.chains.moment(one)) is not None
        ]
        parts.append(drawing(page.line, partition, about, page.scale, page.story.disturbances))
    return "".join(parts) + _quiet(quiet)


def _choose(
    line: Timeline, found: Sequence[Finding]
) -> tuple[list[PartitionLine], list[PartitionLine]]:
    """The partitions to draw, and the others, in order of name."""
    broken = Counter((one.topic, one.partition) for one in found)
    ranked = sorted(
        line.partitions, key=lambda one: (-broken[one.topic, one.partition], -len(one.spans))
    )
    chosen = {id(one) for one in ranked[:DRAWN_PARTITIONS]}
    drawn = [one for one in line.partitions if id(one) in chosen]
    return drawn, [one for one in line.partitions if id(one) not in chosen]


def _quiet(partitions: Sequence[PartitionLine]) -> str:
    if not partitions:
        return ""
    rows = "".join(
        f"<tr><td>{escape(one.name)}</td><td class='number'>{len(one.spans)}</td>"
        f"<td>{one.spans[-1].leader}</td><td>{list(one.spans[-1].isr)}</td>"
        f"<td>{list(one.spans[-1].replicas)}</td>"
        f"<td>{one.spans[-1].leader_epoch}/{one.spans[-1].partition_epoch}</td></tr>"
        for one in partitions[:QUIET_MAX]
    )
    left = len(partitions) - QUIET_MAX
    more = f'<p class="dim">… and {left} more; minicluster log shows all</p>' if left > 0 else ""
    return (
        f"<details><summary>{len(partitions)} quieter partitions</summary>"
        '<div class="scroll"><table class="rules"><thead><tr><th>Partition</th>'
        "<th class='number'>States</th><th>Leader</th><th>ISR</th><th>Replicas</th>"
        f"<th>Epochs</th></tr></thead><tbody>{rows}</tbody></table></div>{more}</details>"
    )


# --- records -------------------------------------------------------------------------------------


def records(page: RunPage) -> str:
    """The records of the log but for idle ones; those of findings link back."""
    by_offset: dict[int, list[Finding]] = {}
    for one in page.found:
        by_offset.setdefault(one.offset, []).append(one)
    rows = []
    for line in page.listed.values():
        marks = " ".join(
            f'<a href="#{page.anchor(one)}">{one.rule}</a>'
            for one in by_offset.get(line.offset, ())
        )
        name = ' class="here"' if marks else ""
        at = page.clock.text(page.clock.of(line.offset))
        rows.append(
            f'<tr{name} id="{page.record(line.offset)}"><td>{line.offset}</td><td>{escape(at)}</td>'
            f"<td>{marks}</td><td>{escape(line.text)}</td></tr>"
        )
    left = len(page.chains.lines) - len(page.listed)
    more = f"; {left} more are shown by minicluster log" if left else ""
    records = counted(len(page.listed), "record")
    return (
        f"<details><summary>{records}, without idle ones{more}</summary>"
        f'<div class="scroll"><table class="records">{"".join(rows)}</table></div></details>'
    )
