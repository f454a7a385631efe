"""What a published delta does to a broker's replicas, in Kafka's order.

Deletions first; then the partitions that this broker leads (not fetched any more); then those that
it follows (fetched anew only in a new leader epoch). The first delta of an incarnation also removes
logs of partitions that are not assigned to this broker any more.

Source:  ReplicaManager.applyDelta, applyLocalLeadersDelta, applyLocalFollowersDelta,
         BrokerMetadataPublisher, LogManager.isStrayKraftReplica.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from minicluster.effects import Effect, FaultHit, Trace
from minicluster.metadata.cordoned import cordoned_directories
from minicluster.metadata.image import directory_id
from minicluster.metadata.image.delta import MetadataDelta, TopicIdPartition
from minicluster.metadata.image.partition import NO_LEADER, PartitionRegistration
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.log_manager import log_name
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.steps import CheckWaiting
from minicluster.replica.requests.purgatory import Key
from minicluster.trace import row

if TYPE_CHECKING:
    from minicluster.replica.machine import ReplicaManagerMachine


def apply_delta(
    manager: ReplicaManagerMachine, now_ms: int, delta: MetadataDelta, *, first: bool
) -> list[Effect]:
    """Carry a delta out."""
    effects: list[Effect] = []
    changes = delta.local_changes(manager.config.broker_id)
    if manager.faults.z09_metadata_stops_at_shutdown and manager.in_controlled_shutdown:
        return [FaultHit("Z09")] if changes else []
    if first:
        _remove_strays(manager, effects)
    for deleted in changes.deletes:
        _delete(manager, deleted, effects)
    for named, registration in changes.leaders.items():
        _lead(manager, now_ms, named, registration, effects)
    for named, registration in changes.followers.items():
        _follow(manager, now_ms, named, registration, effects)
    if changes:
        effects += manager.poll_fetchers(now_ms)
        for changed in (changes.leaders, changes.followers):
            for named, registration in changed.items():
                _tell_directory(manager, now_ms, named, registration, effects)
    return effects


def _tell_directory(
    manager: ReplicaManagerMachine,
    now_ms: int,
    named: TopicIdPartition,
    registration: PartitionRegistration,
    effects: list[Effect],
) -> None:
    """Let the controller know if a log lies elsewhere than the metadata says (KIP-858)."""
    key = (named.topic_id, named.partition)
    known = manager.store.partition_file(log_name(named.topic, named.partition))
    if not manager.image.metadata_version.directory_assignment_supported:
        return
    if key not in manager.partitions or known is None:
        return
    if known.directory == registration.directory_of(manager.config.broker_id):
        manager.assignments.forget(key)
    elif known.directory in manager.store.directory_ids:
        effects += manager.assignments.assign(now_ms, key, known.directory)


def _remove_strays(manager: ReplicaManagerMachine, effects: list[Effect]) -> None:
    """Delete logs whose partition is gone, is another topic's by now, or lives elsewhere."""
    topics, broker_id = manager.image.topics, manager.config.broker_id
    for name in manager.store.names():
        known = manager.store.partition_file(name)
        index = int(name.rpartition("-")[2])
        found = None if known is None else topics.partition(known.topic_id, index)
        is_stray = found is None or broker_id not in found.replicas
        if manager.faults.z45_live_logs_are_strays and not is_stray:
            effects.append(FaultHit("Z45"))
            _delete_log(manager, name, effects)
        elif is_stray and manager.faults.z44_old_log_of_new_topic:
            effects.append(FaultHit("Z44"))
        elif is_stray:
            _delete_log(manager, name, effects)


def _delete_log(manager: ReplicaManagerMachine, name: str, effects: list[Effect]) -> None:
    known = manager.store.partition_file(name)
    manager.store.delete(name)
    if known is not None and manager.config.traced:
        topic, _, index = name.rpartition("-")
        told = {
            "broker": manager.config.broker_id,
            "incarnation": manager.config.incarnation,
            "topic": topic,
            "topic_id": format_uuid(known.topic_id),
            "part": int(index),
            "kind": "delete",
        }
        effects.append(Trace("partition_event", row("partition_event", told)))


def _delete(manager: ReplicaManagerMachine, named: TopicIdPartition, effects: list[Effect]) -> None:
    key = (named.topic_id, named.partition)
    manager.stop_fetching(key)
    manager.assignments.forget(key)
    manager.offline.pop(key, None)
    partition = manager.partitions.pop(key, None)
    name = log_name(named.topic, named.partition)
    known = manager.store.partition_file(name)
    if known is not None and known.topic_id == named.topic_id:
        manager.store.delete(name)
    if partition is not None:
        effects += partition.stop(delete=True)
        effects.append(CheckWaiting(*key))


def _lead(
    manager: ReplicaManagerMachine,
    now_ms: int,
    named: TopicIdPartition,
    registration: PartitionRegistration,
    effects: list[Effect],
) -> None:
    registration = _under_first_epoch(manager, registration, effects)
    partition = _hosted(manager, named, registration, effects)
    if partition is None:
        return
    manager.stop_fetching((named.topic_id, named.partition))
    effects += partition.make_leader(now_ms, manager.view, registration).effects


