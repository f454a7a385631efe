"""The partitions of an internal topic, as the coordinator beside the replica manager has them."""

from __future__ import annotations

import uuid

from minicluster.coordinator.runtime.internal_topic import InternalTopic
from minicluster.protocol.records import PartitionRecord, TopicRecord
from tests.replica.cluster import Cluster
from tests.replica.controller_by_heart import directory_of

NAME, TOPIC_ID, PARTITIONS = "__consumer_offsets", uuid.UUID(int=0xE), 12


def test_high_watermarks_that_rise_at_once_are_taken_in_order_of_their_partitions() -> None:
    """An image's map iterates in an order of its own, which is another in every process."""
    cluster = Cluster(1)
    partitions = (
        PartitionRecord(
            partition_id=index,
            topic_id=TOPIC_ID,
            replicas=(1,),
            isr=(1,),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=(directory_of(1),),
        )
        for index in range(PARTITIONS)
    )
    cluster.publish(TopicRecord(name=NAME, topic_id=TOPIC_ID), *partitions)
    topic = InternalTopic(cluster.managers[1].state, NAME)
    assert topic.take_risen_high_watermarks() == [(index, 0) for index in range(PARTITIONS)]
    for index in (7, 2, 11, 5, 0, 9):
        topic.append(index, [(b"key", b"value")], None, cluster.now_ms)
    assert topic.take_risen_high_watermarks() == [(index, 1) for index in (0, 2, 5, 7, 9, 11)]
    assert topic.take_risen_high_watermarks() == []
