"""Requests that come to a coordinator before the image which makes it the coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.coordinator.early_requests import LIMIT_MS
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.topics import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    partition_of,
)
from tests.coordinator.client import exchange

SEEDS = range(1, 51)
KEYS = ("first", "second", "third")
ONE_PARTITION = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
GROUP, TRANSACTION = 0, 1
SOON_MS = 50
"""Longer than a request and its response take on the simulated network."""


@pytest.mark.parametrize("controllers", [1, 3])
@pytest.mark.parametrize("key_type", [GROUP, TRANSACTION])
def test_a_client_is_at_its_coordinator_by_the_first_request(
    key_type: int, controllers: int
) -> None:
    """The broker that named the coordinator may have the image some milliseconds before it."""
    sent_away = []
    for seed in SEEDS:
        with MiniCluster(brokers=3, controllers=controllers, seed=seed) as cluster:
            for key in KEYS:
                error = _first(cluster, _coordinator(cluster, key_type, key), key_type, key)
                if error == ErrorCode.NOT_COORDINATOR:
                    sent_away.append((seed, key))
    assert sent_away == []


@pytest.mark.parametrize("key_type", [GROUP, TRANSACTION])
def test_a_coordinator_that_moved_takes_requests_with_its_image(key_type: int) -> None:
    with MiniCluster(brokers=3, controllers=1, seed=1, config=ONE_PARTITION) as cluster:
        heir = _move_to_a_late_broker(cluster, key_type, "200ms")
        began_ms = cluster.now_ms
        error = _first(cluster, heir, key_type, KEYS[0])
        assert error != ErrorCode.NOT_COORDINATOR
        assert 100 < cluster.now_ms - began_ms < LIMIT_MS


def test_a_coordinator_without_its_image_says_in_the_end_what_it_knows() -> None:
    with MiniCluster(brokers=3, controllers=1, seed=1, config=ONE_PARTITION) as cluster:
        heir = _move_to_a_late_broker(cluster, GROUP, "20s")
        began_ms = cluster.now_ms
        assert _first(cluster, heir, GROUP, KEYS[0]) == ErrorCode.NOT_COORDINATOR
        assert LIMIT_MS <= cluster.now_ms - began_ms <= LIMIT_MS + SOON_MS


@pytest.mark.parametrize("key_type", [GROUP, TRANSACTION])
def test_a_broker_that_no_image_names_rejects_at_once(key_type: int) -> None:
    """An image at least as new as any that a client was told from: Kafka's own response."""
    with MiniCluster(brokers=3, controllers=1, seed=1, config=ONE_PARTITION) as cluster:
        coordinator = _coordinator(cluster, key_type, KEYS[0])
        other = next(broker for broker in (1, 2, 3) if broker != coordinator)
        cluster.run_for("1s")
        began_ms = cluster.now_ms
        assert _first(cluster, other, key_type, KEYS[0]) == ErrorCode.NOT_COORDINATOR
        assert cluster.now_ms - began_ms <= SOON_MS


def test_a_late_broker_that_the_newest_image_does_not_name_rejects_at_once() -> None:
    """Its image is old, and still the client's knowledge is older."""
    with MiniCluster(brokers=3, controllers=1, seed=1, config=ONE_PARTITION) as cluster:
        coordinator = _coordinator(cluster, GROUP, KEYS[0])
        cluster.run_for("1s")
        other = next(broker for broker in (1, 2, 3) if broker != coordinator)
        cluster.publish_delay(other, "20s")
        cluster.create_topic("orders")
        cluster.run_for("1s")
        began_ms = cluster.now_ms
        assert _first(cluster, other, GROUP, KEYS[0]) == ErrorCode.NOT_COORDINATOR
        assert cluster.now_ms - began_ms <= SOON_MS


@pytest.mark.parametrize("key_type", [GROUP, TRANSACTION])
def test_on_threads_a_coordinator_takes_requests_with_its_image(key_type: int) -> None:
    config = {**ONE_PARTITION, "transaction.state.log.min.isr": "1"}
    with MiniCluster(brokers=3, controllers=1, runtime="threaded", config=config) as cluster:
        heir = _move_to_a_late_broker(cluster, key_type, "300ms")
        assert _first(cluster, heir, key_type, KEYS[0]) != ErrorCode.NOT_COORDINATOR


def _move_to_a_late_broker(cluster: MiniCluster, key_type: int, delay: str) -> int:
    """Move the leader of the internal topic to a broker that sees it late; its id.

    The others know of it: one of them has named it to a client.
    """
    coordinator = _coordinator(cluster, key_type, KEYS[0])
    cluster.run_for("1s")
    name = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)[key_type]
    topic = cluster.topic(name)
    heir = next(broker for broker in topic[0].isr if broker.id != coordinator)
    cluster.publish_delay(heir, delay)
    others = [broker.id for broker in topic[0].replicas if broker != heir]
    cluster.reassign(topic[0], [heir.id, *others])
    cluster.elect(topic[0])
    cluster.run_for("10ms")
    found = _find(cluster, key_type, KEYS[0], others[0])
    assert found == heir.id
    return found


def _coordinator(cluster: MiniCluster, key_type: int, key: str) -> int:
    found = _find(cluster, key_type, key, 1)
    assert partition_of(key, 1) == 0
    return found


def _find(cluster: MiniCluster, key_type: int, key: str, broker: int) -> int:
    request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))
    (found,) = exchange(cluster, broker, request, version=6).coordinators
    assert found.error_code == ErrorCode.NONE
    node: int = found.node_id
    return node


def _first(cluster: MiniCluster, broker: int, key_type: int, key: str) -> int:
    request: Any
    if key_type == GROUP:
        request, version = m.HeartbeatRequest(group_id=key, generation_id=1, member_id="m"), 4
    else:
        request = m.EndTxnRequest(
            transactional_id=key, producer_id=1, producer_epoch=0, committed=True
        )
        version = 3
    error: int = exchange(cluster, broker, request, version=version).error_code
    return error
