"""A service of FastStream, as its documentation has them: orders in, bills out, bills counted."""

from __future__ import annotations

import logging
from typing import Any

from faststream import FastStream
from faststream.kafka import KafkaBroker

from tests.programs.service import SERVERS


def service(billed: list[str]) -> FastStream:
    """The app of one process."""
    logging.getLogger("faststream").setLevel(logging.WARNING)
    broker = KafkaBroker(SERVERS.split(","), logger=None)

    @broker.subscriber("orders", group_id="billing", auto_offset_reset="earliest")
    @broker.publisher("bills")
    async def bill(order: int) -> str:
        return f"bill {order}"

    @broker.subscriber("bills", group_id="counting", auto_offset_reset="earliest")
    async def count(message: str) -> None:
        billed.append(message)

    return FastStream(broker)


async def serve(billed: list[str]) -> Any:
    """Run it until SIGTERM comes."""
    return await service(billed).run()
