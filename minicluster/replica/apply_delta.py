"""The changes of a published delta to a broker's replicas, in Kafka's order.

Deletions first; then the partitions that this broker leads (not fetched any more); then those that
it follows (fetched again only in a new leader epoch). A topic that is deleted and created again in
one delta has one name and two ids: its old log must be gone before the new one is opened.

The first delta of an incarnation also removes the *strays*: logs of partitions that were deleted,
or assigned elsewhere, while the broker was down. That delta is from nothing to the present image,
so it has no deletions. A log is a stray by its topic id, not by its name (KAFKA-14616).

Source:  ReplicaManager.applyDelta, applyLocalLeadersDelta, applyLocalFollowersDelta,
         BrokerMetadataPublisher, LogManager.isStrayKraftReplica.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from minicluster.effects import Trace
from minicluster.metadata.image import directory_id
from minicluster.metadata.image.delta import LocalChanges, TopicIdPartition
from minicluster.metadata.image.partition import NO_LEADER, PartitionRegistration
from minicluster.planting import step
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.log_directories import resume_move
from minicluster.replica.log_manager import log_name
from minicluster.replica.partition.leadership import make_follower, make_leader, stop_replica
from minicluster.replica.partition.partition import Partition
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.trace import row


def _announce(state: ReplicaManagerState, deletes: Iterable[TopicIdPartition]) -> None:
    """Have the partitions read that followers' sessions skip.

    Before the first is deleted: a fetch that it completes reads all partitions of a deleted topic.
    """
    for deleted in deletes:
        gone = state.partitions.get((deleted.topic_id, deleted.partition))
        if gone is not None:
            gone.on_change()


@step
def apply_delta(state: ReplicaManagerState, changes: LocalChanges, now_ms: int) -> None:
    """Make the changes of a delta.

    Source:  ReplicaManager.applyDelta.
    """
    _announce(state, changes.deletes)
    for deleted in changes.deletes:
        _delete(state, deleted, now_ms)
    for named, registration in changes.leaders.items():
        make_local_leader(state, named, registration, now_ms)
    followed_again = [
        (named.topic_id, named.partition)
        for named, registration in changes.followers.items()
        if make_local_follower(state, named, registration)
    ]
    # After all of them, so that a request for several partitions sees each in its new role.
    for key in followed_again:
        state.delayed.complete_when_not_leader(key, now_ms)
    state.poll_fetchers(now_ms)
    state.assignments.assign(_directories_to_report(state, changes), now_ms)


# --- logs -------------------------------------------------------------------------------------


def remove_strays(state: ReplicaManagerState) -> None:
    """Delete the logs that the metadata does not have on this broker."""
    for name in list(state.store.names()):
        if is_stray(state, name):
            _delete_log(state, name)


@step
def is_stray(state: ReplicaManagerState, name: str) -> bool:
    """The partition of a log is gone, is another topic's by now, or lives elsewhere.

    Source:  LogManager.isStrayKraftReplica.
    """
    stored = state.store.partition_file(name)
    index = int(name.rpartition("-")[2])
    registration = None if stored is None else state.image.topics.partition(stored.topic_id, index)
    return registration is None or state.broker_id not in registration.replicas


def _delete_log(state: ReplicaManagerState, name: str) -> None:
    stored = state.store.partition_file(name)
    state.store.delete(name)
    if stored is not None and state.config.traced:
        topic, _, index = name.rpartition("-")
        columns = {
            "broker": state.broker_id,
            "incarnation": state.config.incarnation,
            "topic": topic,
            "topic_id": format_uuid(stored.topic_id),
            "part": int(index),
            "kind": "delete",
        }
        state.effects.append(Trace("partition_event", row("partition_event", columns)))


def _delete(state: ReplicaManagerState, named: TopicIdPartition, now_ms: int) -> None:
    """Stop a replica, delete its log and complete what waits for it."""
    key = (named.topic_id, named.partition)
    state.stop_fetching(key)
    state.assignments.forget(key)
    state.offline.pop(key, None)
    partition = state.remove_partition(key)
    name = log_name(named.topic, named.partition)
    stored = state.store.partition_file(name)
    # The log of this name may be that of a topic that was created again meanwhile.
    if stored is not None and stored.topic_id == named.topic_id:
        state.store.delete(name)
    if partition is not None:
        stop_replica(partition, delete=True)
        state.delayed.check_and_complete_all(key, now_ms)


# --- roles ------------------------------------------------------------------------------------


@step
def make_local_leader(
    state: ReplicaManagerState,
    named: TopicIdPartition,
    registration: PartitionRegistration,
    now_ms: int,
) -> None:
    """Lead a partition, and stop fetching it."""
    partition = get_or_create_partition(state, named, registration)
    if partition is not None:
        state.stop_fetching(partition.key)
        make_leader(partition, registration, now_ms)


@step
def make_local_follower(
    state: ReplicaManagerState, named: TopicIdPartition, registration: PartitionRegistration
) -> bool:
    """Follow a partition, and fetch it again in a new leader epoch.

    Shapes:  -> whether the leader epoch is new.
    Source:  ReplicaManager.applyLocalFollowersDelta.
    """
    partition = get_or_create_partition(state, named, registration)
    if partition is None:
        return False
    is_new_leader_epoch = make_follower(partition, registration)
    # A broker that shuts down and is out of the ISR, or has no leader, must not fetch its way back
    # into the ISR before it is gone.
    if state.in_controlled_shutdown and (
        registration.leader == NO_LEADER or state.broker_id not in registration.isr
    ):
        state.stop_fetching(partition.key)
    elif is_new_leader_epoch:
        state.stop_fetching(partition.key)
        start_fetching(state, partition, registration.leader)
    return is_new_leader_epoch


@step
def start_fetching(state: ReplicaManagerState, partition: Partition, leader: int) -> None:
    """Fetch from a leader that is registered; any other comes with later metadata."""
    if state.image.cluster.broker(leader) is not None:
        state.fetch_from(leader, partition)


@step
def get_or_create_partition(
    state: ReplicaManagerState, named: TopicIdPartition, registration: PartitionRegistration
) -> Partition | None:
    """The local replica, made if missing; None while its directory does not work.

    Source:  ReplicaManager.getOrCreatePartition, LogManager.getOrCreateLog.
    """
    key = (named.topic_id, named.partition)
    if key in state.offline:
        return None
    partition = state.partitions.get(key)
    if partition is None:
        name = log_name(named.topic, named.partition)
        directory = _directory_for(state, name, registration)
        if directory is None:
            state.offline[key] = None
            return None
        partition = state.partitions[key] = Partition(
            state,
            topic=named.topic,
            topic_id=named.topic_id,
            partition=named.partition,
            log=state.store.open(name, named.topic_id, directory),
            high_watermark_checkpoint=state.store.high_watermarks().get(name, 0),
            min_insync_replicas=state.min_isr_of(named.topic),
            log_config=state.log_config_of(named.topic),
            directory=directory,
        )
        resume_move(state, partition)
    return partition


# --- directories ------------------------------------------------------------------------------


def _directory_for(
    state: ReplicaManagerState, name: str, registration: PartitionRegistration
) -> uuid.UUID | None:
    """The directory of a log, or the one for a new log; None if that does not work.

    A new log goes to the assigned directory, or to any if none is assigned. It is not made
    elsewhere when the assigned directory has failed: the old log may be in there. Cordoned
    directories take no new log while there is another (KIP-1066).

    Source:  Partition.createLogInAssignedDirectoryId, LogManager.getOrCreateLog, nextLogDirs.
    """
    store = state.store
    online, everything = store.online_directories, store.directory_ids
    if not everything:
        return directory_id.UNASSIGNED
    stored = store.partition_file(name)
    if stored is not None:
        return stored.directory if stored.directory in online else None
    preferred = state.preferred_directories.pop(name, None)
    if preferred in online:
        return preferred
    assigned = registration.directory_of(state.broker_id)
    if assigned in online:
        return assigned
    free = assigned in (directory_id.UNASSIGNED, directory_id.MIGRATING)
    if not online or (len(online) < len(everything) and not free):
        return None
    cordoned = state.cordoned_directories
    online = tuple(d for d in online if d not in cordoned) or online[:1]
    if len(online) == 1:
        return online[0]
    loads = store.loads
    return min(online, key=lambda directory: loads.get(directory, 0))


def _directories_to_report(
    state: ReplicaManagerState, changes: LocalChanges
) -> dict[tuple[uuid.UUID, int], uuid.UUID]:
    """The logs that lie in another directory than the metadata has them now (KIP-858).

    A partition of before metadata.version 3.7-IV2 has no directory until a broker restarts: no
    later change of its leader or ISR is a change of its directory.

    Source:  ReplicaManager.maybeUpdateTopicAssignment.
    """
    to_report: dict[tuple[uuid.UUID, int], uuid.UUID] = {}
    if not state.image.metadata_version.directory_assignment_supported:
        return to_report
    for named, assigned in changes.directories.items():
        key = (named.topic_id, named.partition)
        stored = state.store.partition_file(log_name(named.topic, named.partition))
        partition = state.partitions.get(key)
        if partition is None or stored is None:
            continue
        if partition.future is not None and partition.future.is_queued:
            continue  # the directory that it moves to is reported
        if stored.directory == assigned:
            state.assignments.forget(key)
        elif stored.directory in state.store.directory_ids:
            to_report[key] = stored.directory
    return to_report
