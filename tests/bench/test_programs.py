"""Programs inside the simulation: seconds of the cluster per second of the processor.

Two members of a group and a producer (aiokafka) beside the same cluster without programs, in one
run. Aims on a quiet machine: 150 when nothing is written, 60 at ten messages a second. The bounds
are far below, so that only a change of kind fails.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

import aiokafka
import pytest

from minicluster import MiniCluster
from tests.programs.service import SERVERS, member

PIECES, PIECE_S = 10, 2
PER_SECOND = {0: 30, 10: 8}  # messages: the seconds of the cluster that are played at least


async def produce(per_second: int) -> None:
    """Write at a rate, for ever."""
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=SERVERS) as producer:
        while True:
            if per_second:
                await producer.send_and_wait("orders", b"order")
            await asyncio.sleep(1 / per_second if per_second else 3_600)


def seconds_per_second(cluster: MiniCluster) -> float:
    """The best of several short pieces: the machine has other work."""
    took_s = []
    for _ in range(PIECES):
        began_s = time.process_time()
        cluster.run_for(f"{PIECE_S}s")
        took_s.append(time.process_time() - began_s)
    return PIECE_S / min(took_s)


@pytest.mark.parametrize("per_second", PER_SECOND)
def test_two_members_and_a_producer(benchmark: Any, per_second: int) -> None:
    with MiniCluster(seed=7) as cluster:
        cluster.create_topic("orders", partitions=4, min_isr=2)
        cluster.run_for("5s")
        alone = seconds_per_second(cluster)
        for name in ("one", "two"):
            cluster.app(name, partial(member, name, []))
        cluster.app("source", partial(produce, per_second))
        cluster.run_for("10s")
        together = benchmark.pedantic(seconds_per_second, (cluster,), rounds=1)
    print(f"{per_second} messages/s: {together:.0f} s/s, the cluster alone: {alone:.0f} s/s")
    assert together > PER_SECOND[per_second]
