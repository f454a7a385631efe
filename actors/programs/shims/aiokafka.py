"""aiokafka: a clock that its C code reads, sets in an order of the process, a counter."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from minicluster.actors.programs.shims.shim import Replaced, Shim
from minicluster.actors.runtime import tripwire


def _replaced() -> Iterator[Replaced]:
    from aiokafka import structs
    from aiokafka.producer.message_accumulator import BatchBuilder

    # record/_crecords: a record without a timestamp gets that of gettimeofday(2).
    append = BatchBuilder.append

    def append_(this: Any, *, timestamp: Any, **record: Any) -> Any:
        if timestamp is None and tripwire.program() is not None:
            timestamp = time.time_ns() // 1_000_000
        return append(this, timestamp=timestamp, **record)

    yield BatchBuilder, "append", append_
    # cluster.py, client.py: a set of brokers is shuffled, and sets of partitions go into requests.
    # The hash of a text is of the process, and that of None is an address before Python 3.12.
    yield structs.BrokerMetadata, "__hash__", lambda this: hash(this.nodeId)
    yield structs.TopicPartition, "__hash__", hash_of_partition


def _counters() -> Iterator[Replaced]:
    from aiokafka.producer.producer import AIOKafkaProducer

    yield AIOKafkaProducer, "_PRODUCER_CLIENT_ID_SEQUENCE", 0  # in the default client.id


def hash_of_partition(this: Any) -> int:
    """The hash of a topic and a partition, the same in every process."""
    return _hash_of_text(this.topic) * 1_000_003 + int(this.partition)


@lru_cache(10_000)
def _hash_of_text(text: str) -> int:
    return zlib.crc32(text.encode())


SHIM = Shim("aiokafka", "aiokafka", ("0.13", "0.14"), _replaced, _counters)
