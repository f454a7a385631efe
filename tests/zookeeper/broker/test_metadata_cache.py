"""Clients are shown UpdateMetadata; the replicas of a broker follow LeaderAndIsr."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.effects import Respond
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.zookeeper.broker.control_requests import ControlRequests
from minicluster.zookeeper.broker.refusals import refusal_of
from minicluster.zookeeper.znodes.partition_state import LEADER_DURING_DELETE

ORDERS, OTHER = UUID(int=7), UUID(int=8)


def lead(isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> m.LeaderAndIsrRequest:
    state = m.LeaderAndIsrRequest.LeaderAndIsrPartitionState(
        partition_index=0, leader=2, leader_epoch=leader_epoch, isr=isr,
        partition_epoch=partition_epoch, replicas=(1, 2, 3),
    )  # fmt: skip
    topic = m.LeaderAndIsrRequest.LeaderAndIsrTopicState(
        topic_name="orders", topic_id=ORDERS, partition_states=(state,)
    )
    return m.LeaderAndIsrRequest(
        controller_id=1, controller_epoch=1, broker_epoch=9, topic_states=(topic,)
    )


def of_partition(index: int = 0, **values: Any) -> Any:
    given = {"leader": 2, "leader_epoch": 0, "isr": (1, 2, 3), "zk_version": 0, **values}
    return m.UpdateMetadataRequest.UpdateMetadataPartitionState(
        partition_index=index, replicas=(1, 2, 3), **given
    )


def update(*states: Any, topic_id: UUID = ORDERS, controller: int = 1) -> m.UpdateMetadataRequest:
    topic = m.UpdateMetadataRequest.UpdateMetadataTopicState(
        topic_name="orders", topic_id=topic_id, partition_states=states
    )
    live = tuple(m.UpdateMetadataRequest.UpdateMetadataBroker(id=n) for n in (1, 2, 3))
    return m.UpdateMetadataRequest(
        controller_id=controller, controller_epoch=1, broker_epoch=9,
        topic_states=(topic,) if states else (), live_brokers=live,
    )  # fmt: skip


def shown(requests: ControlRequests, index: int = 0) -> PartitionRegistration | None:
    topic = requests.shown.topics.named("orders")
    return None if topic is None else topic.partitions.get(index)


def held(requests: ControlRequests) -> PartitionRegistration:
    topic = requests.image.topics.named("orders")
    assert topic is not None
    return topic.partitions[0]


def test_a_replica_keeps_to_leader_and_isr_and_clients_see_update_metadata() -> None:
    requests = ControlRequests(1)
    requests.update_metadata(update())
    requests.leader_and_isr(lead((1, 2, 3), 0, 0), 7, lambda _: False)
    assert shown(requests) is None
    requests.update_metadata(update(of_partition(isr=(1, 2), zk_version=1)))
    found = shown(requests)
    assert found is not None
    assert (found.isr, found.partition_epoch) == ((1, 2), 1)
    assert (held(requests).isr, held(requests).partition_epoch) == ((1, 2, 3), 0)
    requests.leader_and_isr(lead((1, 2), 1, 2), 7, lambda _: False)
    found = shown(requests)
    assert found is not None and found.leader_epoch == 0
    assert held(requests).leader_epoch == 1


def test_the_last_request_counts_whatever_its_epochs() -> None:
    requests = ControlRequests(1)
    requests.update_metadata(update(of_partition(leader_epoch=5, zk_version=9)))
    requests.update_metadata(update(of_partition(leader_epoch=4, zk_version=8)))
    found = shown(requests)
    assert found is not None and (found.leader_epoch, found.partition_epoch) == (4, 8)


def test_partitions_go_one_by_one_and_the_topic_with_the_last() -> None:
    requests = ControlRequests(4)
    requests.update_metadata(update(*(of_partition(n, leader_epoch=n) for n in range(3))))
    requests.update_metadata(update(of_partition(1, leader=LEADER_DURING_DELETE)))
    assert [shown(requests, n) is not None for n in range(3)] == [True, False, True]
    found = shown(requests, 2)
    assert found is not None and found.leader_epoch == 2
    gone = [of_partition(n, leader=LEADER_DURING_DELETE) for n in (0, 2)]
    requests.update_metadata(update(*gone))
    assert requests.shown.topics.named("orders") is None
    requests.update_metadata(update(*gone))
    requests.update_metadata(update(of_partition(), topic_id=OTHER))
    assert requests.shown.topics.get(OTHER) is not None


def test_a_replica_that_is_not_stopped_yet_is_shown_no_more() -> None:
    requests = ControlRequests(1)
    requests.update_metadata(update())
    requests.leader_and_isr(lead((1, 2, 3), 0, 0), 7, lambda _: False)
    requests.update_metadata(update(of_partition()))
    requests.update_metadata(update(of_partition(leader=LEADER_DURING_DELETE)))
    assert shown(requests) is None
    assert held(requests).leader == 2


def test_a_request_without_partitions_brings_brokers_and_controller() -> None:
    requests = ControlRequests(1)
    requests.update_metadata(update(of_partition(offline_replicas=(3,)), controller=2))
    requests.update_metadata(update(controller=3))
    assert requests.cache.controller == 3
    assert requests.cache.offline_replicas("orders", 0) == (3,)
    assert requests.cache.offline_replicas("orders", 1) == ()
    stale = m.UpdateMetadataRequest(controller_id=2, controller_epoch=0, broker_epoch=9)
    assert requests.update_metadata(stale).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert requests.cache.controller == 3


def of_client(cluster: MiniCluster, broker: int, request: Any, version: int) -> Any:
    process = inside(cluster).processes[broker].zk_broker
    assert process is not None
    [respond] = process.apis.on_request("client", request, version, 0)
    assert isinstance(respond, Respond)
    return respond.response


@pytest.mark.parametrize("level", ["2.6", "2.7-IV2", "3.9"])
def test_every_broker_shows_isr_offline_replicas_and_controller(level: str) -> None:
    config = {"zookeeper.session.timeout.ms": 20_000, "replica.lag.time.max.ms": 4_000}
    with MiniCluster(
        mode="zookeeper", inter_broker_protocol=level, seed=3, config=config
    ) as cluster:
        orders = cluster.create_topic("orders", replicas=3)
        leader, follower = orders[0].leader, orders[0].followers[0]
        assert leader is not None
        cluster.cut(follower, leader, api="Fetch")
        cluster.produce("orders", count=2, acks=1)
        cluster.wait_until(lambda: follower not in orders[0].isr, within="30s")
        cluster.run_for("15s")  # the notification of a leader below 2.7-IV2
        for broker in (1, 2, 3):
            response = of_client(cluster, broker, m.MetadataRequest(topics=None), 12)
            [topic] = response.topics
            assert set(topic.partitions[0].isr_nodes) == {1, 2, 3} - {follower.id}
            assert topic.partitions[0].offline_replicas == ()
            assert (topic.topic_id == ZERO_UUID) is (level != "3.9")
            assert response.controller_id == cluster.active_controller
            described = of_client(cluster, broker, m.DescribeClusterRequest(), 1)
            assert described.controller_id == cluster.active_controller
            versions = of_client(cluster, broker, m.ApiVersionsRequest(), 2)
            assert versions.finalized_features == ()
            assert versions.finalized_features_epoch == (-1 if level == "2.6" else 0)
        dead = next(n for n in (1, 2, 3) if n not in (leader, cluster.active_controller))
        cluster.kill(dead)
        cluster.wait_until(lambda: cluster.node(dead).is_fenced, within="60s")
        cluster.run_for("5s")
        [topic] = of_client(cluster, leader.id, m.MetadataRequest(topics=None), 12).topics
        assert topic.partitions[0].offline_replicas == (dead,)


def test_a_broker_on_zookeeper_describes_no_topic_partitions() -> None:
    topic = m.DescribeTopicPartitionsRequest.TopicRequest(name="orders")
    request = m.DescribeTopicPartitionsRequest(topics=(topic,))
    [refused] = refusal_of(request, 0, is_controller=True).topics
    assert (refused.name, refused.error_code) == ("orders", ErrorCode.UNSUPPORTED_VERSION)
    refusal = refusal_of(m.ListConfigResourcesRequest(), 0, is_controller=True)
    assert refusal.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_what_is_refused_is_not_advertised() -> None:
    with MiniCluster(mode="zookeeper", seed=3) as cluster:
        advertised = {
            one.api_key for one in of_client(cluster, 1, m.ApiVersionsRequest(), 2).api_keys
        }
    assert m.DescribeTopicPartitionsRequest.api_key not in advertised
    assert m.DescribeQuorumRequest.api_key not in advertised
    for served in (m.CreateTopicsRequest, m.ElectLeadersRequest, m.AlterConfigsRequest):
        assert served.api_key in advertised
