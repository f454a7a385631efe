"""Transactions on a cluster: offsets of a group and records, ended together or not at all."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.coordinator.group.offsets.commit import TopicToCommit, offset_records
from minicluster.log import Record, RecordBatch
from minicluster.log.batch import TRANSACTIONAL_BIT
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, partition_of
from minicluster.protocol.uuids import ZERO_UUID
from tests.coordinator.client import exchange

E = ErrorCode
PARTITIONS = 4
CONFIG = {
    "offsets.topic.num.partitions": str(PARTITIONS),
    "transaction.state.log.num.partitions": str(PARTITIONS),
}
RETRIABLE = (
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR,
    E.NOT_LEADER_OR_FOLLOWER,
    E.NOT_ENOUGH_REPLICAS,
    E.CONCURRENT_TRANSACTIONS,
    E.UNSTABLE_OFFSET_COMMIT,
)


class Client:
    """A transactional producer, and a consumer of its group, by raw requests."""

    def __init__(self, cluster: MiniCluster) -> None:
        self.cluster = cluster
        self.producer = (-1, -1)
        for key_type in (0, 1):
            request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=("x",))
            exchange(cluster, 1, request, 4)
        cluster.run_for("5s")

    def coordinator(self, topic: str, key: str) -> int:
        leader = self.cluster.topic(topic)[partition_of(key, PARTITIONS)].leader
        assert leader is not None
        return leader.id

    def until_done(self, topic: str, key: str, request: Any, version: int, error: Any) -> Any:
        """Send to the coordinator of then until the error is none that passes."""
        for _ in range(200):
            response = exchange(self.cluster, self.coordinator(topic, key), request, version)
            if error(response) not in RETRIABLE:
                return response
            self.cluster.run_for("100ms")
        raise AssertionError(f"{request} still gets {response}")

    def transact(self, request: Any, version: int) -> Any:
        return self.until_done(
            TRANSACTION_STATE_TOPIC, "x", request, version, lambda r: r.error_code
        )

    def init(self) -> None:
        request = m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
        response = self.transact(request, 5)
        assert response.error_code == E.NONE
        self.producer = response.producer_id, response.producer_epoch

    def commit_offset(self, offset: int, **fields: Any) -> ErrorCode:
        part = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
        topic = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
            name="t", partitions=(part(committed_offset=offset),)
        )
        request = m.TxnOffsetCommitRequest(
            **{
                "transactional_id": "x",
                "group_id": "g",
                "producer_id": self.producer[0],
                "producer_epoch": self.producer[1],
                "topics": (topic,),
                **fields,
            }
        )
        response = self.until_done(
            GROUP_METADATA_TOPIC, "g", request, 5, lambda r: r.topics[0].partitions[0].error_code
        )
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def produce(self, value: bytes) -> ErrorCode:
        batch = RecordBatch.of(
            [Record(0, inside(self.cluster).rt.now_ms, None, value)],
            leader_epoch=-1,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=0,
            attributes=TRANSACTIONAL_BIT,
        )
        topic = self.cluster.topic("t")
        data = m.ProduceRequest.PartitionProduceData(index=0, records=batch.encoded)
        request = m.ProduceRequest(
            transactional_id="x",
            acks=-1,
            timeout_ms=10_000,
            topic_data=(m.ProduceRequest.TopicProduceData(name="t", partition_data=(data,)),),
        )
        for _ in range(100):
            leader = topic[0].leader
            assert leader is not None
            response = exchange(self.cluster, leader.id, request, 12)
            error = response.responses[0].partition_responses[0].error_code
            if error not in RETRIABLE:
                return ErrorCode(error)
            self.cluster.run_for("100ms")
        raise AssertionError("never produced")

    def end(self, *, commit: bool) -> ErrorCode:
        request = m.EndTxnRequest(
            transactional_id="x",
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            committed=commit,
        )
        response = self.transact(request, 5)
        if response.error_code == E.NONE:
            self.producer = response.producer_id, response.producer_epoch
        return ErrorCode(response.error_code)

    def offset(self, *, stable: bool) -> tuple[int, int]:
        """The committed offset of the group, and its error."""
        topic = m.OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=(0,))
        group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=(topic,))
        request = m.OffsetFetchRequest(groups=(group,), require_stable=stable)
        leader = self.coordinator(GROUP_METADATA_TOPIC, "g")
        (partition,) = exchange(self.cluster, leader, request, 9).groups[0].topics[0].partitions
        return partition.committed_offset, partition.error_code

    def read_committed(self) -> list[bytes]:
        leader = self.cluster.topic("t")[0].leader
        assert leader is not None
        part = m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)
        topic = m.FetchRequest.FetchTopic(topic="t", partitions=(part,))
        request = m.FetchRequest(
            replica_id=-1, max_bytes=1 << 20, isolation_level=1, topics=(topic,)
        )
        response = exchange(self.cluster, leader.id, request, 12)
        (partition,) = response.responses[0].partitions
        aborted = {(a.producer_id, a.first_offset) for a in partition.aborted_transactions or ()}
        return [
            record.value or b""
            for batch in partition.records.batches
            if not batch.is_control and (batch.producer_id, batch.base_offset) not in aborted
            for record in batch.records
        ]


@pytest.fixture
def client() -> Iterator[Client]:
    with MiniCluster(brokers=3, controllers=1, seed=3, config=CONFIG) as cluster:
        cluster.create_topic("t", partitions=1, replicas=3)
        yield Client(cluster)


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_count_once_their_transaction_is_committed(client: Client, commit: bool) -> None:
    client.init()
    assert client.produce(b"one") == E.NONE
    assert client.commit_offset(7) == E.NONE
    assert client.offset(stable=False) == (-1, E.NONE)
    assert client.offset(stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert client.read_committed() == []
    assert client.end(commit=commit) == E.NONE
    client.cluster.run_for("1s")
    assert client.offset(stable=True) == ((7 if commit else -1), E.NONE)
    assert client.read_committed() == ([b"one"] if commit else [])


def test_offsets_are_refused(client: Client) -> None:
    client.init()
    assert client.commit_offset(7, group_id="") == E.INVALID_GROUP_ID
    assert client.commit_offset(7, generation_id=3) == E.ILLEGAL_GENERATION
    assert client.commit_offset(7, producer_epoch=9) == E.INVALID_PRODUCER_EPOCH
    assert client.commit_offset(7, transactional_id="y") == E.INVALID_PRODUCER_ID_MAPPING
    assert client.offset(stable=True) == (-1, E.NONE)


@pytest.mark.parametrize(
    ("killed", "commit"),
    [(TRANSACTION_STATE_TOPIC, True), (GROUP_METADATA_TOPIC, False), ("t", True)],
)
def test_an_end_outlives_the_death_of_any_leader(client: Client, commit: bool, killed: str) -> None:
    """The outcome is decided, no marker is written yet, and a leader dies."""
    cluster = client.cluster
    client.init()
    assert client.produce(b"one") == E.NONE
    assert client.commit_offset(7) == E.NONE
    index = {TRANSACTION_STATE_TOPIC: "x", GROUP_METADATA_TOPIC: "g"}.get(killed)
    partition = cluster.topic(killed)[0 if index is None else partition_of(index, PARTITIONS)]
    assert client.end(commit=commit) == E.NONE
    leader = partition.leader
    assert leader is not None
    cluster.kill(leader)
    cluster.run_for("30s")
    client.init()
    assert client.offset(stable=True) == ((7 if commit else -1), E.NONE)
    assert client.read_committed() == ([b"one"] if commit else [])


def test_a_zombie_is_fenced(client: Client) -> None:
    client.init()
    zombie = client.producer
    assert client.produce(b"of the zombie") == E.NONE
    client.init()
    client.producer, own = zombie, client.producer
    assert client.commit_offset(7) == E.INVALID_PRODUCER_EPOCH
    assert client.produce(b"too late") == E.INVALID_PRODUCER_EPOCH
    assert client.end(commit=True) == E.PRODUCER_FENCED
    client.producer = own
    assert client.produce(b"one") == E.NONE
    assert client.end(commit=True) == E.NONE
    client.cluster.run_for("1s")
    assert client.read_committed() == [b"one"]


@pytest.mark.parametrize("transactional", [True, False])
def test_only_an_offset_outside_of_transactions_has_a_topic_id(transactional: bool) -> None:
    """Source: OffsetAndMetadata.fromRequest, OffsetMetadataManager.isMetadataInvalid."""
    shard: Any = SimpleNamespace(config=SimpleNamespace(offset_metadata_max_bytes=2))
    part = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    partitions = [
        part(partition_index=index, committed_offset=5, committed_metadata=metadata)
        for index, metadata in enumerate(("ab", "😀", "a😀"))
    ]
    topic = TopicToCommit("t", uuid.UUID(int=7), partitions)
    records, errors = offset_records(
        shard, "g", [topic], None, 0, committer=None, epoch=-1, transactional=transactional
    )
    topic_ids = {record.value.topic_id for record in records}
    assert topic_ids == {ZERO_UUID if transactional else uuid.UUID(int=7)}
    assert errors == [E.NONE, E.NONE, E.OFFSET_METADATA_TOO_LARGE]
