"""A controller by heart: it keeps an image and decides at once, without a quorum."""

from __future__ import annotations

import itertools
import uuid
from abc import ABC, abstractmethod
from typing import Any

from minicluster.metadata.image.delta import DeltaBuilder, MetadataDelta
from minicluster.metadata.image.folded_run import fold_run
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    VersionedRecord,
)

TOPIC_IDS = {
    "orders": uuid.UUID(int=0xA),
    "bills": uuid.UUID(int=0xB),
    "__transaction_state": uuid.UUID(int=0xC),
}


def directory_of(broker: int) -> uuid.UUID:
    """The first log directory of a broker."""
    return uuid.UUID(int=0xD000 + broker)


class ControllerByHeart(ABC):
    """It takes every AlterPartition that names its epochs rightly."""

    def __init__(self) -> None:
        self.image = MetadataImage.EMPTY
        self.offset = itertools.count()
        self.alterations: list[AlterPartitionRequest] = []
        self.responses: list[ErrorCode] = []  # its next responses instead
        self.deltas: list[MetadataDelta] = []

    @abstractmethod
    def announce(self) -> None:
        """Publish the newest of ``deltas`` to the brokers."""

    def publish(self, *records: Any) -> None:
        """Commit records and publish them."""
        builder = DeltaBuilder(self.image)
        for record in records:
            versioned = (VersionedRecord(record, 0),)
            builder.take(fold_run(builder.image, versioned, next(self.offset)))
        delta = builder.build()
        self.image = delta.after
        self.deltas.append(delta)
        self.announce()

    def register(
        self,
        broker: int,
        epoch: int,
        *,
        fenced: bool,
        rack: str | None,
        log_dirs: tuple[uuid.UUID, ...],
    ) -> None:
        """Commit the registration of a new incarnation; its id is that of the epoch."""
        self.publish(
            RegisterBrokerRecord(
                broker_id=broker,
                broker_epoch=epoch,
                incarnation_id=uuid.UUID(int=epoch),
                fenced=fenced,
                rack=rack,
                end_points=(
                    RegisterBrokerRecord.BrokerEndpoint(
                        name="PLAINTEXT", host=f"host-{broker}", port=9092, security_protocol=0
                    ),
                ),
                log_dirs=log_dirs,
            )
        )

    def create_topic(
        self,
        name: str = "orders",
        *,
        replicas: tuple[int, ...] = (1, 2, 3),
        isr: tuple[int, ...] | None = None,
        min_isr: int | None = None,
    ) -> None:
        topic_id = TOPIC_IDS[name]
        records: list[Any] = [TopicRecord(name=name, topic_id=topic_id)]
        if min_isr is not None:
            records.append(_config(name, min_isr))
        records.append(
            PartitionRecord(
                partition_id=0,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas if isr is None else isr,
                leader=(replicas if isr is None else isr)[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=tuple(directory_of(b) for b in replicas),
            )
        )
        self.publish(*records)

    def change(self, name: str = "orders", **fields: Any) -> None:
        """Commit a PartitionChangeRecord for partition 0."""
        self.publish(PartitionChangeRecord(topic_id=TOPIC_IDS[name], partition_id=0, **fields))

    def configure(self, name: str, **configs: str) -> None:
        """Set configs of a topic; a name has underscores for its dots."""
        for config, value in configs.items():
            self.publish(
                ConfigRecord(
                    resource_type=2,
                    resource_name=name,
                    name=config.replace("_", "."),
                    value=value,
                )
            )

    def set_min_isr(self, name: str, value: int) -> None:
        self.publish(_config(name, value))

    def delete_topic(self, name: str = "orders") -> None:
        self.publish(RemoveTopicRecord(topic_id=TOPIC_IDS[name]))

    def fence(self, broker: int, *, fenced: bool = True) -> None:
        known = self.image.cluster.broker(broker)
        assert known is not None
        self.publish(
            BrokerRegistrationChangeRecord(
                broker_id=broker, broker_epoch=known.epoch, fenced=1 if fenced else -1
            )
        )

    def assign(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        kind = AssignReplicasToDirsResponse
        directories = []
        for directory in request.directories:
            topics = []
            for topic in directory.topics:
                for proposed in topic.partitions:
                    known = self.image.topics.partition(topic.topic_id, proposed.partition_index)
                    assert known is not None
                    self.publish(
                        PartitionChangeRecord(
                            topic_id=topic.topic_id,
                            partition_id=proposed.partition_index,
                            directories=tuple(
                                directory.id if broker == request.broker_id else other
                                for broker, other in zip(
                                    known.replicas, known.directories, strict=True
                                )
                            ),
                        )
                    )
                found = tuple(
                    kind.PartitionData(partition_index=p.partition_index) for p in topic.partitions
                )
                topics.append(kind.TopicData(topic_id=topic.topic_id, partitions=found))
            directories.append(kind.DirectoryData(id=directory.id, topics=tuple(topics)))
        return kind(directories=tuple(directories))

    def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.alterations.append(request)
        topics = []
        for topic in request.topics:
            responses = []
            for requested in topic.partitions:
                responses.append(self._alter_one(request.broker_id, topic.topic_id, requested))
            topics.append(
                AlterPartitionResponse.TopicData(
                    topic_id=topic.topic_id, partitions=tuple(responses)
                )
            )
        return AlterPartitionResponse(topics=tuple(topics))

    def _alter_one(self, broker: int, topic_id: uuid.UUID, requested: Any) -> Any:
        kind = AlterPartitionResponse.PartitionData
        known = self.image.topics.partition(topic_id, requested.partition_index)
        assert known is not None
        error = self.responses.pop(0) if self.responses else ErrorCode.NONE
        if not error and requested.partition_epoch != known.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        if not error and (known.leader, known.leader_epoch) != (broker, requested.leader_epoch):
            error = ErrorCode.FENCED_LEADER_EPOCH
        if not error and not all(self._eligible(m) for m in requested.new_isr_with_epochs):
            error = ErrorCode.INELIGIBLE_REPLICA
        if error:
            return kind(partition_index=requested.partition_index, error_code=error)
        self.publish(
            PartitionChangeRecord(
                topic_id=topic_id,
                partition_id=requested.partition_index,
                isr=tuple(member.broker_id for member in requested.new_isr_with_epochs),
                leader_recovery_state=requested.leader_recovery_state
                if requested.leader_recovery_state != known.leader_recovery_state
                else -1,
            )
        )
        now = self.image.topics.partition(topic_id, requested.partition_index)
        assert now is not None
        return kind(
            partition_index=requested.partition_index,
            leader_id=now.leader,
            leader_epoch=now.leader_epoch,
            isr=now.isr,
            leader_recovery_state=now.leader_recovery_state,
            partition_epoch=now.partition_epoch,
        )

    def _eligible(self, member: Any) -> bool:
        known = self.image.cluster.broker(member.broker_id)
        return known is not None and known.active and member.broker_epoch in (-1, known.epoch)

    def fence_and_elect(self, broker: int) -> None:
        """The end of a session: the broker leaves the ISRs and leads no more."""
        for topic, index, partition in list(self.image.topics.partitions()):
            isr = tuple(m for m in partition.isr if m != broker) or partition.isr
            fields: dict[str, Any] = {} if isr == partition.isr else {"isr": isr}
            if partition.leader == broker:
                alive = [r for r in partition.replicas if r in isr and r != broker]
                alive = [r for r in alive if self.image.cluster.is_active(r)]
                fields["leader"] = alive[0] if alive else -1
            if fields:
                self.publish(PartitionChangeRecord(topic_id=topic.id, partition_id=index, **fields))
        self.fence(broker)

    def unfence_and_elect(self, broker: int) -> None:
        """The return of a fenced broker: it leads what has no leader and it in the ISR."""
        self.fence(broker, fenced=False)
        for topic, index, partition in list(self.image.topics.partitions()):
            if partition.leader == -1 and broker in partition.isr:
                self.publish(
                    PartitionChangeRecord(topic_id=topic.id, partition_id=index, leader=broker)
                )


def _config(topic: str, min_isr: int) -> ConfigRecord:
    return ConfigRecord(
        resource_type=2, resource_name=topic, name="min.insync.replicas", value=str(min_isr)
    )