def _follow(
    manager: ReplicaManagerMachine,
    now_ms: int,
    named: TopicIdPartition,
    registration: PartitionRegistration,
    effects: list[Effect],
) -> None:
    """Follow; a leader that nobody knows, or none, means that nothing is fetched.

    A broker that is shutting down does not fetch what it would not be in the ISR of anyway.
    """
    registration = _under_first_epoch(manager, registration, effects)
    partition = _hosted(manager, named, registration, effects)
    if partition is None:
        return
    key = (named.topic_id, named.partition)
    faults = manager.faults
    if faults.z08_demotion_ignored and manager.in_controlled_shutdown and partition.is_leader:
        effects.append(FaultHit("Z08"))
        return
    step = partition.make_follower(now_ms, registration)
    effects += step.effects
    broker_id = manager.config.broker_id
    leaves = manager.in_controlled_shutdown and (
        registration.leader == NO_LEADER or broker_id not in registration.isr
    )
    if leaves:
        manager.stop_fetching(key)
    elif step.result:
        manager.stop_fetching(key)
        if faults.s30_truncates_below_hw and partition.high_watermark > partition.log_start_offset:
            effects.append(FaultHit("S30"))
            effects += partition.truncate(partition.high_watermark - 1)
        if manager.image.cluster.broker(registration.leader) is not None:
            manager.fetch_from(registration.leader, partition)


def _under_first_epoch(
    manager: ReplicaManagerMachine, registration: PartitionRegistration, effects: list[Effect]
) -> PartitionRegistration:
    """The planted fault that lets every leader lead the same epoch."""
    if not manager.faults.s03_leader_epoch_stands or registration.leader_epoch == 0:
        return registration
    effects.append(FaultHit("S03"))
    return replace(registration, leader_epoch=0)


def _hosted(
    manager: ReplicaManagerMachine,
    named: TopicIdPartition,
    registration: PartitionRegistration,
    effects: list[Effect],
) -> Partition | None:
    """The local replica, made if missing; None if its directory does not work."""
    key = (named.topic_id, named.partition)
    name = log_name(named.topic, named.partition)
    _plant_wrong_log(manager, key, name, effects)
    if key in manager.offline:
        return None
    partition = manager.partitions.get(key)
    if partition is None:
        directory = _directory_for(manager, name, registration)
        if directory is None:
            manager.offline[key] = None
            return None
        log = manager.store.open(name, named.topic_id, directory)
        partition = manager.partitions[key] = Partition(
            broker_id=manager.config.broker_id,
            topic=named.topic,
            topic_id=named.topic_id,
            partition=named.partition,
            log=log,
            high_watermark_checkpoint=manager.store.high_watermarks().get(name, 0),
            rules=manager.rules,
            faults=manager.faults,
            replica_lag_time_max_ms=manager.config.replica_lag_time_max_ms,
            min_insync_replicas=manager.min_isr_of(named.topic),
            incarnation=manager.config.incarnation,
            traced=manager.config.traced,
            proposal_ids=manager.proposal_ids,
        )
    return partition


def _plant_wrong_log(
    manager: ReplicaManagerMachine, key: Key, name: str, effects: list[Effect]
) -> None:
    """The planted faults that give a replica another log than its own."""
    store = manager.store
    known = store.partition_file(name)
    if known is None or key in manager.partitions:
        return
    if manager.faults.z44_old_log_of_new_topic and known.topic_id != key[0]:
        effects.append(FaultHit("Z44"))
        store.adopt(name, key[0])
    online = store.online_directories
    if manager.faults.z14_failed_log_made_anew and online and known.directory not in online:
        effects.append(FaultHit("Z14"))
        store.delete(name)
        store.open(name, key[0], online[0])
        manager.offline.pop(key, None)


def _directory_for(
    manager: ReplicaManagerMachine, name: str, registration: PartitionRegistration
) -> uuid.UUID | None:
    """Where a log lies or is to be made.

    A new log goes to the assigned directory, or to any if none is assigned; it is not made
    elsewhere when the assigned one has failed. Cordoned directories take no new log while there is
    another (KIP-1066).

    Source:  Partition.createLogInAssignedDirectoryId, LogManager.getOrCreateLog, nextLogDirs.
    """
    store = manager.store
    online, everything = store.online_directories, store.directory_ids
    if not everything:
        return directory_id.UNASSIGNED
    known = store.partition_file(name)
    if known is not None:
        return known.directory if known.directory in online else None
    assigned = registration.directory_of(manager.config.broker_id)
    if assigned in online:
        return assigned
    free = assigned in (directory_id.UNASSIGNED, directory_id.MIGRATING)
    if not online or (len(online) < len(everything) and not free):
        return None
    config = manager.config
    cordoned = cordoned_directories(manager.image, config.broker_id, config.dir_names) or ()
    online = tuple(d for d in online if d not in cordoned) or online[:1]
    loads = dict.fromkeys(online, 0)
    for other in store.names():
        place = store.partition_file(other)
        if place is not None and place.directory in loads:
            loads[place.directory] += 1
    return min(online, key=lambda directory: loads[directory])
