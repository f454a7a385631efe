"""The partition changes and the broker record of each change of a broker's state.

**Order.** Fencing and unregistering write partitions before the broker, so that no prefix of the
log has a fenced leader; unfencing and controlled shutdown write the broker first. These records are
not one atomic batch: a controller may fall between any two of them, and what it leaves behind must
be a state that the next one can continue from.

| change | partitions looked at | broker record |
|---|---|---|
| fenced | ISR | BrokerRegistrationChange v0, or FenceBroker below 3.3-IV2 |
| unfenced | leaderless | BrokerRegistrationChange v0, or UnfenceBroker |
| controlled shutdown | ISR | BrokerRegistrationChange v1 once |
| unregistered | ISR, ELR | UnregisterBroker |
| new incarnation | ISR, ELR if unclean | none |
| directory offline | those in it | BrokerRegistrationChange v2 |
| directories cordoned | none | BrokerRegistrationChange v3 |

Source:  KIP-631, KIP-841, KIP-858, KIP-966, KIP-1066; ReplicationControlManager.handleBroker*,
         generateLeaderAndIsrUpdates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from msgspec import field

from minicluster.controller.errors import ControllerFault
from minicluster.controller.leader_election import Election
from minicluster.controller.partition_change import (
    PartitionChangeBuilder,
    Targets,
    change_record,
)
from minicluster.controller.reassignment import without
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.indexes import TopicPartition
from minicluster.metadata.image.cluster import (
    FENCE,
    IN_CONTROLLED_SHUTDOWN,
    UNFENCE,
    BrokerRegistration,
)
from minicluster.metadata.image.partition import NO_LEADER, PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.planting import step
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)
from minicluster.protocol.schema import Message
from minicluster.values import Value

Records = Iterator[VersionedRecord]
"""In the order in which they are written; the caller makes one decision of them."""


def partition_updates(
    state: ClusterState,
    partitions: Iterable[TopicPartition],
    *,
    to_remove: int = NO_LEADER,
    to_add: int = NO_LEADER,
    unclean: int = NO_LEADER,
    lost_dirs: Sequence[UUID] = (),
) -> Records:
    """The changes of some partitions when a broker leaves, returns, or has lost its logs.

    All are computed from the state before the operation.
    Shapes:  lost_dirs are directories whose loss the same operation records.
    Errors:  ControllerFault when an index names a partition that does not exist.
    """
    moves = Moves(to_remove=to_remove, to_add=to_add, unclean=unclean, lost_dirs=tuple(lost_dirs))
    for topic_id, index in partitions:
        topic = state.image.topics.get(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None:
            raise ControllerFault(f"an index names partition {topic_id}-{index}, which is gone")
        record = updated_partition(state, topic, index, partition, moves)
        if record is not None:
            yield record


class Moves(Value, kw_only=True):
    """The brokers that leave or join the partitions, and directories that are lost.

    Shapes:  of_topics: a topic's election and min ISR; decided: the changes of partitions that are
             alike, which one operation decides once.
    """

    to_remove: int = NO_LEADER
    to_add: int = NO_LEADER
    unclean: int = NO_LEADER
    lost_dirs: tuple[UUID, ...] = ()
    of_topics: dict[UUID, tuple[Election, int]] = field(default_factory=dict)
    decided: dict[tuple[object, ...], Mapping[str, object]] = field(default_factory=dict)


@step
def updated_partition(
    state: ClusterState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    moves: Moves,
) -> VersionedRecord | None:
    """The change of one partition, or None when it stays as it is."""
    # Partitions that are alike get the same change: fencing one broker of a cluster with 100,000
    # partitions need not build each of them from the start.
    of_topic = moves.of_topics.get(topic.id)
    if of_topic is None:
        unclean_allowed = state.unclean_election_allowed(topic.name)
        election = Election.UNCLEAN if unclean_allowed else Election.ONLINE
        of_topic = moves.of_topics[topic.id] = election, state.min_isr(topic)
    key = (topic.id, index)
    own = key if state.offline_replicas.is_reported else None
    alike = of_topic, own, partition.without_epochs
    changes = moves.decided.get(alike)
    if changes is None:
        changes = moves.decided[alike] = _changes(state, key, partition, moves, *of_topic)
    return change_record(topic.id, index, changes, state.gates)


def _changes(
    state: ClusterState,
    key: TopicPartition,
    partition: PartitionRegistration,
    moves: Moves,
    election: Election,
    min_isr: int,
) -> Mapping[str, object]:
    gone = tuple(b for b in (moves.to_remove, moves.unclean) if b != NO_LEADER)

    def active(replica: int) -> bool:
        if replica in gone:
            return False
        return replica == moves.to_add or state.image.cluster.is_active(replica)

    # The records of this operation are not applied yet: the image alone still calls the broker
    # active that is leaving, and would elect it again.
    acceptable = state.acceptor(partition, active, key=key)
    targets = Targets(
        isr=without(partition.isr, gone),
        unclean_shutdown=() if moves.unclean == NO_LEADER else (moves.unclean,),
    )
    acceptable = _outside_of(moves.lost_dirs, partition, acceptable)
    builder = PartitionChangeBuilder(partition, targets, state.gates, acceptable, min_isr, election)
    return builder.build(targets.directories, state.default_dir)


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
    """The broker leaves all ISRs, but for those of which it is the last member, and is fenced."""
    yield from partition_updates(state, state.indexes.in_isr(broker.id), to_remove=broker.id)
    yield _fencing_record(state, broker, FENCE)


@step
def broker_unfenced(
    state: ClusterState, broker: BrokerRegistration, lost_dirs: Sequence[UUID] = ()
) -> Records:
    """The broker may lead again: leaderless partitions elect it if it is eligible.

    It returns to no ISR by this; each leader proposes it when it has caught up.
    """
    # One heartbeat must not elect the broker in a directory that the same heartbeat calls lost.
    lost = () if state.rules.unfencing_ignores_lost_dirs else lost_dirs
    leaderless = state.indexes.leaderless
    yield _fencing_record(state, broker, UNFENCE)
    # The process that sent it may have ended: only the next registration ends the shutdown.
    if state.rules.unfencing_ignores_shutdown or not broker.in_controlled_shutdown:
        yield from partition_updates(state, leaderless, to_add=broker.id, lost_dirs=lost)


def _fencing_record(
    state: ClusterState, broker: BrokerRegistration, fenced: int
) -> VersionedRecord:
    message: Message
    if state.gates.metadata_version.broker_registration_change_supported:
        message = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=fenced
        )
    elif fenced == FENCE:
        message = FenceBrokerRecord(id=broker.id, epoch=broker.epoch)
    else:
        message = UnfenceBrokerRecord(id=broker.id, epoch=broker.epoch)
    return VersionedRecord(message, 0)


@step
def broker_in_controlled_shutdown(state: ClusterState, broker: BrokerRegistration) -> Records:
    """The broker hands over before it stops, so that nobody waits for its session to expire.

    1. Each heartbeat of the broker requests it (WantShutDown).
    2. At the first, the log marks it as in controlled shutdown, and it leaves ISRs and leaderships.
       The record comes before the partition changes: from it on no election and no ISR takes the
       broker in, so that a lagging leader cannot propose it again (KIP-841).
    3. At the later ones it hands over what could not move before, or what it has come to lead
       since. A partition of which it is the last member stays with it.
    4. Once it leads nothing, and every active broker has read up to where the shutdown began, the
       response lets it stop: until then others would fetch from it
       (``operations/broker_heartbeat.py``).
    5. It is fenced. The mark stays until it registers again.

    Below metadata.version 3.3-IV3 the log has no such mark; the broker only hands over.

    Source:  KIP-631, KIP-841; ReplicationControlManager.handleBrokerInControlledShutdown.
    """
    is_marked = state.gates.metadata_version.in_controlled_shutdown_supported
    if not broker.in_controlled_shutdown and is_marked:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN,
        )
        yield VersionedRecord(change, 1)
    yield from partition_updates(state, state.indexes.in_isr(broker.id), to_remove=broker.id)


def broker_unregistered(state: ClusterState, broker: BrokerRegistration) -> Records:
    """The broker leaves all ISRs and the cluster."""
    # It cannot be elected while it is not registered. As shipped it enters the ELR nevertheless,
    # and leaves it only when it registers again, which counts as an unclean restart.
    stays = state.rules.unregistered_broker_stays_in_elr
    gone, lost = (broker.id, NO_LEADER) if stays else (NO_LEADER, broker.id)
    for partitions in (state.indexes.in_isr(broker.id), state.indexes.elr.of(broker.id)):
        yield from partition_updates(state, partitions, to_remove=gone, unclean=lost)
    unregister = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    yield VersionedRecord(unregister, 0)


@step
def broker_restarted(state: ClusterState, broker_id: int, clean: bool) -> Records:
    """A new incarnation replaces the one before; its log may be gone, so it leaves all ISRs.

    Shapes:  clean: the restart is proved to be one in good order, and it may stay eligible.
    """
    # Otherwise an incarnation that restarted before its session ran out would be in ISRs, and lead,
    # with a disk of which nobody knows what it still holds (KAFKA-18106).
    in_isr = state.indexes.in_isr(broker_id)
    supported = state.gates.metadata_version.elr_supported(state.rules)
    if not state.rules.new_incarnation_leaves_isr and not supported:
        return
    if clean or not state.gates.elr_enabled:
        yield from partition_updates(state, in_isr, to_remove=broker_id)
        return
    yield from partition_updates(state, in_isr, unclean=broker_id)
    yield from partition_updates(state, state.indexes.elr.of(broker_id), unclean=broker_id)


@step
def directories_offline(
    state: ClusterState, broker: BrokerRegistration, offline: Sequence[UUID]
) -> Records:
    """Replicas in directories that have just failed leave ISRs and leaderships (KIP-858)."""
    # What the registration has, minus what failed: a directory that was reported before is not in
    # it any more, and is not decided again with every heartbeat.
    failed = [directory for directory in broker.log_dirs if directory in offline]
    if not failed:
        return
    for directory in failed:
        lost = list(state.indexes.in_directory(directory))
        yield from partition_updates(state, lost, to_remove=broker.id)
    remaining = tuple(directory for directory in broker.log_dirs if directory not in offline)
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining
    )
    yield VersionedRecord(change, 2)


def directories_cordoned(
    state: ClusterState, broker: BrokerRegistration, cordoned: Sequence[UUID] | None
) -> Records:
    """Write the directories in which no new replica is placed (KIP-1066)."""
    current = broker.cordoned_log_dirs
    if cordoned is None or (current is not None and set(current) == set(cordoned)):
        return
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=tuple(cordoned)
    )
    yield VersionedRecord(change, 3)
