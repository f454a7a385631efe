"""The coordinators of one broker, beside its replica manager, which makes them when it needs them.

Source:  BrokerServer.startup (groupCoordinator, transactionCoordinator).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial

from minicluster.actors.links import Packet
from minicluster.actors.nodes.authorization import access_of
from minicluster.actors.nodes.metadata_publisher import Published
from minicluster.actors.nodes.shell import NodeContext
from minicluster.channel.controller_channel import CorrelationIds
from minicluster.configs.effective import BrokerLevels
from minicluster.coordinator.apis import GROUP_APIS, TRANSACTION_APIS
from minicluster.coordinator.group.config import GroupCoordinatorConfig
from minicluster.coordinator.group.machine import GroupCoordinatorMachine
from minicluster.coordinator.group.request_context import ClientContext
from minicluster.coordinator.internal_topics import counts_at_start
from minicluster.coordinator.runtime.internal_topic import InternalTopic
from minicluster.coordinator.transaction.config import TransactionCoordinatorConfig
from minicluster.coordinator.transaction.machine import TransactionCoordinatorMachine
from minicluster.coordinator.write_txn_markers import handle_write_txn_markers
from minicluster.effects import Effect
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.security.acls import Operation, ResourceType


class Coordinators:
    """Both coordinators on the logs of their internal topics. Each input returns its effects."""

    def __init__(
        self,
        context: NodeContext,
        replicas: ReplicaManagerState,
        ids: CorrelationIds,
        new_uuid: Callable[[], uuid.UUID],
    ) -> None:
        levels = BrokerLevels({}, {}, context.config.static)
        of_groups = GroupCoordinatorConfig.of(levels, context.node_id)
        self._levels = levels
        self._authorizer = context.authorizer
        self._replicas = replicas
        self._offsets = InternalTopic(replicas, GROUP_METADATA_TOPIC, of_groups.offsets_topic_codec)
        self.groups = GroupCoordinatorMachine(
            context.node_id,
            of_groups,
            self._offsets,
            new_uuid=new_uuid,
            rules=context.rules,
            faults=context.faults,
        )
        self._transaction_log = InternalTopic(replicas, TRANSACTION_STATE_TOPIC)
        self.transactions = TransactionCoordinatorMachine(
            context.node_id,
            TransactionCoordinatorConfig.of(levels),
            self._transaction_log,
            ids=ids,
            rules=context.rules,
        )

    def startup(self, image: MetadataImage) -> None:
        """Find coordinators by the partitions that the internal topics have in the first image."""
        counts = counts_at_start(image, self._levels)
        self.groups.startup(counts[GROUP_METADATA_TOPIC])
        self.transactions.startup(counts[TRANSACTION_STATE_TOPIC], counts[GROUP_METADATA_TOPIC])

    def on_request(self, packet: Packet, now_ms: int) -> list[Effect]:
        """Take a request of one of ``COORDINATOR_APIS``; the packet is the token of its response.

        WriteTxnMarkers goes to the logs of partitions, of which one may be that of groups.
        """
        exchange = packet.exchange
        request, version = packet.body, exchange.version
        if type(request) in GROUP_APIS:
            access = access_of(exchange.sender.requester, self._authorizer)
            client = ClientContext(exchange.sender.client_id)
            if access is not None:
                describes = partial(access.may, Operation.DESCRIBE, ResourceType.TOPIC)
                client = ClientContext(exchange.sender.client_id, may_describe=describes)
            return self.groups.on_request(packet, request, version, client, now_ms)
        if type(request) in TRANSACTION_APIS:
            return self.transactions.on_request(packet, request, version, now_ms)
        handle_write_txn_markers(self._replicas, self.groups.state, packet, request, now_ms)
        return []

    def on_metadata(self, published: Published, now_ms: int) -> list[Effect]:
        """Follow the leaders of the internal topics."""
        delta = published.delta
        effects = self.groups.on_metadata(delta, published.offset, now_ms)
        return effects + self.transactions.on_metadata(delta, now_ms)

    def owns_timer(self, name: str) -> bool:
        """True for the name of a timer that a coordinator sets."""
        return name in self.groups.timers or name in self.transactions.timers

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """Run what is due."""
        return self.groups.on_timer(name, now_ms) + self.transactions.on_timer(name, now_ms)

    def on_committed(self, now_ms: int) -> list[Effect] | None:
        """Complete what waited for records that are committed since the last call.

        Shapes:  -> None: no high watermark of an internal topic has risen.
        """
        offsets = self._offsets.take_risen_high_watermarks()
        effects: list[Effect] = []
        for partition, offset in offsets:
            effects += self.groups.on_high_watermark(partition, offset, now_ms)
        states = self._transaction_log.take_risen_high_watermarks()
        for partition, offset in states:
            effects += self.transactions.on_high_watermark(partition, offset, now_ms)
        return effects if offsets or states else None
