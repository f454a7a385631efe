"""A report's forms, made from data alone."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console

from minicluster.values import replace
from minicluster.verify.model import Evidence, Finding, Verdict
from minicluster.verify.reporting.report import Report
from minicluster.verify.reporting.report_data import RuleResult, RunSummary
from minicluster.verify.reporting.subjects import SUBJECTS, subjects
from minicluster.verify.reporting.text import print_report
from minicluster.verify.rules.every import BY_ID, RULES
from minicluster.verify.rules.rule import Rule


def _report(name: str) -> Report:
    finding = Finding(run=name, offset=-1, rule="E10", topic="a\x1b[2Jb", message="bad\x07")
    rule = RuleResult(
        rule=BY_ID["E10"],
        verdict=Verdict.INVALID,
        looked_at=1,
        not_promised=0,
        findings=(finding,),
        reasons=(),
    )
    run = RunSummary(
        name=name,
        path=name,
        records=1,
        logs=1,
        first_offset=0,
        end_offset=1,
        traced=False,
        notes=("note\r",),
    )
    return Report(verdict=Verdict.INVALID, rules=(rule,), runs=(run,), reasons=())


def test_characters_that_steer_a_terminal_are_shown_as_escapes() -> None:
    text = _report("r\x1b]0;title\x07\udc80").to_text()

    assert not set(text) & {"\x1b", "\x07", "\r", "\udc80"}
    assert r"r\x1b]0;title\x07\udc80, a\x1b[2Jb: bad\x07" in text
    assert text.encode()


def test_findings_alike_name_each_place_once() -> None:
    report = _report("night")
    (result,) = report.rules
    places = [("orders", 1), ("orders", 1), ("orders", 1), ("returns", 2), ("returns", 2)]
    alike = tuple(
        replace(result.findings[0], topic=topic, broker=broker, message=f"late {number}")
        for number, (topic, broker) in enumerate(places)
    )
    told = replace(report, rules=(replace(result, findings=alike),)).to_text()
    assert "4 more like it: orders, broker 1; returns, broker 2\n" in told


STATEMENT = "what a leader says " * 20


def _long() -> Report:
    report = _report("night")
    (result,) = report.rules
    finding = replace(result.findings[0], topic="orders", message=f"leader 1: {STATEMENT}end")
    return replace(report, rules=(replace(result, findings=(finding,)),))


def test_a_finding_is_one_whole_line_where_there_is_no_terminal() -> None:
    assert f"  night, orders: leader 1: {STATEMENT}end" in _long().to_text().splitlines()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_finding_wraps_on_a_terminal_and_nothing_is_cropped(width: int) -> None:
    lines = _long().to_text(width=width).splitlines()
    assert max(map(len, lines)) <= width
    start = next(n for n, line in enumerate(lines) if line.startswith("  night, orders:"))
    wrapped = [line for line in lines[start:] if line.startswith("  ")]
    assert " ".join(" ".join(wrapped).split()) == f"night, orders: leader 1: {STATEMENT}end"


def test_the_titles_of_rules_wrap_in_their_column() -> None:
    lines = _long().to_text(width=50).splitlines()
    row = next(n for n, line in enumerate(lines) if line.startswith(" E10  "))
    assert lines[row].index("The leader") == lines[row - 1].index("title")


def test_subjects_have_one_line_each_and_name_what_is_broken() -> None:
    out = StringIO()
    print_report(Console(file=out), _long(), width=None, every_rule=False, by_subject=True)
    assert "  Quorum, metadata and its images  broken: E10\n" in out.getvalue()


def test_every_rule_has_a_subject_and_those_of_a_user_come_last() -> None:
    (result,) = _long().rules
    results = [replace(result, rule=rule) for rule in RULES]
    about = subjects(results)
    assert [one.letter for one in about] == list(SUBJECTS)
    mine = Rule("MINE1", "A rule of mine", "me", Evidence.LOG)
    own = replace(result, rule=mine)
    assert subjects([own, *results])[-1].results == (own,)


def test_a_name_of_the_face_stays_what_it_is_when_modules_are_imported() -> None:
    """An imported module becomes a name of its package, and would hide a function of that name."""
    script = (
        "import pkgutil, importlib, minicluster.verify as face;"
        "[importlib.import_module(f'minicluster.verify.{one.name}')"
        " for one in pkgutil.iter_modules(face.__path__)];"
        "print(*(name for name in face.__all__ if type(getattr(face, name)) is type(face)))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert out.stdout.split() == []


def test_a_user_imports_everything_from_one_place() -> None:
    script = (
        "import sys, minicluster.verify as face; before = 'pyspark' in sys.modules;"
        "[getattr(face, name) for name in face.__all__];"
        "print(before, *sorted(face.__all__))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert out.stdout.split() == [
        "False", "CASE", "Finding", "LiveJudge", "NOT_PROMISED", "Report", "Verdict", "as_of",
        "broken", "exempt", "follow", "follow_findings", "history", "lag",
        "register", "rule", "spark_session", "sql_rule", "verdicts", "verify", "views",
    ]  # fmt: skip
