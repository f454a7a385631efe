"""Metadata logs written by hand: a few words for each record, one batch for each operation.

::

    log = LogBuilder().brokers(1, 2, 3).topic(partition())
    log.fence(3, change((1, 2)))  # orders-0 leaves ISR [1, 2, 3] for [1, 2], then 3 is fenced
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

from minicluster.log.batch import RecordBatch, metadata_batch
from minicluster.log.control import control_batch
from minicluster.log.segment import segment_name, write_segment
from minicluster.protocol import records as r
from minicluster.protocol.schema import Message

TOPIC = uuid.UUID(int=0xABC0)
OTHER_TOPIC = uuid.UUID(int=0xABC1)
DIR_A, DIR_B, DIR_C = (uuid.UUID(int=0xD000 + number) for number in range(3))
RECOVERED, RECOVERING = 0, 1
V3_1, V3_7 = 2, 19  # levels of metadata.version


class LogBuilder:
    """A log that grows by one operation for each call; offsets and epochs come by themselves.

    Shapes:  mv: the metadata.version that the log begins with; None for Kafka 3.0 to 3.2, whose
             logs had none. elr: eligible leader replicas are on. leader: the controller.
    """

    def __init__(self, *, mv: int | None = 30, elr: bool = False, leader: int = 101) -> None:
        self.batches: list[RecordBatch] = []
        self.offset = 0
        self.epoch = 1
        self.mv, self.elr = mv, elr
        self.broker_epochs: dict[int, int] = {}
        self.lead(leader)
        if mv is None:  # Kafka 3.0 to 3.2
            return
        features = [r.FeatureLevelRecord(name="metadata.version", feature_level=mv)]
        if elr:
            features.append(
                r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
            )
        self.op(*features)

    def lead(self, leader: int, *, epoch: int | None = None) -> LogBuilder:
        """A LeaderChange, in a new epoch if one is given."""
        self.epoch = self.epoch if epoch is None else epoch
        message = r.LeaderChangeMessage(leader_id=leader)
        self.add(control_batch(self.offset, self.epoch, 1000, (message,)))
        return self

    def op(self, *records: Message, base: int | None = None) -> LogBuilder:
        """One operation, one batch."""
        offset = self.offset if base is None else base
        versioned = [r.VersionedRecord(record, self._version(record)) for record in records]
        self.add(metadata_batch(offset, self.epoch, 1000 + offset, versioned))
        return self

    def add(self, batch: RecordBatch) -> None:
        """A batch as it is."""
        self.batches.append(batch)
        self.offset = batch.next_offset

    def _version(self, record: Message) -> int:
        versions = {
            r.RegisterBrokerRecord: 1,
            r.BrokerRegistrationChangeRecord: 1,
            r.PartitionRecord: 2 if self.elr else 0,
            r.PartitionChangeRecord: 2 if self.elr else 0,
        }
        if getattr(record, "directories", None):
            return max(1, versions[type(record)])
        if getattr(record, "log_dirs", None):
            return 3 if isinstance(record, r.RegisterBrokerRecord) else 2
        return versions.get(type(record), 0)

    # --- brokers ----------------------------------------------------------------------------

    def brokers(self, *ids: int) -> LogBuilder:
        """Register and unfence."""
        for broker in ids:
            self.register(broker)
            self.unfence(broker)
        return self

    def register(
        self,
        broker: int,
        *,
        epoch: int | None = None,
        incarnation: int = 1,
        fenced: bool = True,
        shutting_down: bool = False,
        log_dirs: Sequence[uuid.UUID] = (),
        before: Sequence[Message] = (),
    ) -> LogBuilder:
        """A registration, after clean-up records if any."""
        broker_epoch = self.offset if epoch is None else epoch
        self.broker_epochs[broker] = broker_epoch
        record = r.RegisterBrokerRecord(
            broker_id=broker,
            broker_epoch=broker_epoch,
            incarnation_id=uuid.UUID(int=broker * 100 + incarnation),
            fenced=fenced,
            in_controlled_shutdown=shutting_down,
            log_dirs=tuple(log_dirs),
        )
        return self.op(*before, record)

    def registration(
        self, broker: int, *, fenced: int = 0, shutdown: int = 0, epoch: int | None = None
    ) -> r.BrokerRegistrationChangeRecord:
        """A change of a registration, to be put into an operation."""
        return r.BrokerRegistrationChangeRecord(
            broker_id=broker,
            broker_epoch=self.broker_epochs.get(broker, 0) if epoch is None else epoch,
            fenced=fenced,
            in_controlled_shutdown=shutdown,
        )

    def unfence(self, broker: int) -> LogBuilder:
        """An operation that unfences."""
        return self.op(self.registration(broker, fenced=-1))

    def fence(self, broker: int, *changes: Message) -> LogBuilder:
        """An operation that fences, after changes of partitions."""
        return self.op(*changes, self.registration(broker, fenced=1))

    # --- topics -----------------------------------------------------------------------------

    def topic(
        self,
        *partitions: r.PartitionRecord,
        name: str = "orders",
        topic_id: uuid.UUID = TOPIC,
    ) -> LogBuilder:
        """A topic with its partitions."""
        return self.op(r.TopicRecord(name=name, topic_id=topic_id), *partitions)

    def write(self, folder: Path) -> Path:
        """Write it as one controller's only segment; gives the folder of the metadata log."""
        home = folder / "__cluster_metadata-0"
        home.mkdir(parents=True, exist_ok=True)
        write_segment(home / segment_name(self.batches[0].base_offset), self.batches)
        return folder


