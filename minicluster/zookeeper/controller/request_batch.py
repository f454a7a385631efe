"""The control requests of one decision, collected by broker and sent together.

LeaderAndIsr goes first, to the replicas; then UpdateMetadata, to every broker; then StopReplica. So
a client that was sent to a leader by new metadata finds one that knows that it leads, and a replica
is stopped only when its successor has been started.

Source:  KIP-497, KIP-570, KIP-704; kafka.controller.ControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol.messages import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.effects import ControlRequest
from minicluster.zookeeper.controller.leader_and_isr import (
    LeaderAndIsr,
    Leadership,
)
from minicluster.zookeeper.znodes.cluster import BrokerRegistration
from minicluster.zookeeper.znodes.partition_state import LEADER_DURING_DELETE
from minicluster.zookeeper.znodes.topics import ReplicaAssignment

_SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

_PartitionState = LeaderAndIsrRequest.LeaderAndIsrPartitionState
_StopState = StopReplicaRequest.StopReplicaPartitionState
_MetadataState = UpdateMetadataRequest.UpdateMetadataPartitionState
_State = TypeVar("_State")


class RequestBatch:
    """The control requests to brokers that follow from one decision."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._leader_and_isr: dict[int, dict[TopicPartition, _PartitionState]] = {}
        self._stop: dict[int, dict[TopicPartition, _StopState]] = {}
        self._metadata_brokers: dict[int, None] = {}
        self._metadata: dict[TopicPartition, _MetadataState] = {}

    def add_leader_and_isr(
        self,
        brokers: Iterable[int],
        partition: TopicPartition,
        leadership: Leadership,
        assignment: ReplicaAssignment,
        *,
        is_new: bool,
    ) -> None:
        """Make brokers leader and followers of a partition; every broker learns its metadata."""
        recovery_supported = self._state.settings.protocol.leader_recovery_supported
        current = leadership.leader_and_isr
        for broker in brokers:
            of_broker = self._leader_and_isr.setdefault(broker, {})
            # What is new stays new, though a later decision of the batch says nothing of it: a
            # broker with a failed directory creates the log of a new replica elsewhere, and takes
            # one that is not new for lost (LogManager.getOrCreateLog).
            before = of_broker.get(partition)
            of_broker[partition] = _PartitionState(
                topic_name=partition.topic,
                partition_index=partition.partition,
                controller_epoch=leadership.controller_epoch,
                leader=current.leader,
                leader_epoch=current.leader_epoch,
                isr=current.isr,
                partition_epoch=current.partition_epoch,
                replicas=assignment.replicas,
                adding_replicas=assignment.adding,
                removing_replicas=assignment.removing,
                is_new=is_new or (before is not None and before.is_new),
                leader_recovery_state=current.recovery_state if recovery_supported else 0,
            )
        self.add_metadata(self._state.context.broker_epochs, (partition,))

    def add_stop_replica(self, broker: int, partition: TopicPartition, *, delete: bool) -> None:
        """Stop a replica; with ``delete`` its log goes as well."""
        of_broker = self._stop.setdefault(broker, {})
        before = of_broker.get(partition)
        of_broker[partition] = _StopState(
            partition_index=partition.partition,
            leader_epoch=self._state.context.leader_epoch(partition),
            delete_partition=delete or (before is not None and before.delete_partition),
        )

    def add_metadata(self, brokers: Iterable[int], partitions: Iterable[TopicPartition]) -> None:
        """Send brokers the metadata of partitions; without partitions, of live brokers only."""
        context = self._state.context
        self._metadata_brokers.update(dict.fromkeys(brokers))
        for partition in partitions:
            leadership = context.leaderships.get(partition)
            if leadership is None:
                continue
            current = leadership.leader_and_isr
            if context.is_queued_for_deletion(partition.topic):
                current = LeaderAndIsr(leader=LEADER_DURING_DELETE, isr=current.isr)
            replicas = context.assignment(partition).replicas
            online = context.online(replicas, partition)
            self._metadata[partition] = _MetadataState(
                topic_name=partition.topic,
                partition_index=partition.partition,
                controller_epoch=leadership.controller_epoch,
                leader=current.leader,
                leader_epoch=current.leader_epoch,
                isr=current.isr,
                zk_version=current.partition_epoch,
                replicas=replicas,
                offline_replicas=tuple(replica for replica in replicas if replica not in online),
            )

    def send(self) -> None:
        """Put the requests into the channels of the brokers that are live or shutting down."""
        live = self._state.context.broker_epochs
        for broker, states in self._leader_and_isr.items():
            if broker in live:
                self._send_leader_and_isr(broker, states)
        for broker in self._metadata_brokers:
            if broker in live:
                self._send_update_metadata(broker)
        for broker, stopped in self._stop.items():
            if broker in live:
                self._send_stop_replica(broker, stopped)

    def _send_leader_and_isr(
        self, broker: int, states: dict[TopicPartition, _PartitionState]
    ) -> None:
        context, settings = self._state.context, self._state.settings
        leaders = {state.leader for state in states.values()}
        request = LeaderAndIsrRequest(
            controller_id=settings.broker_id,
            controller_epoch=context.epoch,
            broker_epoch=context.broker_epochs[broker],
            topic_states=tuple(
                LeaderAndIsrRequest.LeaderAndIsrTopicState(
                    topic_name=topic,
                    topic_id=context.topic_ids.get(topic, ZERO_UUID),
                    partition_states=tuple(of_topic),
                )
                for topic, of_topic in _by_topic(states).items()
            ),
            live_leaders=tuple(
                self._live_leader(leader, registration)
                for leader, registration in context.live_brokers.items()
                if leader in leaders
            ),
        )
        self._request(broker, request, settings.protocol.leader_and_isr_version)

    def _live_leader(
        self, leader: int, registration: BrokerRegistration
    ) -> LeaderAndIsrRequest.LeaderAndIsrLiveLeader:
        listener = self._state.settings.inter_broker_listener
        endpoint = next(each for each in registration.endpoints if each.listener == listener)
        return LeaderAndIsrRequest.LeaderAndIsrLiveLeader(
            broker_id=leader, host_name=endpoint.host, port=endpoint.port
        )

    def _send_update_metadata(self, broker: int) -> None:
        context, settings = self._state.context, self._state.settings
        request = UpdateMetadataRequest(
            controller_id=settings.broker_id,
            controller_epoch=context.epoch,
            broker_epoch=context.broker_epochs[broker],
            topic_states=tuple(
                UpdateMetadataRequest.UpdateMetadataTopicState(
                    topic_name=topic,
                    topic_id=context.topic_ids.get(topic, ZERO_UUID),
                    partition_states=tuple(of_topic),
                )
                for topic, of_topic in _by_topic(self._metadata).items()
            ),
            live_brokers=tuple(
                UpdateMetadataRequest.UpdateMetadataBroker(
                    id=live,
                    endpoints=tuple(
                        UpdateMetadataRequest.UpdateMetadataEndpoint(
                            port=endpoint.port,
                            host=endpoint.host,
                            listener=endpoint.listener,
                            security_protocol=_SECURITY_PROTOCOLS[endpoint.security_protocol],
                        )
                        for endpoint in registration.endpoints
                    ),
                    rack=registration.rack,
                )
                for live, registration in context.live_brokers.items()
            ),
        )
        self._request(broker, request, settings.protocol.update_metadata_version)

    def _send_stop_replica(self, broker: int, states: dict[TopicPartition, _StopState]) -> None:
        context, settings = self._state.context, self._state.settings
        request = StopReplicaRequest(
            controller_id=settings.broker_id,
            controller_epoch=context.epoch,
            broker_epoch=context.broker_epochs[broker],
            topic_states=tuple(
                StopReplicaRequest.StopReplicaTopicState(
                    topic_name=topic, partition_states=tuple(of_topic)
                )
                for topic, of_topic in _by_topic(states).items()
            ),
        )
        self._request(broker, request, settings.protocol.stop_replica_version)

    def _request(
        self,
        broker: int,
        request: LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest,
        version: int,
    ) -> None:
        self._state.effects.append(ControlRequest(broker, request, version))


def _by_topic(states: Mapping[TopicPartition, _State]) -> dict[str, list[_State]]:
    by_topic: dict[str, list[_State]] = {}
    for partition, state in states.items():
        by_topic.setdefault(partition.topic, []).append(state)
    return by_topic


def send_metadata(
    state: ControllerState, brokers: Iterable[int], partitions: Iterable[TopicPartition] = ()
) -> None:
    """Send UpdateMetadata alone."""
    batch = RequestBatch(state)
    batch.add_metadata(list(brokers), partitions)
    batch.send()
