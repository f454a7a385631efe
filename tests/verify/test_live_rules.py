"""The live judge on hand-written logs and runs, where ``test_agreement`` does not say all of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from minicluster.log.batch import metadata_batch
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.rules import Rules
from minicluster.verify.live import LiveJudge, LiveZnodeJudge, is_judged_live
from minicluster.verify.rules.every import RULES
from minicluster.verify.rules.rule import Broken, Judgement, Rule
from tests.verify import logs_beside_rules
from tests.verify.check_run import OF_LOGS, play_rows
from tests.verify.examples.by_rule import (
    LOGS_BAD,
    LOGS_NEAR,
    RUNS_BAD,
    ZNODES_BAD,
    by_name,
)
from tests.verify.handwritten.log import LogBuilder, change, cluster
from tests.verify.handwritten.znodes import ZnodeRun


def judged(log: LogBuilder, rules: Rules | None = None) -> LiveJudge:
    live = LiveJudge(rules=rules)
    for batch in log.batches:
        live.commit(batch)
    return live


def rules_of(live: LiveJudge) -> set[str]:
    return {finding.rule for finding in live.findings}


def test_every_rule_about_logs_has_a_log_and_a_near_miss() -> None:
    assert {*LOGS_BAD} == {*LOGS_NEAR} == {*OF_LOGS}


ONLY_COUNT = {"a_broker_leaves_isrs_before_it_is_fenced", "a_new_incarnation_is_in_no_isr"}


def test_every_part_of_every_rule_judged_live_finds_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rule of several parts is not covered by one of them."""
    broken: set[Judgement] = set()
    said = Rule.said

    def noting(rule: Rule, part: Judgement, *what: Any) -> Iterator[Any]:
        for rule_id, outcome in said(rule, part, *what):
            if isinstance(outcome, Broken):
                broken.add(part)
            yield rule_id, outcome

    monkeypatch.setattr(Rule, "said", noting)
    for case in by_name(LOGS_BAD).values():
        judged(case())
    no_leader = metadata_batch(0, 1, 0, cluster().batches[1].metadata_records)
    for begins_well, first in ((False, cluster().batches[1]), (True, no_leader)):
        LiveJudge(begins_well=begins_well).commit(first)
    for case in by_name(RUNS_BAD).values():
        play_rows(case(), LiveJudge())
    alone = ZnodeRun().next().op("create", "/controller", "{}", by=2)
    for run in (alone, *(znode_case() for znode_case in by_name(ZNODES_BAD).values())):
        znodes = LiveZnodeJudge(InterBrokerProtocol.parse(run.protocol))
        for line in run.lines:
            znodes.on_line(line)
        znodes.end(run.ms)

    parts = {
        function
        for rule in RULES
        for _, function in rule.parts
        if is_judged_live(rule) and function.__name__ not in ONLY_COUNT
    }
    assert parts - broken == set()


@pytest.mark.parametrize(
    "build",
    [
        logs_beside_rules.aborted_transaction,
        logs_beside_rules.transaction,
        logs_beside_rules.merged_operations,
    ],
)
def test_what_is_no_operation_end_is_not_judged(build: Callable[[], LogBuilder]) -> None:
    assert judged(build()).findings == []


def test_what_was_not_promised_is_counted_apart() -> None:
    live = judged(logs_beside_rules.below_the_promise())

    assert live.findings == []
    assert live.looked_at["A1"] == 0
    assert live.not_promised["A1"] == 2


def test_a_log_without_metadata_version_is_judged_as_3_0() -> None:
    live = judged(logs_beside_rules.without_metadata_version())

    assert live.findings == []
    for rule in ("A1", "A2", "A3", "E17"):
        assert live.looked_at[rule] == 0
        assert live.not_promised[rule] > 0
    assert live.looked_at["E20"] == 2


def test_a_log_promises_from_its_first_metadata_version_on() -> None:
    live = judged(logs_beside_rules.without_metadata_version_yet())

    assert {finding.rule for finding in live.findings} == {"A1", "A3"}
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
    live = judged(cluster(mv=mv).register(3, incarnation=2), rules)

    assert ("A8" in rules_of(live)) is promised
    assert (live.looked_at["A8"], live.not_promised["A8"]) == (promised, not promised)


def test_a_finding_comes_with_the_batch_that_breaks_the_rule() -> None:
    log = cluster().op(change((2, 3)))
    live = LiveJudge("r")
    found = [live.commit(batch) for batch in log.batches]

    assert all(not some for some in found[:-1])
    assert [one.rule for one in found[-1]] == ["E10"]
    assert found[-1][0].offset == log.offset - 1
    assert found[-1][0].message == "leader 1 is not in the ISR [2, 3]"


def test_a_member_that_stays_inactive_is_found_once() -> None:
    live = judged(cluster().fence(3).fence(3))

    assert len([one for one in live.findings if one.rule == "A1"]) == 1


def test_the_live_judge_loads_neither_spark_nor_arrow() -> None:
    script = (
        "import sys; from minicluster.verify import LiveJudge; LiveJudge();"
        "print([m for m in ('pyspark', 'pyarrow', 'py4j') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert out.stdout.strip() == "[]"
