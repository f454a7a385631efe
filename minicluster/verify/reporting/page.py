"""The report as one HTML page: no script to load, no font, no network."""

from __future__ import annotations

from collections import Counter
from html import escape
from importlib.resources import files

from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.reporting.drawing import drawing, legend
from minicluster.verify.reporting.report_data import (
    AROUND,
    SHOWN_FINDINGS,
    ReportData,
    RuleResult,
    RunSummary,
    place,
)
from minicluster.verify.reporting.timeline import PartitionLine, Timeline, timeline
from minicluster.verify.rules.model import Finding, Verdict

SHOWN_PARTITIONS = 40

_WORDS = {
    Verdict.VALID: "valid",
    Verdict.INVALID: "invalid",
    Verdict.UNKNOWN: "unknown",
    Verdict.NO_CASES: "no cases",
    Verdict.NOT_PROMISED: "not promised",
    Verdict.NOT_APPLICABLE: "not applicable",
}
_MEANINGS = {
    Verdict.VALID: "Everything that was judged holds.",
    Verdict.INVALID: "At least one promise is broken.",
    Verdict.UNKNOWN: "Nothing was found broken, but something could not be judged.",
}


def page(report: ReportData) -> str:
    """The whole page."""
    style = files("minicluster.verify.reporting").joinpath("page.css").read_text(encoding="utf-8")
    body = [
        _banner(report),
        _findings(report),
        _timelines(report),
        _rules(report),
        "<footer>minicluster</footer>",
    ]
    title = f"{_WORDS[report.verdict]} – {', '.join(run.name for run in report.runs)}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _banner(report: ReportData) -> str:
    word = _WORDS[report.verdict]
    runs = "".join(_run(run) for run in report.runs)
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in report.reasons)
    why = f'<ul class="reasons">{reasons}</ul>' if reasons else ""
    counts = Counter(result.verdict for result in report.rules)
    tallies = "".join(
        f'<span class="tally {verdict}"><b>{counts[verdict]}</b> {_WORDS[verdict]}</span>'
        for verdict in Verdict
        if counts[verdict]
    )
    looked = sum(result.looked_at for result in report.rules)
    return (
        f'<header class="banner {report.verdict}"><h1>{word}</h1>'
        f"<p>{_MEANINGS[report.verdict]} {looked:,} cases were judged under "
        f'{len(report.rules)} rules.</p><div class="tallies">{tallies}</div>{why}</header>'
        f'<section class="runs">{runs}</section>'
    )


def _run(run: RunSummary) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in run.notes)
    failed = "" if run.failure is None else _failure(run.failure)
    repeat = f"<p>again: <code>minicluster {escape(run.repeat)}</code></p>" if run.repeat else ""
    kind = "run with trace" if run.traced else "log without trace"
    return (
        f'<div class="run"><h3>{escape(run.name)}</h3><p>{escape(str(run))}</p>'
        f'<p class="dim">{kind} · {escape(run.path)}</p>{repeat}'
        f"{f'<ul>{notes}</ul>' if notes else ''}{failed}</div>"
    )


def _failure(failure: ScenarioFailure) -> str:
    first, *more = failure.text.splitlines()
    state = f"<pre>{escape(chr(10).join(more))}</pre>" if more else ""
    return (
        f'<div class="failure {failure.verdict}"><p><b>The scenario did not go as written:</b> '
        f"{escape(first)}</p>{state}</div>"
    )


def _findings(report: ReportData) -> str:
    broken = [result for result in report.rules if result.findings]
    if not broken:
        return ""
    broken.sort(key=lambda result: min((one.offset, one.rule) for one in result.findings))
    parts = ["<h2>Findings</h2>"]
    for result in broken:
        count = len(result.findings)
        parts.append(
            f'<section class="finding" id="finding-{result.id}">'
            f"<h3><span class='id'>{result.id}</span> {escape(result.rule.title)}"
            f" <small>{count} finding{'s' * (count != 1)}</small></h3>"
            f"<p>{escape(result.rule.statement)}</p>"
            f'<p class="dim">Source: {escape(result.rule.source)}</p>'
        )
        for number, finding in enumerate(result.findings[:SHOWN_FINDINGS]):
            parts.append(_finding(report, finding, unfolded=number == 0))
        if count > SHOWN_FINDINGS:
            parts.append(f'<p class="dim">… and {count - SHOWN_FINDINGS} more</p>')
        parts.append("</section>")
    return "".join(parts)


