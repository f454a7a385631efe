"""The broker processes of a workload: their state, and the requests that they send.

They behave as Kafka's do. One that shuts down requests it until it is granted, one without
directories stops, and a new incarnation reports the epoch of its last clean shutdown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.supported_features import supported_features
from minicluster.protocol import messages as m
from minicluster.protocol.messages.kip_texts.kip_589 import AlterReplicaStateRequest
from minicluster.rules import FailedReplicas, Rules
from tests.workload.operations import BROKERS, DIRECTORIES

CLUSTER_ID = "workload"
RACKS = ("a", "b", None)


@dataclass(slots=True)
class Process:
    """One broker process, running or not.

    Shapes:  epoch is None until the controller has responded; clean_epoch is the one that the
             last clean shutdown left on disk.
    """

    id: int
    incarnation: int = 0
    running: bool = False
    muted: bool = False
    stopping: bool = False
    epoch: int | None = None
    clean_epoch: int = -1
    directories: list[UUID] = field(default_factory=list)
    failed: list[UUID] = field(default_factory=list)
    cordoned: tuple[UUID, ...] = ()
    _made: int = 0

    def start(self, *, clean: bool, new_dirs: bool) -> None:
        """Start, or die and start again; failed directories are replaced or come back."""
        if self.running or not clean:
            self.clean_epoch = -1
        self.incarnation += 1
        self.running, self.muted, self.stopping = True, False, False
        self.epoch = None
        if new_dirs:
            self.directories = [d for d in self.directories if d not in self.failed]
        self.failed = []
        self.cordoned = tuple(d for d in self.cordoned if d in self.directories)
        while len(self.directories) < DIRECTORIES:
            self._made += 1
            self.directories.append(UUID(int=(1 << 64) + (self.id << 16) + 0x1000 + self._made))

    def stop(self, *, clean: bool) -> None:
        """The process ends."""
        self.running = False
        self.clean_epoch = self.epoch if clean and self.epoch is not None else -1

    @property
    def is_connected(self) -> bool:
        """Its requests reach the controller."""
        return self.running and not self.muted

    def registration(self, rules: Rules) -> m.BrokerRegistrationRequest:
        """Its registration; an amended one names the directories it started with, as Kafka's."""
        Request = m.BrokerRegistrationRequest
        return Request(
            broker_id=self.id,
            cluster_id=CLUSTER_ID,
            incarnation_id=UUID(int=(2 << 64) + (self.id << 16) + self.incarnation),
            listeners=(Request.Listener(name="PLAINTEXT", host="h", port=9092 + self.id),),
            features=tuple(
                Request.Feature(
                    name=name,
                    min_supported_version=low,
                    max_supported_version=high,
                )
                for name, (low, high) in supported_features(rules, unstable=True).items()
            ),
            rack=RACKS[self.id % len(RACKS)],
            log_dirs=tuple(self.directories),
            previous_broker_epoch=self.clean_epoch,
        )

    def heartbeat(
        self, offset: int, rules: Rules, *, want_fence: bool = False, stale: bool = False
    ) -> m.BrokerHeartbeatRequest:
        """Its heartbeat.

        Units:   offset is that of the last metadata record that it has read.
        """
        assert self.epoch is not None
        reports = rules.failed_replicas_reported_by is FailedReplicas.HEARTBEAT
        return m.BrokerHeartbeatRequest(
            broker_id=self.id,
            broker_epoch=self.epoch - 1 if stale else self.epoch,
            current_metadata_offset=offset,
            want_fence=want_fence,
            want_shut_down=self.stopping or len(self.failed) == len(self.directories),
            offline_log_dirs=tuple(self.failed) if reports else (),
            cordoned_log_dirs=self.cordoned,
        )

    def report(self, image: MetadataImage) -> AlterReplicaStateRequest | None:
        """KIP-589: its replicas that have failed; each directory holds every other partition."""
        if self.epoch is None or not self.failed:
            return None
        kind = AlterReplicaStateRequest
        failed = [self.directories.index(d) for d in self.failed]
        topics = []
        for topic in image.topics:
            lost = [
                kind.PartitionData(partition_id=index)
                for index, partition in topic.items()
                if self.id in partition.replicas and index % DIRECTORIES in failed
            ]
            if lost:
                topics.append(kind.TopicData(topic=topic.name, partitions=tuple(lost)))
        return kind(broker_id=self.id, broker_epoch=self.epoch, topics=tuple(topics))


def all_processes() -> dict[int, Process]:
    """Every broker, none of them started."""
    return {broker_id: Process(broker_id) for broker_id in BROKERS}
