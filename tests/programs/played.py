"""``python -m tests.programs.played SEED NAME…``: stories with programs; what each was, in a line.

A line has the hash of the trace, and that of all bytes of the connections with their times,
so that two processes can be compared.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from minicluster import MiniCluster
from minicluster.actors.listeners.memory import MemoryCarrier
from tests.programs.service import SERVERS, member, source

SMALL = {"offsets.topic.num.partitions": 5, "transaction.state.log.num.partitions": 5}


def group(cluster: MiniCluster) -> None:
    """Two members that read several topics, one of which is killed."""
    cluster.create_topic("orders", partitions=4, min_isr=2)
    for topic in ("bills", "letters", "returns"):
        cluster.create_topic(topic, partitions=1)
    seen: list[tuple[str, bytes]] = []
    for name in ("one", "two"):
        topics = "orders bills letters returns"
        cluster.app(name, partial(member, name, seen, topics, session_timeout_ms=10_000))
    cluster.app("source", partial(source, 100, 0.1))
    cluster.run_for("8s")
    cluster.apps[1].kill()
    everything = {b"%d" % number for number in range(100)}
    cluster.wait_until(lambda: {value for _, value in seen} == everything, within="60s")


def dead_leader(cluster: MiniCluster) -> None:
    """A leader is killed under an idempotent producer and a member."""
    orders = cluster.create_topic("orders", partitions=2, min_isr=2)
    seen: list[tuple[str, bytes]] = []
    cluster.app("one", partial(member, "one", seen))
    cluster.app("source", partial(source, 100, 0.1, enable_idempotence=True))
    cluster.run_for("5s")
    cluster.bounce(orders[0].leader, down="10s")
    cluster.wait_until(lambda: len(seen) == 100, within="90s")
    assert len({value for _, value in seen}) == 100


def exactly_once(cluster: MiniCluster) -> None:
    """A processor with transactions is killed in the midst, and started again."""
    cluster.create_topic("orders", partitions=2, min_isr=2)
    cluster.create_topic("bills", partitions=2, min_isr=2)
    seen: list[tuple[str, bytes]] = []
    processor = cluster.app("processor", bill)
    cluster.app("source", partial(source, 60, 0.1))
    cluster.app(
        "reader",
        partial(
            member, "reader", seen, "bills", group_id="bills", isolation_level="read_committed"
        ),
    )
    cluster.run_for("6s")
    processor.restart()
    cluster.wait_until(lambda: len(seen) >= 60, within="90s")
    cluster.run_for("15s")
    assert sorted(value for _, value in seen) == sorted(b"bill %d" % n for n in range(60))


async def bill() -> None:
    """Write a bill for each order, once, though this process may die at any time."""
    import aiokafka

    consumer = aiokafka.AIOKafkaConsumer(
        "orders",
        bootstrap_servers=SERVERS,
        group_id="billing",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=10_000,
        isolation_level="read_committed",
    )
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=SERVERS, transactional_id="billing", transaction_timeout_ms=20_000
    )
    await consumer.start()
    await producer.start()
    while True:
        for partition, messages in (await consumer.getmany(timeout_ms=1_000)).items():
            async with producer.transaction():
                for message in messages:
                    await producer.send("bills", b"bill " + message.value)
                offsets = {partition: messages[-1].offset + 1}
                await producer.send_offsets_to_transaction(offsets, "billing")


def faststream(cluster: MiniCluster) -> None:
    """A service of FastStream bills orders while a leader is bounced, and ends at SIGTERM."""
    from tests.programs.faststream_app import serve

    orders = cluster.create_topic("orders", partitions=2, min_isr=2)
    cluster.create_topic("bills", partitions=2, min_isr=2)
    billed: list[str] = []
    service = cluster.app("billing", partial(serve, billed))
    cluster.app("source", partial(source, 100, 0.05))
    cluster.run_for("5s")
    cluster.bounce(orders[0].leader, down="5s")
    cluster.wait_until(lambda: {*billed} == {f"bill {n}" for n in range(100)}, within="90s")
    service.terminate()
    cluster.wait_until(lambda: not service.is_running, within="30s")
    assert service.error is None


def kafka_python(cluster: MiniCluster) -> None:
    """Members with a synchronous client, of which one is killed."""
    from tests.programs.synchronous import read, write

    cluster.create_topic("orders", partitions=4, min_isr=2)
    seen: list[tuple[str, bytes]] = []
    for name in ("one", "two"):
        cluster.app(name, partial(read, name, seen))
    cluster.run_for("8s")
    source_app = cluster.app("source", write)
    cluster.wait_until(lambda: len(seen) == 40, within="60s")
    assert {name for name, _ in seen} == {"one", "two"}
    cluster.apps[1].kill()
    source_app.restart()
    everything = {b"%d" % number for number in range(40)}
    cluster.wait_until(lambda: {v for n, v in seen[40:] if n == "one"} == everything, within="60s")
    cluster.wait_until(lambda: not source_app.is_running)
    assert source_app.result == 40


STORIES: dict[str, Callable[[MiniCluster], None]] = {
    "group": group,
    "dead_leader": dead_leader,
    "exactly_once": exactly_once,
    "faststream": faststream,
    "kafka_python": kafka_python,
}


def play(name: str, seed: int) -> str:
    """Play a story; what it was."""
    moved = hashlib.blake2b(digest_size=16)
    with MiniCluster(seed=seed, config=SMALL) as cluster:

        def noting(of: Any) -> Any:
            def noted(self: MemoryCarrier, data: bytes) -> Any:
                moved.update(f"{cluster.now_ms} {self.client} {of.__name__} ".encode() + data)
                return of(self, data)

            return noted

        send, write = MemoryCarrier.send, MemoryCarrier.write
        MemoryCarrier.send, MemoryCarrier.write = noting(send), noting(write)
        try:
            STORIES[name](cluster)
        finally:
            MemoryCarrier.send, MemoryCarrier.write = send, write
        return f"{name} {seed} {cluster.now_ms} {cluster.trace_hash} {moved.hexdigest()}"


if __name__ == "__main__":
    for name in sys.argv[2:]:
        print(play(name, int(sys.argv[1])))
