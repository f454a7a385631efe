"""The image and the configs from which a broker responds to clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from minicluster.configs.dynamic_broker import broker_levels
from minicluster.configs.effective import BrokerLevels
from minicluster.metadata.image.cluster import (
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
)
from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.rules import Rules

NO_CONTROLLER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaApisConfig:
    """One broker's own settings.

    Shapes:  listener: the one that clients use; static: its static configs by Kafka's names;
             features: the lowest and the highest level of each feature that it supports; unserved:
             the API keys that it does not advertise, though a broker of the release serves them.
    """

    broker_id: int
    cluster_id: str
    listener: str = "PLAINTEXT"
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    static: Mapping[str, str] = field(default_factory=dict)
    rules: Rules = Rules.KAFKA_4_3
    unserved: frozenset[int] = frozenset()


@dataclass(slots=True)
class ApiState:
    """The newest image that this broker has published, and what clients are shown of it.

    Units:   metadata_offset is the last offset of the image, -1 before the first one.
    Source:  kafka.server.MetadataCache, KRaftMetadataCache.
    """

    config: KafkaApisConfig
    image: MetadataImage = MetadataImage.EMPTY
    metadata_offset: int = -1
    kraft_version: int = 0

    @property
    def rules(self) -> Rules:
        """The release that this broker is of."""
        return self.config.rules

    @property
    def broker_levels(self) -> BrokerLevels:
        """This broker's configs."""
        configs = self.image.configs
        return broker_levels(
            configs.of(BROKER, str(self.config.broker_id)),
            configs.of(BROKER, CLUSTER_DEFAULT),
            self.config.static,
        )

    def endpoint(self, node: BrokerRegistration | ControllerRegistration) -> Endpoint | None:
        """Where clients reach a node, None where it does not have their listener."""
        for endpoint in node.endpoints:
            if endpoint.name == self.config.listener:
                return endpoint
        return None

    def controller_id(self) -> int:
        """The broker for clients to send administrative requests to: this one if it is unfenced.

        Any broker forwards them to the controller, and Kafka draws one.

        Source:  KRaftMetadataCache.getRandomAliveBrokerId.
        """
        unfenced = [b.id for b in self.image.cluster.brokers.values() if not b.fenced]
        if self.config.broker_id in unfenced:
            return self.config.broker_id
        return unfenced[0] if unfenced else NO_CONTROLLER

    def shown_id(self, topic: TopicImage) -> UUID:
        """The id of a topic."""
        return topic.id

    def offline_replicas(
        self, topic: str, index: int, partition: PartitionRegistration
    ) -> tuple[int, ...]:
        """The replicas on brokers that are fenced or out of reach, or in a failed directory.

        Source:  KRaftMetadataCache.getOfflineReplicas.
        """
        offline = []
        for replica, directory in zip(partition.replicas, partition.directories, strict=True):
            broker = self.image.cluster.broker(replica)
            if (
                broker is None
                or broker.fenced
                or self.endpoint(broker) is None
                or not broker.has_online_dir(directory)
            ):
                offline.append(replica)
        return tuple(offline)
