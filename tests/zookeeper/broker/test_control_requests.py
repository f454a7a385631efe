"""LeaderAndIsr whose leader is not alive, or which is for an earlier process of the broker."""

from __future__ import annotations

from uuid import UUID

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.metadata.image.partition import NO_LEADER, PartitionRegistration
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.zookeeper.broker.control_requests import ControlRequests
from minicluster.zookeeper.controller.settings import ReleaseRules

ORDERS = UUID(int=7)


def alive(*brokers: int) -> UpdateMetadataRequest:
    live = tuple(UpdateMetadataRequest.UpdateMetadataBroker(id=n) for n in brokers)
    return UpdateMetadataRequest(
        controller_id=1, controller_epoch=1, broker_epoch=9, live_brokers=live
    )


def leading(leader: int, leader_epoch: int, topic_id: UUID = ORDERS) -> LeaderAndIsrRequest:
    """A LeaderAndIsr of replicas 1, 2, 3."""
    state = LeaderAndIsrRequest.LeaderAndIsrPartitionState(
        partition_index=0, leader=leader, leader_epoch=leader_epoch, isr=(leader,),
        partition_epoch=leader_epoch, replicas=(1, 2, 3),
    )  # fmt: skip
    topic = LeaderAndIsrRequest.LeaderAndIsrTopicState(
        topic_name="orders", topic_id=topic_id, partition_states=(state,)
    )
    return LeaderAndIsrRequest(
        controller_id=1, controller_epoch=1, broker_epoch=9, topic_states=(topic,)
    )


def led(
    requests: ControlRequests, leader: int, leader_epoch: int, topic_id: UUID = ORDERS
) -> ErrorCode:
    """The outcome of a LeaderAndIsr v7 for broker 1."""
    request = leading(leader, leader_epoch, topic_id)
    response = requests.leader_and_isr(request, 7, lambda _: False)
    return ErrorCode(response.topics[0].partition_errors[0].error_code)


def held(requests: ControlRequests) -> PartitionRegistration:
    topic = requests.image.topics.named("orders")
    assert topic is not None
    return topic.partitions[0]


def test_a_leader_that_is_not_alive_is_followed_once_it_is() -> None:
    """The log is there from the first request on; the leader epoch is taken with the leader."""
    requests = ControlRequests(1)
    assert led(requests, 3, 1) is ErrorCode.NONE
    assert (held(requests).leader, held(requests).leader_epoch) == (NO_LEADER, -1)
    requests.update_metadata(alive(1, 2, 3))
    assert led(requests, 3, 1) is ErrorCode.NONE
    assert (held(requests).leader, held(requests).leader_epoch) == (3, 1)
    assert led(requests, 3, 1) is ErrorCode.STALE_CONTROLLER_EPOCH


def test_a_leader_that_is_not_alive_ends_no_leadership() -> None:
    requests = ControlRequests(1)
    requests.update_metadata(alive(1, 2))
    assert led(requests, 1, 1) is ErrorCode.NONE
    for leader in (3, NO_LEADER):
        assert led(requests, leader, 2) is ErrorCode.NONE
        assert (held(requests).leader, held(requests).leader_epoch) == (1, 1)
    assert led(requests, 2, 2) is ErrorCode.NONE
    assert held(requests).leader == 2


def test_a_topic_id_is_taken_in_the_same_leader_epoch() -> None:
    """The levels of the brokers have changed. Source:  ReplicaManager.becomeLeaderOrFollower."""
    requests = ControlRequests(1)
    requests.update_metadata(alive(1, 2))
    assert led(requests, 1, 1, ZERO_UUID) is ErrorCode.NONE
    assert led(requests, 1, 1, ZERO_UUID) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert led(requests, 1, 1) is ErrorCode.NONE
    assert led(requests, 1, 1) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert led(requests, 1, 2, UUID(int=8)) is ErrorCode.INCONSISTENT_TOPIC_ID
    assert led(requests, 1, 1, ZERO_UUID) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert led(requests, 2, 1, ZERO_UUID) is ErrorCode.NONE


