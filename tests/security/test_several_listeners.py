"""Several listeners of each broker: a client stays on the one that it has connected to."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster, UserError
from minicluster.actors.cluster.securing import ListenerConfigs
from minicluster.protocol.messages import DescribeConfigsRequest

USERS = {"admin": "admin-secret", "alice": "alice-secret"}
MAP = {"listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL"}


def started(*, pace: float | None = None, config: dict[str, Any] | None = None) -> MiniCluster:
    return MiniCluster(
        brokers=2,
        controllers=1,
        runtime=None if pace is None else "simulated",
        pace=pace,
        listeners=["INSIDE", "OUTSIDE"],
        users=USERS,
        config={**MAP, **(config or {})},
    )


@pytest.mark.clients
@pytest.mark.parametrize("pace", [None, 1.0], ids=["threads", "paced"])
@pytest.mark.parametrize("between", ["INSIDE", "OUTSIDE"])
def test_a_client_finds_every_broker_on_its_own_listener(pace: float | None, between: str) -> None:
    """Whichever is the listener between brokers."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    with started(pace=pace, config={"inter.broker.listener.name": between}) as cluster:
        orders = cluster.create_topic("orders", partitions=2)
        protocols = {}
        for user in ("alice", None):
            config = cluster.client_config(user)
            protocols[user] = config["security.protocol"]
            producer = confluent_kafka.Producer(config)
            for partition in (0, 1):
                producer.produce("orders", b"an order", partition=partition)
            assert producer.flush(10) == 0
            brokers = producer.list_topics(timeout=10).brokers.values()
            places = {f"{broker.host}:{broker.port}" for broker in brokers}
            assert places == set(config["bootstrap.servers"].split(","))
        assert protocols == {"alice": "SASL_SSL", None: "PLAINTEXT"}
        assert [orders[index].log_end_offset for index in (0, 1)] == [2, 2]


@pytest.mark.clients
def test_a_leader_verifies_transactions_by_the_listener_between_brokers() -> None:
    """It asks their coordinator, whose address it looks up."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    with started(config={"inter.broker.listener.name": "OUTSIDE"}) as cluster:
        orders = cluster.create_topic("orders", partitions=2)
        transactional = {"transactional.id": "shop", "transaction.timeout.ms": 30_000}
        producer = confluent_kafka.Producer({**cluster.client_config("alice"), **transactional})
        producer.init_transactions(30)
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce("orders", b"an order", partition=partition)
        producer.commit_transaction(30)
        records = cluster.consume(orders, count=2, isolation="read_committed")
        assert [record.value for record in records] == [b"an order"] * 2


def test_a_broker_registers_every_listener_under_its_name() -> None:
    with started() as cluster:
        endpoints = cluster.image.cluster.brokers[1].endpoints
        assert [(each.name, each.security_protocol) for each in endpoints] == [
            ("INSIDE", 0),
            ("OUTSIDE", 3),
        ]
        ports = [each.port for each in endpoints]
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=4, resource_name="1"
        )
        [described] = cluster.admin(DescribeConfigsRequest(resources=(resource,)), to=1).results
        values = {each.name: each.value for each in described.configs}
        assert values["advertised.listeners"] == (
            f"INSIDE://127.0.0.1:{ports[0]},OUTSIDE://127.0.0.1:{ports[1]}"
        )


def test_a_controller_has_the_protocol_that_the_map_gives_it() -> None:
    """Without an entry there: that of the first listener."""
    protocols = f"{MAP['listener.security.protocol.map']},CONTROLLER:SASL_SSL"

    def registered(cluster: MiniCluster) -> list[int]:
        cluster.wait_until(lambda: 101 in cluster.image.cluster.controllers)
        endpoints = cluster.image.cluster.controllers[101].endpoints
        return [endpoint.security_protocol for endpoint in endpoints]

    with started(config={"listener.security.protocol.map": protocols}) as cluster:
        assert registered(cluster) == [3]
    with MiniCluster(brokers=1, controllers=1, listeners="SSL") as cluster:
        assert registered(cluster) == [1]


@pytest.mark.clients
def test_a_listener_has_configs_of_its_own() -> None:
    """Two listeners with SASL, each with another mechanism."""
    admin = pytest.importorskip("confluent_kafka.admin")
    config = {
        "listener.security.protocol.map": "A:SASL_PLAINTEXT,B:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.b.sasl.enabled.mechanisms": "PLAIN",
    }
    with MiniCluster(
        brokers=1, controllers=1, listeners=["A", "B"], users=USERS, config=config
    ) as cluster:
        for name, mechanism in (("A", "SCRAM-SHA-512"), ("B", "PLAIN")):
            of_client = cluster.client_config("alice", listener=name)
            assert of_client["sasl.mechanism"] == mechanism
            assert admin.AdminClient(of_client).list_topics(timeout=10).cluster_id


def test_the_config_of_a_mechanism_counts_before_that_of_its_listener() -> None:
    configs = ListenerConfigs(
        "OUTSIDE",
        {
            "connections.max.reauth.ms": "3",
            "listener.name.outside.connections.max.reauth.ms": "2",
            "listener.name.outside.scram-sha-256.connections.max.reauth.ms": "1",
        },
    )
    name = "connections.max.reauth.ms"
    assert configs.of_mechanism("SCRAM-SHA-256", name, "0") == "1"
    assert configs.of_mechanism("PLAIN", name, "0") == "2"
    assert ListenerConfigs("INSIDE", {name: "3"}).of_mechanism("PLAIN", name, "0") == "3"


@pytest.mark.parametrize(
    ("listeners", "config", "expected"),
    [
        (["OUTSIDE"], {}, "unknown protocol 'OUTSIDE'.*listener.security.protocol.map"),
        (["SSL", "SSL"], {}, "name each listener once"),
        ([], {}, "name each listener once"),
        (["CONTROLLER"], {}, "CONTROLLER is the controllers' own"),
        (["A B"], {}, "'A B' is no name of a listener"),
        (["SSL"], {"listener.security.protocol.map": "A:TLS"}, "protocol.map: unknown .*'TLS'"),
        (["SSL"], {"inter.broker.listener.name": "INSIDE"}, "no listener 'INSIDE'; .*SSL"),
    ],
)
def test_listeners_that_cannot_be_are_one_line(
    listeners: list[str], config: dict[str, str], expected: str
) -> None:
    with pytest.raises(UserError, match=expected) as rejected:
        MiniCluster(listeners=listeners, config=config)
    assert "\n" not in str(rejected.value)
