"""What a change of a broker's state does to partitions, and the records that say so.

**Order.** Fencing and unregistering write partitions before the broker, so that no prefix of the
log has a fenced leader; unfencing and controlled shutdown write the broker first.

| change | partitions looked at | broker record |
|---|---|---|
| fenced | ISR | BrokerRegistrationChange v0, or FenceBroker below 3.3-IV2 |
| unfenced | leaderless | BrokerRegistrationChange v0, or UnfenceBroker |
| controlled shutdown | ISR | BrokerRegistrationChange v1 once, from 3.3-IV3 on |
| unregistered | ISR, ELR | UnregisterBroker |
| new incarnation | ISR, ELR if unclean | none |
| directory offline | those in it | BrokerRegistrationChange v2 |
| directories cordoned | none | BrokerRegistrationChange v3 |

Source:  KIP-631, KIP-841, KIP-858, KIP-966, KIP-1066; ReplicationControlManager.handleBroker*,
         generateLeaderAndIsrUpdates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from minicluster.controller.deciding.partition_change import Election, Targets, change_partition
from minicluster.controller.deciding.reassignment import without
from minicluster.controller.errors import ControllerFault
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.indexes import TopicPartition
from minicluster.metadata.image.cluster import (
    FENCE,
    IN_CONTROLLED_SHUTDOWN,
    UNFENCE,
    BrokerRegistration,
)
from minicluster.metadata.image.partition import NO_LEADER, RECOVERING, PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)

Records = list[VersionedRecord]


def partition_updates(
    state: ClusterState,
    partitions: Iterable[TopicPartition],
    *,
    to_remove: int = NO_LEADER,
    to_add: int = NO_LEADER,
    unclean: int = NO_LEADER,
    lost_dirs: Sequence[UUID] = (),
) -> Records:
    """The changes of some partitions when a broker goes, comes, or has lost its logs.

    All are computed from the state as it is, whatever the same operation has decided before.
    Shapes:  lost_dirs are directories whose loss the same operation is about to record.
    Errors:  ControllerFault when an index names a partition that does not exist.
    """

    def active(replica: int) -> bool:
        if replica in (to_remove, unclean):
            return False
        return replica == to_add or state.is_active(replica)

    gates, records = state.gates, []
    gone = tuple(b for b in (to_remove, unclean) if b != NO_LEADER)
    for topic_id, index in partitions:
        topic = state.image.topics.get(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None:
            raise ControllerFault(f"an index names partition {topic_id}-{index}, which is gone")
        unclean_allowed = state.unclean_election_allowed(topic.name)
        record = change_partition(
            topic_id,
            index,
            partition,
            Targets(
                isr=without(partition.isr, gone),
                unclean_shutdown=() if unclean == NO_LEADER else (unclean,),
            ),
            gates=gates,
            acceptable=_outside_of(
                lost_dirs, partition, state.acceptor(partition, active, key=(topic_id, index))
            ),
            default_dir=state.default_dir,
            min_isr=state.min_isr(topic),
            election=Election.UNCLEAN if unclean_allowed else Election.ONLINE,
        )
        if record is not None:
            records.append(_planted(state, topic, index, partition, record))
    return records


def _planted(
    state: ClusterState,
    topic: TopicImage,
    index: int,
    before: PartitionRegistration,
    right: VersionedRecord,
) -> VersionedRecord:
    """The record as a planted fault has it."""
    faults, change = state.faults, right.record
    assert isinstance(change, PartitionChangeRecord)
    if faults.s02_isr_becomes_empty and change.leader == NO_LEADER and not state.gates.elr_enabled:
        state.hit("S02")
        return replace(right, record=replace(change, isr=()))
    if faults.s10_unclean_without_need and change.leader in before.isr:
        acceptable = state.acceptor(before, key=(topic.id, index))
        others = [r for r in before.replicas if r not in before.isr and acceptable(r)]
        if others:
            state.hit("S10")
            elected = replace(
                change, leader=others[0], isr=(others[0],), leader_recovery_state=RECOVERING
            )
            return replace(right, record=elected)
    return right


def _outside_of(
    lost_dirs: Sequence[UUID],
    partition: PartitionRegistration,
    acceptable: Callable[[int], bool],
) -> Callable[[int], bool]:
    if not lost_dirs:
        return acceptable
    return lambda replica: (
        acceptable(replica)
        and not (replica in partition.replicas and partition.directory_of(replica) in lost_dirs)
    )


def broker_fenced(state: ClusterState, broker: BrokerRegistration) -> Records:
    """The broker leaves all ISRs (but stays as a last member) and is fenced."""
    records = partition_updates(state, state.indexes.in_isr(broker.id), to_remove=broker.id)
    if state.gates.metadata_version.broker_registration_change_supported:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE
        )
        records.append(VersionedRecord(change, 0))
    else:
        records.append(VersionedRecord(FenceBrokerRecord(id=broker.id, epoch=broker.epoch), 0))
    return records


def broker_unfenced(
    state: ClusterState, broker: BrokerRegistration, lost_dirs: Sequence[UUID] = ()
) -> Records:
    """The broker may lead again, leaderless partitions first of all; no ISR takes it in."""
    records: Records = []
    if state.gates.metadata_version.broker_registration_change_supported:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE
        )
        records.append(VersionedRecord(change, 0))
    else:
        records.append(VersionedRecord(UnfenceBrokerRecord(id=broker.id, epoch=broker.epoch), 0))
    lost = () if state.rules.unfencing_ignores_lost_dirs else lost_dirs
    leaderless = state.indexes.leaderless
    return records + partition_updates(state, leaderless, to_add=broker.id, lost_dirs=lost)


def broker_in_controlled_shutdown(state: ClusterState, broker: BrokerRegistration) -> Records:
    """The broker hands over what it leads; the log says so once (KIP-841)."""
    records: Records = []
    supported = state.gates.metadata_version.in_controlled_shutdown_supported
    if supported and not broker.in_controlled_shutdown:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN,
        )
        records.append(VersionedRecord(change, 1))
    in_isr = state.indexes.in_isr(broker.id)
    if state.faults.s17_shutdown_keeps_leaderships and records:
        state.hit("S17")
        return records
    return records + partition_updates(state, in_isr, to_remove=broker.id)


def broker_unregistered(state: ClusterState, broker: BrokerRegistration) -> Records:
    """The broker leaves all ISRs and the cluster."""
    stays = state.rules.unregistered_broker_stays_in_elr
    records: Records = []
    gone, lost = (broker.id, NO_LEADER) if stays else (NO_LEADER, broker.id)
    for partitions in (state.indexes.in_isr(broker.id), state.indexes.elr.of(broker.id)):
        records += partition_updates(state, partitions, to_remove=gone, unclean=lost)
    unregister = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return [*records, VersionedRecord(unregister, 0)]


def broker_restarted(state: ClusterState, broker_id: int, *, clean: bool) -> Records:
    """A new incarnation takes the place of whatever had the id: its log may be gone."""
    in_isr = state.indexes.in_isr(broker_id)
    elr, elr_supported = state.gates.elr_enabled, state.gates.metadata_version.elr_supported
    if state.faults.z06_new_incarnation_stays and list(in_isr):
        state.hit("Z06")
        return []
    if not state.rules.new_incarnation_leaves_isr and not elr_supported:
        return []
    if clean or not elr:
        return partition_updates(state, in_isr, to_remove=broker_id)
    records = partition_updates(state, in_isr, unclean=broker_id)
    return records + partition_updates(state, state.indexes.elr.of(broker_id), unclean=broker_id)


def directories_offline(
    state: ClusterState, broker: BrokerRegistration, offline: Sequence[UUID]
) -> Records:
    """Replicas in directories that have just failed leave ISRs and leaderships (KIP-858)."""
    failed = [directory for directory in broker.log_dirs if directory in offline]
    if not failed:
        return []
    records: Records = []
    for directory in failed:
        in_directory = list(state.indexes.in_directory(directory))
        if state.faults.s33_offline_leader_stays:
            led = [key for key in in_directory if _leads(state, broker.id, key)]
            in_directory = [key for key in in_directory if key not in led]
            if led:
                state.hit("S33")
        records += partition_updates(state, in_directory, to_remove=broker.id)
    remaining = tuple(directory for directory in broker.log_dirs if directory not in offline)
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining
    )
    return [*records, VersionedRecord(change, 2)]


def _leads(state: ClusterState, broker_id: int, key: TopicPartition) -> bool:
    partition = state.image.topics.partition(*key)
    return partition is not None and partition.leader == broker_id


def directories_cordoned(
    state: ClusterState, broker: BrokerRegistration, cordoned: Sequence[UUID] | None
) -> Records:
    """Remember in which directories nothing new should be placed (KIP-1066)."""
    known = broker.cordoned_log_dirs
    if cordoned is None or (known is not None and set(known) == set(cordoned)):
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=tuple(cordoned)
    )
    return [VersionedRecord(change, 3)]
