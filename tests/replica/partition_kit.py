"""A partition with brokers around it, as Kafka's own PartitionTest sets it up.

Broker 101 is the one under test; the broker epoch of broker b is b + 1000.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest

from minicluster.effects import Effect, FaultHit, Trace
from minicluster.faults import Faults
from minicluster.log import Log, Record, RecordBatch
from minicluster.metadata.image.directory_id import MIGRATING
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.protocol import ErrorCode
from minicluster.replica.broker_view import BrokerView
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.isr_state import RECOVERED, AlterPartitionAnswer, ProposalItem
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.steps import (
    AppendResult,
    CheckWaiting,
    FetchResult,
    ProposalNotAttempted,
    SubmitProposal,
)
from minicluster.rules import Rules

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
    """What the metadata log says of the partition."""
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


class Bench:
    """The partition, the broker's view, the clock and every effect so far."""

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
        self.effects: list[Effect] = []
        self.partition = Partition(
            broker_id=LEADER,
            topic="orders",
            topic_id=TOPIC_ID,
            partition=6,
            log=Log() if log is None else log,
            high_watermark_checkpoint=high_watermark,
            rules=rules,
            faults=faults,
            min_insync_replicas=min_isr,
            incarnation="first",
            proposal_ids=itertools.count(1),
        )

    @property
    def view(self) -> BrokerView:
        """Broker 101's newest image."""
        return BrokerView(LEADER + 1000, self.brokers)

    def broker(self, broker_id: int, **changes: Any) -> None:
        """Publish an image in which a broker is otherwise."""
        self.brokers[broker_id] = replace(self.brokers[broker_id], **changes)

    def lead(self, **fields: Any) -> bool:
        """Become leader."""
        step = self.partition.make_leader(self.now_ms, self.view, registration(**fields))
        self.effects += step.effects
        return step.result

    def follow(self, leader: int, **fields: Any) -> bool:
        """Become follower."""
        said = registration(leader=leader, **fields)
        step = self.partition.make_follower(self.now_ms, said)
        self.effects += step.effects
        return step.result

    def append(self, count: int, acks: int = 1, **producer: int) -> AppendResult:
        """Take a produce."""
        step = self.partition.append_as_leader(
            self.now_ms, self.view, batch(count, **producer), acks=acks
        )
        self.effects += step.effects
        return step.result

    def seed(self, records: int) -> None:
        """Fill the log, one record a batch, before the partition has a role."""
        for offset in range(records):
            self.partition.log.append(batch(1, base=offset, epoch=0))

    def fetch(self, replica: int, offset: int, **fields: Any) -> FetchResult:
        """Take a follower's fetch."""
        given = {
            "broker_epoch": replica + 1000,
            "log_start_offset": 0,
            "current_leader_epoch": self.partition.leader_epoch,
            "last_fetched_epoch": None,
            "max_bytes": 1 << 20,
        }
        step = self.partition.fetch(
            self.now_ms, self.view, replica_id=replica, fetch_offset=offset, **{**given, **fields}
        )
        self.effects += step.effects
        return step.result

    def shrink(self) -> None:
        """Run the periodic task."""
        self.effects += self.partition.maybe_shrink_isr(self.now_ms, self.view)

    def answer(self, error: ErrorCode = ErrorCode.NONE, **fields: Any) -> list[Effect]:
        """Answer the proposal in flight; by default the controller wrote what was asked."""
        item = self.partition.in_flight
        assert item is not None
        answer = AlterPartitionAnswer(error=error)
        if error == ErrorCode.NONE:
            answer = AlterPartitionAnswer(
                **{
                    "leader": LEADER,
                    "leader_epoch": item.proposal.leader_epoch,
                    "isr": tuple(member for member, _ in item.isr),
                    "partition_epoch": item.proposal.partition_epoch + 1,
                    **fields,
                }
            )
        found = self.partition.on_alter_partition(self.now_ms, self.view, item.id, answer)
        self.effects += found
        return found

    # --- what came of it ----------------------------------------------------------------------

    @property
    def submitted(self) -> list[ProposalItem]:
        """All proposals that left."""
        return [e.item for e in self.effects if isinstance(e, SubmitProposal)]

    @property
    def not_attempted(self) -> list[ProposalItem]:
        """All proposals that ended at once."""
        return [e.item for e in self.effects if isinstance(e, ProposalNotAttempted)]

    @property
    def checks(self) -> int:
        """How often waiting operations were to be looked at."""
        return sum(isinstance(e, CheckWaiting) for e in self.effects)

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
