"""AlterPartition (56): the leader of a partition proposes an ISR and a leader recovery state.

Versions:  0-3; 4.x serves 2-3.
           0: topics by name (KIP-497).
           1: LeaderRecoveryState (KIP-704).
           2: topics by id; INELIGIBLE_REPLICA and NEW_LEADER_ELECTED (KIP-841), for which lower
              versions have OPERATION_NOT_ATTEMPTED and FENCED_LEADER_EPOCH.
           3: the broker epoch of each member of the ISR (KIP-903).

The refusals in their order: ``deciding/alter_partition_checks.py``.
"""

from __future__ import annotations

from minicluster.controller.deciding.alter_partition_checks import (
    first_refusal,
    ineligible_error,
    offline_refusal,
)
from minicluster.controller.deciding.alter_partition_proposal import (
    Proposal,
    rejected,
    unknown_partition,
    unknown_topic,
)
from minicluster.controller.deciding.decision import Decision
from minicluster.controller.deciding.leader_election import Election
from minicluster.controller.deciding.partition_change import Targets, change_partition
from minicluster.controller.refusal import Reason, Refusal
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.partition import NO_LEADER_CHANGE, PartitionRegistration
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.records import PartitionChangeRecord, VersionedRecord
from minicluster.protocol.uuids import ZERO_UUID

PartitionData = AlterPartitionResponse.PartitionData
Outcome = PartitionRegistration | Refusal
"""A partition after its change, or the refusal of the change."""


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
    outcomes = [
        [_alter(state, request, version, topic, data, records) for data in topic.partitions]
        for topic in request.topics
    ]
    refusals = tuple(o for topic in outcomes for o in topic if isinstance(o, Refusal))
    error = ineligible_error(version)
    # KIP-841's text; as shipped, an ineligible replica refuses its own partition only.
    if state.rules.ineligible_member_refuses_all_partitions and any(
        refusal.error == error for refusal in refusals
    ):
        return Decision(response=_response(request, version, error), refusals=refusals)
    response = _response(request, version, outcomes)
    return Decision(records=tuple(records), response=response, refusals=refusals)


def _alter(
    state: ClusterState,
    request: AlterPartitionRequest,
    version: int,
    topic_data: AlterPartitionRequest.TopicData,
    data: AlterPartitionRequest.PartitionData,
    records: list[VersionedRecord],
) -> Outcome:
    index, topics = data.partition_index, state.image.topics
    topic = topics.get(topic_data.topic_id) if version >= 2 else topics.named(topic_data.topic_name)
    if topic is None:
        return unknown_topic(topic_data, index, version)
    partition = topic.partitions.get(index)
    if partition is None:
        return unknown_partition(topic.name, index)
    proposal = Proposal.of(request.broker_id, version, topic, partition, data)
    refusal = first_refusal(state, proposal) or offline_refusal(state, proposal)
    if refusal is not None:
        return refusal
    record = partition_change(state, proposal)
    if record is None:
        return partition
    records.append(record)
    change = record.record
    assert isinstance(change, PartitionChangeRecord)
    if _names_another_leader(state, change, request.broker_id):
        return _leader_changed(proposal, change.leader)
    return partition.merge(change)


@step
def partition_change(state: ClusterState, proposal: Proposal) -> VersionedRecord | None:
    """The record of a proposal; it completes a reassignment that waited for its ISR."""
    topic, partition = proposal.topic, proposal.partition
    unclean = state.unclean_election_allowed(topic.name)
    return change_partition(
        topic.id,
        proposal.data.partition_index,
        partition,
        targets(state, proposal),
        gates=state.gates,
        acceptable=state.acceptor(partition, key=proposal.key),
        default_dir=state.default_dir,
        min_isr=state.min_isr(topic),
        election=Election.UNCLEAN if unclean else Election.ONLINE,
    )


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


def _response(
    request: AlterPartitionRequest, version: int, outcomes: list[list[Outcome]] | ErrorCode
) -> AlterPartitionResponse:
    """The response with each partition's outcome, or with one error for all of them."""
    return AlterPartitionResponse(
        topics=tuple(
            AlterPartitionResponse.TopicData(
                topic_name=topic.topic_name if version < 2 else "",
                topic_id=topic.topic_id if version >= 2 else ZERO_UUID,
                partitions=tuple(
                    _partition_data(
                        data.partition_index,
                        outcomes if isinstance(outcomes, ErrorCode) else outcomes[n][p],
                    )
                    for p, data in enumerate(topic.partitions)
                ),
            )
            for n, topic in enumerate(request.topics)
        )
    )


def _partition_data(index: int, outcome: Outcome | ErrorCode) -> PartitionData:
    if isinstance(outcome, ErrorCode):
        return PartitionData(partition_index=index, error_code=outcome)
    if isinstance(outcome, Refusal):
        return PartitionData(partition_index=index, error_code=outcome.error)
    return PartitionData(
        partition_index=index,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=outcome.isr,
        leader_recovery_state=outcome.leader_recovery_state,
        partition_epoch=outcome.partition_epoch,
    )
