"""Answers on demand to Kafka's own clients, on a cluster with ports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from minicluster import MiniCluster
from minicluster.protocol import messages as m
from minicluster.values import replace
from tests.verify.in_process import verified

LIMIT_S = 60.0
CONFIG = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}


@pytest.fixture(params=[{}, {"pace": 1.0}], ids=["threaded", "paced"])
def cluster(request: pytest.FixtureRequest) -> Iterator[MiniCluster]:
    with MiniCluster(
        brokers=1, controllers=1, seed=9, listeners=True, config=CONFIG, **request.param
    ) as running:
        running.create_topic("orders", replicas=1)
        yield running


def producer(cluster: MiniCluster, **more: Any) -> confluent_kafka.Producer:
    servers = {"bootstrap.servers": cluster.bootstrap_servers, "client.id": "app-1"}
    return confluent_kafka.Producer({**servers, "retry.backoff.ms": 50, **more})


def read(cluster: MiniCluster, count: int, **more: Any) -> list[bytes | None]:
    """The first values of orders-0, and what else comes within half a second."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "client.id": "reader",
            "group.id": "unused",
            "enable.auto.commit": False,
            **more,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
    found = consumer.consume(count, timeout=LIMIT_S) + consumer.consume(1, timeout=0.5)
    consumer.close()
    return [message.value() for message in found]


def test_an_idempotent_producer_writes_once_what_timed_out(
    cluster: MiniCluster, tmp_path: Path
) -> None:
    late = cluster.respond("Produce", "REQUEST_TIMED_OUT", when="after", client="app-1")
    errors: list[object] = []
    idempotent = producer(cluster, **{"enable.idempotence": True})
    idempotent.produce("orders", "once", on_delivery=lambda error, _: errors.append(error))
    assert idempotent.flush(LIMIT_S) == 0 and errors == [None]
    assert late.hits == 1
    assert read(cluster, 1) == [b"once"]
    assert not verified(cluster.save(tmp_path / "run")).findings


def test_a_producer_asks_again_for_the_leader(cluster: MiniCluster) -> None:
    moved = cluster.respond("Produce", "NOT_LEADER_OR_FOLLOWER", times=3, topic="orders")
    errors: list[object] = []
    plain = producer(cluster)
    plain.produce("orders", "there", on_delivery=lambda error, _: errors.append(error))
    assert plain.flush(LIMIT_S) == 0 and errors == [None]
    assert moved.hits == 3 and read(cluster, 1) == [b"there"]


@pytest.mark.parametrize("connections", ["close", "reset"])
def test_a_connection_that_ends_within_a_commit_leaves_the_transaction_committed(
    cluster: MiniCluster, connections: Any
) -> None:
    ended = cluster.close_connections("EndTxn", connections=connections)
    transactional = producer(cluster, **{"transactional.id": "t1"})
    transactional.init_transactions(LIMIT_S)
    transactional.begin_transaction()
    transactional.produce("orders", "paid")
    transactional.commit_transaction(LIMIT_S)
    assert ended.hits == 1
    assert read(cluster, 1, **{"isolation.level": "read_committed"}) == [b"paid"]


def test_a_response_that_never_comes_ends_with_the_clients_own_timeout(
    cluster: MiniCluster,
) -> None:
    lost = cluster.drop_responses("Produce", client="app-1")
    errors: list[object] = []
    impatient = producer(cluster, **{"enable.idempotence": True, "socket.timeout.ms": 1_000})
    impatient.produce("orders", "again", on_delivery=lambda error, _: errors.append(error))
    assert impatient.flush(LIMIT_S) == 0 and errors == [None]
    assert lost.hits == 1 and read(cluster, 1) == [b"again"]


def test_a_consumer_that_is_sent_away_reads_on(cluster: MiniCluster) -> None:
    """Its fetch session goes on: the broker reads, and the partition gets the error."""
    plain = producer(cluster)
    plain.produce("orders", "first")
    assert plain.flush(LIMIT_S) == 0
    moved = cluster.respond(
        "Fetch", "NOT_LEADER_OR_FOLLOWER", partitions="orders-0", client="reader", times=2
    )
    assert read(cluster, 1) == [b"first"] and moved.hits == 2


def test_a_function_sees_what_a_client_sends_and_changes_what_it_gets(
    cluster: MiniCluster,
) -> None:
    """A throttled client waits, as its statistics would show; the record is there once."""
    clients: list[str] = []

    def throttle(request: m.ProduceRequest) -> Any:
        clients.append(request.topic_data[0].name)
        response = yield
        return replace(response, throttle_time_ms=50)

    seen = cluster.intercept("Produce", throttle, client="app-1", versions="3-12")
    errors: list[object] = []
    plain = producer(cluster)
    plain.produce("orders", "slow", on_delivery=lambda error, _: errors.append(error))
    assert plain.flush(LIMIT_S) == 0 and errors == [None]
    assert seen.hits == len(clients) >= 1 and set(clients) == {"orders"}
    assert read(cluster, 1) == [b"slow"]


def test_one_api_is_slow(cluster: MiniCluster) -> None:
    late = cluster.delay(api="Produce", mean="1s", distribution="fixed", client="app-1")
    assert late is not None
    plain = producer(cluster)
    began_ms = cluster.now_ms
    plain.produce("orders", "late")
    assert plain.flush(LIMIT_S) == 0 and late.hits == 1
    assert cluster.now_ms - began_ms >= 1_000
