"""The rows that a partition leaves in the trace."""

from __future__ import annotations

import json

from minicluster.protocol import ErrorCode
from minicluster.replica.partition.follower_log import truncate, truncate_fully
from minicluster.replica.partition.leader_log import acknowledge
from minicluster.replica.partition.leadership import stop_replica
from minicluster.trace import TABLES, row
from tests.replica.partition_kit import TOPIC_ID, Bench

BOTH = {"replicas": [101, 102], "isr": [101, 102]}


def test_every_row_has_the_tables_columns_in_their_order() -> None:
    bench = Bench()
    bench.lead(**BOTH)
    bench.append(2)
    bench.fetch(102, 2)
    for found in bench.rows():
        assert list(found) == list(TABLES["partition_event"])
        assert row("partition_event", found) == found
        assert (found["broker"], found["topic"], found["part"]) == (101, "orders", 6)
        assert (found["incarnation"], found["topic_id"]) == ("first", "AAAAAAAAAAAAAAAAAAAATQ")
    assert TOPIC_ID.int == 77


def test_a_change_of_the_isr_is_traced_as_pending_then_committed_with_the_high_watermark() -> None:
    bench = Bench()
    bench.lead(**BOTH)
    bench.append(2)
    bench.now_ms += 30_001
    bench.shrink()
    bench.respond()
    kinds = [found["kind"] for found in bench.rows()]
    assert kinds == ["become_leader", "append", "isr_pending", "isr_commit", "hw"]
    pending, committed, moved = bench.rows("isr_pending", "isr_commit", "hw")
    assert pending["maximal_isr"] == (101, 102)
    assert (committed["isr"], committed["partition_epoch"]) == ((101,), 2)
    assert (moved["hw_old"], moved["hw_new"], moved["leo"]) == (0, 2, 2)


def test_only_a_refusal_that_reverts_is_traced_as_such() -> None:
    for error, reported in (
        (ErrorCode.INELIGIBLE_REPLICA, 1),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, 1),
        (ErrorCode.INVALID_REQUEST, 0),
        (ErrorCode.NOT_CONTROLLER, 0),
    ):
        bench = Bench()
        bench.lead(replicas=[101, 102], isr=[101])
        bench.fetch(102, 0)
        bench.respond(error)
        assert len(bench.rows("isr_revert")) == reported, error.name


def test_a_change_that_is_rejected_and_stays_is_shown_with_the_error() -> None:
    """Any metadata of its leader epoch ends it from then on, as in Kafka."""
    bench = Bench()
    bench.lead(replicas=[101, 102], isr=[101])
    bench.fetch(102, 0)
    bench.respond(ErrorCode.INVALID_UPDATE_VERSION)
    proposed, rejected = bench.rows("isr_pending")
    assert (proposed["error"], rejected["error"]) == (None, "INVALID_UPDATE_VERSION")
    assert proposed["maximal_isr"] == rejected["maximal_isr"] == (101, 102)


def test_a_risen_high_watermark_shows_what_every_member_was_known_to_hold() -> None:
    bench = Bench()
    bench.lead(**BOTH)
    bench.append(4)
    bench.fetch(102, 4)
    (moved,) = bench.rows("hw")
    assert moved["maximal_isr"] == (101, 102)
    assert json.loads(moved["follower_leos"]) == {"102": [4, 5, 1102]}
    assert moved["min_isr"] == 1


def test_knowledge_of_a_leader_that_is_elected_again_counts_for_its_new_epoch() -> None:
    bench = Bench(min_isr=2)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.append(4)
    bench.fetch(102, 4)
    bench.lead(**BOTH, leader_epoch=6, partition_epoch=2)
    assert json.loads(bench.rows("hw")[-1]["follower_leos"]) == {"102": [4, 6, 1102]}


def test_a_completed_produce_is_traced_with_its_last_offset() -> None:
    bench = Bench()
    bench.lead(replicas=[101], isr=[101])
    last = bench.append(3, acks=-1).last_offset
    acknowledge(bench.partition, last)
    (ack,) = bench.rows("ack")
    assert (ack["offset"], ack["isr"], ack["hw_new"]) == (2, (101,), 3)


def test_a_truncation_is_traced_where_something_was_removed() -> None:
    bench = Bench()
    bench.lead(**BOTH)
    bench.append(4)
    bench.append(4)
    bench.follow(102, **BOTH, leader_epoch=6, partition_epoch=2)
    truncate(bench.partition, 8)
    truncate(bench.partition, 4)
    truncate_fully(bench.partition, 9)
    (cut,) = bench.rows("truncate")
    assert (cut["offset"], cut["leo"], cut["leader_epoch"]) == (4, 4, 6)
    assert bench.rows("append")[-1]["leo"] == 9


def test_leaving_is_traced_unless_the_trace_is_off() -> None:
    bench = Bench()
    bench.follow(102, **BOTH)
    stop_replica(bench.partition, delete=True)
    assert [found["kind"] for found in bench.rows()] == ["become_follower", "delete"]
