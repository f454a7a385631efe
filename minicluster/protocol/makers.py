"""Makers of the messages that a running cluster sends the most: Fetch and Produce.

A message that is made by its maker equals one that is made by its class, at half the cost
(``schema.maker``).
"""

from __future__ import annotations

from functools import lru_cache

from minicluster.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
)
from minicluster.protocol.schema import maker

new_fetch_request = maker(FetchRequest)
new_fetch_topic = maker(FetchRequest.FetchTopic)
new_fetch_partition = maker(FetchRequest.FetchPartition)
new_fetch_response = maker(FetchResponse)
new_fetched_topic = maker(FetchResponse.FetchableTopicResponse)
new_fetched_partition = maker(FetchResponse.PartitionData)
new_produce_request = maker(ProduceRequest)
new_produced_topic = maker(ProduceRequest.TopicProduceData)
new_produced_partition = maker(ProduceRequest.PartitionProduceData)
new_produce_response = maker(ProduceResponse)
new_topic_response = maker(ProduceResponse.TopicProduceResponse)
new_partition_response = maker(ProduceResponse.PartitionProduceResponse)


@lru_cache(maxsize=256)
def replica_state(replica_id: int, replica_epoch: int = -1) -> FetchRequest.ReplicaState:
    """The sender of a Fetch: one object for all of its requests."""
    return FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=replica_epoch)
