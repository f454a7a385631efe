"""AlterIsr, as the texts of KIP-497 and KIP-704 have it; AlterPartition is what shipped.

Versions:  0 of KIP-497's text, 0-1 of KIP-704's. Each is served where ``Rules.isr_changes_by``
           chooses it, at any metadata.version; everywhere else it is UNSUPPORTED_VERSION.

The response of KIP-497 leaves on receipt, and the ISR is decided a moment later: NONE is no
promise, the outcome is in the metadata. That of KIP-704 leaves once the change is committed.
"""

from __future__ import annotations

from minicluster.controller.api import ControllerApi
from minicluster.controller.decision import Decision
from minicluster.controller.errors import Reason, Refusal, Rejected
from minicluster.controller.operations.alter_partition import alter_partition
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.pending_alter_isr import AlterIsrDecided, AlterIsrReceived
from minicluster.metadata.image.partition import RECOVERED, RECOVERING, PartitionRegistration
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.messages.kip_texts import kip_497, kip_704
from minicluster.rules import IsrChanges
from minicluster.security.acls import Operation

INVALID_ISR_VERSION = ErrorCode.INVALID_UPDATE_VERSION
"""The name in the texts, of the error that shipped as INVALID_UPDATE_VERSION."""


def alter_isr_of_kip_497(
    state: ClusterState, request: kip_497.AlterIsrRequest, version: int, now_ms: int
) -> Decision:
    """Check proposals and respond; ``decide_isr_proposal`` decides them a moment later.

    Errors:  Rejected with STALE_BROKER_EPOCH; per partition UNKNOWN_TOPIC_OR_PARTITION,
             FENCED_LEADER_EPOCH, INVALID_REQUEST or INVALID_ISR_VERSION.
    Source:  KIP-497, "AlterIsr".
    """
    _reject_unless(state, IsrChanges.ALTER_ISR_OF_KIP_497)
    broker = state.check_broker_epoch(request.broker_id, request.broker_epoch)
    kind = kip_497.AlterIsrResponse
    taken: list[AlterIsrReceived] = []
    refusals: list[Refusal] = []
    topics = []
    for topic_data in request.topics:
        topic = state.image.topics.named(topic_data.topic)
        partitions = []
        for data in topic_data.partitions:
            index = data.partition_id
            partition = None if topic is None else topic.partitions.get(index)
            refusal = _refusal(request.broker_id, partition, data)
            error = ErrorCode.NONE if refusal is None else refusal[0]
            partitions.append(kind.PartitionData(partition_id=index, error_code=error))
            if refusal is not None:
                refusals.append(_rejected(request.broker_id, topic_data.topic, index, *refusal))
                continue
            taken.append(
                AlterIsrReceived(
                    broker_id=broker.id,
                    broker_epoch=broker.epoch,
                    topic=topic_data.topic,
                    partition_id=index,
                    leader_epoch=data.leader_epoch,
                    isr=data.isr,
                    version=data.current_zk_version,
                )
            )
        topics.append(kind.TopicData(topic=topic_data.topic, partitions=tuple(partitions)))
    return Decision(
        response=kind(topics=tuple(topics)), soft=tuple(taken), refusals=tuple(refusals)
    )


def _rejected(sender: int, topic: str, index: int, error: ErrorCode, reason: Reason) -> Refusal:
    message = f"Rejecting AlterIsr request from node {sender} for {topic}-{index}: {reason}."
    return Refusal(error=error, reason=reason, message=message, topic=topic, partition=index)


def decide_isr_proposal(state: ClusterState, now_ms: int) -> Decision:
    """Decide the oldest proposal as an AlterPartition; one that is stale by now is dropped."""
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
    except Rejected:
        return Decision(response=False, soft=(decided,))
    return Decision(
        records=decision.records,
        response=False,
        soft=(decided,),
        refusals=decision.refusals,
    )


def alter_isr_of_kip_704(
    state: ClusterState, request: kip_704.AlterIsrRequest, version: int, now_ms: int
) -> Decision:
    """Decide proposals with an unclean flag; the flag can be cleared, never set.

    Errors:  as AlterPartition v0 and v1 have them.
    Source:  KIP-704, "AlterIsr".
    """
    _reject_unless(state, IsrChanges.ALTER_ISR_OF_KIP_704)
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
        refusals=decision.refusals,
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


def _reject_unless(state: ClusterState, wanted: IsrChanges) -> None:
    if state.rules.isr_changes_by is not wanted:
        raise Rejected(
            ErrorCode.UNSUPPORTED_VERSION,
            "AlterIsr is not served in this form.",
            Reason.API_NOT_SERVED,
        )


def _refusal(
    sender: int,
    partition: PartitionRegistration | None,
    data: kip_497.AlterIsrRequest.PartitionData,
) -> tuple[ErrorCode, Reason] | None:
    invalid = ErrorCode.INVALID_REQUEST
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Reason.UNKNOWN_PARTITION
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH, Reason.STALE_LEADER_EPOCH
    if data.leader_epoch > partition.leader_epoch:
        return invalid, Reason.LEADER_EPOCH_AHEAD
    if not data.leader == sender == partition.leader:
        return invalid, Reason.NOT_LEADER
    if len(set(data.isr)) < len(data.isr):
        return invalid, Reason.DUPLICATE_IN_ISR
    if any(broker_id not in partition.replicas for broker_id in data.isr):
        return invalid, Reason.NOT_IN_REPLICAS
    if sender not in data.isr:
        return invalid, Reason.LEADER_NOT_IN_ISR
    if data.current_zk_version != partition.partition_epoch:
        return INVALID_ISR_VERSION, Reason.STALE_PARTITION_EPOCH
    return None


OF_KIP_497 = ControllerApi(
    kip_497.AlterIsrRequest,
    lambda call: alter_isr_of_kip_497(*call.plain),
    right=Operation.CLUSTER_ACTION,
)

OF_KIP_704 = ControllerApi(
    kip_704.AlterIsrRequest,
    lambda call: alter_isr_of_kip_704(*call.plain),
    right=Operation.CLUSTER_ACTION,
)
