"""The metadata of a broker on ZooKeeper, by the requests of its controller.

    LeaderAndIsr, StopReplica, UpdateMetadata ──▶ ControlRequests ──▶ image, metadata cache

Each request ends with a publication: the image goes to the replica manager where it has changed,
and clients are shown the metadata cache.
"""

from __future__ import annotations

from collections.abc import Callable

from minicluster.actors.nodes.metadata_publisher import Published
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from minicluster.zookeeper.broker.control_requests import ControlRequests
from minicluster.zookeeper.controller.settings import ReleaseRules

Configs = dict[str, dict[str, str]]  # by topic, as the znodes have them


class ControllerMetadata:
    """The image and the metadata cache, published after each request."""

    def __init__(
        self,
        broker_id: int,
        protocol: InterBrokerProtocol,
        *,
        is_offline: Callable[[TopicPartition], bool],
        show: Callable[[], None],
        publish: Callable[[Published], None],
    ) -> None:
        self.requests = ControlRequests(broker_id, ReleaseRules.of(protocol.release))
        self._is_offline, self._show, self._publish_to = is_offline, show, publish
        self._published = MetadataImage.EMPTY
        self._publications = 0

    def lead(
        self, request: LeaderAndIsrRequest, version: int, configs: Configs | None
    ) -> LeaderAndIsrResponse:
        """Become leader and follower; the configs are those of the request's new topics, or None
        if the session expired before they were read.
        """
        if configs is None:
            return self.requests.leader_and_isr_failed(request, version)
        response = self.requests.leader_and_isr(request, version, self._is_offline)
        for topic, values in configs.items():
            if self.requests.image.topics.named(topic) is not None:
                self.requests.set_configs(topic, values)
        self.publish()
        return response

    def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        response, _ = self.requests.stop_replica(request, self._is_offline)
        self.publish()
        return response

    def update(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        response = self.requests.update_metadata(request)
        self.publish()
        return response

    def publish(self) -> None:
        """Show clients the metadata cache, and the replica manager an image that has changed."""
        self._show()
        image, before = self.requests.image, self._published
        if image is before:
            return
        self._published = image
        self._publications += 1
        self._publish_to(
            Published(
                image=image,
                delta=MetadataDelta.between(before, image),
                offset=self._publications,
                epoch=self.requests.controller_epoch,
            )
        )
