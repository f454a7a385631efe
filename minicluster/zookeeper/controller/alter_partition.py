"""AlterPartition (api key 56, versions 0-3): a leader proposes another ISR.

The first refusal wins. Not checked: that the sender leads, that the leader is in the ISR, that
members are replicas, that members are distinct. The leader of the state becomes the sender.

A retry of a request whose response was lost meets a state that has it already. Unlike KRaft's, this
controller responds with success then, though the partition epoch of the request is an older one:
else the leader would stay pending, since no metadata with another epoch would ever come.

Versions: 0 AlterIsr (KIP-497); 1 the recovery state (KIP-704); 2 topic ids and INELIGIBLE_REPLICA
          (KIP-841); 3 the broker epochs of members (KIP-903), which nothing here reads: brokers on
          ZooKeeper do not have the epochs of others.
Source:   KIP-497, KIP-704, KIP-841; kafka.controller.KafkaController.tryProcessAlterPartition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.metadata.image.partition import RECOVERED, RECOVERING
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.values import replace
from minicluster.zookeeper.controller.controller_api import ControllerApi
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.errors import FAILURES, ControllerMoved, IllegalState
from minicluster.zookeeper.controller.leader_and_isr import LeaderAndIsr, Leadership
from minicluster.zookeeper.controller.reassignment import complete_if_caught_up
from minicluster.zookeeper.controller.request_batch import send_metadata
from minicluster.zookeeper.controller.znode_access import (
    read_known_states,
    read_states,
    write_states,
)
from minicluster.zookeeper.process import Process

TOPIC_IDS_SINCE = 2
MEMBERS_WITH_EPOCHS_SINCE = 3

Outcomes = dict[TopicPartition, LeaderAndIsr | ErrorCode]
"""The current state of each partition, or why it was rejected."""


def process_alter_partition(
    state: ControllerState, token: Any, request: AlterPartitionRequest, version: int
) -> Process[None]:
    """Decide, write and respond; a reassignment whose targets are in sync now comes to its end."""
    refusal = _refusal(state, request)
    if refusal is not None:
        state.respond(token, AlterPartitionResponse(error_code=refusal))
        return
    try:
        outcomes = yield from _alter(state, token, request, version)
    except (ControllerMoved, *FAILURES):
        failed = AlterPartitionResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        state.respond(token, failed)
        return
    for partition, outcome in outcomes.items():
        if partition in state.context.reassigned and isinstance(outcome, LeaderAndIsr):
            yield from complete_if_caught_up(state, partition)


def _refusal(state: ControllerState, request: AlterPartitionRequest) -> ErrorCode | None:
    if not state.is_active:
        return ErrorCode.NOT_CONTROLLER
    if state.context.broker_epochs.get(request.broker_id) != request.broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return None


def _alter(
    state: ControllerState, token: Any, request: AlterPartitionRequest, version: int
) -> Process[Outcomes]:
    context = state.context
    proposed: dict[TopicPartition, LeaderAndIsr] = {}
    unknown = []
    for topic in request.topics:
        name: str | None = topic.topic_name
        if version >= TOPIC_IDS_SINCE:
            name = context.topic_names.get(topic.topic_id)
        if name is None:
            unknown.append(topic)
            continue
        for data in topic.partitions:
            partition = TopicPartition(name, data.partition_index)
            proposed[partition] = _proposal(state, request.broker_id, data, version)
    outcomes: Outcomes = {}
    accepted = {}
    for partition, proposal in proposed.items():
        decided = decide(state, partition, proposal, version)
        if decided is None:
            accepted[partition] = proposal
        else:
            outcomes[partition] = decided
    result = yield from write_states(state, accepted)
    outcomes |= dict(result.written)
    outcomes |= dict.fromkeys(result.failed, ErrorCode.UNKNOWN_SERVER_ERROR)
    outcomes |= dict.fromkeys(result.retry, ErrorCode.INVALID_UPDATE_VERSION)
    if state.settings.own_writes_recognized:
        outcomes |= yield from _written_before(state, {p: accepted[p] for p in result.retry})
    applied = tuple(p for p in accepted if isinstance(outcomes[p], LeaderAndIsr))
    written = yield from read_known_states(state, applied)
    context.leaderships.update(written)
    send_metadata(state, context.broker_epochs, proposed)
    state.respond(token, _response(state, version, unknown, outcomes))
    return outcomes


def _written_before(
    state: ControllerState, failed: Mapping[TopicPartition, LeaderAndIsr]
) -> Process[Outcomes]:
    """The states that the write has reached, though its response was lost with the connection.

    The client of ZooKeeper sends such a write again, which then finds another version. A leader
    that got a refusal for it would be pending until its next leader epoch.
    """
    current = yield from read_states(state, tuple(failed))
    outcomes: Outcomes = {}
    for partition, proposal in failed.items():
        own = replace(proposal, partition_epoch=proposal.partition_epoch + 1)
        if current[partition] == Leadership(own, state.context.epoch):
            outcomes[partition] = own
    return outcomes


def _proposal(
    state: ControllerState, sender: int, data: AlterPartitionRequest.PartitionData, version: int
) -> LeaderAndIsr:
    """The proposed state of a partition.

    Errors:  IllegalState for a recovery state that there is none: it ends the whole request.
    """
    recovery_state = data.leader_recovery_state
    if (
        recovery_state not in (RECOVERED, RECOVERING)
        and state.settings.release.recovery_state_known
    ):
        raise IllegalState(f"no recovery state: {recovery_state}")
    isr = data.new_isr
    if version >= MEMBERS_WITH_EPOCHS_SINCE:
        isr = tuple(member.broker_id for member in data.new_isr_with_epochs)
    return LeaderAndIsr(
        leader=sender,
        isr=isr,
        leader_epoch=data.leader_epoch,
        partition_epoch=data.partition_epoch,
        recovery_state=recovery_state,
    )


def decide(
    state: ControllerState, partition: TopicPartition, proposal: LeaderAndIsr, version: int
) -> LeaderAndIsr | ErrorCode | None:
    """A refusal, the current state if it is as proposed already, or None: to be written."""
    rules = state.settings.release
    leadership = state.context.leaderships.get(partition)
    if leadership is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    current = leadership.leader_and_isr
    if rules.newer_epochs_rejected and (
        proposal.partition_epoch > current.partition_epoch
        or proposal.leader_epoch > current.leader_epoch
    ):
        return ErrorCode.NOT_CONTROLLER  # the leader has read a newer controller's write
    if proposal.leader_epoch < current.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if _is_met(proposal, current, newer_rejected=rules.newer_epochs_rejected):
        return current
    if rules.partition_epoch_checked_first and proposal.partition_epoch < current.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if rules.recovery_state_known and not _recovery_state_may_change(proposal, current):
        return ErrorCode.INVALID_REQUEST
    if rules.ineligible_members_rejected and not members_eligible(state, proposal):
        if version >= TOPIC_IDS_SINCE:
            return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.OPERATION_NOT_ATTEMPTED
    return None


def _is_met(proposal: LeaderAndIsr, current: LeaderAndIsr, *, newer_rejected: bool) -> bool:
    """The state is as proposed; earlier releases ignore which partition epoch is the newer one.

    Source:  LeaderAndIsr.equalsAllowStalePartitionEpoch, equalsIgnoreZk before it.
    """
    if newer_rejected:
        return proposal.is_met_by(current)
    return proposal.is_met_by(current) or current.is_met_by(proposal)


def _recovery_state_may_change(proposal: LeaderAndIsr, current: LeaderAndIsr) -> bool:
    """Recovering goes with one member only, and never comes back (KIP-704)."""
    if proposal.recovery_state != RECOVERING:
        return True
    return len(proposal.isr) <= 1 and current.recovery_state == RECOVERING


@step
def members_eligible(state: ControllerState, proposal: LeaderAndIsr) -> bool:
    """All members are alive and not shutting down (KIP-841)."""
    return all(state.context.is_live(member) for member in proposal.isr)


def _response(
    state: ControllerState,
    version: int,
    unknown: list[AlterPartitionRequest.TopicData],
    outcomes: Outcomes,
) -> AlterPartitionResponse:
    topics = [
        AlterPartitionResponse.TopicData(
            topic_id=topic.topic_id,
            partitions=tuple(
                AlterPartitionResponse.PartitionData(
                    partition_index=data.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_ID
                )
                for data in topic.partitions
            ),
        )
        for topic in unknown
    ]
    by_topic: dict[str, list[AlterPartitionResponse.PartitionData]] = {}
    for partition, outcome in outcomes.items():
        by_topic.setdefault(partition.topic, []).append(_partition_data(partition, outcome))
    for topic, partitions in by_topic.items():
        named = version < TOPIC_IDS_SINCE
        topics.append(
            AlterPartitionResponse.TopicData(
                topic_name=topic if named else "",
                topic_id=ZERO_UUID if named else state.context.topic_ids.get(topic, ZERO_UUID),
                partitions=tuple(partitions),
            )
        )
    return AlterPartitionResponse(topics=tuple(topics))


def _partition_data(
    partition: TopicPartition, outcome: LeaderAndIsr | ErrorCode
) -> AlterPartitionResponse.PartitionData:
    if isinstance(outcome, ErrorCode):
        return AlterPartitionResponse.PartitionData(
            partition_index=partition.partition, error_code=outcome
        )
    return AlterPartitionResponse.PartitionData(
        partition_index=partition.partition,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=outcome.isr,
        leader_recovery_state=outcome.recovery_state,
        partition_epoch=outcome.partition_epoch,
    )


API = ControllerApi(
    AlterPartitionRequest,
    lambda state, event: process_alter_partition(state, event.token, event.request, event.version),
    # None while it waits: the leader sends it again when it finds the next controller.
)
