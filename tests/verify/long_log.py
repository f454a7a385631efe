"""Logs of many records: ISRs that shrink and grow, elections, none of them wrong."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from minicluster.log.batch import RecordBatch
from minicluster.log.segment import segment_name, write_segment
from minicluster.protocol import records as r
from tests.verify.handwritten.log import TOPIC, LogBuilder, change, partition

PARTITIONS = 200
PER_BATCH = 50


def write_long_log(records: int, folder: Path) -> Path:
    """A controller's log of at least so many records, nearly all changes, none of them wrong.

    Each partition loses its third replica, its second, and its leader, and gets it back. That is
    made once and then repeated at later offsets, so a log of millions takes seconds to write.
    """
    log = LogBuilder().brokers(1, 2, 3, 4)
    replicas = [(1 + n % 4, 1 + (n + 1) % 4, 1 + (n + 2) % 4) for n in range(PARTITIONS)]
    log.op(
        r.TopicRecord(name="orders", topic_id=TOPIC),
        *(partition(some, part=n) for n, some in enumerate(replicas)),
    )
    begins = log.offset
    changes = [
        change(isr, leader=leader, part=part)
        for state in range(8)
        for part, some in enumerate(replicas)
        for isr, leader in (_state(some, state),)
    ]
    head = list(log.batches)
    for first in range(0, len(changes), PER_BATCH):
        log.op(*changes[first : first + PER_BATCH])
    cycle = [RecordBatch.decode(batch.encoded) for batch in log.batches[len(head) :]]
    rounds = -(-(records - begins) // len(changes))
    home = folder / "__cluster_metadata-0"
    home.mkdir(parents=True)
    repeated = (
        batch.with_base(batch.base_offset + number * len(changes), batch.leader_epoch)
        for number in range(rounds)
        for batch in cycle
    )
    write_segment(home / segment_name(0), chain(head, repeated))
    return folder


def _state(replicas: tuple[int, int, int], state: int) -> tuple[tuple[int, ...], int]:
    """The ISR and the leader, -2 for the one before, that a partition gets in a round."""
    first, second, third = replicas
    if state % 2:
        return replicas, -2
    isr = ((first, second), (first, third), (second, third), (first, second))[state // 2]
    return isr, {4: second, 6: first}.get(state, -2)