def _finding(report: ReportData, finding: Finding, *, unfolded: bool) -> str:
    lines = report.around(finding)
    rows = "".join(
        f'<tr class="{"here" if offset == finding.offset else ""}">'
        f"<td>{offset}</td><td>{escape(line)}</td></tr>"
        for offset, line in lines
    )
    records = (
        f"<details{' open' if unfolded else ''}><summary>records around it (±{AROUND})</summary>"
        f'<div class="scroll"><table class="records">{rows}</table></div></details>'
        if rows
        else ""
    )
    return (
        f'<div class="case"><p><b>{escape(finding.message)}</b></p>'
        f'<p class="dim">{escape(place(finding))}</p>{records}</div>'
    )


def _rules(report: ReportData) -> str:
    most = max([result.looked_at for result in report.rules] or [1]) or 1
    rows = "".join(_rule(result, most) for result in report.rules)
    return (
        '<h2>Rules</h2><div class="scroll"><table class="rules"><thead><tr><th>Rule</th>'
        "<th>Verdict</th><th class='number'>Cases</th><th></th><th>Rule</th></tr>"
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def _rule(result: RuleResult, most: int) -> str:
    word = _WORDS[result.verdict]
    width = 0.0 if not result.looked_at else max(3.0, 100 * (result.looked_at / most) ** 0.4)
    skipped = f" <small>+{result.not_promised:,} not promised</small>"
    more = skipped if result.not_promised else ""
    reasons = "".join(f"<br><small class='why'>{escape(why)}</small>" for why in result.reasons)
    rule_id = f'<a href="#finding-{result.id}">{result.id}</a>' if result.findings else result.id
    return (
        f'<tr class="{result.verdict}"><td class="id">{rule_id}</td>'
        f'<td><span class="pill {result.verdict}">{word}</span></td>'
        f'<td class="number">{result.looked_at:,}{more}</td>'
        f'<td class="bar"><i style="width:{width:.0f}%"></i></td>'
        f"<td><details><summary>{escape(result.rule.title)}</summary>"
        f'<p>{escape(result.rule.statement)}</p><p class="dim">{escape(result.rule.source)}</p>'
        f"</details>{reasons}</td></tr>"
    )


def _timelines(report: ReportData) -> str:
    parts = [f"<h2>Partitions over the log</h2>{legend()}"]
    for source in report.sources:
        run = source.read()
        if run is None:
            continue
        line = timeline(run)
        if not line.partitions:
            continue
        found = [one for one in report.findings if one.run == run.name]
        if len(report.sources) > 1:
            parts.append(f"<h3>{escape(run.name)}</h3>")
        shown, left = _choose(line, found)
        for partition in shown:
            about = [
                one
                for one in found
                if one.topic == partition.topic
                and one.partition in (-1, partition.partition)
                and one.offset >= 0
            ]
            parts.append(drawing(line, partition, about))
        if left:
            parts.append(f'<p class="dim">{left} quieter partitions are not drawn.</p>')
    return "".join(parts) if len(parts) > 1 else ""


def _choose(line: Timeline, found: list[Finding]) -> tuple[list[PartitionLine], int]:
    """The partitions to draw: those with findings, then the liveliest, in order of name."""
    broken = Counter((one.topic, one.partition) for one in found)
    ranked = sorted(
        line.partitions, key=lambda one: (-broken[one.topic, one.partition], -len(one.spans))
    )
    chosen = ranked[:SHOWN_PARTITIONS]
    order = {id(one): place for place, one in enumerate(line.partitions)}
    chosen.sort(key=lambda one: order[id(one)])
    return chosen, len(line.partitions) - len(chosen)
