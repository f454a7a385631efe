"""The order of partitions in responses, as the maps of Scala 2.13 and Java 17 give it."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest

from minicluster.metadata.topic_partition import grouped_by_topic
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    DeleteRecordsRequest,
    ListOffsetsRequest,
)
from minicluster.protocol.records import PartitionRecord
from minicluster.replica.requests.append_records import AppendStatus
from minicluster.replica.requests.produce import in_produce_order
from minicluster.rules import Rules
from tests.replica.cluster import Cluster
from tests.replica.controller_by_heart import TOPIC_IDS, directory_of

TOPICS = {uuid.UUID(int=10 + n): name for n, name in enumerate(("orders", "payments", "views"))}
NAMES = ("orders", "payments", "views", "clicks", "returns")


@pytest.mark.parametrize(
    ("count", "gone", "verified", "order"),
    [
        (3, 1, False, "orders-0 views-0 payments-0 gone-0"),
        (3, 1, True, "gone-0 orders-0 views-0 payments-0"),
        (3, 2, False, "payments-0 gone-0 orders-0 views-0 gone-1"),
        (3, 2, True, "gone-1 gone-0 orders-0 views-0 payments-0"),
        (6, 0, False, "payments-1 payments-0 views-1 views-0 orders-1 orders-0"),
        (6, 0, True, "orders-0 orders-1 views-1 views-0 payments-1 payments-0"),
        (
            20,
            1,
            False,
            "payments-1 payments-6 payments-0 orders-4 gone-0 orders-3 views-3 payments-3 "
            "payments-4 views-1 payments-2 views-0 views-5 views-2 orders-2 views-4 orders-5 "
            "orders-1 orders-0 payments-5 orders-6",
        ),
    ],
)
def test_the_partitions_of_a_produce(count: int, gone: int, verified: bool, order: str) -> None:
    """Source: KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend."""
    state: Any = SimpleNamespace(rules=Rules.KAFKA_4_3, topic_name=TOPICS.get)
    statuses = []
    for number in range(count):
        topic_id, index = uuid.UUID(int=10 + number % 3), number // 3
        batch: Any = object()
        statuses.append(AppendStatus("", topic_id, index, (topic_id, index), batch=batch))
    for index in range(gone):
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        statuses.append(AppendStatus("gone", uuid.UUID(int=0), index, None, error=error))
    found = in_produce_order(state, statuses, verified=verified)
    names = [f"{TOPICS.get(status.topic_id, 'gone')}-{status.index}" for status in found]
    assert names == order.split()


def test_in_3_9_a_produce_names_its_topics() -> None:
    found = {}
    for rules in (Rules.KAFKA_3_9, Rules.KAFKA_4_3):
        state: Any = SimpleNamespace(rules=rules, topic_name=TOPICS.get)
        batch: Any = object()
        statuses = [
            AppendStatus(name, uuid.UUID(int=0), 0, (topic_id, 0), batch=batch)
            for topic_id, name in TOPICS.items()
        ]
        found[rules.name] = [s.topic for s in in_produce_order(state, statuses, verified=False)]
    by_name = ["payments", "orders", "views"]
    assert found == {"kafka-3.9": by_name, "kafka-4.3": ["orders", "views", "payments"]}


@pytest.mark.parametrize(
    ("count", "order"),
    [
        (2, "payments:0 orders:0"),
        (9, "payments:0,1 returns:0 orders:0,1 clicks:1,0 views:1,0"),
        (
            30,
            "payments:4,3,5,0,2,1 returns:5,3,4,1,2,0 orders:0,1,2,3,4,5 clicks:5,2,1,4,3,0 "
            "views:5,4,3,2,1,0",
        ),
    ],
)
def test_partitions_grouped_by_topic(count: int, order: str) -> None:
    """Source: ReplicaManager.fetchOffset, KafkaApis.handleDeleteRecordsRequest."""
    grouped = grouped_by_topic((NAMES[n % 5], n // 5) for n in range(count))
    shown = [f"{topic}:{','.join(map(str, indexes))}" for topic, indexes in grouped.items()]
    assert shown == order.split()


def several(rules: Rules = Rules.KAFKA_4_3) -> Cluster:
    """Broker 1 leads four partitions of bills and one of orders."""
    cluster = Cluster(1, rules=rules)
    cluster.create_topic("orders", replicas=(1,))
    cluster.create_topic("bills", replicas=(1,))
    for index in (1, 2, 3):
        cluster.publish(
            PartitionRecord(
                partition_id=index,
                topic_id=TOPIC_IDS["bills"],
                replicas=(1,),
                isr=(1,),
                directories=(directory_of(1),),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
            )
        )
    return cluster


def listed(cluster: Cluster) -> list[tuple[str, int]]:
    kind = ListOffsetsRequest
    wanted = [
        kind.ListOffsetsTopic(
            name=name,
            partitions=tuple(
                kind.ListOffsetsPartition(partition_index=i, timestamp=-1) for i in indexes
            ),
        )
        for name, indexes in (("orders", [0]), ("bills", [0, 1, 2, 3]))
    ]
    response = cluster.response(cluster.request(1, kind(replica_id=-1, topics=tuple(wanted)), 7))
    return [(t.name, p.partition_index) for t in response.topics for p in t.partitions]


def test_list_offsets_has_the_order_of_a_map_and_in_3_9_that_of_the_request() -> None:
    in_request = [("orders", 0), *(("bills", index) for index in range(4))]
    in_map = [(n, i) for n, found in grouped_by_topic(in_request).items() for i in found]
    assert in_map != in_request
    assert listed(several()) == in_map
    assert listed(several(Rules.KAFKA_3_9)) == in_request


def test_delete_records_has_the_order_of_a_map() -> None:
    kind = DeleteRecordsRequest
    partitions = [kind.DeleteRecordsPartition(partition_index=i, offset=0) for i in range(4)]
    topic = kind.DeleteRecordsTopic(name="bills", partitions=tuple(partitions))
    cluster = several()
    request = kind(topics=(topic,), timeout_ms=1_000)
    (found,) = cluster.response(cluster.request(1, request, 2)).topics
    order = grouped_by_topic(("bills", index) for index in range(4))["bills"]
    assert [p.partition_index for p in found.partitions] == order


def test_an_internal_topic_is_refused_before_its_leader_matters() -> None:
    """Source: ReplicaManager.appendToLocalLog."""
    from tests.replica.test_produce import batch, result, send

    cluster = Cluster()
    cluster.create_topic("__transaction_state", replicas=(2,))
    for broker in (1, 2):
        token = send(cluster, batch().encoded, broker=broker, topic="__transaction_state")
        assert result(cluster, token)[0] == ErrorCode.INVALID_TOPIC_EXCEPTION
