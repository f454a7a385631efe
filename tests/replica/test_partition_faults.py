"""Planted faults of a partition: each acts once and counts a hit; without it all is right."""

from __future__ import annotations

import pytest

from minicluster.faults import Faults
from minicluster.metadata.image.partition import RECOVERING
from minicluster.protocol import ErrorCode
from minicluster.replica.partition.leader_log import (
    ReplicasReached,
    acknowledge,
    check_enough_replicas,
)
from minicluster.replica.partition.partition import CommittedPartitionState
from minicluster.replica.partition.reads import consumer_fetch_records
from tests.replica.partition_kit import Bench

BOTH = {"replicas": [101, 102], "isr": [101, 102]}
LAG_MS = 30_000


def bench_with(fault: str, on: bool, *, min_isr: int = 1) -> Bench:
    """A bench with one fault, or without any."""
    return Bench(faults=Faults.of([fault] if on else []), min_isr=min_isr)


either = pytest.mark.parametrize("on", [True, False], ids=["planted", "right"])


@either
def test_s11_a_leader_applies_a_shrink_before_it_is_committed(on: bool) -> None:
    bench = bench_with("S11", on)
    bench.lead(**BOTH)
    bench.append(3)
    bench.now_ms += LAG_MS + 1
    bench.shrink()
    assert bench.maximal_isr == ((101,) if on else (101, 102))
    assert bench.partition.high_watermark == (3 if on else 0)
    assert bench.hits == (["S11"] if on else [])
    bench.respond(ErrorCode.INELIGIBLE_REPLICA)
    assert bench.partition.isr_state == CommittedPartitionState((101, 102))


@either
@pytest.mark.parametrize(
    "state", [{"fenced": True}, {"in_controlled_shutdown": True}, {"epoch": 1}], ids=str
)
def test_z02_a_leader_proposes_whom_its_image_calls_ineligible(
    on: bool, state: dict[str, int]
) -> None:
    bench = bench_with("Z02", on)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.broker(102, **state)
    bench.fetch(102, 0)
    assert len(bench.submitted) == on
    assert bench.hits == (["Z02"] if on else [])


@either
def test_z04_a_restarted_replica_is_proposed_for_what_it_held_before(on: bool) -> None:
    bench = bench_with("Z04", on, min_isr=2)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.append(4)
    bench.broker(102, fenced=True)
    bench.fetch(102, 4)
    bench.broker(102, fenced=False, epoch=1200)
    bench.lead(**BOTH, partition_epoch=2)
    bench.fetch(102, 4, broker_epoch=1200)
    bench.lead(replicas=[101, 102], isr=[101], partition_epoch=3)
    bench.broker(102, epoch=1300)
    bench.fetch(102, 0, broker_epoch=1300)
    assert len(bench.submitted) == on
    assert bench.hits == (["Z04"] if on else [])


@either
def test_z15_older_metadata_is_applied(on: bool) -> None:
    bench = bench_with("Z15", on)
    bench.lead(**BOTH, partition_epoch=4)
    bench.lead(replicas=[101, 102], isr=[101], partition_epoch=3)
    assert bench.partition.partition_epoch == (3 if on else 4)
    assert bench.hits == (["Z15"] if on else [])


@either
def test_z17_metadata_that_is_ignored_clears_a_pending_change(on: bool) -> None:
    bench = bench_with("Z17", on)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.fetch(102, 0)
    bench.lead(replicas=[101, 102], isr=[101], partition_epoch=0)
    assert bench.partition.isr_state.is_pending == (not on)
    assert bench.hits == (["Z17"] if on else [])


@either
def test_z18_the_high_watermark_is_forgotten_after_a_shrink(on: bool) -> None:
    bench = bench_with("Z18", on)
    bench.lead(**BOTH)
    bench.append(3)
    bench.now_ms += LAG_MS + 1
    bench.shrink()
    bench.respond()
    assert bench.partition.high_watermark == (0 if on else 3)
    assert bench.hits == (["Z18"] if on else [])


@either
def test_z40_the_high_watermark_moves_under_the_minimum(on: bool) -> None:
    bench = bench_with("Z40", on, min_isr=2)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.append(3)
    assert bench.partition.high_watermark == (3 if on else 0)
    assert bench.hits == (["Z40"] if on else [])


@either
def test_s09_a_recovering_partition_grows_as_recovering(on: bool) -> None:
    bench = bench_with("S09", on)
    bench.lead(replicas=[101, 102], isr=[101], recovery_state=RECOVERING)
    bench.fetch(102, 0)
    assert bench.submitted[0].recovery_state == (RECOVERING if on else 0)
    assert bench.hits == (["S09"] if on else [])


@either
def test_s12_the_high_watermark_passes_a_joining_replica(on: bool) -> None:
    bench = bench_with("S12", on)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.fetch(102, 0)
    bench.append(3)
    assert bench.maximal_isr == (101, 102)
    assert bench.partition.high_watermark == (3 if on else 0)
    assert bench.hits == (["S12"] if on else [])


@either
def test_s13_a_new_leader_counts_what_followers_held_when_it_led_before(on: bool) -> None:
    bench = bench_with("S13", on)
    bench.lead(**BOTH)
    bench.append(3)
    bench.fetch(102, 0)
    bench.fetch(102, 3)
    bench.follow(102, **BOTH, leader_epoch=6, partition_epoch=2)
    bench.partition.replica_log.set_high_watermark(0)
    bench.lead(**BOTH, leader_epoch=7, partition_epoch=3)
    assert bench.partition.high_watermark == (3 if on else 0)
    assert bench.hits == (["S13"] if on else [])
    if on:
        assert '"102": [3, 5, 1102]' in bench.rows("hw")[-1]["follower_leos"]


@either
def test_s31_a_consumer_reads_above_the_high_watermark(on: bool) -> None:
    bench = bench_with("S31", on)
    bench.lead(**BOTH)
    bench.append(3)
    info = consumer_fetch_records(bench.partition, fetch_offset=0, max_bytes=1 << 20)
    assert len(info.records.batches) == on
    assert bench.hits == (["S31"] if on else [])


@either
def test_s32_acks_all_is_acknowledged_at_once(on: bool) -> None:
    bench = bench_with("S32", on)
    bench.lead(**BOTH)
    last = bench.append(3, acks=-1).last_offset
    enough = check_enough_replicas(bench.partition, last + 1)
    assert enough == ReplicasReached(on, ErrorCode.NONE)
    if enough.reached:
        acknowledge(bench.partition, last)
    assert bench.hits == (["S32"] if on else [])
    assert len(bench.rows("ack")) == on
