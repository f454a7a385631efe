"""aiokafka: a clock that its C code reads, sets in an order of the process, a counter."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from minicluster.actors.programs.shims import sets
from minicluster.actors.programs.shims.shim import Replaced, Shim
from minicluster.actors.runtime import tripwire


def _replaced() -> Iterator[Replaced]:
    from aiokafka.producer.message_accumulator import BatchBuilder

    # record/_crecords: a record without a timestamp gets that of gettimeofday(2).
    append = BatchBuilder.append

    def append_(this: Any, *, timestamp: Any, **record: Any) -> Any:
        if timestamp is None and tripwire.program() is not None:
            timestamp = time.time_ns() // 1_000_000
        return append(this, timestamp=timestamp, **record)

    yield BatchBuilder, "append", append_
    yield from sets.of_package("aiokafka")


def _counters() -> Iterator[Replaced]:
    from aiokafka.producer.producer import AIOKafkaProducer

    yield AIOKafkaProducer, "_PRODUCER_CLIENT_ID_SEQUENCE", 0  # in the default client.id


SHIM = Shim("aiokafka", "aiokafka", ("0.13", "0.14"), _replaced, _counters)
