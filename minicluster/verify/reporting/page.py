"""The report as one HTML page: no script to load, no font, no network."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from html import escape
from importlib.resources import files

from minicluster.errors import counted
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.model import Verdict
from minicluster.verify.reporting.drawing import legend
from minicluster.verify.reporting.report_data import ReportData, RuleResult, RunSummary
from minicluster.verify.reporting.sections import RunPage, done, figures, findings, records
from minicluster.version import VERSION

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
    found = report.findings
    read = [chains for source in report.sources if (chains := report.chains(source.name))]
    pages = [
        RunPage.of(number, chains, [one for one in found if one.run == chains.run.name])
        for number, chains in enumerate(read, 1)
    ]
    made = f"minicluster {VERSION}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    body = [
        _banner(report),
        findings(report, pages),
        *(_of_run(one, len(pages) > 1) for one in pages),
        _rules(report),
        f"<footer>{made}</footer>",
    ]
    verdict = report.headline or _WORDS[report.verdict]
    title = f"{verdict} – {', '.join(run.name for run in report.runs)}"
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
    rules = counted(len(report.rules), "rule")
    headline = f": {report.headline}" if report.headline else ""
    meaning = _MEANINGS[report.verdict]
    if report.verdict is Verdict.INVALID and not counts[Verdict.INVALID]:
        meaning = "A scenario did not go as written; no promise was found broken."
    return (
        f'<header class="banner {report.verdict}"><h1>{word}{headline}</h1>'
        f"<p>{meaning} {counted(looked, 'case')} judged under "
        f'{rules}.</p><div class="tallies">{tallies}</div>{why}</header>'
        f'<section class="runs">{runs}</section>'
    )


def _run(run: RunSummary) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in run.notes)
    failed = "" if run.failure is None else _failure(run.failure)
    repeat = f"<p>again: <code>minicluster {escape(run.repeat)}</code></p>" if run.repeat else ""
    kind = "run with trace" if run.traced else "log without trace"
    if run.minicluster is not None:
        kind += f" of minicluster {run.minicluster}"
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
    if excused := sum(result.exempt.values()):
        why = escape("; ".join(result.exempt), quote=True)
        more += f' <small title="{why}">+{excused:,} exempt</small>'
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


def _of_run(page: RunPage, several: bool) -> str:
    heading = f"<h2>{escape(page.run.name)}</h2>" if several else ""
    figure = figures(page)
    over = "time" if page.clock.is_timed else "the log"
    timelines = f"<h2>Timelines over {over}</h2>{legend()}{figure}" if figure else ""
    return heading + done(page) + timelines + records(page)
