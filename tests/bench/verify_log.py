"""A log of many records for the benchmarks of verification: ISRs that shrink and grow again."""

from __future__ import annotations

from minicluster.protocol import records as r
from tests.verify.build import TOPIC, LogBuilder, change, partition

PARTITIONS = 200
PER_BATCH = 50


def long_log(records: int) -> LogBuilder:
    """About so many records, nearly all of them partition changes, none of them wrong."""
    log = LogBuilder().brokers(1, 2, 3, 4)
    replicas = [(1 + n % 4, 1 + (n + 1) % 4, 1 + (n + 2) % 4) for n in range(PARTITIONS)]
    log.op(
        r.TopicRecord(name="orders", topic_id=TOPIC),
        *(partition(some, part=n) for n, some in enumerate(replicas)),
    )
    number = 0
    while log.offset < records:
        changes = []
        for _ in range(PER_BATCH):
            part, shrink = number % PARTITIONS, (number // PARTITIONS) % 2 == 0
            some = replicas[part]
            changes.append(change(some[:2] if shrink else some, part=part))
            number += 1
        log.op(*changes)
    return log
