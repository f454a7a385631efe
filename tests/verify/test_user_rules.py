"""Rules of a user's own: SQL and folds from one file, beside the rules that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.errors import UserError
from minicluster.verify import Verdict, verify
from minicluster.verify.rules.user_rules import load_rules
from minicluster.verify.spark import routing
from minicluster.verify.spark.jvm import SparkUnavailable
from tests.verify.build import change, cluster

EXAMPLE = Path(__file__).parents[2] / "examples/rules_of_your_own.py"
RULE = """
from minicluster.verify.rules.model import Check, Evidence, Rule, View
VIEWS = (View(name="{view}", sql="select * from partition_states where change"),)
RULES = (Rule(id="{rule}", title="", statement="", source="", evidence=Evidence.LOG, checks=(
    Check(view="{read}", when="true", bad="size(isr) < 2", message="ISR {{new}}", new="isr"),)),)
"""


def rules(folder: Path, rule: str = "MY9", view: str = "mine", read: str = "mine") -> Path:
    path = folder / "rules.py"
    path.write_text(RULE.format(rule=rule, view=view, read=read))
    return path


@pytest.mark.spark
def test_a_rule_of_a_file_is_judged_with_the_others(tmp_path: Path, spark: object) -> None:
    log = cluster().op(change((1,))).write(tmp_path / "log")
    report = verify(log, rules=["E10"], rules_from=rules(tmp_path))

    assert [(result.id, result.verdict) for result in report.rules] == [
        ("E10", Verdict.VALID),
        ("MY9", Verdict.INVALID),
    ]
    (finding,) = report.findings
    assert (finding.rule, finding.topic, finding.message) == ("MY9", "orders", "ISR [1]")


@pytest.mark.spark
def test_the_example_judges_by_sql_and_by_a_fold(tmp_path: Path, spark: object) -> None:
    log = cluster()
    for leader in (2, 1, 2):
        log = log.op(change((1, 2), leader=leader))
    report = verify(log.write(tmp_path / "log"), rules=["E10"], rules_from=EXAMPLE)

    assert report.rule("MY1").looked_at == 3
    assert [finding.message for finding in report.rule("MY1").findings] == ["leader 2 is number 3"]
    assert report.rule("MY2").verdict is Verdict.NO_CASES


KILLS = """
import os
from minicluster.verify.rules.model import Check, Evidence, Rule, View

def kills(rows):
    if rows("brokers"):
        os.kill(os.getpid(), 9)
    return []

VIEWS = (View(name="kills", fold=kills, columns=("offset", "topic", "part")),)
RULES = (Rule(id="MY8", title="", statement="", source="", evidence=Evidence.LOG, checks=(
    Check(view="kills", when="true", bad="true", message=""),)),)
"""


@pytest.mark.spark
@pytest.mark.parametrize("long_from", [-1, 1 << 20])
def test_a_worker_that_is_ended_is_one_line(
    long_from: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: object
) -> None:
    monkeypatch.setattr(routing, "SHORT_LOG_BYTES", long_from)
    path = tmp_path / "rules.py"
    path.write_text(KILLS)
    with pytest.raises(SparkUnavailable, match="a worker was ended while it judged"):
        verify(cluster().write(tmp_path / "log"), rules_from=path)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"rule": "E10"}, "there is a rule E10 already"),
        ({"view": "partition_states"}, "there is a view partition_states already"),
        ({"read": "nowhere"}, "MY9: there is no view nowhere"),
    ],
)
def test_a_file_that_does_not_fit_is_one_line(
    changed: dict[str, str], word: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=word):
        load_rules(rules(tmp_path, **changed))


def test_a_file_that_is_no_python_or_has_no_rules_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    with pytest.raises(UserError, match="there is no such file"):
        load_rules(path)
    with pytest.raises(UserError, match="is no Python file"):
        load_rules(tmp_path)
    path.write_text("import nothing_like_it")
    with pytest.raises(UserError, match="ModuleNotFoundError: No module named"):
        load_rules(path)
    path.write_text("")
    with pytest.raises(UserError, match="assigns no RULES"):
        load_rules(path)
