"""The online checker on hand-written logs: each rule breaks where it should and only there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from minicluster.rules import Rules
from minicluster.verify.online.checker import OnlineChecker
from minicluster.verify.online.findings import Findings
from minicluster.verify.rules import RULES, ZNODE_VIEWS, Evidence
from tests.verify import cases, logs_beside_rules
from tests.verify.build import Case, LogBuilder, change, cluster

OF_TRACES = {
    "atomic_requests",
    "requested_elections",
    "raft_history",
    "snapshot_states",
    "placed_logs",
    "led_offline",
}
"""Checks of these views need more than the log."""


def judged(log: LogBuilder, rules: Rules | None = None) -> OnlineChecker:
    checker = OnlineChecker(rules=rules)
    for batch in log.batches:
        checker.commit(batch)
    return checker


def rules_of(checker: OnlineChecker) -> set[str]:
    return {finding.rule for finding in checker.findings}


@pytest.mark.parametrize(
    ("rule", "case"), [(rule, case) for rule, several in cases.BAD.items() for case in several]
)
def test_a_log_that_breaks_a_rule_is_found(rule: str, case: Case) -> None:
    assert rule in rules_of(judged(case()))


@pytest.mark.parametrize(
    ("rule", "case"), [(rule, case) for rule, several in cases.NEAR.items() for case in several]
)
def test_a_near_miss_is_looked_at_and_passes(rule: str, case: Case) -> None:
    checker = judged(case())

    assert checker.looked_at[rule] > 0
    assert rule not in rules_of(checker)


def test_every_online_rule_has_both_logs() -> None:
    online = [r.id for r in RULES if r.online and r.evidence is not Evidence.ZNODES]

    assert sorted(cases.BAD) == sorted(online)
    assert sorted(cases.NEAR) == sorted(online)


@pytest.mark.pure("replaces a method of a native class")
def test_every_check_of_every_online_rule_finds_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule of several checks is not covered by one of them."""
    found: dict[tuple[str, int], None] = {}
    find = Findings.find

    def noted(self: Findings, rule_id: str, index: int, **what: Any) -> None:
        found[rule_id, index] = None
        find(self, rule_id, index, **what)

    monkeypatch.setattr(Findings, "find", noted)
    for several in cases.BAD.values():
        for case in several:
            judged(case())
    OnlineChecker(begins_well=False).commit(cluster().batches[0])

    checks = [
        (rule.id, index)
        for rule in RULES
        for index, check in enumerate(rule.checks)
        if rule.online and check.view not in {*OF_TRACES, *ZNODE_VIEWS} and check.bad != "false"
    ]
    assert sorted(found) == sorted(checks)


@pytest.mark.parametrize(
    "case",
    [
        logs_beside_rules.aborted_transaction,
        logs_beside_rules.transaction,
        logs_beside_rules.merged_operations,
    ],
)
def test_what_is_no_operation_end_is_not_judged(case: Case) -> None:
    assert judged(case()).findings == []


def test_what_was_not_promised_is_counted_apart() -> None:
    checker = judged(logs_beside_rules.below_the_promise())

    assert checker.findings == []
    assert checker.looked_at["A1"] == 0
    assert checker.not_promised["A1"] == 2


def test_a_log_without_metadata_version_is_judged_as_3_0() -> None:
    checker = judged(logs_beside_rules.without_metadata_version())

    assert checker.findings == []
    for rule in ("A1", "A2", "A3", "E17"):
        assert checker.looked_at[rule] == 0
        assert checker.not_promised[rule] > 0
    assert checker.looked_at["E20"] == 2


def test_a_log_promises_from_its_first_metadata_version_on() -> None:
    checker = judged(logs_beside_rules.without_metadata_version_yet())

    assert {finding.rule for finding in checker.findings} == {"A1", "A3"}
    assert judged(logs_beside_rules.epoch_of_nothing()).findings[0].rule == "E20"


@pytest.mark.parametrize(
    ("rules", "mv", "promised"),
    [
        (None, 21, False),
        (None, 23, True),
        (Rules.KAFKA_3_9, 21, False),
        (Rules.KAFKA_3_9, 23, True),
        (Rules.KAFKA_4_3, 7, True),
        (Rules.KAFKA_4_3, 3, False),
    ],
)
def test_a_new_incarnation_leaves_its_isrs_where_its_release_promises_it(
    rules: Rules | None, mv: int, promised: bool
) -> None:
    """KAFKA-18106 is of 4.x; 3.9 removes it only where ELRs can be written."""
    checker = judged(cluster(mv=mv).register(3, incarnation=2), rules)

    assert ("A8" in rules_of(checker)) is promised
    assert (checker.looked_at["A8"], checker.not_promised["A8"]) == (promised, not promised)


def test_a_finding_comes_with_the_batch_that_breaks_the_rule() -> None:
    log = cluster().op(change((2, 3)))
    checker = OnlineChecker("r")
    found = [checker.commit(batch) for batch in log.batches]

    assert all(not some for some in found[:-1])
    assert [one.rule for one in found[-1]] == ["E10"]
    assert found[-1][0].offset == log.offset - 1
    assert found[-1][0].message == "leader 1 is not in the ISR [2, 3]"


def test_a_member_that_stays_inactive_is_found_once() -> None:
    checker = judged(cluster().fence(3).fence(3))

    assert len([one for one in checker.findings if one.rule == "A1"]) == 1


def test_the_online_checker_loads_neither_spark_nor_arrow() -> None:
    script = (
        "import sys; from minicluster.verify import OnlineChecker; OnlineChecker();"
        "print([m for m in ('pyspark', 'pyarrow', 'py4j') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert out.stdout.strip() == "[]"
