"""LeaderAndIsr (4), StopReplica (5) and UpdateMetadata (6), as a broker takes them.

Their content becomes the broker's image: LeaderAndIsr has the partitions with a replica here,
UpdateMetadata all others and the live brokers. The replica manager then acts on it as in KRaft.
Clients are shown the metadata cache, which is UpdateMetadata alone.

Three epochs keep old requests out: the controller epoch (one of an earlier controller), the broker
epoch (one that was meant for the process before a restart, KIP-380), and for each partition the
leader epoch (one that a newer request has overtaken).

Versions: LeaderAndIsr 0-7, StopReplica 0-4, UpdateMetadata 0-8 (minicluster/protocol/messages).
Source:   KIP-380, KIP-497, KIP-516; kafka.server.KafkaApis.handleLeaderAndIsrRequest,
          ReplicaManager.becomeLeaderOrFollower, stopReplicas, maybeUpdateMetadataCache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from minicluster.metadata.image.configs import BROKER, TOPIC
from minicluster.metadata.image.features import FeaturesImage
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.image.partition import NO_LEADER
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from minicluster.protocol.records import VersionedRecord
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.values import replace
from minicluster.zookeeper.broker.metadata_cache import MetadataCache
from minicluster.zookeeper.controller.settings import ReleaseRules
from minicluster.zookeeper.znodes.partition_state import EPOCH_DURING_DELETE, LEADER_DURING_DELETE
from minicluster.zookeeper.znodes.records import (
    broker_record,
    config_records,
    first_records,
    id_of_name,
    no_broker_record,
    no_topic_record,
    partition_record,
    topic_record,
)

NO_GIVEN_EPOCH = -1
UNKNOWN_BROKER_EPOCH = -1  # of other brokers: UpdateMetadata has none
IDS_IN_RESPONSE_SINCE = 5

_State = LeaderAndIsrRequest.LeaderAndIsrPartitionState


class ControlRequests:
    """The image of one broker, and the newest controller of which it has had a request."""

    def __init__(self, broker: int, release: ReleaseRules | None = None) -> None:
        self.broker = broker
        self._release = release or ReleaseRules()
        self._ids: dict[TopicPartition, UUID] = {}  # of the logs here
        self._in_deletion: set[str] = set()  # topics
        self.broker_epoch = -1
        self.controller_epoch = 0
        self.controller: int | None = None
        self.image = MetadataImage.EMPTY
        self.cache = MetadataCache()
        self.hosted: dict[TopicPartition, _State] = {}
        self._offset = 0
        self._apply(first_records())

    def new_topics(self, request: LeaderAndIsrRequest) -> list[str]:
        """The topics whose configs are to be read before their first replica starts."""
        return [
            topic.topic_name
            for topic in request.topic_states
            if self.image.topics.named(topic.topic_name) is None
        ]

    def set_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """The configs of a topic have been read."""
        before = dict(self.image.configs.of(TOPIC, topic))
        self._apply(config_records(topic, before, configs))

    def set_broker_configs(self, name: str, configs: Mapping[str, str]) -> bool:
        """Take configs of this broker, or without a name those of all; says if any is another."""
        before = dict(self.image.configs.of(BROKER, name))
        records = config_records(name, before, configs, BROKER)
        self._apply(records)
        return bool(records)

    def is_stale(self, controller_epoch: int, broker_epoch: int) -> ErrorCode | None:
        """The refusal of a request of an old controller, or for an earlier registration."""
        if broker_epoch != NO_GIVEN_EPOCH and broker_epoch < self.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return None

    # LeaderAndIsr

    def leader_and_isr(
        self,
        request: LeaderAndIsrRequest,
        version: int,
        is_offline: Callable[[TopicPartition], bool],
    ) -> LeaderAndIsrResponse:
        """Become leader and follower of partitions, each in a newer leader epoch only.

        Errors:  NOT_LEADER_OR_FOLLOWER for the whole request, of which nothing is done, where a
                 partition without a log is to get a topic id in the leader epoch that it has.
        """
        refusal = self.is_stale(request.controller_epoch, request.broker_epoch)
        if refusal is not None:
            return self._response(request, version, refusal, {}, refusal)
        self.controller_epoch, self.controller = request.controller_epoch, request.controller_id
        if self._lacks_log(request, is_offline):
            failed = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return self._response(request, version, failed, {}, failed)
        errors: dict[TopicPartition, ErrorCode] = {}
        for topic in request.topic_states:
            for state in topic.partition_states:
                partition = TopicPartition(topic.topic_name, state.partition_index)
                errors[partition] = self._become(
                    partition, topic.topic_id, state, is_offline(partition)
                )
        return self._response(request, version, ErrorCode.NONE, errors, None)

    def _lacks_log(
        self, request: LeaderAndIsrRequest, is_offline: Callable[[TopicPartition], bool]
    ) -> bool:
        """A new partition comes in leader epoch -1, which is the one that it has before its first.

        Kafka expects a log then, and fails.
        Source:  kafka.server.ReplicaManager.becomeLeaderOrFollower, localLogOrException.
        """
        return any(
            state.leader_epoch == NO_GIVEN_EPOCH
            and topic.topic_id != ZERO_UUID
            and partition not in self.hosted
            and partition not in self._ids
            and not is_offline(partition)
            for topic in request.topic_states
            for state in topic.partition_states
            for partition in (TopicPartition(topic.topic_name, state.partition_index),)
        )

    def leader_and_isr_failed(
        self, request: LeaderAndIsrRequest, version: int
    ) -> LeaderAndIsrResponse:
        """The configs of a new topic could not be read: no partition changes.

        Source:  kafka.server.ReplicaManager.becomeLeaderOrFollower, whose exception
                 LeaderAndIsrRequest.getErrorResponse tells of each partition.
        """
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        if request.controller_epoch < self.controller_epoch:
            error = ErrorCode.STALE_CONTROLLER_EPOCH
        else:
            self.controller_epoch, self.controller = request.controller_epoch, request.controller_id
        return self._response(request, version, error, {}, error)

    def _become(
        self, partition: TopicPartition, topic_id: UUID, state: _State, offline: bool
    ) -> ErrorCode:
        if offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known_id = self._ids.get(partition, ZERO_UUID)
        if ZERO_UUID not in (topic_id, known_id) and topic_id != known_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        before = self.hosted.get(partition)
        epoch = NO_GIVEN_EPOCH if before is None else before.leader_epoch
        if state.leader_epoch <= epoch:
            same = before is not None and state.leader_epoch == epoch
            if same and self._takes_id(partition, topic_id, known_id, state):
                return ErrorCode.NONE
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if self.broker not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self._in_deletion.discard(partition.topic)
        if topic_id != ZERO_UUID:
            self._ids[partition] = topic_id
        if state.leader != self.broker and state.leader not in self.image.cluster.brokers.rows:
            # A leader that is not alive is not followed, and its epoch is not taken.
            if before is not None:
                return ErrorCode.NONE
            state = replace(state, leader=NO_LEADER, leader_epoch=NO_GIVEN_EPOCH)
        self.hosted[partition] = state
        self._put(
            partition,
            topic_id,
            replicas=state.replicas,
            isr=state.isr,
            adding_replicas=state.adding_replicas,
            removing_replicas=state.removing_replicas,
            leader=state.leader,
            leader_recovery_state=state.leader_recovery_state,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
        )
        return ErrorCode.NONE

    def _takes_id(
        self, partition: TopicPartition, topic_id: UUID, known_id: UUID, state: _State
    ) -> bool:
        """The levels have changed: the leader epoch is the same, and the log gets its first id.

        Without an id in the request the log keeps its own, and a follower continues without it.
        Source:  KIP-516; kafka.server.ReplicaManager.becomeLeaderOrFollower.
        """
        if topic_id == ZERO_UUID:
            return known_id != ZERO_UUID and state.leader != self.broker
        if known_id == ZERO_UUID:
            self._ids[partition] = topic_id
            return True
        return False

    def _response(
        self,
        request: LeaderAndIsrRequest,
        version: int,
        code: ErrorCode,
        errors: Mapping[TopicPartition, ErrorCode],
        repeated: ErrorCode | None,
    ) -> LeaderAndIsrResponse:
        kind = LeaderAndIsrResponse
        by_topic: dict[tuple[str, UUID], list[LeaderAndIsrResponse.LeaderAndIsrPartitionError]] = {}
        for topic in request.topic_states:
            for state in topic.partition_states:
                partition = TopicPartition(topic.topic_name, state.partition_index)
                error = errors.get(partition, repeated)
                if error is not None:
                    named = version < IDS_IN_RESPONSE_SINCE
                    by_topic.setdefault((topic.topic_name, topic.topic_id), []).append(
                        kind.LeaderAndIsrPartitionError(
                            topic_name=topic.topic_name if named else "",
                            partition_index=state.partition_index,
                            error_code=error,
                        )
                    )
        if version < IDS_IN_RESPONSE_SINCE:
            flat = tuple(error for partitions in by_topic.values() for error in partitions)
            return kind(error_code=code, partition_errors=flat)
        return kind(
            error_code=code,
            topics=tuple(
                kind.LeaderAndIsrTopicError(topic_id=topic_id, partition_errors=tuple(partitions))
                for (_, topic_id), partitions in by_topic.items()
            ),
        )

    # StopReplica

    def stop_replica(
        self, request: StopReplicaRequest, is_offline: Callable[[TopicPartition], bool]
    ) -> tuple[StopReplicaResponse, list[TopicPartition]]:
        """Stop replicas; returns the response and those whose log is to be deleted as well."""
        refusal = self.is_stale(request.controller_epoch, request.broker_epoch)
        if refusal is not None:
            return StopReplicaResponse(error_code=refusal), []
        self.controller_epoch, self.controller = request.controller_epoch, request.controller_id
        errors, deleted = [], []
        for topic in request.topic_states:
            for state in topic.partition_states:
                partition = TopicPartition(topic.topic_name, state.partition_index)
                code = self._stop(partition, state, is_offline(partition))
                if code == ErrorCode.NONE and state.delete_partition:
                    deleted.append(partition)
                errors.append(
                    StopReplicaResponse.StopReplicaPartitionError(
                        topic_name=partition.topic,
                        partition_index=partition.partition,
                        error_code=code,
                    )
                )
        return StopReplicaResponse(partition_errors=tuple(errors)), deleted

    def _stop(
        self,
        partition: TopicPartition,
        state: StopReplicaRequest.StopReplicaPartitionState,
        offline: bool,
    ) -> ErrorCode:
        if offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = self.hosted.get(partition)
        unconditional = state.leader_epoch in (NO_GIVEN_EPOCH, EPOCH_DURING_DELETE)
        if known is not None and not unconditional:
            same = state.leader_epoch == known.leader_epoch
            old = state.leader_epoch < known.leader_epoch
            if old or (same and not self._release.stops_in_same_epoch):
                return ErrorCode.FENCED_LEADER_EPOCH
        if known is not None:
            self._without_this_broker(partition, deleted=state.delete_partition)
        if state.delete_partition:
            self._ids.pop(partition, None)
            self.hosted.pop(partition, None)  # one that is stopped keeps its leader epoch
            self._forget_deleted(partition.topic)
        return ErrorCode.NONE

    def _without_this_broker(self, partition: TopicPartition, *, deleted: bool) -> None:
        """A stopped replica follows nobody; a deleted one leaves the replicas."""
        topic_id = self._topic_id(partition.topic)
        registration = None if topic_id is None else self._registration(partition)
        if registration is None or topic_id is None:
            return
        replicas = registration.replicas
        if deleted:
            replicas = tuple(replica for replica in replicas if replica != self.broker)
        self._put(
            partition,
            topic_id,
            replicas=replicas,
            isr=tuple(replica for replica in registration.isr if replica != self.broker),
            leader=NO_LEADER
            if registration.leader == self.broker or not deleted
            else registration.leader,
            leader_epoch=registration.leader_epoch,
            partition_epoch=registration.partition_epoch + 1,
        )

    # UpdateMetadata

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """The live brokers, and the partitions that this broker has no replica of."""
        refusal = self.is_stale(request.controller_epoch, request.broker_epoch)
        if refusal is not None:
            return UpdateMetadataResponse(error_code=refusal)
        self.controller_epoch, self.controller = request.controller_epoch, request.controller_id
        self.cache.update(request)
        self._live_brokers(request)
        for topic in request.topic_states:
            for state in topic.partition_states:
                self._metadata(TopicPartition(topic.topic_name, state.partition_index),
                               topic.topic_id, state)  # fmt: skip
        return UpdateMetadataResponse()

    def _live_brokers(self, request: UpdateMetadataRequest) -> None:
        live = {broker.id: broker for broker in request.live_brokers}
        registered = self.image.cluster.brokers.rows
        for gone in [broker for broker in registered if broker not in live]:
            self._apply([no_broker_record(gone, registered[gone].epoch)])
        for broker in request.live_brokers:
            endpoints = [(each.listener, each.host, each.port) for each in broker.endpoints]
            known = registered.get(broker.id)
            addresses = known and [(each.name, each.host, each.port) for each in known.endpoints]
            if known is None or addresses != endpoints:
                self._offset += 1
                incarnation = UUID(int=self._offset)
                record = broker_record(broker.id, UNKNOWN_BROKER_EPOCH, incarnation, endpoints)
                self._apply([record])

    def _metadata(
        self,
        partition: TopicPartition,
        topic_id: UUID,
        state: UpdateMetadataRequest.UpdateMetadataPartitionState,
    ) -> None:
        if state.leader == LEADER_DURING_DELETE:
            self._in_deletion.add(partition.topic)
            self._forget_deleted(partition.topic)
            return
        self._in_deletion.discard(partition.topic)
        if partition in self.hosted or self.broker in state.replicas:
            return  # LeaderAndIsr and StopReplica alone change what this broker has
        self._put(
            partition,
            topic_id,
            replicas=state.replicas,
            isr=state.isr,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.zk_version,
        )

    def _forget_deleted(self, name: str) -> None:
        """A topic that is deleted goes when the last partition hosted here is deleted.

        UpdateMetadata names the deletion before StopReplica deletes the logs.
        """
        topic = self.image.topics.named(name)
        if topic is None or name not in self._in_deletion:
            return
        if not any(partition.topic == name for partition in self.hosted):
            self._in_deletion.discard(name)
            self._apply([no_topic_record(topic.id)])

    # the image

    @property
    def shown(self) -> MetadataImage:
        """The image for clients: no feature was ever finalized on ZooKeeper."""
        return replace(self.image, topics=self.cache.topics, features=FeaturesImage())

    def _topic_id(self, topic: str) -> UUID | None:
        image = self.image.topics.named(topic)
        return None if image is None else image.id

    def _registration(self, partition: TopicPartition) -> Any:
        image = self.image.topics.named(partition.topic)
        return None if image is None else image.partitions.get(partition.partition)

    def _put(self, partition: TopicPartition, topic_id: UUID, **values: Any) -> None:
        wanted = id_of_name(partition.topic) if topic_id == ZERO_UUID else topic_id
        known = self._topic_id(partition.topic)
        records = []
        if known is not None and known != wanted:
            records.append(no_topic_record(known))
        if known != wanted:
            records.append(topic_record(partition.topic, wanted))
        records.append(partition_record(wanted, partition.partition, **values))
        self._apply(records)

    def _apply(self, records: list[VersionedRecord]) -> None:
        for record in records:
            self.image = apply(self.image, record, offset=self._offset)
            self._offset += 1
