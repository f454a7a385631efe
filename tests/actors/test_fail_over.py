"""The active controller fails: what was pending, what was promised, and how everyone finds on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.actions.records import pause_load
from minicluster.actors.cluster.client import AdminOperation
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.cluster.views import Node
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(seed=5) as built:
        yield built


def active(cluster: MiniCluster) -> Node:
    found = cluster.active_controller
    assert found is not None
    return found


def others(cluster: MiniCluster) -> list[Node]:
    return [node for node in cluster.controllers if node != cluster.active_controller]


def creation(name: str) -> m.CreateTopicsRequest:
    topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=3)
    return m.CreateTopicsRequest(topics=(topic,))


def send_request(cluster: MiniCluster, request: object) -> AdminOperation:
    """Send a request and do not wait for it."""
    operation = AdminOperation(deadline_ms=cluster.now_ms + 60_000, request=request, version=7)
    inside(cluster).own_client.deliver(operation)
    return operation


def errors_of(cluster: MiniCluster, api: str) -> list[str]:
    return [
        ErrorCode(row.response.topics[0].error_code).name
        for row in inside(cluster).recorder.exchanges
        if row.api == api and row.response is not None
    ]


def test_what_is_pending_when_the_active_controller_is_isolated_fails_and_is_done_by_the_next(
    cluster: MiniCluster,
) -> None:
    deposed = active(cluster)
    cluster.partition(deposed, others(cluster))
    pending = send_request(cluster, creation("orders"))
    cluster.run_for("500ms")
    assert not pending.done
    controller = inside(cluster).processes[deposed.id].controller
    assert controller is not None
    assert controller.controller.image.topics.named("orders") is not None  # decided, not committed

    cluster.wait_until(lambda: cluster.active_controller not in (None, deposed), within="10s")
    assert controller.controller.is_active  # no message of the new epoch has reached it
    cluster.heal()
    cluster.wait_until(lambda: not controller.controller.is_active, within="10s")
    cluster.wait_until(lambda: pending.done, within="10s")
    assert errors_of(cluster, "CreateTopics") == ["NOT_CONTROLLER", "NONE"]
    cluster.run_for("2s")
    created = cluster.image.topics.named("orders")
    assert created is not None
    mine = controller.controller.committed_image
    assert mine.topics.named("orders") == created  # the topic of the next controller, not its own
    assert mine.digest() == cluster.image.digest()


def test_a_deposed_controller_gives_up_its_soft_state(cluster: MiniCluster) -> None:
    deposed = active(cluster)
    cluster.partition(deposed, others(cluster), lasting="8s")
    cluster.run_for("10s")
    controller = inside(cluster).processes[deposed.id].controller
    assert controller is not None
    assert controller.controller.state.heartbeats is None
    leader = inside(cluster).processes[active(cluster).id].controller
    assert leader is not None
    assert leader.controller.state.heartbeats is not None


@pytest.mark.parametrize("way", ["kill", "pause", "cut"])
def test_brokers_find_the_next_controller_and_stay_unfenced(cluster: MiniCluster, way: str) -> None:
    orders = cluster.create_topic("orders", min_isr=2)
    load = cluster.produce(orders, rate=10)
    before = active(cluster)
    if way == "kill":
        cluster.kill(before)
    elif way == "pause":
        cluster.pause(before)
    else:
        cluster.isolate(before)
    cluster.wait_until(lambda: cluster.active_controller not in (None, before), within="10s")
    cluster.run_for("20s")
    assert [broker.is_fenced for broker in cluster.brokers] == [False, False, False]
    assert orders.fully_in_sync()
    follower = orders[0].followers[0]
    cluster.kill(follower)  # the next controller sees to sessions and ISRs
    cluster.wait_until(lambda: follower.is_fenced, within="20s")
    assert follower not in orders[0].isr
    pause_load(inside(cluster))
    cluster.run_for("1s")
    assert sum(not operation.ok for operation in load if operation.done) == 0


def test_an_isr_change_that_the_lost_controller_held_is_made_by_the_next(
    cluster: MiniCluster,
) -> None:
    orders = cluster.create_topic("orders", min_isr=2)
    cluster.produce(orders, rate=10)
    follower = orders[0].followers[0]
    deposed = active(cluster)
    cluster.cut(deposed, others(cluster), both=True)  # brokers still reach it; it cannot commit
    cluster.cut(follower, orders[0].leader, api="Fetch")
    cluster.wait_until(lambda: follower not in orders[0].isr, within="60s")
    assert active(cluster) != deposed
    cluster.heal()
    cluster.wait_until(orders.fully_in_sync, within="60s")
    assert orders[0].leader_epoch == 0


def test_fail_over_kills_the_active_controller_and_brings_it_back_as_a_follower(
    cluster: MiniCluster,
) -> None:
    before = active(cluster)
    cluster.fail_over()
    assert before.is_running
    assert active(cluster) != before
    cluster.run_for("3s")
    assert active(cluster) != before
    disks = inside(cluster).disks
    logs = [disks[node.id].logs["__cluster_metadata-0"] for node in cluster.controllers]
    assert max(log.end_offset for log in logs) - min(log.end_offset for log in logs) <= 1


def test_the_only_controller_comes_back_by_itself() -> None:
    with MiniCluster(controllers=1, brokers=2, seed=3) as cluster:
        cluster.create_topic("orders", replicas=2)
        cluster.fail_over()
        cluster.wait_until(lambda: cluster.active_controller is not None, within="10s")
        cluster.run_for("10s")
        assert inside(cluster).all_unfenced()
        assert cluster.topic("orders").fully_in_sync()


def test_a_controller_that_resigns_makes_place_for_another_epoch(cluster: MiniCluster) -> None:
    controller = inside(cluster).processes[active(cluster).id].controller
    assert controller is not None
    epoch = controller.quorum.epoch
    cluster.resign()
    cluster.wait_until(lambda: controller.quorum.epoch > epoch, within="10s")
    cluster.wait_until(lambda: cluster.active_controller is not None, within="10s")
    cluster.create_topic("orders")


def test_without_a_majority_there_is_no_response_and_all_goes_on_afterwards(
    cluster: MiniCluster,
) -> None:
    cluster.kill(others(cluster))
    pending = send_request(cluster, creation("orders"))
    cluster.run_for("20s")
    assert not pending.done
    assert cluster.image.topics.named("orders") is None
    cluster.restart([node for node in cluster.controllers if not node.is_running])
    cluster.wait_until(lambda: pending.done, within="20s")
    assert pending.failure is None
    cluster.run_for("1s")
    assert cluster.image.topics.named("orders") is not None


def test_a_majority_that_loses_its_unflushed_tail_loses_nothing_committed(
    cluster: MiniCluster,
) -> None:
    cluster.create_topic("orders")
    offset = inside(cluster).committed.offset
    cluster.kill(cluster.controllers, lose_tail="unflushed")
    cluster.restart(cluster.controllers)
    cluster.wait_until(lambda: cluster.active_controller is not None, within="10s")
    cluster.run_for("2s")
    assert inside(cluster).committed.offset > offset
    for node in cluster.controllers:
        controller = inside(cluster).processes[node.id].controller
        assert controller is not None
        assert controller.controller.committed_image.topics.named("orders") is not None


def test_a_disk_that_lies_loses_what_was_committed_with_its_majority() -> None:
    with MiniCluster(seed=5, brokers=1) as cluster:
        cluster.flush_off(cluster.controllers)
        disks = inside(cluster).disks
        ends = [disks[n.id].logs["__cluster_metadata-0"].end_offset for n in cluster.controllers]
        cluster.run_for("5s")
        cluster.kill(cluster.controllers, lose_tail="unflushed")
        left = [disks[n.id].logs["__cluster_metadata-0"].end_offset for n in cluster.controllers]
        assert left == ends
        assert inside(cluster).committed.offset > max(ends)


def test_a_controller_on_a_slow_disk_is_late_and_the_quorum_goes_on(cluster: MiniCluster) -> None:
    slow = others(cluster)[0]
    cluster.slow_disk(slow, "300ms", lasting="20s")
    cluster.create_topic("orders", within="2s")
    cluster.run_for("10s")
    log = inside(cluster).disks[slow.id].logs["__cluster_metadata-0"]
    assert inside(cluster).committed.offset - log.end_offset < 10
    cluster.run_for("15s")
    assert inside(cluster).disks[slow.id].write_ms == 0
    assert abs(inside(cluster).committed.offset + 1 - log.end_offset) <= 1


def test_a_leader_on_a_slow_disk_responds_as_late_as_it_writes(cluster: MiniCluster) -> None:
    cluster.slow_disk(active(cluster), "400ms")
    began_ms = cluster.now_ms
    cluster.create_topic("orders")
    assert cluster.now_ms - began_ms >= 400
