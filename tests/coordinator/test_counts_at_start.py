"""Internal topics that get more partitions: coordinators keep the number of the broker's start.

Source:  KAFKA-14418, KAFKA-19423; GroupCoordinatorService.startup, TransactionCoordinator.startup,
         TransactionStateManager.validateTransactionTopicPartitionCountIsStable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.topics import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    partition_of,
)
from tests.coordinator.client import exchange

BEFORE, AFTER = 2, 7
GROUP, TRANSACTION = 0, 1
KEYS = ("a", "b", "c", "d")


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    config = {
        "offsets.topic.num.partitions": str(BEFORE),
        "transaction.state.log.num.partitions": str(BEFORE),
    }
    with MiniCluster(brokers=3, controllers=1, seed=1, config=config) as cluster:
        cluster.create_topic("orders", partitions=1, replicas=3)
        for key_type in (GROUP, TRANSACTION):
            coordinators(cluster, key_type)
        cluster.run_for("2s")
        yield cluster


def coordinators(cluster: MiniCluster, key_type: int) -> list[int]:
    """The broker that each key is told to go to, by any of the brokers: they say the same."""
    request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=KEYS)
    told = [
        [c.node_id for c in exchange(cluster, broker.id, request, 6).coordinators]
        for broker in cluster.brokers
    ]
    assert told[1:] == told[:-1]
    return told[0]


def leader(cluster: MiniCluster, topic: str, index: int) -> Any:
    found = cluster.topic(topic)[index].leader
    assert found is not None
    return found


def committed(cluster: MiniCluster, group_id: str, offset: int | None = None) -> int:
    """The offset of a group at its coordinator of two partitions, once one is committed."""
    coordinator = leader(cluster, GROUP_METADATA_TOPIC, partition_of(group_id, BEFORE)).id
    if offset is not None:
        kind = m.OffsetCommitRequest
        partition = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = kind.OffsetCommitRequestTopic(name="orders", partitions=(partition,))
        response = exchange(cluster, coordinator, kind(group_id=group_id, topics=(topic,)), 9)
        assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
    group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=None)
    fetched = exchange(cluster, coordinator, m.OffsetFetchRequest(groups=(group,)), 8)
    return int(fetched.groups[0].topics[0].partitions[0].committed_offset)


def listed(cluster: MiniCluster) -> list[str]:
    groups = [exchange(cluster, b.id, m.ListGroupsRequest(), 4).groups for b in cluster.brokers]
    return sorted(group.group_id for of_broker in groups for group in of_broker)


def test_groups_stay_where_they_are_when_their_topic_grows(cluster: MiniCluster) -> None:
    before = coordinators(cluster, GROUP)
    assert [committed(cluster, key, offset=7) for key in KEYS] == [7] * len(KEYS)
    cluster.add_partitions(GROUP_METADATA_TOPIC, AFTER)
    cluster.run_for("2s")
    assert coordinators(cluster, GROUP) == before
    assert [committed(cluster, key) for key in KEYS] == [7] * len(KEYS)
    assert [committed(cluster, key, offset=8) for key in KEYS] == [8] * len(KEYS)
    assert listed(cluster) == [*KEYS]


def test_a_broker_counts_again_when_it_starts(cluster: MiniCluster) -> None:
    cluster.add_partitions(GROUP_METADATA_TOPIC, AFTER)
    for broker in cluster.brokers:
        cluster.kill(broker)
    cluster.run_for("1s")
    for broker in cluster.brokers:
        cluster.restart(broker)
    cluster.run_for("20s")
    expected = [leader(cluster, GROUP_METADATA_TOPIC, partition_of(key, AFTER)).id for key in KEYS]
    assert coordinators(cluster, GROUP) == expected


def end(cluster: MiniCluster, broker: int) -> ErrorCode:
    request = m.EndTxnRequest(
        transactional_id=KEYS[0], producer_id=1, producer_epoch=0, committed=True
    )
    return ErrorCode(exchange(cluster, broker, request, 3).error_code)


def test_a_transaction_log_that_grew_is_not_loaded_before_a_restart(cluster: MiniCluster) -> None:
    index = partition_of(KEYS[0], BEFORE)
    first = leader(cluster, TRANSACTION_STATE_TOPIC, index)
    cluster.add_partitions(TRANSACTION_STATE_TOPIC, AFTER)
    cluster.run_for("2s")
    # Its coordinator of before goes on.
    assert end(cluster, first.id) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    cluster.kill(first)
    cluster.wait_until(
        lambda: cluster.topic(TRANSACTION_STATE_TOPIC)[index].leader not in (None, first),
        within="30s",
    )
    cluster.run_for("2s")
    heir = leader(cluster, TRANSACTION_STATE_TOPIC, index)
    assert end(cluster, heir.id) == ErrorCode.NOT_COORDINATOR
