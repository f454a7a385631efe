"""AlterPartition (56): the leader of a partition proposes an ISR and a leader recovery state.

Versions:  0-3; 4.x serves 2-3.
           0: topics by name (KIP-497).
           1: LeaderRecoveryState (KIP-704).
           2: topics by id; INELIGIBLE_REPLICA and NEW_LEADER_ELECTED (KIP-841), for which lower
              versions have OPERATION_NOT_ATTEMPTED and FENCED_LEADER_EPOCH.
           3: the broker epoch of each member of the ISR (KIP-903).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from minicluster.controller.deciding.alter_partition_checks import (
    Proposal,
    first_refusal,
    ineligible_error,
    offline_refusal,
    rejected,
)
from minicluster.controller.deciding.decision import Decision
from minicluster.controller.deciding.leader_election import Election
from minicluster.controller.deciding.partition_change import Targets, change_partition
from minicluster.controller.refusal import Reason, Refusal
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.partition import NO_LEADER_CHANGE, PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.records import PartitionChangeRecord, VersionedRecord
from minicluster.protocol.uuids import ZERO_UUID

PartitionData = AlterPartitionResponse.PartitionData


def alter_partition(
    state: ClusterState, request: AlterPartitionRequest, version: int, now_ms: int
) -> Decision:
    """Decide one AlterPartition: each partition is changed or refused by itself.

    Shapes:  ClusterState, AlterPartitionRequest -> Decision of 0..n records and one response.
    Units:   epochs are counters, never times; -1 means "not given" and matches nothing.
    Errors:  Refused with STALE_BROKER_EPOCH for the whole; else an ErrorCode per partition.
    Source:  KIP-497, KIP-704, KIP-841, KIP-903; ReplicationControlManager.alterPartition.
    """
    if not request.topics:
        return Decision(response=AlterPartitionResponse())
    state.check_broker_epoch(request.broker_id, request.broker_epoch)
    records: list[VersionedRecord] = []
    refusals: list[Refusal] = []
    topics = []
    for data in request.topics:
        topic = _resolve(state, data, version)
        if topic is None:
            partitions = [_unknown_topic(data, p, version, refusals) for p in data.partitions]
        else:
            partitions = [
                _alter(state, request, version, topic, p, records, refusals)
                for p in data.partitions
            ]
        topics.append(
            AlterPartitionResponse.TopicData(
                topic_name=data.topic_name if version < 2 else "",
                topic_id=data.topic_id if version >= 2 else ZERO_UUID,
                partitions=tuple(partitions),
            )
        )
    if state.rules.ineligible_member_refuses_all_partitions:
        # KIP-841's text; as shipped, an ineligible replica refuses its own partition only.
        error = ineligible_error(version)
        if any(p.error_code == error for topic in topics for p in topic.partitions):
            return Decision(response=_all_refused(topics, error), refusals=tuple(refusals))
    return Decision(
        records=tuple(records),
        response=AlterPartitionResponse(topics=tuple(topics)),
        refusals=tuple(refusals),
    )


def _resolve(
    state: ClusterState, data: AlterPartitionRequest.TopicData, version: int
) -> TopicImage | None:
    if version >= 2:
        return state.image.topics.get(data.topic_id)
    return state.image.topics.named(data.topic_name)


def _unknown_topic(
    topic: AlterPartitionRequest.TopicData,
    data: AlterPartitionRequest.PartitionData,
    version: int,
    refusals: list[Refusal],
) -> PartitionData:
    by_id = version >= 2
    error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    key = f"topic ID {topic.topic_id}" if by_id else f"topic {topic.topic_name}"
    refusals.append(
        Refusal(
            error=error,
            reason=Reason.UNKNOWN_TOPIC,
            message=f"Rejecting AlterPartition request for unknown {key}.",
            topic=topic.topic_name,
            partition=data.partition_index,
        )
    )
    return _error(data.partition_index, error)


def _alter(
    state: ClusterState,
    request: AlterPartitionRequest,
    version: int,
    topic: TopicImage,
    data: AlterPartitionRequest.PartitionData,
    records: list[VersionedRecord],
    refusals: list[Refusal],
) -> PartitionData:
    index = data.partition_index
    partition = topic.partitions.get(index)
    if partition is None:
        refusals.append(
            Refusal(
                error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                reason=Reason.UNKNOWN_PARTITION,
                message="Rejecting AlterPartition request for unknown partition "
                f"{topic.name}-{index}.",
                topic=topic.name,
                partition=index,
            )
        )
        return _error(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    proposal = Proposal.of(request.broker_id, version, topic, partition, data)
    refusal = first_refusal(state, proposal) or offline_refusal(state, proposal)
    if refusal is not None:
        refusals.append(refusal)
        return _error(index, refusal.error)
    unclean = state.unclean_election_allowed(topic.name)
    record = change_partition(
        topic.id,
        index,
        partition,
        targets(state, proposal),
        gates=state.gates,
        acceptable=state.acceptor(partition, key=proposal.key),
        default_dir=state.default_dir,
        min_isr=state.min_isr(topic),
        election=Election.UNCLEAN if unclean else Election.ONLINE,
    )
    if record is None:
        return _state(index, partition)
    records.append(record)
    change = record.record
    assert isinstance(change, PartitionChangeRecord)
    if _names_another_leader(state, change, request.broker_id):
        refusal = _leader_changed(proposal, change.leader)
        refusals.append(refusal)
        return _error(index, refusal.error)
    return _state(index, partition.merge(change))


@step
def targets(state: ClusterState, proposal: Proposal) -> Targets:
    """The proposed ISR and recovery state, as the targets of the partition change."""
    return Targets(isr=proposal.isr, recovery_state=proposal.data.leader_recovery_state)


def _names_another_leader(state: ClusterState, change: PartitionChangeRecord, sender: int) -> bool:
    if change.leader in (NO_LEADER_CHANGE, sender):
        return False
    return change.replicas is not None or not state.rules.new_leader_elected_by_reassignment_only


def _leader_changed(proposal: Proposal, leader: int) -> Refusal:
    """An error although the record is written: the new ISR ends the reassignment of its leader.

    The sender must not take the new ISR for its own; it learns of its successor from the metadata.
    """
    error = ErrorCode.NEW_LEADER_ELECTED
    if proposal.version < 2:
        error = ErrorCode.FENCED_LEADER_EPOCH
    return rejected(proposal, error, Reason.LEADER_CHANGED, f"its ISR made {leader} the leader")


def _all_refused(
    topics: Sequence[AlterPartitionResponse.TopicData], error: ErrorCode
) -> AlterPartitionResponse:
    return AlterPartitionResponse(
        topics=tuple(
            replace(
                topic, partitions=tuple(_error(p.partition_index, error) for p in topic.partitions)
            )
            for topic in topics
        )
    )


def _error(index: int, error: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=index, error_code=error)


def _state(index: int, partition: PartitionRegistration) -> PartitionData:
    return PartitionData(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