def test_a_request_whose_configs_could_not_be_read_changes_nothing() -> None:
    """The session expired while a broker was paused (`deposed-1` of the run mixed-3.2)."""
    requests = ControlRequests(1)
    response = requests.leader_and_isr_failed(leading(1, 1), 7)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    (topic,) = response.topics
    assert [one.error_code for one in topic.partition_errors] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert requests.image.topics.named("orders") is None
    assert requests.controller_epoch == 1


@pytest.mark.parametrize(
    ("release", "same_epoch"),
    [("3.3", ErrorCode.FENCED_LEADER_EPOCH), ("3.4.0", ErrorCode.FENCED_LEADER_EPOCH),
     ("3.4.1", ErrorCode.NONE), ("3.4", ErrorCode.NONE), ("3.5", ErrorCode.NONE)],
)  # fmt: skip
def test_a_replica_is_stopped_in_its_own_leader_epoch(release: str, same_epoch: ErrorCode) -> None:
    """Since 3.4.1 (KAFKA-13972), so that a cancelled reassignment removes what it had added."""
    requests = ControlRequests(1, ReleaseRules.of(release))
    assert led(requests, 1, 5) is ErrorCode.NONE
    for epoch, expected in ((4, ErrorCode.FENCED_LEADER_EPOCH), (5, same_epoch)):
        state = StopReplicaRequest.StopReplicaPartitionState(partition_index=0, leader_epoch=epoch)
        topic = StopReplicaRequest.StopReplicaTopicState(
            topic_name="orders", partition_states=(state,)
        )
        request = StopReplicaRequest(
            controller_id=1, controller_epoch=1, broker_epoch=9, topic_states=(topic,)
        )
        response, _ = requests.stop_replica(request, lambda _: False)
        assert [one.error_code for one in response.partition_errors] == [expected]


def test_a_request_for_the_process_before_is_not_taken() -> None:
    """A broker that starts again takes requests once it is registered: by then they are stale."""
    with MiniCluster(mode="zookeeper", seed=3) as cluster:
        other = next(n for n in cluster.brokers if n != cluster.active_controller)
        cluster.run_for("1s")  # nothing else waits in the controller's channel to it
        cluster.kill(other)
        first = next(n.id for n in cluster.brokers if n != other)
        orders = cluster.create_topic("orders", assignment=[[first, other.id]], within="5s")
        cluster.run_for("2s")
        cluster.restart(other)
        cluster.run_for("30s")  # the session before ends
        cluster.wait_until(orders.fully_in_sync, within="30s")
        requests = [
            (one["error"], one["handled_ms"])
            for one in inside(cluster).recorder.table("rpc")
            if one["api"] == "LeaderAndIsr" and one["dst"] == other.id
        ]
        errors = [error for error, handled_ms in requests if handled_ms is not None]
        assert errors[0] == ErrorCode.STALE_BROKER_EPOCH.name
        assert errors[-1] == ErrorCode.NONE.name


def test_a_new_partition_in_leader_epoch_minus_one_fails_the_whole_request() -> None:
    """It has that epoch before its first one, so Kafka expects a log that is to get its id.

    Source:  kafka.server.ReplicaManager.becomeLeaderOrFollower, localLogOrException.
    """
    requests = ControlRequests(1)
    requests.update_metadata(alive(1, 2, 3))
    response = requests.leader_and_isr(leading(2, -1), 7, lambda _: False)
    assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert led(requests, 2, -1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert requests.image.topics.named("orders") is None
    assert led(requests, 2, -1, ZERO_UUID) is ErrorCode.STALE_CONTROLLER_EPOCH  # and no log either
    assert led(requests, 2, -2) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert led(requests, 2, 0) is ErrorCode.NONE
