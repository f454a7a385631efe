"""The image and the configs from which a broker responds to clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from msgspec import Struct, field

from minicluster.configs.dynamic_broker import broker_levels
from minicluster.configs.effective import BrokerLevels
from minicluster.metadata.image.cluster import (
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
)
from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.rules import Rules
from minicluster.security.authorizer import StandardAuthorizer
from minicluster.values import Value

NO_CONTROLLER = -1


class KafkaApisConfig(Value, kw_only=True):
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


class OnZooKeeper(Value):
    """The part of a response that a broker on ZooKeeper shows beside its image (UpdateMetadata).

    Shapes:  offline_replicas is a function of topic and partition.
    """

    controller: int | None
    offline_replicas: Callable[[str, int], tuple[int, ...]]
    topic_ids_supported: bool


class ApiState(Struct):
    """The newest image that this broker has published.

    Shapes:  counts_at_start: the partitions of internal topics, as of the first image; by these
             it finds coordinators. on_zookeeper is None where the image is that of a metadata log.
    Units:   metadata_offset is the last offset of the image, -1 before the first one; on ZooKeeper
             the version of /feature, -1 where features are disabled.
    """

    config: KafkaApisConfig
    image: MetadataImage = MetadataImage.EMPTY
    metadata_offset: int = -1
    counts_at_start: Mapping[str, int] = field(default_factory=dict)
    kraft_version: int = 0
    on_zookeeper: OnZooKeeper | None = None
    authorizer: StandardAuthorizer | None = None

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

        Any broker forwards them to the controller, and Kafka draws one. On ZooKeeper the controller
        serves them, and it is a broker.
        Source:  KRaftMetadataCache.getRandomAliveBrokerId; ZkMetadataCache.getControllerId.
        """
        if self.on_zookeeper is not None:
            controller = self.on_zookeeper.controller
            return NO_CONTROLLER if controller is None else controller
        unfenced = [b.id for b in self.image.cluster.brokers.values() if not b.fenced]
        if self.config.broker_id in unfenced:
            return self.config.broker_id
        return unfenced[0] if unfenced else NO_CONTROLLER

    def shown_id(self, topic: TopicImage) -> UUID:
        """The id of a topic; brokers on ZooKeeper below IBP 2.8 have none."""
        if self.on_zookeeper is not None and not self.on_zookeeper.topic_ids_supported:
            return ZERO_UUID
        return topic.id
