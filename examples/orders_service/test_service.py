"""Every order is stored, whatever happens: with the service as it is, this finds out that not."""

import asyncio
from functools import partial

import pytest
import service
from aiokafka import AIOKafkaProducer

ORDERS = 120


@pytest.mark.mini_cluster(controllers=1)
@pytest.mark.mini_cluster_explore(seeds=50, calm="40s")
async def test_every_order_is_stored(mini_cluster, main=service.main):
    mini_cluster.create_topic("orders", partitions=4, min_isr=2)
    servers, database = mini_cluster.bootstrap_servers, service.Database()
    for name in ("orders-1", "orders-2"):
        mini_cluster.app(name, partial(main, database, servers))
    async with AIOKafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        for number in range(ORDERS):
            await producer.send_and_wait("orders", b"%d" % number)
            await asyncio.sleep(0.2)
    await mini_cluster.until(lambda: len(database.rows) == ORDERS, within="3m")
