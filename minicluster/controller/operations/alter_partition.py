"""AlterPartition (56): a leader proposes an ISR and a recovery state.

Versions:  0-3. Names below 2, ids from 2 on; broker epochs of the members from 3 on. The version
           also decides between INELIGIBLE_REPLICA and OPERATION_NOT_ATTEMPTED, NEW_LEADER_ELECTED
           and FENCED_LEADER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from minicluster.controller.deciding.decision import Decision
from minicluster.controller.deciding.partition_change import Election, Targets, change_partition
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.indexes import TopicPartition
from minicluster.metadata.image.partition import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionRegistration,
)
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.records import PartitionChangeRecord, VersionedRecord
from minicluster.protocol.uuids import ZERO_UUID

ANY_EPOCH = -1
"""The broker epoch of an ISR member of which the leader knows none."""


def alter_partition(
    state: ClusterState, request: AlterPartitionRequest, version: int, now_ms: int
) -> Decision:
    """Decide one AlterPartition. The first refusal wins, in Kafka's order.

    Shapes:  ClusterState, AlterPartitionRequest -> Decision of 0..n records and one response.
    Units:   epochs are counters, never times; -1 means "not given" and matches nothing.
    Errors:  Refused with STALE_BROKER_EPOCH for the whole; else an ErrorCode per partition.
    Source:  KIP-497, KIP-704, KIP-841, KIP-903; ReplicationControlManager.alterPartition.
    """
    if not request.topics:
        return Decision(response=AlterPartitionResponse())
    state.check_broker_epoch(request.broker_id, request.broker_epoch)
    records: list[VersionedRecord] = []
    hits: list[str] = []
    topics = []
    for asked in request.topics:
        topic = _resolve(state, asked, version)
        if topic is None:
            unknown = (
                ErrorCode.UNKNOWN_TOPIC_ID if version >= 2 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            answers = [_error(data.partition_index, unknown) for data in asked.partitions]
        else:
            answers = [
                _alter_one(state, request, version, topic, data, records, hits)
                for data in asked.partitions
            ]
        topics.append(
            AlterPartitionResponse.TopicData(
                topic_name=asked.topic_name if version < 2 else "",
                topic_id=asked.topic_id if version >= 2 else ZERO_UUID,
                partitions=tuple(answers),
            )
        )
    if state.rules.ineligible_member_refuses_all_partitions:
        ineligible = _ineligible_error(version)
        if any(p.error_code == ineligible for topic in topics for p in topic.partitions):
            return Decision(response=_refused_alike(topics, ineligible))
    return Decision(
        records=tuple(records),
        response=AlterPartitionResponse(topics=tuple(topics)),
        fault_hits=tuple(dict.fromkeys(hits)),
    )


def _resolve(
    state: ClusterState, asked: AlterPartitionRequest.TopicData, version: int
) -> TopicImage | None:
    if version >= 2:
        return state.image.topics.get(asked.topic_id)
    return state.image.topics.named(asked.topic_name)


def _alter_one(
    state: ClusterState,
    request: AlterPartitionRequest,
    version: int,
    topic: TopicImage,
    data: AlterPartitionRequest.PartitionData,
    records: list[VersionedRecord],
    hits: list[str],
) -> AlterPartitionResponse.PartitionData:
    partition = topic.partitions.get(data.partition_index)
    if partition is None:
        return _error(data.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    members = _members(data, version)
    key = (topic.id, data.partition_index)
    refusal = _refusal(state, request.broker_id, version, partition, data, members, hits)
    if refusal is ErrorCode.NONE and any(_is_lost(state, b, partition, key) for b, _ in members):
        refusal = _ineligible_error(version)
    if refusal is not ErrorCode.NONE:
        return _error(data.partition_index, refusal)
    new_isr = tuple(broker_id for broker_id, _ in members)
    recovery = data.leader_recovery_state
    if state.faults.s09_expand_while_recovering and partition.is_recovering and len(new_isr) > 1:
        recovery = RECOVERING
        hits.append("S09")
    unclean = state.unclean_election_allowed(topic.name)
    record = change_partition(
        topic.id,
        data.partition_index,
        partition,
        Targets(isr=new_isr, recovery_state=recovery),
        gates=state.gates,
        acceptable=state.acceptor(partition, key=key),
        default_dir=state.default_dir,
        min_isr=state.min_isr(topic),
        election=Election.UNCLEAN if unclean else Election.ONLINE,
    )
    if record is None:
        return _state(data.partition_index, partition)
    records.append(record)
    change = record.record
    assert isinstance(change, PartitionChangeRecord)
    tells = change.replicas is not None or not state.rules.only_reassignment_tells_new_leader
    if change.leader not in (NO_LEADER_CHANGE, request.broker_id) and tells:
        # The record is written all the same: it completes a reassignment that drops the leader.
        return _error(
            data.partition_index,
            ErrorCode.NEW_LEADER_ELECTED if version > 1 else ErrorCode.FENCED_LEADER_EPOCH,
        )
    return _state(data.partition_index, partition.merge(change))


def _members(data: AlterPartitionRequest.PartitionData, version: int) -> list[tuple[int, int]]:
    if version >= 3:
        return [(m.broker_id, m.broker_epoch) for m in data.new_isr_with_epochs]
    return [(broker_id, ANY_EPOCH) for broker_id in data.new_isr]


def _refusal(
    state: ClusterState,
    sender: int,
    version: int,
    partition: PartitionRegistration,
    data: AlterPartitionRequest.PartitionData,
    members: list[tuple[int, int]],
    hits: list[str],
) -> ErrorCode:
    """The first thing that is wrong with a proposal, or NONE.

    Source:  ReplicationControlManager.validateAlterPartitionData.
    """
    isr = [broker_id for broker_id, _ in members]
    if _let_through(state, sender, partition, data, hits):
        return ErrorCode.NONE
    if data.leader_epoch > partition.leader_epoch:
        return ErrorCode.NOT_CONTROLLER
    if data.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if data.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if len(set(isr)) < len(isr) or any(b < 0 or b not in partition.replicas for b in isr):
        return ErrorCode.INVALID_REQUEST
    if partition.leader not in isr:
        return ErrorCode.INVALID_REQUEST
    if (
        data.leader_recovery_state == RECOVERING
        and len(isr) > 1
        and not (state.faults.s09_expand_while_recovering and partition.is_recovering)
    ):
        return ErrorCode.INVALID_REQUEST
    if partition.leader_recovery_state == RECOVERED and data.leader_recovery_state == RECOVERING:
        return ErrorCode.INVALID_REQUEST
    if any(_ineligible(state, broker_id, epoch) for broker_id, epoch in members):
        if state.faults.z01_no_eligibility_check:
            hits.append("Z01")
        elif state.faults.z03_no_broker_epochs and not any(
            _ineligible(state, broker_id, ANY_EPOCH) for broker_id, _ in members
        ):
            hits.append("Z03")
        else:
            return _ineligible_error(version)
    return ErrorCode.NONE


def _let_through(
    state: ClusterState,
    sender: int,
    partition: PartitionRegistration,
    data: AlterPartitionRequest.PartitionData,
    hits: list[str],
) -> bool:
    """Whether a planted fault overlooks what is wrong with a proposal."""
    faults = state.faults
    if sender != partition.leader:
        if faults.s06_anyone_alters:
            hits.append("S06")
        return faults.s06_anyone_alters
    if data.leader_epoch < partition.leader_epoch and faults.s05_stale_leader_epoch:
        hits.append("S05")
        return True
    stale = data.partition_epoch < partition.partition_epoch
    if data.leader_epoch == partition.leader_epoch and stale and faults.s04_stale_partition_epoch:
        hits.append("S04")
        return True
    return False


def _ineligible(state: ClusterState, broker_id: int, epoch: int) -> str:
    """Why a broker may not be in an ISR, or nothing. Members of long standing are asked, too.

    Source:  ReplicationControlManager.ineligibleReplicasForIsr.
    """
    broker = state.broker(broker_id)
    if broker is None:
        return "not registered"
    if broker.in_controlled_shutdown:
        return "shutting down"
    if broker.fenced:
        return "fenced"
    if epoch not in (ANY_EPOCH, broker.epoch):
        return "broker epoch mismatch"
    return ""


def _is_lost(
    state: ClusterState, broker_id: int, partition: PartitionRegistration, key: TopicPartition
) -> bool:
    """Whether a broker's replica is known to be lost (KIP-858, KIP-589); no release asks."""
    broker = state.broker(broker_id)
    if state.rules.replica_in_failed_dir_may_join or broker is None:
        return False
    if state.offline_replicas.is_offline(broker, key):
        return True
    return not broker.has_online_dir(partition.directory_of(broker_id))


def _ineligible_error(version: int) -> ErrorCode:
    return ErrorCode.INELIGIBLE_REPLICA if version > 1 else ErrorCode.OPERATION_NOT_ATTEMPTED


def _refused_alike(
    topics: Sequence[AlterPartitionResponse.TopicData], error: ErrorCode
) -> AlterPartitionResponse:
    """The same error for everything that was asked (KIP-841's text)."""
    return AlterPartitionResponse(
        topics=tuple(
            replace(
                topic, partitions=tuple(_error(p.partition_index, error) for p in topic.partitions)
            )
            for topic in topics
        )
    )


def _error(index: int, error: ErrorCode) -> AlterPartitionResponse.PartitionData:
    return AlterPartitionResponse.PartitionData(partition_index=index, error_code=error)


def _state(index: int, partition: PartitionRegistration) -> AlterPartitionResponse.PartitionData:
    return AlterPartitionResponse.PartitionData(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
