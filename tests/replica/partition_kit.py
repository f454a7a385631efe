"""A partition with brokers around it, as Kafka's own PartitionTest sets it up.

Broker 101 is the one under test; the broker epoch of broker b is b + 1000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

import minicluster.zoo  # noqa: F401  (the faults that tests plant)
from minicluster.effects import Effect, FaultHit, Trace
from minicluster.faults import Faults
from minicluster.log import Log, Record, RecordBatch
from minicluster.metadata.image.directory_id import MIGRATING
from minicluster.metadata.image.partition import RECOVERED, PartitionRegistration
from minicluster.protocol import ErrorCode
from minicluster.replica.broker_context import (
    AlterPartitionItem,
    AlterPartitionResult,
    BrokerContext,
    BrokerView,
    OnAlterPartition,
)
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.isr import run_isr_task
from minicluster.replica.partition.leader_log import LogAppendInfo, append_records_to_leader
from minicluster.replica.partition.leadership import make_follower, make_leader
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.reads import LogReadInfo, fetch_records
from minicluster.replica.producers.states import AppendCheck
from minicluster.replica.requests.purgatory import DelayedOperation, DelayedOperations, Key
from minicluster.rules import Rules
from minicluster.values import replace

LEADER = 101
TOPIC_ID = UUID(int=77)


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker of an image."""

    epoch: int
    fenced: bool = False
    in_controlled_shutdown: bool = False


def registration(
    *,
    replicas: Sequence[int],
    isr: Sequence[int],
    leader: int = LEADER,
    leader_epoch: int = 5,
    partition_epoch: int = 1,
    adding: Sequence[int] = (),
    recovery_state: int = RECOVERED,
) -> PartitionRegistration:
    """The partition's state in the metadata log."""
    return PartitionRegistration(
        replicas=tuple(replicas),
        directories=(MIGRATING,) * len(replicas),
        isr=tuple(isr),
        adding_replicas=tuple(adding),
        leader=leader,
        leader_recovery_state=recovery_state,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
    )


def batch(count: int, *, base: int = 0, epoch: int = -1, **producer: int) -> RecordBatch:
    """A batch of so many small records."""
    records = [Record(offset, 0, None, b"v") for offset in range(base, base + count)]
    return RecordBatch.of(records, leader_epoch=epoch, **producer)


@contextmanager
def refused(error: ErrorCode) -> Iterator[None]:
    """Expect a refusal with this error."""
    with pytest.raises(ReplicaError) as refusal:
        yield
    assert refusal.value.error == error


def is_at_min_isr(partition: Partition) -> bool:
    """Kafka's metric AtMinIsr."""
    isr = partition.isr_state.isr
    return partition.is_leader and len(isr) == partition.effective_min_isr


def is_under_replicated(partition: Partition) -> bool:
    """Kafka's metric UnderReplicated: replicas that are being added do not count."""
    wanted = [r for r in partition.replicas if r not in partition.adding_replicas]
    return partition.is_leader and len(wanted) > len(partition.isr_state.isr)


class Delayed(DelayedOperations):
    """Counts how often the operations of a partition were tried."""

    def __init__(self, effects: list[Effect]) -> None:
        super().__init__(effects)
        self.checks = 0

    def check_and_complete_all(self, key: Key, now_ms: int) -> None:
        self.checks += 1
        super().check_and_complete_all(key, now_ms)


class Waits(DelayedOperation):
    """An operation that waits for ever."""

    deadline_ms = 1 << 62

    def try_complete(self, now_ms: int) -> bool:
        return False

    def on_complete(self, now_ms: int) -> None:
        raise AssertionError("it waits")


class HeldBack:
    """An AlterPartition manager whose responses come from the test; one item is in flight."""

    def __init__(self) -> None:
        self.in_flight: tuple[AlterPartitionItem, OnAlterPartition] | None = None
        self.submitted: list[AlterPartitionItem] = []
        self.refused: list[AlterPartitionItem] = []

    def submit(self, item: AlterPartitionItem, on_complete: OnAlterPartition, now_ms: int) -> None:
        if self.in_flight is None:
            self.in_flight = (item, on_complete)
            self.submitted.append(item)
        else:
            self.refused.append(item)
            on_complete(AlterPartitionResult(error=ErrorCode.OPERATION_NOT_ATTEMPTED), now_ms)

    def take(self) -> list[AlterPartitionItem]:
        """The items that were taken since the last call."""
        taken, self.submitted = self.submitted, []
        return taken

    def complete(self, result: AlterPartitionResult, now_ms: int) -> None:
        """End the item in flight."""
        assert self.in_flight is not None
        (_, on_complete), self.in_flight = self.in_flight, None
        on_complete(result, now_ms)


