"""Faults of the controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any
from uuid import NAMESPACE_DNS, UUID, uuid5

from minicluster.controller import (
    broker_changes,
    deferred_responses,
    initial_assignment,
    periodic_tasks,
)
from minicluster.controller.broker_changes import Moves, Records
from minicluster.controller.decision import Decision
from minicluster.controller.errors import ApiError, Refusal
from minicluster.controller.operations import (
    alter_partition,
    alter_partition_reassignments,
    broker_heartbeat,
    broker_registration,
    create_topics,
    delete_topics,
    elect_leaders,
)
from minicluster.controller.operations.alter_partition import ANY_EPOCH, Proposal
from minicluster.controller.operations.elect_leaders import ElectionType
from minicluster.controller.reassignment import contains_all
from minicluster.controller.state.broker_heartbeat_manager import (
    BrokerControlState,
    BrokerIdAndEpoch,
)
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.offset_control import Point
from minicluster.metadata.image.cluster import BrokerRegistration
from minicluster.metadata.image.folded_run import FoldedRun
from minicluster.metadata.image.partition import NO_LEADER, RECOVERING, PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.planting import plant
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import BrokerHeartbeatRequest, BrokerRegistrationRequest
from minicluster.protocol.records import (
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    VersionedRecord,
)
from minicluster.values import replace

Change = VersionedRecord | None


def _partition_change(record: Change) -> PartitionChangeRecord | None:
    """The change of a partition that a rule has decided, if it is one."""
    change = None if record is None else record.record
    return change if isinstance(change, PartitionChangeRecord) else None


# AlterPartition.


@plant(alter_partition.ineligible_replicas, "z03_no_broker_epochs")
def _z03(original: Callable[..., list[Any]], state: ClusterState, proposal: Proposal) -> list[Any]:
    members = tuple((broker_id, ANY_EPOCH) for broker_id, _ in proposal.members)
    if original(state, replace(proposal, members=members)) or not original(state, proposal):
        return original(state, proposal)
    state.hit("Z03")
    return []


@plant(alter_partition.ineligible_replicas, "z01_no_eligibility_check")
def _z01(original: Callable[..., list[Any]], state: ClusterState, proposal: Proposal) -> list[Any]:
    if original(state, proposal):
        state.hit("Z01")
    return []


@plant(alter_partition.first_refusal, "s04_stale_partition_epoch")
def _s04(
    original: Callable[..., Refusal | None], state: ClusterState, proposal: Proposal
) -> Refusal | None:
    data, partition = proposal.data, proposal.partition
    if proposal.sender != partition.leader or data.leader_epoch != partition.leader_epoch:
        return original(state, proposal)
    if data.partition_epoch >= partition.partition_epoch:
        return original(state, proposal)
    state.hit("S04")
    return None


@plant(alter_partition.first_refusal, "s05_stale_leader_epoch")
def _s05(
    original: Callable[..., Refusal | None], state: ClusterState, proposal: Proposal
) -> Refusal | None:
    partition = proposal.partition
    if proposal.sender != partition.leader or proposal.data.leader_epoch >= partition.leader_epoch:
        return original(state, proposal)
    state.hit("S05")
    return None


@plant(alter_partition.first_refusal, "s06_anyone_alters")
def _s06(
    original: Callable[..., Refusal | None], state: ClusterState, proposal: Proposal
) -> Refusal | None:
    if proposal.sender == proposal.partition.leader:
        return original(state, proposal)
    state.hit("S06")
    return None


@plant(alter_partition.recovery_refusal, "s09_expand_while_recovering")
def _s09_refusal(
    original: Callable[..., Refusal | None], state: ClusterState, proposal: Proposal
) -> Refusal | None:
    return None if proposal.partition.is_recovering else original(state, proposal)


@plant(alter_partition.partition_change, "s09_expand_while_recovering")
def _s09_change(original: Callable[..., Change], state: ClusterState, proposal: Proposal) -> Change:
    if proposal.partition.is_recovering and len(proposal.members) > 1:
        state.hit("S09")
        data = replace(proposal.data, leader_recovery_state=RECOVERING)
        proposal = replace(proposal, data=data)
    return original(state, proposal)


@plant(alter_partition.partition_change, "s70_reassignment_stays")
def _s70(original: Callable[..., Change], state: ClusterState, proposal: Proposal) -> Change:
    record = original(state, proposal)
    change = _partition_change(record)
    if record is None or change is None:
        return record
    if change.adding_replicas is None and change.removing_replicas is None:
        return record
    state.hit("S70")
    stays = PartitionChangeRecord(
        topic_id=change.topic_id, partition_id=change.partition_id, isr=proposal.isr
    )
    return replace(record, record=stays)


# The changes of brokers.


@plant(broker_changes.updated_partition, "s10_unclean_without_need")
def _s10(
    original: Callable[..., Change],
    state: ClusterState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    moves: Moves,
) -> Change:
    record = original(state, topic, index, partition, moves)
    change = _partition_change(record)
    if record is None or change is None:
        return record
    if change.leader not in partition.isr:
        return record
    acceptable = state.acceptor(partition, key=(topic.id, index))
    others = (
        replica
        for replica in partition.replicas
        if replica not in partition.isr and acceptable(replica)
    )
    first = next(others, None)
    if first is None:
        return record
    state.hit("S10")
    elected = replace(change, leader=first, isr=(first,), leader_recovery_state=RECOVERING)
    return replace(record, record=elected)


@plant(broker_changes.updated_partition, "s02_isr_becomes_empty")
def _s02(
    original: Callable[..., Change],
    state: ClusterState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    moves: Moves,
) -> Change:
    record = original(state, topic, index, partition, moves)
    change = _partition_change(record)
    if record is None or change is None:
        return record
    if change.leader != NO_LEADER or state.gates.elr_enabled:
        return record
    state.hit("S02")
    return replace(record, record=replace(change, isr=()))


@plant(broker_changes.broker_in_controlled_shutdown, "s17_shutdown_keeps_leaderships")
def _s17(
    original: Callable[..., Records], state: ClusterState, broker: BrokerRegistration
) -> Records:
    supported = state.gates.metadata_version.in_controlled_shutdown_supported
    if broker.in_controlled_shutdown or not supported:
        return original(state, broker)
    state.hit("S17")
    return islice(original(state, broker), 1)  # the mark alone


@plant(broker_changes.broker_restarted, "z06_new_incarnation_stays")
def _z06(
    original: Callable[..., Records], state: ClusterState, broker_id: int, clean: bool
) -> Records:
    if not state.indexes.in_isr(broker_id):
        return original(state, broker_id, clean)
    state.hit("Z06")
    return iter(())


@plant(broker_changes.directories_offline, "s33_offline_leader_stays")
def _s33(
    original: Callable[..., Records],
    state: ClusterState,
    broker: BrokerRegistration,
    offline: Sequence[UUID],
) -> Records:
    for record in original(state, broker, offline):
        change = _partition_change(record)
        if change is not None:
            partition = state.image.topics.partition(change.topic_id, change.partition_id)
            if partition is not None and partition.leader == broker.id:
                state.hit("S33")
                continue
        yield record


@plant(periodic_tasks.fence_after_session, "s16_fenced_under_old_epoch")
def _s16(
    original: Callable[..., Records],
    state: ClusterState,
    broker: BrokerRegistration,
    session: BrokerIdAndEpoch,
) -> Records:
    if session.epoch >= broker.epoch:
        return original(state, broker, session)
    state.hit("S16")
    return broker_changes.broker_fenced(state, replace(broker, epoch=session.epoch))


@plant(broker_changes.broker_unfenced, "s67_unfencing_elects_nobody")
def _s67(original: Callable[..., Records], state: ClusterState, *broker: Any) -> Records:
    unfencing, *elections = original(state, *broker)
    if elections:
        state.hit("S67")
    return iter([unfencing])


# Heartbeats and registrations.


@plant(broker_heartbeat.next_state, "s68_candidate_stays_fenced")
def _s68(
    original: Callable[..., BrokerControlState],
    state: ClusterState,
    broker: BrokerRegistration,
    request: BrokerHeartbeatRequest,
) -> BrokerControlState:
    following = original(state, broker, request)
    indexes = state.indexes
    is_candidate = bool(indexes.in_isr(broker.id) or indexes.elr.of(broker.id))
    if following.is_fenced or not broker.fenced or not is_candidate:
        return following
    state.hit("S68")
    return BrokerControlState.FENCED


@plant(broker_heartbeat.registered_sender, "s15_stale_heartbeat_counts")
def _s15(
    original: Callable[..., BrokerRegistration],
    state: ClusterState,
    request: BrokerHeartbeatRequest,
) -> BrokerRegistration:
    broker = state.image.cluster.broker(request.broker_id)
    if broker is None or request.broker_epoch >= broker.epoch:
        return original(state, request)
    state.hit("S15")
    return broker


@plant(broker_heartbeat.next_state, "s57_shutdown_never_granted")
def _s57(
    original: Callable[..., BrokerControlState],
    state: ClusterState,
    broker: BrokerRegistration,
    request: BrokerHeartbeatRequest,
) -> BrokerControlState:
    following = original(state, broker, request)
    if broker.fenced or following is not BrokerControlState.SHUTDOWN_NOW:
        return following
    topics = state.image.topics.by_id.values()
    if not any(broker.id in p.replicas for topic in topics for p in topic.partitions.values()):
        return following
    state.hit("S57")
    return BrokerControlState.CONTROLLED_SHUTDOWN


@plant(broker_heartbeat.heartbeat_records, "s29_heartbeat_changes_nothing")
def _s29(
    original: Callable[..., Records], state: ClusterState, broker: BrokerRegistration, *rest: Any
) -> Records:
    yield from original(state, broker, *rest)
    for topic_id, index in state.indexes.in_isr(broker.id):
        partition = state.image.topics.partition(topic_id, index)
        if partition is not None and partition.leader == broker.id:
            state.hit("S29")
            change = PartitionChangeRecord(topic_id=topic_id, partition_id=index, isr=partition.isr)
            version = state.gates.metadata_version.partition_change_record_version(state.rules)
            yield VersionedRecord(change, version)
            return


Registered = Callable[..., VersionedRecord]
Existing = BrokerRegistration | None


def _amended(existing: Existing, request: BrokerRegistrationRequest) -> bool:
    return existing is not None and existing.incarnation_id == request.incarnation_id


@plant(broker_registration.registration_record, "z11_amending_bumps_epoch")
def _z11(
    original: Registered,
    state: ClusterState,
    request: BrokerRegistrationRequest,
    features: list[Any],
    existing: Existing,
    next_offset: int,
) -> VersionedRecord:
    record = original(state, request, features, existing, next_offset)
    registered = record.record
    if not _amended(existing, request) or not isinstance(registered, RegisterBrokerRecord):
        return record
    state.hit("Z11")
    return replace(record, record=replace(registered, broker_epoch=next_offset))


@plant(broker_registration.registration_record, "z12_amending_unfences")
def _z12(
    original: Registered,
    state: ClusterState,
    request: BrokerRegistrationRequest,
    features: list[Any],
    existing: Existing,
    next_offset: int,
) -> VersionedRecord:
    record = original(state, request, features, existing, next_offset)
    registered = record.record
    if not _amended(existing, request) or not isinstance(registered, RegisterBrokerRecord):
        return record
    if not (registered.fenced or registered.in_controlled_shutdown):
        return record
    state.hit("Z12")
    return replace(record, record=replace(registered, fenced=False, in_controlled_shutdown=False))


@plant(broker_registration.registration_record, "s38_old_broker_epoch")
def _s38(
    original: Registered,
    state: ClusterState,
    request: BrokerRegistrationRequest,
    features: list[Any],
    existing: Existing,
    next_offset: int,
) -> VersionedRecord:
    record = original(state, request, features, existing, next_offset)
    registered = record.record
    if existing is None or _amended(existing, request):
        return record
    assert isinstance(registered, RegisterBrokerRecord)
    state.hit("S38")
    return replace(record, record=replace(registered, broker_epoch=existing.epoch))


@plant(broker_registration.is_clean_restart, "s37_every_restart_is_clean")
def _s37(
    original: Callable[..., bool], state: ClusterState, existing: Existing, *rest: Any
) -> bool:
    clean = original(state, existing, *rest)
    if clean or existing is None:
        return clean
    state.hit("S37")
    return True


# Topics, elections, reassignments.


@plant(initial_assignment.new_partition, "z05_fenced_replicas_in_new_isr")
def _z05(
    original: Callable[..., PartitionRegistration],
    state: ClusterState,
    replicas: Sequence[int],
    active: tuple[int, ...],
) -> PartitionRegistration:
    partition = original(state, replicas, active)
    if len(active) == len(replicas):
        return partition
    state.hit("Z05")
    return replace(partition, isr=tuple(replicas))


@plant(create_topics.create_topics, "s27_topic_id_reused")
def _s27(original: Callable[..., Decision], state: ClusterState, *args: Any) -> Decision:
    decision = original(state, *args)
    results = decision.response.topics
    ids = {each.topic_id: uuid5(NAMESPACE_DNS, each.name) for each in results if each.topic_id.int}
    for _ in ids:
        state.hit("S27")
    response = replace(
        decision.response,
        topics=tuple(replace(e, topic_id=ids.get(e.topic_id, e.topic_id)) for e in results),
    )
    records = tuple(
        replace(each, record=replace(each.record, topic_id=ids[each.record.topic_id]))
        if isinstance(each.record, TopicRecord | PartitionRecord)
        else each
        for each in decision.records
    )
    return replace(decision, records=records, response=response)


@plant(delete_topics.delete_topics, "z23_deletion_in_pieces")
def _z23(original: Callable[..., Decision], state: ClusterState, *args: Any) -> Decision:
    decision = original(state, *args)
    if len(decision.records) < 2:
        return decision
    state.hit("Z23")
    return replace(decision, atomic=False)


@plant(ClusterState.apply, "s72_configs_outlive_topic")
def _s72(original: Callable[..., None], state: ClusterState, run: FoldedRun) -> None:
    if isinstance(run.message, RemoveTopicRecord) and run.after.configs != run.before.configs:
        state.hit("S72")
        run = replace(run, after=replace(run.after, configs=run.before.configs))
    original(state, run)


@plant(elect_leaders.elect_leader, "z47_preferred_is_unclean")
def _z47(
    original: Callable[..., ApiError],
    state: ClusterState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    election_type: ElectionType,
    records: list[VersionedRecord],
) -> ApiError:
    error = original(state, topic, index, partition, election_type, records)
    if error.error is not ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE or partition.has_leader:
        return error
    unclean = original(state, topic, index, partition, ElectionType.UNCLEAN, records)
    if unclean:
        return error
    state.hit("Z47")
    return unclean


@plant(alter_partition_reassignments.reassigned, "z41_removed_replica_stays_in_isr")
def _z41(
    original: Callable[..., Change],
    state: ClusterState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    *rest: Any,
) -> Change:
    record = original(state, topic, index, partition, *rest)
    change = _partition_change(record)
    if record is None or change is None or change.isr is None:
        return record
    if contains_all(change.replicas or partition.replicas, partition.isr):
        return record
    state.hit("Z41")
    return replace(record, record=replace(change, isr=partition.isr))


# The leadership of the controller.


@plant(ClusterState.revert, "s25_deposed_does_not_revert")
def _s25(original: Callable[..., None], state: ClusterState, committed: Point) -> None:
    if state.image is not committed.image:
        state.hit("S25")


@plant(deferred_responses.may_respond, "s26_respond_before_commit")
def _s26(
    original: Callable[..., bool], state: ClusterState, end_offset: int, stable_end: int
) -> bool:
    if not original(state, end_offset, stable_end):
        state.hit("S26")
    return True
