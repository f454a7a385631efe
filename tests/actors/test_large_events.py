"""While the controller is in the midst of a large event, its node serves the quorum and reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.network import Completion
from minicluster.actors.nodes import quorum_controller
from minicluster.actors.nodes.quorum_controller import QuorumController
from minicluster.actors.recording.exchange import OWN_CLIENT
from minicluster.controller.machine import ControllerMachine
from minicluster.effects import Continue
from minicluster.metadata.image import folded_run
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m

PARTITIONS = 30
SIZE = 10  # of a part in these stories, in elements
PART_MS = 500


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = partial(ControllerMachine, elements_per_part=SIZE)
    monkeypatch.setattr(quorum_controller, "ControllerMachine", machine)
    monkeypatch.setattr(folded_run, "RECORDS_MAX", SIZE)


class Client:
    """It keeps the responses in the order in which they come."""

    def __init__(self, cluster: MiniCluster) -> None:
        self.cluster = cluster
        self.responses: list[Any] = []

    def deliver(self, completion: Completion) -> None:
        self.responses.append(completion.response)

    def send(self, to: int, request: Any, version: int | None = None) -> None:
        if version is None:
            version = type(request).latest_version
        inside(self.cluster).network.request(
            src=OWN_CLIENT, dst=to, body=request, version=version, caller=self, client_id="app"
        )

    def wait(self, count: int) -> list[Any]:
        self.cluster.wait_until(lambda: len(self.responses) >= count, within="30s")
        return self.responses


def creation(name: str, partitions: int) -> m.CreateTopicsRequest:
    topic = m.CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1
    )
    return m.CreateTopicsRequest(topics=(topic,), timeout_ms=30_000)


def description_of_quorum() -> m.DescribeQuorumRequest:
    kind = m.DescribeQuorumRequest
    partition = kind.PartitionData(partition_index=0)
    return kind(topics=(kind.TopicData(topic_name="__cluster_metadata", partitions=(partition,)),))


def active(cluster: MiniCluster) -> QuorumController:
    return next(
        process.controller
        for process in inside(cluster).processes.values()
        if process.controller is not None and process.controller.controller.is_active
    )


@pytest.fixture
def at_part(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], None]], None]:
    """Do something when a large event of any controller is at a part."""

    def arrange(number: int, act: Callable[[], None]) -> None:
        on_receive, seen = QuorumController.on_receive, [0]

        def counted(actor: QuorumController, message: Any) -> Any:
            if isinstance(message, Continue) and actor.controller.is_deciding:
                seen[0] += 1
                if seen[0] == number:
                    act()
            return on_receive(actor, message)

        monkeypatch.setattr(QuorumController, "on_receive", counted)

    return arrange


def errors(response: m.CreateTopicsResponse) -> list[int]:
    return [topic.error_code for topic in response.topics]


def test_reads_come_between_two_parts_and_other_events_wait_in_order() -> None:
    with MiniCluster(brokers=1, controllers=3, seed=4, online=False) as cluster:
        cluster.wait_until(lambda: not cluster.node(1).is_fenced)
        client, leader = Client(cluster), active(cluster).node_id
        client.send(leader, creation("wide", PARTITIONS))
        client.send(leader, creation("small", 1))
        client.send(leader, creation("wide", 1))
        client.send(leader, description_of_quorum())
        client.send(leader, m.DescribeClusterRequest(endpoint_type=2))
        read, described, *created = client.wait(5)
        assert read.topics[0].partitions[0].leader_id == leader
        assert described.controller_id == leader
        assert [errors(response) for response in created] == [
            [ErrorCode.NONE], [ErrorCode.NONE], [ErrorCode.TOPIC_ALREADY_EXISTS]
        ]  # fmt: skip
        names = [response.topics[0].name for response in created]
        assert names == ["wide", "small", "wide"]


@pytest.fixture
def slow_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part takes half a second of the cluster's time, as on a busy machine."""
    interpreters = QuorumController.interpreters

    def slow(actor: QuorumController) -> Any:
        def later(work: Continue) -> None:
            actor.rt.post(actor.rt.now_ms + PART_MS, actor.deliver, work)

        return {**interpreters(actor), Continue: later}

    monkeypatch.setattr(QuorumController, "interpreters", slow)


@pytest.mark.usefixtures("slow_parts")
def test_an_event_longer_than_all_timeouts_deposes_no_leader_and_fences_no_broker() -> None:
    with MiniCluster(brokers=2, controllers=3, seed=4, online=False) as cluster:
        cluster.wait_until(lambda: not any(cluster.node(n).is_fenced for n in (1, 2)))
        client, controller = Client(cluster), active(cluster)
        epoch, fenced = controller.quorum.epoch, 0
        client.send(controller.node_id, creation("wide", 4 * PARTITIONS))
        client.send(controller.node_id, replace(creation("late", 1), timeout_ms=5_000))
        cluster.run_for("1s")
        begun = cluster.now_ms
        while controller.controller.is_deciding:
            cluster.run_for("100ms")
            fenced += any(cluster.node(n).is_fenced for n in (1, 2))
        assert cluster.now_ms - begun > 12_000  # sessions last 9 s, fetches of voters 2
        late, created = client.wait(2)  # which waits for its commit
        assert errors(created) == [ErrorCode.NONE]
        assert errors(late) == [ErrorCode.REQUEST_TIMED_OUT]
        cluster.run_for("10s")
        assert active(cluster) is controller and controller.quorum.epoch == epoch
        assert not fenced and not any(cluster.node(n).is_fenced for n in (1, 2))
        assert cluster.verify(engine="process").valid


