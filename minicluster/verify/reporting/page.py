"""The report as one HTML page: no script to load, no font, no network."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from minicluster.own_command import command_line
from minicluster.verify.model import Verdict
from minicluster.verify.reporting.drawing import LEGEND
from minicluster.verify.reporting.report_data import WITHOUT_CASES, WORDS, ReportData, places
from minicluster.verify.reporting.sections import RunPage, broken_rules, done, figures
from minicluster.verify.reporting.subjects import subjects
from minicluster.verify.reporting.templating import rendered
from minicluster.version import VERSION

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
        RunPage.of(
            number, chains, [finding for finding in findings if finding.run == chains.run.name]
        )
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
        pages=[(run_page, done(run_page), figures(run_page)) for run_page in pages],
        undrawn=[source for source in report.sources if source.is_too_long],
        subjects=subjects(report.rules),
        legend=LEGEND,
        command_line=command_line,
        made=f"minicluster {VERSION}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )
