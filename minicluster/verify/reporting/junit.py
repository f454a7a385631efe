"""A report as JUnit XML, which every CI shows: one suite per run, one case per rule.

A broken rule is a failure, an unknown one an error, a rule without cases is skipped. The scenario
is a case of its own.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from minicluster.errors import printable
from minicluster.verify.model import Verdict
from minicluster.verify.reporting.report_data import ReportData, RuleResult, RunSummary, place

_SHOWN = 20  # findings of one rule


def junit(report: ReportData) -> str:
    """The report as JUnit XML; the verdict on the whole is among the properties."""
    suites = Element("testsuites", name="minicluster")
    for run in report.runs:
        _suite(suites, report, run)
    for suite in suites:
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped",) * 2):
            suite.set(attribute, str(sum(case.find(tag) is not None for case in suite)))
        suite.set("tests", str(len(suite.findall("testcase"))))
    for name in ("tests", "failures", "errors"):
        suites.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _suite(suites: Element, report: ReportData, run: RunSummary) -> None:
    suite = SubElement(suites, "testsuite", name=printable(run.name))
    properties = SubElement(suite, "properties")
    for name, value in (
        ("verdict", str(report.verdict)),
        ("path", run.path),
        ("seed", "" if run.seed is None else str(run.seed)),
        ("repeat", "" if run.repeat is None else f"minicluster {run.repeat}"),
    ):
        SubElement(properties, "property", name=name, value=printable(value))
    _scenario(suite, report, run)
    for result in report.rules:
        _rule(suite, result, run)


def _scenario(suite: Element, report: ReportData, run: RunSummary) -> None:
    """The scenario, and the reasons why the run as a whole proves nothing."""
    case = SubElement(suite, "testcase", classname=printable(run.name), name="scenario")
    if run.failure is not None:
        tag = "failure" if run.failure.verdict is Verdict.INVALID else "error"
        first = run.failure.text.splitlines()[0]
        node = SubElement(case, tag, type=run.failure.kind, message=printable(first))
        node.text = _text(run.failure.text.splitlines())
        return
    reasons = [reason for reason in report.reasons if reason.startswith(f"{run.name}: ")]
    if len(report.runs) == 1:
        reasons = list(report.reasons)
    if reasons:
        node = SubElement(case, "error", type="unknown", message=printable(reasons[0]))
        node.text = _text(reasons)


def _rule(suite: Element, result: RuleResult, run: RunSummary) -> None:
    verdict = next((word for name, word, _ in result.by_run if name == run.name), result.verdict)
    name = f"{result.id} {result.rule.title}"
    case = SubElement(suite, "testcase", classname=printable(run.name), name=name)
    if verdict is Verdict.INVALID:
        findings = [finding for finding in result.findings if finding.run == run.name]
        lines = [f"{place(finding)}: {finding.message}" for finding in findings[:_SHOWN]]
        if len(findings) > _SHOWN:
            lines.append(f"… and {len(findings) - _SHOWN} more")
        message = findings[0].message if findings else "it is broken"
        node = SubElement(case, "failure", type=result.id, message=printable(message))
        node.text = _text([result.rule.statement, f"source: {result.rule.source}", *lines])
    elif verdict is Verdict.UNKNOWN:
        message = result.reasons[0] if result.reasons else "it is unknown"
        node = SubElement(case, "error", type="unknown", message=printable(message))
        node.text = _text(list(result.reasons))
    elif verdict is not Verdict.VALID:
        SubElement(case, "skipped", message=str(verdict).replace("_", " "))


def _text(lines: list[str]) -> str:
    return "\n".join(map(printable, lines))
