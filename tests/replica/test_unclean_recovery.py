"""Recovery after an unclean election: as in KIP-704's text, and as Kafka shipped it."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.log.batch import TRANSACTIONAL_BIT
from minicluster.log.control import control_records
from minicluster.metadata.image.partition import RECOVERED, RECOVERING
from minicluster.protocol import ErrorCode
from minicluster.replica.partition.partition import (
    CommittedPartitionState,
    PendingExpandIsr,
    PendingRecovery,
)
from minicluster.rules import Rules, UncleanRecovery
from minicluster.values import replace
from tests.replica.partition_kit import LEADER, Bench

SHIPPED = Rules.KAFKA_4_3
TEXT = replace(SHIPPED, unclean_leader_recovers=UncleanRecovery.REPORTED)
UNCLEAN: dict[str, Any] = {
    "replicas": [101, 102],
    "isr": [101],
    "leader_epoch": 6,
    "partition_epoch": 4,
    "recovery_state": RECOVERING,
}


def elected(rules: Rules, transactions: int = 0, **fields: Any) -> Bench:
    """A leader that was elected uncleanly, ten records and some open transactions in its log."""
    bench = Bench(rules=rules)
    bench.seed(10)
    for producer in range(transactions):
        placed = {"producer_id": 70 + producer, "producer_epoch": 3, "base_sequence": 0}
        bench.lead(**{**UNCLEAN, "leader_epoch": 5, "partition_epoch": 3, "recovery_state": 0})
        bench.append(1, **placed, attributes=TRANSACTIONAL_BIT)
    bench.follow(102, replicas=[101, 102], isr=[102], leader_epoch=5, partition_epoch=3)
    bench.effects.clear()
    bench.lead(**{**UNCLEAN, **fields})
    return bench


def test_as_shipped_a_leader_takes_itself_for_recovered_and_its_next_change_has_it() -> None:
    bench = elected(SHIPPED, transactions=1)
    assert bench.partition.isr_state == CommittedPartitionState((LEADER,), RECOVERED)
    assert bench.submitted == [] and bench.partition.log_end_offset == 11
    bench.fetch(102, 11)
    (item,) = bench.submitted
    assert [member for member, _ in item.isr] == [101, 102]
    assert item.recovery_state == RECOVERED


def test_in_the_text_it_reports_by_itself_with_the_isr_as_it_is() -> None:
    bench = elected(TEXT)
    (item,) = bench.submitted
    assert item.isr == ((LEADER, LEADER + 1000),)
    assert item.recovery_state == RECOVERED
    assert isinstance(bench.partition.isr_state, PendingRecovery)
    assert bench.partition.isr_state.recovery_state == RECOVERING


def test_in_the_text_nobody_joins_before_the_controller_has_the_report() -> None:
    bench = elected(TEXT)
    bench.fetch(102, 10)
    assert len(bench.submitted) == 1 and bench.maximal_isr == (LEADER,)
    bench.respond()
    assert bench.partition.isr_state == CommittedPartitionState((LEADER,), RECOVERED)
    bench.fetch(102, 10)
    assert isinstance(bench.partition.isr_state, PendingExpandIsr)
    assert (bench.partition.isr_expands, bench.partition.isr_shrinks) == (0, 0)


def test_in_the_text_it_first_aborts_what_the_election_left_undecided() -> None:
    bench = elected(TEXT, transactions=2)
    markers = [b for b in bench.partition.log.batches if b.is_control]
    assert [(m.producer_id, m.producer_epoch, m.leader_epoch) for m in markers] == [
        (70, 3, 6),
        (71, 3, 6),
    ]
    assert [r.name for m in markers for r in control_records(m)] == ["Abort", "Abort"]
    assert bench.partition.replica_log.producers.open_transactions == ()
    kinds = [row["kind"] for row in bench.rows("become_leader", "append", "isr_pending")]
    assert kinds == ["become_leader", "append", "append", "isr_pending"]


def test_a_transaction_that_has_ended_or_is_none_is_left_alone() -> None:
    bench = elected(TEXT, transactions=1)
    bench.append(1, producer_id=9, producer_epoch=0, base_sequence=0)
    end = bench.partition.log_end_offset
    bench.lead(**{**UNCLEAN, "leader_epoch": 7, "partition_epoch": 5})
    assert bench.partition.log_end_offset == end


def test_a_transaction_begun_under_this_leader_is_not_aborted_by_later_metadata() -> None:
    bench = elected(TEXT)
    bench.append(1, producer_id=70, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL_BIT)
    bench.lead(**{**UNCLEAN, "partition_epoch": 5})
    (begun,) = bench.partition.replica_log.producers.open_transactions
    assert (begun.producer_id, begun.epoch) == (70, 0)


@pytest.mark.parametrize("by", ["fetch", "shrink"])
def test_a_report_that_is_reverted_is_made_again(by: str) -> None:
    bench = elected(TEXT)
    bench.respond(ErrorCode.INELIGIBLE_REPLICA)
    assert bench.partition.isr_state == CommittedPartitionState((LEADER,), RECOVERING)
    if by == "fetch":
        bench.fetch(102, 10)
    else:
        bench.shrink()
    assert len(bench.submitted) == 2
    assert isinstance(bench.partition.isr_state, PendingRecovery)


def test_a_report_that_failed_on_the_way_is_submitted_again_at_once() -> None:
    bench = elected(TEXT)
    bench.respond(ErrorCode.NOT_CONTROLLER)
    assert len(bench.submitted) == 2


def test_metadata_that_repeats_the_election_does_not_end_the_report() -> None:
    bench = elected(TEXT)
    bench.lead(**UNCLEAN)
    assert len(bench.submitted) == 1
    bench.respond()
    assert bench.partition.isr_state == CommittedPartitionState((LEADER,), RECOVERED)


def test_the_next_leader_of_a_recovering_partition_recovers_too() -> None:
    """A clean election leaves the state as it is: the first leader did not come to report."""
    bench = elected(TEXT)
    bench.follow(102, **{**UNCLEAN, "isr": [101, 102], "leader_epoch": 7, "partition_epoch": 5})
    bench.respond()
    bench.lead(**{**UNCLEAN, "leader_epoch": 8, "partition_epoch": 6})
    assert len(bench.submitted) == 2
    assert bench.submitted[1].leader_epoch == 8


def test_a_leader_that_was_elected_cleanly_reports_nothing() -> None:
    bench = elected(TEXT, recovery_state=RECOVERED)
    assert bench.submitted == []
