"""KIP-589 on the controller: AlterReplicaState is checked at once and acted upon a moment later."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.messages.kip_texts.kip_589 import (
    UNKNOWN_EVENT_TYPE,
    AlterReplicaStateRequest,
    AlterReplicaStateResponse,
)
from minicluster.protocol.records import PartitionChangeRecord
from minicluster.rules import FailedReplicas, Rules
from minicluster.values import replace
from tests.controller.kit import Cluster, nobody

KIP_589 = replace(Rules.KAFKA_4_3, failed_replicas_reported_by=FailedReplicas.ALTER_REPLICA_STATE)


def cluster_of_three(rules: Rules = KIP_589, **options: Any) -> Cluster:
    """Partition orders-0 on brokers 1, 2 and 3, led by 1."""
    cluster = Cluster(rules=rules, **options)
    cluster.start(1, 2, 3)
    assert cluster.create("orders", [1, 2, 3]).error_code == 0
    return cluster


def report(
    cluster: Cluster, broker_id: int, *partitions: tuple[str, int], **fields: Any
) -> AlterReplicaStateRequest:
    kind = AlterReplicaStateRequest
    values: dict[str, Any] = {"broker_epoch": cluster.epoch(broker_id), "event_reason": "disk"}
    return kind(
        broker_id=broker_id,
        topics=tuple(
            kind.TopicData(topic=topic, partitions=(kind.PartitionData(partition_id=index),))
            for topic, index in partitions
        ),
        **(values | fields),
    )


def errors(response: AlterReplicaStateResponse) -> list[int]:
    assert response.error_code == 0
    return [p.error_code for topic in response.topics for p in topic.partitions]


def test_a_report_gets_its_response_first_and_the_isr_changes_a_moment_later() -> None:
    cluster = cluster_of_three()
    before = cluster.end
    assert errors(cluster.request(report(cluster, 2, ("orders", 0)))) == [ErrorCode.NONE]
    assert cluster.end == before and cluster.partition("orders").isr == (1, 2, 3)
    cluster.run(cluster.now_ms)
    assert cluster.partition("orders").isr == (1, 3)
    change = cluster.log[before].record
    assert isinstance(change, PartitionChangeRecord) and change.isr == (1, 3)


def test_a_leader_that_reports_its_own_replica_is_replaced() -> None:
    cluster = cluster_of_three()
    cluster.request(report(cluster, 1, ("orders", 0)))
    cluster.run(cluster.now_ms)
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr) == (2, (2, 3))
    broker = cluster.machine.image.cluster.broker(1)
    assert broker is not None and not broker.fenced


def test_a_replica_that_is_offline_cannot_be_elected_until_its_broker_registers_anew() -> None:
    cluster = Cluster(rules=KIP_589)
    cluster.start(1, 2)
    cluster.create("orders", [1])
    cluster.request(report(cluster, 1, ("orders", 0)))
    cluster.run(cluster.now_ms)
    assert cluster.partition("orders").leader == -1
    # An event that looks at all leaderless partitions does not bring it back.
    cluster.fence(2)
    cluster.heartbeat(2)
    assert cluster.partition("orders").leader == -1
    cluster.run(cluster.now_ms + 9_001)
    cluster.start(1, number=1)
    assert cluster.partition("orders").leader == 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"broker_epoch": 3}, ErrorCode.STALE_BROKER_EPOCH),
        ({"broker_epoch": -1}, ErrorCode.STALE_BROKER_EPOCH),
        ({"broker_id": 9, "broker_epoch": 4}, ErrorCode.STALE_BROKER_EPOCH),
        ({"event_type": 0}, UNKNOWN_EVENT_TYPE),
        ({"event_type": 2}, UNKNOWN_EVENT_TYPE),
        # The epoch is looked at before the event type.
        ({"event_type": 2, "broker_epoch": 3}, ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_a_request_is_refused_as_a_whole(fields: dict[str, Any], expected: int) -> None:
    cluster = cluster_of_three()
    before = cluster.end
    request = replace(report(cluster, 2, ("orders", 0)), **fields)
    response = cluster.request(request)
    assert response == AlterReplicaStateResponse(error_code=expected)
    cluster.run(cluster.now_ms)
    assert cluster.end == before


def test_permission_comes_before_the_controller_and_the_controller_before_the_epoch() -> None:
    cluster = Cluster(rules=KIP_589, active=False)
    request = AlterReplicaStateRequest(broker_id=1, event_type=2)
    refused = cluster.request(request, access=nobody())
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert cluster.request(request).error_code == ErrorCode.NOT_CONTROLLER


def test_an_unknown_partition_is_named_and_the_others_are_taken() -> None:
    cluster = cluster_of_three()
    response = cluster.request(report(cluster, 3, ("gone", 0), ("orders", 0), ("orders", 1)))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(response) == [unknown, ErrorCode.NONE, unknown]
    cluster.run(cluster.now_ms)
    assert cluster.partition("orders").isr == (1, 2)


def test_a_report_of_a_broker_that_has_no_replica_there_changes_nothing() -> None:
    cluster = cluster_of_three()
    cluster.start(4)
    before = cluster.end
    assert errors(cluster.request(report(cluster, 4, ("orders", 0)))) == [ErrorCode.NONE]
    cluster.run(cluster.now_ms)
    assert cluster.end == before


def test_a_report_completed_before_the_broker_registered_anew_changes_nothing() -> None:
    cluster = cluster_of_three()
    for _ in range(6):
        cluster.run(cluster.now_ms + 2_000)
        cluster.heartbeat(1)
        cluster.heartbeat(3)
    assert cluster.partition("orders").isr == (1, 3)  # the session of 2 is over
    cluster.request(report(cluster, 2, ("orders", 0)))
    cluster.start(2, number=1)
    assert cluster.propose("orders", [1, 2, 3]).error_code == ErrorCode.NONE
    before = cluster.partition("orders")
    cluster.run(cluster.now_ms)
    assert cluster.machine.state.offline_replicas.next_report() is None
    assert cluster.partition("orders") == before and before.isr == (1, 2, 3)


def test_what_was_acknowledged_dies_with_the_controller_and_can_be_reported_again() -> None:
    """Failure mode 3 of the KIP: the controller responds, and fails before it acts."""
    cluster = cluster_of_three()
    cluster.request(report(cluster, 1, ("orders", 0)))
    cluster.take(cluster.machine.on_renounce(cluster.now_ms))
    cluster.take(cluster.machine.on_claim(2, cluster.end, cluster.now_ms))
    cluster.run(cluster.now_ms)
    assert cluster.partition("orders").leader == 1
    cluster.request(report(cluster, 1, ("orders", 0)))
    cluster.run(cluster.now_ms)
    assert cluster.partition("orders").leader == 2


def test_it_works_below_the_metadata_version_that_has_directories() -> None:
    rules = replace(Rules.KAFKA_3_9, failed_replicas_reported_by=FailedReplicas.ALTER_REPLICA_STATE)
    cluster = cluster_of_three(rules, metadata_version="3.6-IV0")
    cluster.request(report(cluster, 1, ("orders", 0)))
    cluster.run(cluster.now_ms)
    assert cluster.partition("orders").leader == 2


def test_kafka_does_not_serve_it() -> None:
    cluster = cluster_of_three(Rules.KAFKA_4_3)
    response = cluster.request(report(cluster, 2, ("orders", 0)))
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    # What shipped instead: the directory in a heartbeat, from metadata.version 3.7-IV2 on.
    registered = cluster.machine.image.cluster.broker(2)
    assert registered is not None
    response = cluster.heartbeat(2, offline_log_dirs=registered.log_dirs)
    assert isinstance(response, m.BrokerHeartbeatResponse)
    assert cluster.partition("orders").isr == (1, 3)


def test_responds_in_order_of_reports_and_acts_on_each() -> None:
    cluster = cluster_of_three()
    cluster.request(report(cluster, 2, ("orders", 0)))
    cluster.request(report(cluster, 3, ("orders", 0)))
    assert cluster.partition("orders").isr == (1, 2, 3)
    cluster.run(cluster.now_ms)
    assert cluster.partition("orders").isr == (1,)