class Bench:
    """The partition, the broker's context, the clock and every effect so far."""

    def __init__(
        self,
        *,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
        min_isr: int = 1,
        log: Log | None = None,
        high_watermark: int = 0,
    ) -> None:
        self.now_ms = 1_000_000
        self.brokers = {b: Broker(b + 1000) for b in range(LEADER, LEADER + 4)}
        config = ReplicaManagerConfig(broker_id=LEADER, incarnation="first")
        self.context = BrokerContext(config, rules=rules, faults=faults)
        self.context.view = BrokerView(LEADER + 1000, self.brokers)
        self.context.alter_partition_manager = self.alter_partition = HeldBack()
        self.context.delayed = self.delayed = Delayed(self.context.effects)
        self.partition = Partition(
            self.context,
            topic="orders",
            topic_id=TOPIC_ID,
            partition=6,
            log=Log() if log is None else log,
            high_watermark_checkpoint=high_watermark,
            min_insync_replicas=min_isr,
        )

    @property
    def effects(self) -> list[Effect]:
        """All effects so far."""
        return self.context.effects

    def broker(self, broker_id: int, **changes: Any) -> None:
        """Publish an image in which a broker is otherwise."""
        self.brokers[broker_id] = replace(self.brokers[broker_id], **changes)

    def lead(self, **fields: Any) -> bool:
        """Become leader."""
        return make_leader(self.partition, registration(**fields), self.now_ms)

    def follow(self, leader: int, **fields: Any) -> bool:
        """Become follower."""
        return make_follower(self.partition, registration(leader=leader, **fields))

    def append(self, count: int, acks: int = 1, **producer: int) -> LogAppendInfo:
        """Take a produce, whose transaction needs no verification."""
        given, how = batch(count, **producer), AppendCheck(verifies=False)
        return append_records_to_leader(self.partition, given, acks, self.now_ms, how=how)

    def seed(self, records: int) -> None:
        """Fill the log, one record a batch, before the partition has a role."""
        for offset in range(records):
            self.partition.log.append(batch(1, base=offset, epoch=0))

    def fetch(self, replica: int, offset: int, **fields: Any) -> LogReadInfo:
        """Take a follower's fetch."""
        given = {
            "broker_epoch": replica + 1000,
            "log_start_offset": 0,
            "current_leader_epoch": self.partition.leader_epoch,
            "last_fetched_epoch": None,
            "max_bytes": 1 << 20,
            "now_ms": self.now_ms,
        }
        return fetch_records(
            self.partition, replica_id=replica, fetch_offset=offset, **{**given, **fields}
        )

    def shrink(self) -> None:
        """Run the periodic task."""
        run_isr_task(self.partition, self.now_ms)

    def respond(self, error: ErrorCode = ErrorCode.NONE, **fields: Any) -> list[Effect]:
        """Respond to the item in flight; by default the controller has committed it."""
        assert self.alter_partition.in_flight is not None
        item = self.alter_partition.in_flight[0]
        result = AlterPartitionResult(error=error)
        if error == ErrorCode.NONE:
            result = AlterPartitionResult(
                **{
                    "leader": LEADER,
                    "leader_epoch": item.leader_epoch,
                    "isr": item.members,
                    "partition_epoch": item.partition_epoch + 1,
                    **fields,
                }
            )
        before = len(self.effects)
        self.alter_partition.complete(result, self.now_ms)
        return self.effects[before:]

    # --- results ------------------------------------------------------------------------------

    @property
    def submitted(self) -> list[AlterPartitionItem]:
        """All items that were taken."""
        return self.alter_partition.submitted

    @property
    def not_attempted(self) -> list[AlterPartitionItem]:
        """All items that were refused at once."""
        return self.alter_partition.refused

    @property
    def checks(self) -> int:
        """The number of attempts to complete waiting operations."""
        return self.delayed.checks

    @property
    def hits(self) -> list[str]:
        """The planted faults that acted."""
        return [e.fault for e in self.effects if isinstance(e, FaultHit)]

    def rows(self, *kinds: str) -> list[dict[str, Any]]:
        """The trace rows of some kinds."""
        return [
            dict(e.row)
            for e in self.effects
            if isinstance(e, Trace) and (not kinds or e.row["kind"] in kinds)
        ]

    @property
    def isr(self) -> tuple[int, ...]:
        """The committed ISR."""
        return self.partition.isr_state.isr

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Whom the high watermark waits for."""
        return self.partition.isr_state.maximal_isr
