"""AlterIsr, as the texts of KIP-497 and KIP-704 have it; AlterPartition is what shipped.

Versions:  0 of KIP-497's text, 0-1 of KIP-704's. Each is served where the rules say so, at any
           metadata.version; everywhere else it is UNSUPPORTED_VERSION.

KIP-497's is answered on receipt and decided a moment later: an answer of NONE is no promise, and
the outcome is what the metadata say. KIP-704's is answered like AlterPartition, once committed.
"""

from __future__ import annotations

from minicluster.controller.deciding.decision import Decision
from minicluster.controller.errors import Refused
from minicluster.controller.operations.alter_partition import alter_partition
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.pending_alter_isr import AlterIsrDecided, AlterIsrReceived
from minicluster.metadata.image.partition import RECOVERED, RECOVERING, PartitionRegistration
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.messages.kip_texts import kip_497, kip_704
from minicluster.rules import IsrChanges

INVALID_ISR_VERSION = ErrorCode.INVALID_UPDATE_VERSION
"""What the texts call the error that shipped under another name."""


def alter_isr_of_kip_497(
    state: ClusterState, request: kip_497.AlterIsrRequest, version: int, now_ms: int
) -> Decision:
    """Check proposals and answer; ``decide_isr_proposal`` acts on them a moment later.

    Errors:  Refused with STALE_BROKER_EPOCH; per partition UNKNOWN_TOPIC_OR_PARTITION,
             FENCED_LEADER_EPOCH, INVALID_REQUEST or INVALID_ISR_VERSION.
    Source:  KIP-497, "AlterIsr".
    """
    _refuse_unless(state, IsrChanges.ALTER_ISR_OF_KIP_497)
    broker = state.check_broker_epoch(request.broker_id, request.broker_epoch)
    kind = kip_497.AlterIsrResponse
    taken: list[AlterIsrReceived] = []
    topics = []
    for asked in request.topics:
        topic = state.image.topics.named(asked.topic)
        answers = []
        for data in asked.partitions:
            partition = None if topic is None else topic.partitions.get(data.partition_id)
            error = _refusal(request.broker_id, partition, data)
            if error is ErrorCode.NONE:
                proposal = AlterIsrReceived(
                    broker_id=broker.id,
                    broker_epoch=broker.epoch,
                    topic=asked.topic,
                    partition_id=data.partition_id,
                    leader_epoch=data.leader_epoch,
                    isr=data.isr,
                    version=data.current_zk_version,
                )
                taken.append(proposal)
            answers.append(kind.PartitionData(partition_id=data.partition_id, error_code=error))
        topics.append(kind.TopicData(topic=asked.topic, partitions=tuple(answers)))
    return Decision(response=kind(topics=tuple(topics)), soft=tuple(taken))


def decide_isr_proposal(state: ClusterState, now_ms: int) -> Decision:
    """Decide the oldest proposal by the rules of today; what does not fit any more is dropped."""
    proposal = state.pending_alter_isr.next_proposal()
    if proposal is None:
        return Decision(response=False)
    part = AlterPartitionRequest.PartitionData(
        partition_index=proposal.partition_id,
        leader_epoch=proposal.leader_epoch,
        partition_epoch=proposal.version,
        new_isr=proposal.isr,
    )
    topic = AlterPartitionRequest.TopicData(topic_name=proposal.topic, partitions=(part,))
    request = AlterPartitionRequest(
        broker_id=proposal.broker_id, broker_epoch=proposal.broker_epoch, topics=(topic,)
    )
    decided = AlterIsrDecided(proposal)
    try:
        decision = alter_partition(state, request, 0, now_ms)
    except Refused:
        return Decision(response=False, soft=(decided,))
    return Decision(
        records=decision.records,
        response=False,
        soft=(decided,),
        fault_hits=decision.fault_hits,
    )


def alter_isr_of_kip_704(
    state: ClusterState, request: kip_704.AlterIsrRequest, version: int, now_ms: int
) -> Decision:
    """Decide proposals with an unclean flag; the flag can be cleared, never set.

    Errors:  as AlterPartition v0 and v1 have them.
    Source:  KIP-704, "AlterIsr".
    """
    _refuse_unless(state, IsrChanges.ALTER_ISR_OF_KIP_704)
    shipped = AlterPartitionRequest
    topics = tuple(
        shipped.TopicData(
            topic_name=topic.name,
            partitions=tuple(
                shipped.PartitionData(
                    partition_index=data.partition_index,
                    leader_epoch=data.leader_epoch,
                    partition_epoch=data.current_isr_version,
                    new_isr=data.new_isr,
                    leader_recovery_state=RECOVERING
                    if version >= 1 and data.new_is_unclean
                    else RECOVERED,
                )
                for data in topic.partitions
            ),
        )
        for topic in request.topics
    )
    translated = shipped(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, topics=topics
    )
    decision = alter_partition(state, translated, version, now_ms)
    return Decision(
        records=decision.records,
        response=_as_alter_isr(decision.response, version),
        fault_hits=decision.fault_hits,
    )


def _as_alter_isr(response: AlterPartitionResponse, version: int) -> kip_704.AlterIsrResponse:
    kind = kip_704.AlterIsrResponse
    return kind(
        error_code=response.error_code,
        topics=tuple(
            kind.TopicData(
                name=topic.topic_name,
                partitions=tuple(
                    kind.PartitionData(
                        partition_index=data.partition_index,
                        error_code=data.error_code,
                        leader_id=data.leader_id,
                        leader_epoch=data.leader_epoch,
                        isr=data.isr,
                        is_unclean=version >= 1 and data.leader_recovery_state == RECOVERING,
                        current_isr_version=data.partition_epoch,
                    )
                    for data in topic.partitions
                ),
            )
            for topic in response.topics
        ),
    )


def _refuse_unless(state: ClusterState, wanted: IsrChanges) -> None:
    if state.rules.isr_changes_by is not wanted:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, "AlterIsr is not served in this form.")


def _refusal(
    sender: int,
    partition: PartitionRegistration | None,
    data: kip_497.AlterIsrRequest.PartitionData,
) -> ErrorCode:
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if data.leader_epoch > partition.leader_epoch:
        return ErrorCode.INVALID_REQUEST
    if not data.leader == sender == partition.leader:
        return ErrorCode.INVALID_REQUEST
    members = data.isr
    if len(set(members)) < len(members) or any(b not in partition.replicas for b in members):
        return ErrorCode.INVALID_REQUEST
    if sender not in members:
        return ErrorCode.INVALID_REQUEST
    if data.current_zk_version != partition.partition_epoch:
        return INVALID_ISR_VERSION
    return ErrorCode.NONE
