"""The actions on disks: slow, lying, with broken log directories."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.actions.processes import restart
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.nodes.replica_manager import FailDirectory
from minicluster.errors import UserError
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.log_manager import ReplicaStore
from minicluster.scenario.actions import nodes as declared


@performs(declared.SlowDisk)
def slow_disk(cluster: ClusterRoles, do: declared.SlowDisk) -> None:
    for node_id in cluster.own_ids(do.node):
        if node_id not in cluster.controller_ids:
            cluster.note("slow_disk", [node_id], "note", "a broker does not wait for its disk")
            continue
        _set_write_ms(cluster, (node_id, int(ms(do.delay))))
        if do.lasting is not None:
            cluster.rt.schedule(
                cluster.now_ms + ms(do.lasting), partial(_set_write_ms, cluster), (node_id, 0)
            )


def _set_write_ms(cluster: ClusterRoles, node_and_ms: tuple[int, int]) -> None:
    node_id, write_ms = node_and_ms
    if cluster.disks[node_id].write_ms != write_ms:
        cluster.disks[node_id].write_ms = write_ms
        cluster.note("slow_disk", [node_id], "start" if write_ms else "stop", f"{write_ms}ms")


@performs(declared.FlushOff)
def flush_off(cluster: ClusterRoles, do: declared.FlushOff) -> None:
    for node_id in cluster.own_ids(do.node):
        cluster.disks[node_id].lie(True)
        cluster.note("flush_off", [node_id], "start")


@performs(declared.FlushOn)
def flush_on(cluster: ClusterRoles, do: declared.FlushOn) -> None:
    for node_id in cluster.own_ids(do.node):
        cluster.disks[node_id].lie(False)
        cluster.note("flush_off", [node_id], "stop")


@performs(declared.FailDir)
def fail_dir(cluster: ClusterRoles, do: declared.FailDir) -> None:
    for node_id, store, directory in _directories(cluster, do):
        process = cluster.processes.get(node_id)
        if directory not in store.online_directories:
            cluster.note(
                "fail_dir", [node_id], "note", f"directory {do.directory} has failed already"
            )
            continue
        offline: str | None = None  # where a process runs, its replica manager records it
        if process is None or process.replicas is None:
            store.fail_directory(directory)
            offline = format_uuid(directory)
        else:
            process.replicas.deliver(FailDirectory(do.directory))
        cluster.note("fail_dir", [node_id], "start", str(do.directory), directory=offline)


@performs(declared.RepairDir)
def repair_dir(cluster: ClusterRoles, do: declared.RepairDir) -> None:
    for node_id, store, directory in _directories(cluster, do):
        if directory in store.online_directories:
            cluster.note("repair_dir", [node_id], "note", f"directory {do.directory} works")
            continue
        store.repair_directory(directory)
        directory_id = format_uuid(directory)
        cluster.note("fail_dir", [node_id], "stop", str(do.directory), directory=directory_id)


def _directories(
    cluster: ClusterRoles, do: declared.FailDir | declared.RepairDir
) -> Iterator[tuple[int, ReplicaStore, uuid.UUID]]:
    for node_id in cluster.own_ids(do.broker):
        ids = cluster.disks[node_id].directory_ids if node_id in cluster.broker_ids else ()
        if do.directory >= len(ids):
            raise UserError(
                f"{do.method}: node {node_id} has {len(ids)} log directories, not {do.directory}"
            )
        yield node_id, ReplicaStore(cluster.disks[node_id]), ids[do.directory]


# Repair.


def repair_disks(cluster: ClusterRoles) -> None:
    """End slow writes and lost flushes on every disk."""
    for node_id in cluster.node_ids:
        _set_write_ms(cluster, (node_id, 0))
        if cluster.disks[node_id].flushed_when_lying is not None:
            flush_on(cluster, node_id)


def repair_all_dirs(cluster: ClusterRoles) -> None:
    """Repair every log directory and restart the brokers that had lost one."""
    for node_id in cluster.broker_ids:
        store = ReplicaStore(cluster.disks[node_id])
        ids, online = store.directory_ids, store.online_directories
        for index, directory in enumerate(ids):
            if directory not in online:
                repair_dir(cluster, node_id, index)
        if len(online) < len(ids) and node_id in cluster.processes:
            restart(cluster, node_id)
