"""The orders of groups and members in responses: those of Kafka's hash tables.

The literals are what Kafka 4.3.0's own TimelineHashMap and ConcurrentHashMap gave for these keys.
"""

from __future__ import annotations

from minicluster.java_order import concurrent_map_order, topic_partition_hash
from minicluster.protocol import messages as m
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
