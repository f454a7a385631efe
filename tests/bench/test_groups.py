"""Groups: the first message that a member reads, and rebalances of a hundred members.

Aims on a quiet machine, beside librdkafka's mock cluster in the same run: the first message of a
fresh cluster comes through a classic group in 200 ms, through a group of KIP-848 in 100 ms besides
what the client itself waits, with the 50 partitions of ``__consumer_offsets`` made on the way. The
bounds are far below, so that only a change of kind fails.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import confluent_kafka
import pytest

from minicluster.protocol import messages as m
from tests.bench.test_listeners import LIMIT_S, MESSAGE, Servers, consumed
from tests.bench.test_listeners import kind as kind
from tests.coordinator.groups import Groups
from tests.coordinator.test_consumer_group_properties import Client
from tests.coordinator.test_migration import ClassicMember

pytestmark = pytest.mark.clients

MEMBERS = 100
FEW, MANY = 200, 2_000
CHECK_MS = 600_000  # offsets.retention.check.interval.ms
PROTOCOLS = {"classic": {}, "consumer": {"group.protocol": "consumer"}}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_first_message_through_a_group(benchmark: Any, kind: str, protocol: str) -> None:
    """From a member's construction on a cluster that has just started, with one record in it.

    librdkafka itself waits for 100 ms before it looks for the beginning of a partition without a
    committed offset (rd_kafka_offset_reset), so the assignment is measured as well.
    """
    running: list[Servers] = []
    consumers: list[confluent_kafka.Consumer] = []
    assigned_ms: list[float] = []

    def stop() -> None:
        while running:
            consumers.pop().close()
            running.pop().stop()

    def start() -> tuple[tuple[str], dict[str, Any]]:
        stop()
        running.append(Servers(kind))
        addresses = running[-1].start()
        running[-1].topic("orders", 3)
        producer = confluent_kafka.Producer({"bootstrap.servers": addresses, "linger.ms": 0})
        producer.produce("orders", MESSAGE, partition=0)
        assert producer.flush(LIMIT_S) == 0
        return (addresses,), {}

    def read(addresses: str) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": addresses,
                "group.id": "first",
                "auto.offset.reset": "earliest",
                **PROTOCOLS[protocol],
            }
        )
        consumers.append(consumer)
        began_s = time.perf_counter()

        def on_assign(*_: Any) -> None:
            assigned_ms.append(1000 * (time.perf_counter() - began_s))

        consumer.subscribe(["orders"], on_assign=on_assign)
        consumed(consumer)

    benchmark.pedantic(read, setup=start, rounds=6)
    stop()
    benchmark.extra_info["ms"] = round(1000 * benchmark.stats.stats.min, 1)
    benchmark.extra_info["assigned_ms"] = round(min(assigned_ms), 1)
    assert benchmark.stats.stats.min < 10


def test_rebalances_of_a_hundred_members(benchmark: Any) -> None:
    """A member joins and another leaves, until all have what they are to have (KIP-848)."""
    groups = Groups(orders=3 * MEMBERS)
    names = (f"member-{number}" for number in itertools.count())
    clients = [_client(groups, next(names)) for _ in range(MEMBERS)]

    def settle() -> None:
        while groups.describe().group_state != "Stable":
            for client in clients:
                client.beat()

    def rebalance() -> None:
        groups.heartbeat(clients.pop(0).name, -1)
        clients.append(_client(groups, next(names)))
        settle()

    settle()
    benchmark.pedantic(rebalance, rounds=10, warmup_rounds=1)
    benchmark.extra_info["per_second"] = round(1 / benchmark.stats.stats.min, 1)
    assert benchmark.stats.stats.min < 5


def _client(groups: Groups, name: str) -> Client:
    client = Client(groups, name, {"topics": ("orders",), "subscribed_topic_regex": ""})
    client.beat()
    return client


def test_classic_rebalances_of_a_hundred_members(benchmark: Any) -> None:
    """A generation: all members join, the leader assigns, all get their assignment."""
    groups = Groups(orders=3 * MEMBERS)
    members = [ClassicMember(groups, f"member-{number}") for number in range(MEMBERS)]
    for member in members:  # the first response gives the id (KIP-394)
        member.member_id = groups.responses[member.send_join()].member_id

    def rebalance() -> None:
        tokens = [member.send_join() for member in members]
        groups.advance(0)
        for member, token in zip(members, tokens, strict=True):
            member.joined(groups.responses[token])
        leader = next(member for member in members if member.is_leader)
        leader.sync({member.member_id: b"\0\3" for member in members})
        for member in members:
            assert member.sync().error_code == 0

    benchmark.pedantic(rebalance, rounds=10, warmup_rounds=1)
    benchmark.extra_info["per_second"] = round(1 / benchmark.stats.stats.min, 1)
    assert benchmark.stats.stats.min < 5


def test_offsets_of_many_groups_expire_at_the_cost_of_each(benchmark: Any) -> None:
    """A look-up costs what its group has: else the offsets of all would be read for each group."""

    def expire(groups: Groups) -> float:
        begun = time.process_time()
        groups.advance(CHECK_MS)
        return time.process_time() - begun

    few, many = (min(expire(_with_offsets(count)) for _ in range(3)) for count in (FEW, MANY))
    last = _with_offsets(MANY)
    benchmark.pedantic(lambda: expire(last), rounds=1)
    assert not last.request(m.ListGroupsRequest(), 4).groups
    benchmark.extra_info["us_of_a_group"] = round(1e6 * many / MANY)
    benchmark.extra_info["ratio"] = round(many / MANY / (few / FEW), 2)
    assert many / MANY < 3 * few / FEW


def _with_offsets(count: int) -> Groups:
    groups = Groups(orders=3)
    commit = m.OffsetCommitRequest
    partitions = tuple(
        commit.OffsetCommitRequestPartition(partition_index=index, committed_offset=5)
        for index in range(3)
    )
    topics = (commit.OffsetCommitRequestTopic(name="orders", partitions=partitions),)
    for number in range(count):
        groups.request(commit(group_id=f"group-{number}", topics=topics, retention_time_ms=1), 4)
    return groups
