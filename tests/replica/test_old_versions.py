"""Responses to clients of old versions hold nothing that those versions cannot carry."""

from __future__ import annotations

import pytest

from minicluster.log import Record, RecordBatch, Records
from minicluster.protocol import ErrorCode, encode
from minicluster.protocol.messages import FetchRequest, ProduceRequest
from tests.replica.cluster import Cluster


@pytest.mark.parametrize("version", range(3, 13))
def test_a_refused_produce_names_the_leader_only_where_the_version_can(version: int) -> None:
    cluster = Cluster()
    cluster.create_topic()
    batch = RecordBatch.of([Record(0, 0, None, b"a")], leader_epoch=-1)
    data = ProduceRequest.PartitionProduceData(index=0, records=Records((batch,)))
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=(data,))
    token = cluster.request(2, ProduceRequest(acks=1, topic_data=(topic,)), version)
    assert cluster.produced(token).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.produced(token).current_leader.leader_id == (1 if version >= 10 else -1)
    assert encode(cluster.response(token), version)


@pytest.mark.parametrize("version", range(4, 13))
def test_a_refused_fetch_names_the_leader_only_where_the_version_can(version: int) -> None:
    cluster = Cluster()
    cluster.create_topic()
    requested = FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)
    topic = FetchRequest.FetchTopic(topic="orders", partitions=(requested,))
    token = cluster.request(2, FetchRequest(replica_id=-1, topics=(topic,)), version)
    data, _ = cluster.fetched(token)
    if data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        assert data.current_leader.leader_id == (1 if version >= 12 else -1)
    assert encode(cluster.response(token), version)


@pytest.mark.parametrize("version", range(4, 13))
@pytest.mark.parametrize("replica_id", [-1, -2], ids=["consumer", "debugging"])
def test_a_follower_serves_consumers_from_version_11_on(replica_id: int, version: int) -> None:
    """Source: FetchParams.fetchOnlyLeader, FetchRequest.isConsumer; KIP-392."""
    cluster = Cluster()
    cluster.create_topic()
    requested = FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)
    topic = FetchRequest.FetchTopic(topic="orders", partitions=(requested,))
    token = cluster.request(2, FetchRequest(replica_id=replica_id, topics=(topic,)), version)
    data, _ = cluster.fetched(token)
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert data.error_code == (ErrorCode.NONE if version >= 11 else refused)
