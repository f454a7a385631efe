"""Rules of a user's own: in Python and in SQL, from one file, beside the rules that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.cli import run as run_command
from minicluster.errors import UserError
from minicluster.verify import Report, Verdict, verify
from minicluster.verify.rules.own_rules import load_rules
from minicluster.verify.spark.jvm import SparkUnavailable
from tests.verify.examples.example import Written
from tests.verify.handwritten.log import LogBuilder, change, cluster
from tests.verify.handwritten.run import RunBuilder, plain_run

EXAMPLE = Path(__file__).parents[2] / "examples/rules_of_your_own.py"
RULE = """
from minicluster.verify import CASE, broken, rule
from minicluster.verify.histories.partitions import PartitionStep
from minicluster.verify.rules.rule import Findings

@rule("{rule}", "", source="")
def no_isr_has_one_member(step: PartitionStep) -> Findings:
    {promise}
    yield CASE
    if len(step.after.isr) < 2:
        yield broken(f"ISR {{list(step.after.isr)}}")
"""


def rules(folder: Path, rule: str = "MY9", promise: str = "'No ISR has one member.'") -> Path:
    path = folder / "rules.py"
    path.write_text(RULE.format(rule=rule, promise=promise))
    return path


def check_beside_the_others(report: Report) -> None:
    assert [(result.id, result.verdict) for result in report.rules] == [
        ("E10", Verdict.VALID),
        ("MY9", Verdict.INVALID),
    ]
    (finding,) = report.findings
    assert (finding.rule, finding.topic, finding.message) == ("MY9", "orders", "ISR [1]")


def test_a_rule_of_a_file_is_judged_with_the_others(tmp_path: Path) -> None:
    log, own = cluster().op(change((1,))).write(tmp_path / "log"), rules(tmp_path)
    check_beside_the_others(verify(log, engine="process", rules=["E10"], rules_from=own))


@pytest.mark.spark
def test_a_rule_of_a_file_is_judged_by_workers(tmp_path: Path, spark: object) -> None:
    log, own = cluster().op(change((1,))).write(tmp_path / "log"), rules(tmp_path)
    check_beside_the_others(verify(log, rules=["E10"], rules_from=own))


def run_of_the_example() -> RunBuilder:
    """An ISR of one, four leaders, four controllers."""
    log: LogBuilder = cluster()
    for leader in (2, 1, 2):
        log = log.op(change((1, 2), leader=leader))
    run = RunBuilder(log.op(change((2,))))
    for epoch in range(1, 5):
        run.row("raft_event", {"node": 101, "kind": "elected", "epoch": epoch, "leader": 101})
    return run


def elected(*controllers: int) -> RunBuilder:
    """Controllers are elected one after the other, each in an epoch of its own."""
    run = plain_run()
    for epoch, controller in enumerate(controllers, start=1):
        run.raft_event("elected", controller, epoch=epoch, leader=controller)
    return run


OF_THE_EXAMPLE = {"MY1": ["ISR [2]"], "MY2": ["controller 101 is number 4"]}


def test_the_example_judges_by_a_step_and_by_a_history(tmp_path: Path) -> None:
    """What is in SQL needs Spark to plan it, and is unknown without."""
    run = run_of_the_example().write(tmp_path / "run")
    report = verify(run, engine="process", rules=["E10"], rules_from=EXAMPLE)

    for rule, messages in OF_THE_EXAMPLE.items():
        assert [finding.message for finding in report.rule(rule).findings] == messages
    assert (report.rule("MY1").looked_at, report.rule("MY2").looked_at) == (5, 4)
    assert report.rule("MY3").verdict is Verdict.UNKNOWN
    [reason] = report.rule("MY3").reasons
    assert reason == "run: a rule in SQL needs Spark, and the engine is 'process'"


@pytest.mark.parametrize(
    ("rule", "run", "broken"),
    [
        ("MY1", cluster().op(change((1, 2))).op(change((1,))), True),
        ("MY1", cluster().op(change((1, 2))), False),
        ("MY2", elected(101, 102, 101, 103), True),
        ("MY2", elected(101, 102, 103), False),
    ],
)
def test_the_example_accuses_what_breaks_it_alone(
    rule: str, run: Written, broken: bool, tmp_path: Path
) -> None:
    report = verify(
        run.write(tmp_path / "run"), engine="process", rules=["E10"], rules_from=EXAMPLE
    )

    assert (report.rule(rule).verdict is Verdict.INVALID) is broken
    assert report.rule(rule).looked_at


def test_a_rule_of_a_users_own_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["explain", "my1", "--rules-from", str(EXAMPLE)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("MY1  Two of three replicas are in sync\n")
    assert "breaks it: Brokers 2 and 3 leave ISR [1, 2, 3], one after the other.\n" in text
    assert "keeps it:  Broker 3 leaves ISR [1, 2, 3].\n" in text


@pytest.mark.spark
def test_the_example_judges_by_sql_as_well(tmp_path: Path, spark: object) -> None:
    run = run_of_the_example().write(tmp_path / "run")
    report = verify(run, rules=["E10"], rules_from=EXAMPLE)

    for rule, messages in (OF_THE_EXAMPLE | {"MY3": ["leader 2 is number 4"]}).items():
        assert [finding.message for finding in report.rule(rule).findings] == messages


@pytest.mark.spark
def test_a_worker_that_is_ended_is_one_line(tmp_path: Path, spark: object) -> None:
    path = rules(tmp_path)
    path.write_text(
        path.read_text().replace("    yield CASE", "    import os; os.kill(os.getpid(), 9)")
    )
    with pytest.raises(SparkUnavailable, match="a worker was ended while it judged"):
        verify(cluster().write(tmp_path / "log"), rules_from=path)


def test_an_id_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is a rule E10 already"):
        load_rules(rules(tmp_path, rule="E10"))


def test_a_rule_without_a_promise_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="rule MY9: no_isr_has_one_member has no docstring"):
        load_rules(rules(tmp_path, promise=""))


def test_a_file_that_is_no_python_or_has_no_rules_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    with pytest.raises(UserError, match="there is no such file"):
        load_rules(path)
    with pytest.raises(UserError, match="not a Python file"):
        load_rules(tmp_path)
    path.write_text("import nothing_like_it")
    with pytest.raises(UserError, match="ModuleNotFoundError: No module named"):
        load_rules(path)
    path.write_text("")
    with pytest.raises(UserError, match="declares no rule"):
        load_rules(path)
