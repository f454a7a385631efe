"""The orders of groups and members in responses: those of Kafka's hash tables.

The literals are what Kafka 4.3.0's own TimelineHashMap and ConcurrentHashMap gave for these keys.
"""

from __future__ import annotations

import pytest

from minicluster.coordinator.group.consumer.subscription import resolve
from minicluster.java_order import (
    concurrent_map_order,
    timeline_order,
    topic_partition_hash,
)
from minicluster.protocol import messages as m
from minicluster.protocol.coordinator_records.framing import (
    GROUP_RECORDS,
    decode_coordinator_record,
)
from minicluster.protocol.coordinator_records.groups import OffsetCommitKey
from tests.coordinator.groups import Groups

NAMES = ("orders", "payments", "billing", "audit", "shipping", "search", "mail", "fraud")
IN_A_TIMELINE_MAP = [
    *("fraud", "mail", "billing", "shipping", "audit", "orders", "search", "payments"),
]


def test_groups_are_listed_in_the_order_of_their_hash_table() -> None:
    """GroupMetadataManager.listGroups: groups.values(committedOffset)."""
    groups = Groups(topic=1)
    for name in NAMES:
        groups.heartbeat("member", 0, topics=("topic",), group_id=name)
    listed = groups.request(m.ListGroupsRequest(), 5).groups
    assert [group.group_id for group in listed] == IN_A_TIMELINE_MAP


def test_members_are_described_in_the_order_of_their_hash_table() -> None:
    """ConsumerGroup.asDescribedGroup: members.entrySet(committedOffset)."""
    groups = Groups(topic=8)
    for name in NAMES:
        groups.heartbeat(name, 0, topics=("topic",))
    members = groups.describe().members
    assert [member.member_id for member in members] == IN_A_TIMELINE_MAP


def test_shards_are_asked_in_the_order_of_the_runtimes_table() -> None:
    """CoordinatorRuntime.scheduleReadAllOperation: coordinators.keySet()."""
    shards = [("__consumer_offsets", index) for index in range(5)]
    ordered = concurrent_map_order(shards, topic_partition_hash)
    assert [index for _, index in ordered] == [0, 3, 4, 1, 2]


@pytest.mark.parametrize("asked", [("users", "pay.*"), ("pay.*", "users")])
def test_expressions_are_written_in_the_order_of_the_resolvers_map(asked: tuple[str, str]) -> None:
    """TopicRegexResolver.resolveRegularExpressions, as seed 1 of ``tests.kafka.groups`` had it."""
    assert list(resolve(asked, (), 1, 1)) == ["pay.*", "users"]


def test_offsets_are_deleted_in_the_order_of_their_tables() -> None:
    """OffsetMetadataManager.deleteAllOffsets: topics, then partitions, in their slots."""
    groups = Groups(**dict.fromkeys(NAMES, 6))
    commit = m.OffsetCommitRequest
    topics = tuple(
        commit.OffsetCommitRequestTopic(
            name=name,
            partitions=tuple(
                commit.OffsetCommitRequestPartition(partition_index=index, committed_offset=1)
                for index in range(6)
            ),
        )
        for name in NAMES
    )
    groups.request(commit(group_id="g", topics=topics), 8)
    before = len(groups.log.batches)
    groups.request(m.DeleteGroupsRequest(groups_names=("g",)), 2)
    [batch] = groups.log.batches[before:]
    keys = [
        decode_coordinator_record(GROUP_RECORDS, each.key or b"", each.value).key
        for each in batch.records
    ]
    places = [(key.topic, key.partition) for key in keys if isinstance(key, OffsetCommitKey)]
    assert places == [
        (name, index) for name in IN_A_TIMELINE_MAP for index in timeline_order(range(6), int)
    ]
