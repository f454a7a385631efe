"""A report's forms, made from data alone."""

from __future__ import annotations

import subprocess
import sys

from minicluster.verify.model import Finding, Verdict
from minicluster.verify.reporting.report import Report
from minicluster.verify.reporting.report_data import RuleResult, RunSummary
from minicluster.verify.rules.every import BY_ID


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
        "broken", "exempt", "follow", "follow_findings", "history", "lag", "register", "rule",
        "spark_session", "sql_rule", "verdicts", "verify", "views",
    ]  # fmt: skip