@pytest.mark.usefixtures("slow_parts")
def test_a_voter_that_is_removed_in_the_midst_moves_the_records_of_the_event() -> None:
    with MiniCluster(
        brokers=1, controllers=3, seed=4, online=False, config={"kraft.version": 1}
    ) as cluster:
        cluster.wait_until(lambda: not cluster.node(1).is_fenced)
        client, controller = Client(cluster), active(cluster)
        client.send(controller.node_id, creation("wide", PARTITIONS))
        while len(controller.controller.image.topics) == 0:  # until it is applied in part
            cluster.run_for("100ms")
        assert controller.controller.is_deciding
        before = controller.controller.next_offset
        removed = next(n for n in controller.plan.voter_ids if n != controller.node_id)
        cluster.remove_voter(removed)
        assert controller.controller.is_deciding and controller.controller.next_offset > before
        assert errors(client.wait(1)[0]) == [ErrorCode.NONE]
        assert active(cluster) is controller
        cluster.run_for("10s")
        assert cluster.verify(engine="process").valid


def change_of_leader(cluster: MiniCluster, controller: QuorumController) -> None:
    """Another voter has begun the next epoch, and announces it."""
    quorum = controller.quorum
    other = next(n for n in controller.plan.voter_ids if n != controller.node_id)
    kind = m.BeginQuorumEpochRequest
    endpoint = controller.plan.endpoint(other)
    partition = kind.PartitionData(
        partition_index=0, leader_id=other, leader_epoch=quorum.epoch + 1
    )
    topic = kind.TopicData(topic_name="__cluster_metadata", partitions=(partition,))
    leader = kind.LeaderEndpoint(name=endpoint.name, host=endpoint.host, port=endpoint.port)
    request = kind(
        cluster_id=controller.plan.cluster_id, topics=(topic,), leader_endpoints=(leader,)
    )
    Client(cluster).send(controller.node_id, request)


def resignation(cluster: MiniCluster, controller: QuorumController) -> None:
    controller.quorum.resign(controller.quorum.epoch)
    controller.drive(controller.quorum.poll(controller.now()))


@pytest.mark.parametrize("loss", [change_of_leader, resignation])
def test_with_the_leadership_a_large_event_ends_and_those_that_wait_with_it(
    at_part: Any, loss: Callable[[MiniCluster, QuorumController], None]
) -> None:
    with MiniCluster(brokers=1, controllers=3, seed=4, online=False) as cluster:
        cluster.wait_until(lambda: not cluster.node(1).is_fenced)
        client, controller = Client(cluster), active(cluster)
        at_part(3, lambda: loss(cluster, controller))
        client.send(controller.node_id, creation("wide", PARTITIONS))
        client.send(controller.node_id, creation("small", 1))
        client.send(controller.node_id, creation("other", PARTITIONS))
        created = client.wait(3)
        assert [errors(response) for response in created] == [[ErrorCode.NOT_CONTROLLER]] * 3
        cluster.run_for("20s")
        assert "wide" not in active(cluster).controller.image.topics.ids_by_name
        topic = cluster.create_topic("wide", partitions=PARTITIONS, replicas=1)
        cluster.wait_until(topic.fully_in_sync, within="60s")
        assert cluster.verify(engine="process").valid


def test_a_controller_that_crashes_in_the_midst_leaves_nothing_of_its_event(at_part: Any) -> None:
    with MiniCluster(brokers=1, controllers=3, seed=4, online=False) as cluster:
        cluster.wait_until(lambda: not cluster.node(1).is_fenced)
        client, controller = Client(cluster), active(cluster)
        at_part(3, lambda: inside(cluster).rt.pause((controller.name,)))
        client.send(controller.node_id, creation("wide", PARTITIONS))
        cluster.run_for("1s")
        assert controller.controller.is_deciding
        cluster.kill(cluster.node(controller.node_id))
        cluster.run_for("20s")
        assert "wide" not in active(cluster).controller.image.topics.ids_by_name


def test_a_cluster_whose_events_are_all_in_parts_lives_as_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = partial(ControllerMachine, elements_per_part=1)
    monkeypatch.setattr(quorum_controller, "ControllerMachine", machine)
    with MiniCluster(brokers=3, controllers=3, seed=7) as cluster:
        orders = cluster.create_topic("orders", partitions=6, replicas=3, min_isr=2)
        cluster.wait_until(orders.fully_in_sync, within="60s")
        for number in range(6):
            cluster.produce(orders, number, count=1)
        broker = cluster.node(1)
        cluster.kill(broker)
        cluster.wait_until(lambda: broker.is_fenced, within="60s")
        cluster.restart(broker)
        cluster.controlled_shutdown(cluster.node(2))
        cluster.wait_until(lambda: cluster.node(2).is_fenced, within="60s")
        cluster.restart(cluster.node(2))
        cluster.wait_until(orders.fully_in_sync, within="60s")
        assert cluster.verify(engine="process").valid