def partition(
    replicas: Sequence[int] = (1, 2, 3),
    isr: Sequence[int] | None = None,
    *,
    part: int = 0,
    leader: int | None = None,
    topic_id: uuid.UUID = TOPIC,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    recovery: int = RECOVERED,
    directories: Sequence[uuid.UUID] = (),
) -> r.PartitionRecord:
    """A new partition; by default all replicas are in the ISR and its first member leads."""
    members = tuple(replicas if isr is None else isr)
    return r.PartitionRecord(
        partition_id=part,
        topic_id=topic_id,
        replicas=tuple(replicas),
        isr=members,
        leader=members[0] if leader is None else leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        leader_recovery_state=recovery,
        directories=tuple(directories),
    )


def change(
    isr: Sequence[int] | None = None,
    *,
    leader: int = -2,
    part: int = 0,
    topic_id: uuid.UUID = TOPIC,
    recovery: int = -1,
    replicas: Sequence[int] | None = None,
    adding: Sequence[int] | None = None,
    removing: Sequence[int] | None = None,
    elr: Sequence[int] | None = None,
    last_elr: Sequence[int] | None = None,
) -> r.PartitionChangeRecord:
    """A change of a partition; what is not named stays."""
    return r.PartitionChangeRecord(
        partition_id=part,
        topic_id=topic_id,
        isr=_tuple(isr),
        leader=leader,
        leader_recovery_state=recovery,
        replicas=_tuple(replicas),
        adding_replicas=_tuple(adding),
        removing_replicas=_tuple(removing),
        eligible_leader_replicas=_tuple(elr),
        last_known_elr=_tuple(last_elr),
    )


def _tuple(ids: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if ids is None else tuple(ids)


def cluster(*, mv: int | None = 30, elr: bool = False) -> LogBuilder:
    """Three active brokers and orders-0 on all of them, led by 1."""
    return LogBuilder(mv=mv, elr=elr).brokers(1, 2, 3).topic(partition())


def on_directories(directories: Sequence[uuid.UUID] = (DIR_A, DIR_B)) -> LogBuilder:
    """orders-0 on brokers 1 and 2, in directories A of 1 and B of 2; 1 has directory C as well."""
    log = LogBuilder(mv=17)
    log.register(1, log_dirs=(DIR_A, DIR_C)).unfence(1)
    log.register(2, log_dirs=(DIR_B,)).unfence(2)
    return log.topic(partition((1, 2), directories=directories))
