"""The network's effect on packets: order, delay, loss, duplicates, holds, dead nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from minicluster.actors.links import Condition, Kind, Packet
from minicluster.actors.network import Completion, Network
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.protocol.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)

RESPONSES: dict[type, Any] = {
    AlterPartitionRequest: AlterPartitionResponse,
    BrokerHeartbeatRequest: BrokerHeartbeatResponse,
}


class Peer(ClusterActor):
    """Responds to every request at once and keeps all that it receives."""

    def __init__(self, node: int, world: World) -> None:
        super().__init__()
        self.node, self.world = node, world
        self.requests: list[Any] = []
        self.responses: list[tuple[int, Any, str | None]] = []
        self.silent = False

    def request(
        self, dst: int, epoch: int, *, heartbeat: bool = False, timeout_ms: int = 1_000
    ) -> None:
        body: Any = (
            BrokerHeartbeatRequest(broker_id=self.node, broker_epoch=epoch)
            if heartbeat
            else AlterPartitionRequest(broker_id=self.node, broker_epoch=epoch)
        )
        self.world.network.request(
            src=self.node,
            dst=dst,
            body=body,
            version=1 if heartbeat else 3,
            caller=self,
            timeout_ms=timeout_ms,
            context=epoch,
        )

    def on_receive(self, message: Any) -> None:
        if isinstance(message, Packet):
            self.world.network.handling(message)
            self.requests.append(message.body)
            if not self.silent:
                self.world.network.respond(message, RESPONSES[type(message.body)]())
        elif isinstance(message, Completion):
            self.responses.append((message.exchange.context, message.response, message.failure))


class World:
    """Two nodes, 1 and 2, and the network between them."""

    def __init__(self, seed: int = 1, wire: bool = False) -> None:
        self.rt = SimulatedRuntime(seed=seed)
        self.recorder = Recorder("run", self.rt)
        self.network = Network(self.rt, self.recorder, base_delay_ms=(1, 3), wire=wire)
        self.one, self.two = self.start(1), self.start(2)

    def start(self, node: int) -> Peer:
        self.rt.spawn(Peer, f"node-{node}", node, self)
        actor = self.rt.actor(f"node-{node}")
        assert isinstance(actor, Peer)
        self.network.attach(node, f"incarnation-{node}", lambda _api: actor)
        return actor

    def add(self, kind: Kind, src: int = 1, dst: int = 2, **values: Any) -> Condition:
        return self.network.add(Condition(kind=kind, src=src, dst=dst, **values))

    def received(self) -> list[int]:
        return [body.broker_epoch for body in self.two.requests]


@pytest.fixture
def world() -> Iterator[World]:
    built = World()
    yield built
    built.rt.close()


def test_a_request_gets_a_response_and_both_ways_take_time(world: World) -> None:
    world.one.request(2, 7)
    world.rt.run_for(100)
    [(context, response, failure)] = world.one.responses
    assert (context, failure) == (7, None)
    assert response == AlterPartitionResponse()
    [exchange] = world.recorder.exchanges
    assert exchange.handled_ms is not None and exchange.completed_ms is not None
    assert 1 <= exchange.handled_ms <= 3
    assert 2 <= exchange.completed_ms <= 6
    assert exchange.seq < (exchange.handle_seq or 0) < (exchange.resp_seq or 0)


def test_requests_of_one_api_arrive_in_the_order_of_sending(world: World) -> None:
    for epoch in range(50):
        world.one.request(2, epoch)
    world.rt.run_for(100)
    assert world.received() == list(range(50))


def test_a_request_without_a_response_times_out_once(world: World) -> None:
    world.two.silent = True
    world.one.request(2, 7, timeout_ms=500)
    world.rt.run_for(10_000)
    assert world.one.responses == [(7, None, "timeout")]


def test_a_late_response_is_not_delivered(world: World) -> None:
    world.add("delay", 2, 1, mean_ms=2_000)
    world.one.request(2, 7, timeout_ms=500)
    world.rt.run_for(10_000)
    assert world.received() == [7]
    assert world.one.responses == [(7, None, "timeout")]


def test_a_cut_of_the_way_back_leaves_the_request_done_and_the_response_lost(world: World) -> None:
    world.add("cut", 2, 1)
    world.one.request(2, 7)
    world.rt.run_for(10_000)
    assert world.received() == [7]
    assert world.one.responses == [(7, None, "timeout")]


def test_a_cut_of_one_api_lets_the_others_through(world: World) -> None:
    world.add("cut", apis=("AlterPartition",))
    world.one.request(2, 7)
    world.one.request(2, 8, heartbeat=True)
    world.rt.run_for(10_000)
    assert world.received() == [8]


def test_a_cut_loses_what_is_under_way(world: World) -> None:
    world.add("delay", mean_ms=100)
    world.one.request(2, 7)
    world.rt.run_for(50)
    cut = world.add("cut")
    world.network.lift([cut])
    world.rt.run_for(10_000)
    assert world.received() == []


def test_healing_lets_new_packets_through(world: World) -> None:
    world.add("cut")
    world.add("cut", 2, 1)
    world.network.heal()
    world.one.request(2, 7)
    world.rt.run_for(100)
    assert world.one.responses == [(7, AlterPartitionResponse(), None)]
    assert world.network.conditions == []


def test_held_packets_can_be_seen_and_go_on_in_order_when_released(world: World) -> None:
    hold = world.add("hold")
    for epoch in range(3):
        world.one.request(2, epoch, timeout_ms=60_000)
    world.rt.run_for(5_000)
    assert world.received() == []
    assert [packet.body.broker_epoch for packet in hold.held] == [0, 1, 2]
    world.network.lift([hold])
    world.rt.run_for(100)
    assert world.received() == [0, 1, 2]


def test_a_fixed_delay_is_added_to_every_packet(world: World) -> None:
    world.add("delay", mean_ms=3_000)
    world.one.request(2, 7, timeout_ms=60_000)
    world.rt.run_for(60_000)
    assert 3_001 <= (world.recorder.exchanges[0].handled_ms or 0) <= 3_003


@pytest.mark.parametrize("distribution", ["uniform", "exponential"])
def test_a_drawn_delay_has_its_mean_and_its_least_value(world: World, distribution: Any) -> None:
    world.add("delay", mean_ms=200, min_ms=100, distribution=distribution)
    for number in range(300):
        world.rt.run_for(5_000)
        world.one.request(2, number, timeout_ms=60_000)
    world.rt.run_for(60_000)
    delays = [(e.handled_ms or 0) - e.vt for e in world.recorder.exchanges]
    assert min(delays) >= 101
    assert 180 <= sum(delays) / len(delays) <= 225


def test_loss_takes_about_its_share(world: World) -> None:
    world.add("loss", probability=0.3)
    for epoch in range(500):
        world.one.request(2, epoch)
    world.rt.run_for(10_000)
    assert 100 <= 500 - len(world.two.requests) <= 200
    assert len(world.one.responses) == 500


def test_a_duplicate_is_handled_twice_and_completed_once(world: World) -> None:
    world.add("duplicate")
    world.one.request(2, 7)
    world.rt.run_for(1_000)
    assert world.received() == [7, 7]
    assert len(world.one.responses) == 1


def test_reordering_lets_later_packets_overtake(world: World) -> None:
    world.add("reorder", probability=0.5)
    for epoch in range(50):
        world.one.request(2, epoch)
    world.rt.run_for(1_000)
    assert world.received() != list(range(50))
    assert sorted(world.received()) == list(range(50))


def test_a_caller_of_a_node_that_died_is_disconnected_at_once(world: World) -> None:
    world.two.silent = True
    world.one.request(2, 7, timeout_ms=60_000)
    world.rt.run_for(10)
    world.network.detach(2)
    world.rt.run_for(10)
    assert world.one.responses == [(7, None, "disconnected")]


def test_a_dead_node_refuses_connections(world: World) -> None:
    world.network.detach(2)
    world.one.request(2, 7, timeout_ms=60_000)
    world.rt.run_for(10)
    assert world.one.responses == [(7, None, "disconnected")]


def test_behind_a_cut_nobody_notices_that_a_node_died(world: World) -> None:
    world.two.silent = True
    world.one.request(2, 7, timeout_ms=5_000)
    world.rt.run_for(10)
    world.add("cut", 2, 1)
    world.network.detach(2)
    world.rt.run_for(1_000)
    assert world.one.responses == []
    world.rt.run_for(5_000)
    assert world.one.responses == [(7, None, "timeout")]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_caller_knows_that_a_node_died_as_soon_as_the_cut_ends(
    world: World, restarts: bool
) -> None:
    """The host repeats its FIN, or answers what is sent again with RST."""
    world.two.silent = True
    world.one.request(2, 7, timeout_ms=30_000)
    world.rt.run_for(10)
    cut = world.add("cut", 2, 1)
    world.network.detach(2)
    if restarts:
        world.rt.kill("node-2")
        world.two = world.start(2)
    world.rt.run_for(1_000)
    world.network.lift([cut])
    world.rt.run_for(10)
    assert world.one.responses == [(7, None, "disconnected")]


def test_a_cut_of_the_way_there_does_not_hide_that_a_node_died(world: World) -> None:
    world.two.silent = True
    world.one.request(2, 7, timeout_ms=30_000)
    world.rt.run_for(10)
    world.add("cut", 1, 2)
    world.network.detach(2)
    world.rt.run_for(10)
    assert world.one.responses == [(7, None, "disconnected")]


def test_a_request_to_a_dead_node_behind_a_cut_is_reset_when_both_ways_carry(world: World) -> None:
    world.network.detach(2)
    there, back = world.add("cut", 1, 2), world.add("cut", 2, 1)
    world.one.request(2, 7, timeout_ms=30_000)
    world.rt.run_for(1_000)
    for cut, responses in ((there, []), (back, [(7, None, "disconnected")])):
        world.network.lift([cut])
        world.rt.run_for(1_000)
        assert world.one.responses == responses


def test_a_request_to_a_dead_node_is_reset_though_a_link_loses_it(world: World) -> None:
    world.network.detach(2)
    world.add("loss", 1, 2)
    world.one.request(2, 7, timeout_ms=30_000)
    world.rt.run_for(10)
    assert world.one.responses == [(7, None, "disconnected")]


def test_a_lost_request_to_a_living_node_waits_for_its_timeout(world: World) -> None:
    """Also where the node is paused: its host acknowledges what is sent to it."""
    cut = world.add("cut", 1, 2)
    world.one.request(2, 7, timeout_ms=5_000)
    world.rt.run_for(1_000)
    world.network.lift([cut])
    world.rt.run_for(3_000)
    assert world.one.responses == []
    world.rt.run_for(1_000)
    assert world.one.responses == [(7, None, "timeout")]


def test_a_request_from_before_a_node_started_ends_with_its_process(world: World) -> None:
    world.network.detach(2)
    world.add("delay", mean_ms=100)
    world.one.request(2, 7, timeout_ms=30_000)
    world.rt.kill("node-2")
    world.two = world.start(2)
    world.two.silent = True
    world.rt.run_for(1_000)
    assert world.received() == [7]
    world.network.detach(2)
    world.rt.run_for(10)
    assert world.one.responses == [(7, None, "disconnected")]


def test_a_request_to_a_dead_incarnation_does_not_reach_the_next_one(world: World) -> None:
    world.add("delay", mean_ms=100)
    world.one.request(2, 7, timeout_ms=5_000)
    world.rt.run_for(50)
    world.network.detach(2)
    world.rt.kill("node-2")
    world.two = world.start(2)
    world.rt.run_for(5_000)
    assert world.received() == []


def test_on_the_wire_the_receiver_gets_an_equal_message_of_its_own() -> None:
    world = World(wire=True)
    world.one.request(2, 7)
    world.rt.run_for(100)
    [received] = world.two.requests
    [exchange] = world.recorder.exchanges
    assert received == exchange.request
    assert received is not exchange.request
    world.rt.close()


def test_the_luck_of_a_link_does_not_depend_on_other_links() -> None:
    def times(noise: int) -> list[int | None]:
        world = World(seed=5)
        world.add("loss", probability=0.3)
        world.start(3)
        for number in range(40):
            world.one.request(2, number)
            for _ in range(noise):
                world.one.request(3, 1_000)
        world.rt.run_for(5_000)
        world.rt.close()
        return [e.handled_ms for e in world.recorder.exchanges if e.dst == 2]

    assert times(noise=0) == times(noise=3)
    assert None in times(noise=0)


def test_the_trace_hash_follows_from_seed_and_traffic() -> None:
    def trace_hash(seed: int, requests: int) -> str:
        world = World(seed=seed)
        world.add("loss", probability=0.3)
        for number in range(requests):
            world.one.request(2, number)
        world.rt.run_for(5_000)
        world.rt.close()
        return world.recorder.trace_hash

    assert trace_hash(1, 20) == trace_hash(1, 20)
    assert len({trace_hash(seed, 20) for seed in range(5)} | {trace_hash(1, 21)}) == 6


def test_events_read_as_lines_with_time_who_and_what(world: World) -> None:
    world.one.request(2, 7)
    world.rt.run_for(100)
    lines = world.recorder.last_events()
    assert "AlterPartition#1 1>2" in lines[0]
    assert "broker_epoch=7" in lines[0]
    assert [line.split()[2] for line in lines] == ["request", "response"]
