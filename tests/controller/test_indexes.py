"""E41: the derived indexes equal those recomputed from the image; and what keeping them costs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import pytest

from minicluster.controller.errors import ControllerFault
from minicluster.controller.operations.alter_partition import alter_partition
from minicluster.controller.state import cluster_state
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.indexes import ElrIndex, Indexes, PartitionSet
from minicluster.metadata.metadata_version import FEATURE_NAME
from minicluster.protocol import messages as m
from minicluster.protocol.records import (
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    VersionedRecord,
)
from minicluster.rules import Rules
from tests.controller.applying import apply_record
from tests.transcripts.controller_player import RULES, Player, read_record
from tests.transcripts.report import read_lines

DATA = Path(__file__).parents[1] / "data" / "controller-transcripts"
FOO, BAR = UUID(int=1_000), UUID(int=2_000)


def follow(path: Path, rules: Rules | None = None) -> list[str]:
    """The lines of a transcript after whose records the indexes are wrong."""
    lines = read_lines(path)
    header = next(lines)
    state = Player.of(header, rules or RULES[header["kafka"]]).state
    found = []
    for line in lines:
        for offset, record in enumerate(line.get("records", ()), line.get("base_offset", 0)):
            apply_record(state, read_record(record), offset)
        differences = state.check_indexes()
        if differences:
            found.append(f"{line.get('i')}: {differences[0]}")
    return found


@pytest.mark.parametrize("seed", [10, 14, 18, 25])
def test_the_indexes_are_right_after_every_operation(seed: int) -> None:
    (path,) = DATA.glob(f"*-seed-{seed}.jsonl.gz")
    assert follow(path) == []


def test_z52_the_shipped_index_goes_wrong_after_a_clear_elr() -> None:
    (path,) = DATA.glob("*-seed-25.jsonl.gz")
    assert follow(path, Rules.KAFKA_4_3.with_bugs(["Z52"])) != []


def test_a_standby_indexes_its_oldest_records_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All at once would keep both standbys from fetching, and the leader from committing."""
    monkeypatch.setattr(cluster_state, "UNINDEXED_RUNS_MAX", 10)
    indexed: list[str] = []
    add_topic = Indexes.add_topic

    def counted(indexes: Indexes, name: str) -> None:
        indexed.append(name)
        add_topic(indexes, name)

    monkeypatch.setattr(Indexes, "add_topic", counted)
    state = ClusterState()
    for number in range(30):
        record = TopicRecord(name=f"t{number}", topic_id=UUID(int=number))
        apply_record(state, VersionedRecord(record, 0), number)
        assert indexed == [f"t{n}" for n in range(number - 9)]
    assert state.check_indexes() == ()


def test_a_partition_set_keeps_the_order_of_arrival_and_drops_empty_topics() -> None:
    partitions = PartitionSet()
    for key in ((BAR, 2), (FOO, 1), (BAR, 0), (FOO, 1)):
        partitions.add(*key)
    assert list(partitions) == [(BAR, 2), (BAR, 0), (FOO, 1)]
    assert len(partitions) == 3 and (FOO, 1) in partitions
    assert partitions.of_topic(BAR) == (0, 2)
    for key in ((BAR, 2), (BAR, 0), (BAR, 9), (FOO, 1)):
        partitions.discard(*key)
    assert not partitions


def test_removing_a_double_entry_leaves_partition_0_behind() -> None:
    index = ElrIndex()
    index.add(1, FOO, 5)
    index.add(1, FOO, 5)
    index.remove(1, FOO, 5)
    assert index.of(1) == ((FOO, 0),)


def test_removing_what_is_not_there_is_a_fault() -> None:
    index = ElrIndex()
    with pytest.raises(ControllerFault):
        index.remove(1, FOO, 5)
    index.add(1, FOO, 4)
    with pytest.raises(ControllerFault):
        index.remove(1, FOO, 5)


def cluster_of(partitions: int) -> ClusterState:
    """Three brokers and topics of a hundred partitions each."""
    state = ClusterState()
    offset = 0

    def apply(record: Any, version: int = 0) -> None:
        nonlocal offset
        apply_record(state, VersionedRecord(record, version), offset)
        offset += 1

    apply(FeatureLevelRecord(name=FEATURE_NAME, feature_level=30))
    for broker_id in range(3):
        apply(
            RegisterBrokerRecord(
                broker_id=broker_id,
                broker_epoch=broker_id,
                incarnation_id=UUID(int=broker_id),
                fenced=False,
            ),
            4,
        )
    for number in range(partitions // 100):
        topic_id = UUID(int=1_000 + number)
        apply(TopicRecord(name=f"topic-{number}", topic_id=topic_id))
        for index in range(100):
            apply(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=(0, 1, 2),
                    isr=(0, 1, 2),
                    leader=0,
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=(UUID(int=1),) * 3,
                ),
                2,
            )
    return state


def calls_of(act: Callable[[], object]) -> int:
    """The number of functions that an action calls, a measure of its cost that does not vary."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def test_alter_partition_costs_the_same_in_a_cluster_a_hundred_times_as_large() -> None:
    costs = []
    for partitions in (100, 10_000):
        state = cluster_of(partitions)
        assert state.indexes.in_isr(0)
        request = m.AlterPartitionRequest
        part = request.PartitionData(
            partition_index=7, new_isr_with_epochs=(request.BrokerState(broker_id=0),)
        )
        topic = request.TopicData(topic_id=FOO, partitions=(part,))
        requested = request(broker_id=0, broker_epoch=0, topics=(topic,))

        def once(
            state: ClusterState = state, requested: m.AlterPartitionRequest = requested
        ) -> None:
            decision = alter_partition(state, requested, 3, 0)
            (record,) = decision.records
            apply_record(state, record, 1_000_000)
            assert state.indexes.in_isr(0)

        costs.append(calls_of(once))
    assert costs[1] <= 1.05 * costs[0], costs
