"""Kafka's clients as nodes of the network: a fault of their links, and their connections."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.play.player import play_once
from minicluster.errors import UserError
from minicluster.log.batch import Record, RecordBatch
from minicluster.log.records import Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    FetchRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from minicluster.scenario import ScenarioError, parse_scenario
from minicluster.scenario.reading import scenario_of
from tests.listeners.raw_client import LIMIT_S, RawClient

METADATA = MetadataRequest(topics=())
VERSION = 9


@pytest.fixture(params=["threaded", "simulated"])
def cluster(request: pytest.FixtureRequest) -> Iterator[MiniCluster]:
    with MiniCluster(seed=3, brokers=2, controllers=1, listeners=True, runtime=request.param) as c:
        yield c


def produce_one(topic: str, value: bytes) -> ProduceRequest:
    batch = RecordBatch.of([Record(0, 0, None, value)], leader_epoch=-1)
    partition = ProduceRequest.PartitionProduceData(index=0, records=Records((batch,)))
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=(partition,))
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=(data,))


def has_response(client: RawClient) -> bool:
    return isinstance(client.request(METADATA, VERSION), MetadataResponse)


def test_a_client_is_a_node_by_its_client_id(cluster: MiniCluster) -> None:
    later = cluster.client("app-2")
    with RawClient(cluster, 1, "app-1") as app:
        assert has_response(app)
        assert cluster.clients == (cluster.client("app-1"),)
        assert cluster.client("app-1").is_connected
        assert repr(cluster.clients[0]) == "client app-1"
        assert not later.is_connected
    cluster.wait_until(lambda: not cluster.client("app-1").is_connected, within="60s")


@pytest.mark.parametrize("direction", ["requests", "responses"])
def test_a_cut_makes_a_connection_silent_and_what_it_stopped_arrives_after_it(
    cluster: MiniCluster, direction: str
) -> None:
    orders = cluster.create_topic("orders", replicas=1)
    leader = orders[0].leader
    assert leader is not None
    cluster.wait_until(lambda: orders[0].high_watermark == 0, within="60s")  # it leads
    with RawClient(cluster, leader.id, "app-1") as app, RawClient(cluster, leader.id, "b") as other:
        assert has_response(app)
        ends = ("client(app-1)", leader) if direction == "requests" else (leader, "client(app-1)")
        cluster.cut(*ends)
        app.send(produce_one("orders", b"late"), VERSION)
        assert app.is_silent()
        if direction == "requests":
            assert orders[0].high_watermark == 0
        else:
            cluster.wait_until(lambda: orders[0].high_watermark == 1)
            assert app.is_silent()
        assert has_response(other)  # the links of other clients work
        cluster.heal()
        assert app.receive().responses[0].partition_responses[0].base_offset == 0
        assert has_response(app)
        assert orders[0].high_watermark == 1


def test_a_cut_may_be_there_before_its_client(cluster: MiniCluster) -> None:
    cluster.cut(cluster.client("app-1"), cluster.brokers, both=True)
    with RawClient(cluster, 1, "app-1") as app:
        app.send(METADATA, VERSION)
        assert app.is_silent()
        cluster.heal()
        assert app.receive().cluster_id


def test_a_cut_of_one_api_lets_the_others_pass(cluster: MiniCluster) -> None:
    cluster.create_topic("orders", replicas=1)
    with RawClient(cluster, 1, "app-1") as app:
        assert has_response(app)
        cluster.hold("clients", cluster.brokers, api="Produce")
        assert has_response(app)
        app.send(produce_one("orders", b"held"), VERSION)
        assert app.is_silent()
        cluster.wait_until(lambda: cluster.held("clients"))
        [held] = cluster.held("clients")
        assert isinstance(held, ProduceRequest)
        cluster.release()
        assert app.receive().responses


def test_a_delay_is_that_of_the_client_alone(cluster: MiniCluster) -> None:
    with ExitStack() as clients:
        names = ("slow", "slower", "quick")
        slow, slower, quick = (clients.enter_context(RawClient(cluster, 1, name)) for name in names)
        assert has_response(slow) and has_response(slower)
        cluster.delay("client(slow)", cluster.brokers, mean="300ms", distribution="fixed")
        cluster.delay("client(slower)", cluster.brokers, mean="1h", distribution="fixed")
        slower.send(METADATA, VERSION)
        began_s = time.monotonic()
        assert has_response(slow)
        assert time.monotonic() - began_s >= 0.28
        assert has_response(quick)  # within a minute: it has neither delay
        assert slower.is_silent()


@pytest.mark.parametrize("ends", [("clients", "brokers"), ("brokers", "clients")])
def test_a_loss_ends_the_connection(cluster: MiniCluster, ends: tuple[str, str]) -> None:
    with RawClient(cluster, 1, "app-1") as app:
        assert has_response(app)
        cluster.loss(*ends, p=1)
        app.send(METADATA, VERSION)
        with pytest.raises(ConnectionResetError):
            app.receive()
    cluster.heal()
    with RawClient(cluster, 1, "app-1") as again:
        assert has_response(again)


def test_a_paused_client_sends_and_receives_nothing(cluster: MiniCluster) -> None:
    with RawClient(cluster, 1, "app-1") as app:
        assert has_response(app)
        cluster.pause("client(app-1)")
        app.send(METADATA, VERSION)
        assert app.is_silent()
        cluster.heal()  # a pause is no fault of the network
        assert app.is_silent()
        cluster.resume("client(app-1)")
        assert app.receive().cluster_id


def test_the_connections_of_a_paused_broker_stay_open_and_silent(cluster: MiniCluster) -> None:
    with RawClient(cluster, 1, "app-1") as app:
        assert has_response(app)
        cluster.pause(1)
        app.send(METADATA, VERSION)
        with RawClient(cluster, 1, "app-2") as late:
            late.send(METADATA, VERSION)
            assert app.is_silent()
            assert late.is_silent()
            cluster.resume(1)
            assert app.receive().cluster_id
            assert late.receive().cluster_id


@pytest.mark.parametrize(("connections", "end"), [("close", EOFError), ("reset", OSError)])
def test_the_connections_of_a_killed_broker_end_as_wanted(
    cluster: MiniCluster, connections: str, end: type[Exception]
) -> None:
    with RawClient(cluster, 1, "idle") as idle, RawClient(cluster, 1, "busy") as busy:
        assert has_response(idle)
        cluster.pause(1)
        listeners = inside(cluster).listeners
        assert listeners is not None
        before = listeners.requests
        busy.send(METADATA, VERSION)
        cluster.wait_until(lambda: listeners.requests > before)  # bytes that nobody read: RST
        assert busy.is_silent()
        cluster.kill(1, connections=connections)
        for client in (idle, busy):
            with pytest.raises(end):
                client.receive()


def test_the_end_of_a_broker_is_not_seen_behind_a_cut(cluster: MiniCluster) -> None:
    with RawClient(cluster, 1, "app-1") as app, RawClient(cluster, 1, "app-2") as other:
        assert has_response(app) and has_response(other)
        cluster.cut(cluster.brokers, "client(app-1)")
        cluster.kill(1)
        with pytest.raises(EOFError):
            other.receive()
        assert app.is_silent()
        cluster.restart(1)
        app.send(METADATA, VERSION)
        assert app.is_silent()
        cluster.heal()
        with pytest.raises(OSError):
            app.receive()


def test_a_request_to_a_broker_that_died_does_not_reach_the_next_process(
    cluster: MiniCluster,
) -> None:
    """It is sent again when the cut ends, and the restarted host answers it with RST."""
    orders = cluster.create_topic("orders", replicas=1)
    with RawClient(cluster, 1, "app-1") as app:
        assert has_response(app)
        cluster.cut("client(app-1)", cluster.brokers, both=True)
        app.send(produce_one("orders", b"late"), VERSION)
        assert app.is_silent()
        cluster.bounce(1, down="100ms")
        cluster.wait_until(lambda: orders[0].high_watermark == 0)
        cluster.heal()
        with pytest.raises(OSError):
            app.receive()
        assert orders[0].high_watermark == 0


def test_a_client_is_no_process_and_its_connections_keep_their_order(cluster: MiniCluster) -> None:
    app = cluster.client("app-1")
    for action in (cluster.kill, cluster.restart, cluster.wipe):
        with pytest.raises(UserError, match="client app-1 is not a process of the cluster"):
            action(app)
    with pytest.raises(UserError, match="client app-1 has connections of TCP"):
        cluster.duplicate(app, 1, p=1)
    with pytest.raises(UserError, match="client app-1 has connections of TCP"):
        cluster.reorder(1, app, p=1)


def test_a_producer_goes_on_after_its_connections_were_lost(cluster: MiniCluster) -> None:
    orders = cluster.create_topic("orders", replicas=2)
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "client.id": "app-1",
        "acks": "all",
        "enable.idempotence": True,
        "reconnect.backoff.max.ms": 100,
    }
    producer = confluent_kafka.Producer(settings)
    producer.produce("orders", "first", partition=0)
    assert producer.flush(LIMIT_S) == 0
    cluster.loss("client(app-1)", cluster.brokers, p=0.5)
    for n in range(20):
        producer.produce("orders", f"order {n}", partition=0)
        producer.poll(0.02)
    cluster.heal()
    assert producer.flush(LIMIT_S) == 0
    assert orders[0].high_watermark == 21


def test_the_trace_has_the_requests_of_clients(cluster: MiniCluster, tmp_path: Path) -> None:
    with RawClient(cluster, 1, "app-1") as app, RawClient(cluster, 2, "app-1") as second:
        assert has_response(app) and has_response(second) and has_response(app)
        exchanges = inside(cluster).recorder.table("rpc")
        rows = [row for row in exchanges if row["client_id"] is not None]
    assert [(r["client_id"], r["api"], r["version"], r["dst"]) for r in rows] == [
        ("app-1", "Metadata", VERSION, 1),
        ("app-1", "Metadata", VERSION, 2),
        ("app-1", "Metadata", VERSION, 1),
    ]
    assert rows[0]["connection"] == rows[2]["connection"] != rows[1]["connection"]
    assert all(r["sent_ms"] <= r["handled_ms"] <= r["completed_ms"] for r in rows)
    assert all(r["src"] == cluster.client("app-1").id for r in rows)
    nodes = [r for r in inside(cluster).recorder.table("rpc") if r["client_id"] is None]
    assert nodes and all(r["connection"] is None for r in nodes)


def test_a_scenario_names_clients() -> None:
    """Before its client comes, a step has effect; one that names nobody adds a note."""
    steps = """
    cluster: {brokers: 1, controllers: 1, listeners: true, pace: 100}
    steps:
      - {do: cut, src: clients, dst: brokers}
      - {do: hold, src: client("my app"), dst: brokers, api: [Produce, Fetch]}
      - {do: cut, src: client(app-1), dst: brokers, both: true, lasting: 5s}
      - {do: pause, node: client(app-1), lasting: 1s}
      - {do: kill, node: broker(1), connections: reset}
      - {do: restart, node: broker(1)}
      - {after: 10s, until: unfenced(brokers) and not running(client(app-1)), within: 30s}
    """
    scenario = parse_scenario(steps)
    assert scenario_of(scenario.to_dict(), where="again") == scenario
    cluster, failure = play_once(scenario)
    assert failure is None
    faults = [(r["action"], r["phase"], r["targets"]) for r in cluster.recorder.table("fault")]
    assert ("cut", "note", []) in faults
    assert ("hold", "start", [[-2, 1]]) in faults
    assert ("cut", "start", [[-3, 1], [1, -3]]) in faults
    assert ("cut", "stop", [[-3, 1], [1, -3]]) in faults
    assert ("resume", "stop", [-3]) in faults


def test_a_step_that_takes_no_client_is_refused() -> None:
    scenario = parse_scenario("steps: [{do: kill, node: client(app-1)}]")
    with pytest.raises(ScenarioError, match=r"step 1 .*client app-1 is not a process"):
        play_once(scenario)


def test_the_trace_has_responses_to_clients(cluster: MiniCluster) -> None:
    orders = cluster.create_topic("orders", replicas=1)
    leader = orders[0].leader
    assert leader is not None
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "client.id": "app-1"}
    producer = confluent_kafka.Producer({**settings, "acks": "all", "compression.type": "zstd"})
    for value in ("first", "second"):
        producer.produce("orders", value, partition=0)
    assert producer.flush(LIMIT_S) == 0
    consumer = confluent_kafka.Consumer(
        {
            **settings,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
        }
    )
    consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
    assert len(consumer.consume(2, timeout=LIMIT_S)) == 2
    low, high = consumer.get_watermark_offsets(confluent_kafka.TopicPartition("orders", 0))
    consumer.close()

    def recorded() -> list[Mapping[str, Any]]:
        with inside(cluster).rt.exclusive():
            return list(inside(cluster).recorder.table("client_record"))

    # A client may have its response before the broker's thread has recorded it.
    cluster.wait_until(lambda: {"send", "read", "list"} <= {r["f"] for r in recorded()})
    rows = recorded()
    facts = [
        (row["f"], row["offset"], row["value"], row["acks"], row["high_watermark"]) for row in rows
    ]
    assert facts[:2] == [("send", 0, "first", -1, None), ("send", 1, "second", -1, None)]
    assert ("read", 0, "first", None, 2) in facts and ("read", 1, "second", None, 2) in facts
    assert (low, high) == (0, 2) and ("list", None, None, None, 2) in facts
    assert {row["broker"] for row in rows} == {leader.id}
    assert {row["client_id"] for row in rows} == {"app-1"}


@pytest.mark.parametrize("api", ["Produce", "Fetch"])
def test_the_real_address_of_the_leader_is_beside_a_refusal(cluster: MiniCluster, api: str) -> None:
    """KIP-951: a client goes on without another Metadata request."""
    orders = cluster.create_topic("orders", replicas=1)
    leader = orders[0].leader
    assert leader is not None and inside(cluster).listeners is not None
    [other] = [broker for broker in cluster.brokers if broker != leader]
    found = cluster.image.topics.named("orders")
    assert found is not None
    apis = inside(cluster).processes[other.id].broker.apis
    cluster.wait_until(lambda: apis.state.image.topics.named("orders"))
    with RawClient(cluster, other.id, "app-1") as app:
        if api == "Produce":
            response = app.request(produce_one("orders", b"first"), 11)
            [refused] = response.responses[0].partition_responses
        else:
            wanted = FetchRequest.FetchPartition(partition=0, current_leader_epoch=0)
            topic = FetchRequest.FetchTopic(topic_id=found.id, partitions=(wanted,))
            response = app.request(FetchRequest(topics=(topic,), session_epoch=-1), 16)
            [refused] = response.responses[0].partitions
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused.current_leader.leader_id == leader.id
    assert refused.current_leader.leader_epoch == 0
    [endpoint] = response.node_endpoints
    real = inside(cluster).listeners.endpoints.nodes[leader.id]
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (leader.id, *real)
