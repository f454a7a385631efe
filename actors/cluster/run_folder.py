"""The files of a run: ``run.json``, the nodes' log directories, the trace as Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from minicluster import trace
from minicluster.actors.cluster.cluster import KRAFT, ZOOKEEPER, Cluster
from minicluster.actors.cluster.time_bounds import healed_ms, time_bounds
from minicluster.actors.export.broker_directories import BrokerEnd, archive_name, write_broker
from minicluster.actors.nodes.disk import Disk
from minicluster.actors.nodes.replica_manager import ReplicaManager
from minicluster.actors.recording.producer_logs import batch_rows, decision_rows
from minicluster.actors.recording.replica_log import records_of, replica_rows
from minicluster.actors.recording.run_place import put_in_place
from minicluster.configs.definitions import broker_configs
from minicluster.log.checkpoint import Snapshot, encode_snapshot
from minicluster.log.directory import METADATA_DIRECTORY, write_controller_directory
from minicluster.log.quorum_state import QUORUM_STATE_NAME
from minicluster.log.written_files import WRITTEN, written_files
from minicluster.replica.log_manager import ReplicaStore, log_name
from minicluster.scenario.scenario import to_yaml
from minicluster.verify.evidence.run_header import RUN_FORMAT
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.version import VERSION

OnPart = Callable[[str], None]

SCENARIO_NAME = "scenario.yaml"


def write_run(
    cluster: Cluster,
    path: Path,
    *,
    repeat: str | None = None,
    failure: ScenarioFailure | None = None,
    brokers: bool = True,
    on_part: OnPart = lambda part: None,
) -> Path:
    """Write a cluster's run folder; an earlier run in the same place is replaced.

    Shapes:  repeat: the trace hash of the same scenario and seed played another time; failure: of
             the scenario that was played; brokers: with their log directories, which no rule reads.
             on_part: called with the name of each part before it is written, and as it is.
    """

    def write(folder: Path) -> dict[str, Any]:
        header = _write_files(cluster, folder, brokers=brokers, on_part=on_part)
        header["failure"] = None if failure is None else failure.to_dict()
        return header if repeat is None else {**header, "repeat_trace_hash": repeat}

    running = _running_actors(cluster)
    cluster.rt.pause(running)  # the log and the trace are then of one moment
    try:
        return put_in_place(path, write)
    finally:
        cluster.rt.resume(running)


def _running_actors(cluster: Cluster) -> tuple[str, ...]:
    """The actors of a cluster on threads, which keep running, except for those that are paused."""
    if cluster.runtime_name != "threaded":
        return ()
    running = (process for process in cluster.processes.values() if not process.paused)
    return tuple(name for process in running for name in process.actors)


def _write_files(cluster: Cluster, path: Path, *, brokers: bool, on_part: OnPart) -> dict[str, Any]:
    """Write everything but the header, and return the header."""
    on_part("the metadata log")
    trace_hash = cluster.trace_hash if cluster.recorder.tables.hashed else None
    end = {table: rows_at_end(cluster, table) for table in AT_END}
    if cluster.programs is not None:
        common = cluster.recorder.at_end()
        end["program_log"] = (common | row for row in cluster.programs.log_rows())
    disks = _metadata_disks(cluster)
    for node_id, disk in disks.items():
        write_controller_directory(
            path / f"controller-{node_id}",
            disk.log(METADATA_DIRECTORY),
            node_id=node_id,
            cluster_id=cluster.plan.cluster_id,
            directory_id=disk.directory_ids[0],
            quorum_state=disk.read(QUORUM_STATE_NAME),
            bootstrap=encode_snapshot(
                Snapshot(records=cluster.bootstrap, last_contained_log_timestamp=0),
                epoch=0,
                timestamp_ms=0,
            ),
        )
    if brokers and cluster.mode == KRAFT:
        _write_brokers(cluster, path, on_part)
    header = _header(cluster, trace_hash, list(disks))
    if cluster.mode == ZOOKEEPER:
        cluster.zookeeper_log.write(path)
        # Not loaded by a cluster of KRaft.
        from minicluster.zookeeper.controller.settings import ReleaseRules

        header["inter_broker_protocol"] = str(cluster.protocol)
        release = ReleaseRules.of(cluster.protocol.release)
        header["ineligible_members_refused"] = release.ineligible_members_rejected
    on_trace = lambda part: on_part(f"the trace: {part}")  # noqa: E731
    header["trace_rows"] = cluster.recorder.write(path / "trace", end, on_trace)
    if problems := cluster.recorder.problems:
        header["recorder_problems"] = [problem.to_dict() for problem in problems]
    if left_out := cluster.recorder.client_rows_left_out:
        header["client_responses_left_out"] = left_out
    if cluster.scenario is not None:
        (path / SCENARIO_NAME).write_text(to_yaml(cluster.scenario), encoding="utf-8")
    header[WRITTEN] = {name: file.to_json() for name, file in written_files(path).items()}
    return header


def _write_brokers(cluster: Cluster, path: Path, on_part: OnPart) -> None:
    """Write the log directories of the brokers; a broker that runs ends cleanly here."""
    for broker_id in cluster.broker_ids:
        on_part(f"the logs of broker {broker_id}")
        write_broker(
            path / archive_name(broker_id),
            cluster.disks[broker_id],
            _end_of(cluster, broker_id),
            log_dirs=cluster.node_configs.get(broker_id, cluster.config).log_dirs,
            cluster_id=cluster.plan.cluster_id,
        )


def _end_of(cluster: Cluster, broker_id: int) -> BrokerEnd:
    store = ReplicaStore(cluster.disks[broker_id])
    high_watermarks = dict(store.high_watermarks())
    epoch = store.previous_epoch
    process = cluster.processes.get(broker_id)
    if process is not None and isinstance(process.replicas, ReplicaManager):
        state = process.replicas.machine.state
        epoch = state.view.broker_epoch
        for partition in state.partitions.values():
            name = log_name(partition.topic, partition.partition)
            high_watermarks[name] = partition.high_watermark
    return BrokerEnd(epoch=None if epoch < 0 else epoch, high_watermarks=high_watermarks)


def _metadata_disks(cluster: Cluster) -> dict[int, Disk]:
    """The disk with the metadata log of each controller.

    For controllers of another process: the longest copy of a broker, under their leader's id.
    """
    if cluster.quorum is None:
        return {node_id: cluster.disks[node_id] for node_id in cluster.controller_ids}
    leader = cluster.active_controller_id()
    copies = [cluster.disks[node_id] for node_id in cluster.broker_ids]
    if leader is None or not copies:
        return {}
    return {leader: max(copies, key=lambda disk: disk.log(METADATA_DIRECTORY).end_offset)}


def _header(cluster: Cluster, trace_hash: str | None, controllers: list[int]) -> dict[str, Any]:
    """The content of ``run.json``, but for how many rows each trace table has."""
    return {
        "format": RUN_FORMAT,
        "run_id": cluster.run_id,
        "minicluster": VERSION,
        "seed": cluster.seed,
        "mode": "outside" if cluster.quorum is not None else cluster.mode,
        "runtime": cluster.runtime_name,
        "wire": cluster.wire,
        "rules": cluster.rules.name,
        "metadata_version": str(cluster.metadata_version),
        "cluster_id": cluster.plan.cluster_id,
        "brokers": list(cluster.broker_ids),
        "controllers": controllers,
        "clients": cluster.client_nodes.known,
        "apps": [] if cluster.programs is None else cluster.programs.to_dict(),
        "versions": {} if cluster.programs is None else cluster.programs.versions,
        "config": _without_secrets(cluster.given_config),
        "faults": list(cluster.faults.ever_on),
        "hits": dict(cluster.recorder.fault_hits),
        "exercises": list(cluster.exercises),
        "scenario": cluster.scenario,
        "steps": cluster.performed,
        "intercepted": [interception.text for interception in cluster.interceptions],
        "epoch_ms": cluster.rt.epoch_ms,
        "ended_at_ms": cluster.now_ms,
        "healed_ms": healed_ms(cluster),
        "bounds_ms": time_bounds(cluster.config) if cluster.runtime_name == "simulated" else {},
        "events": cluster.recorder.sequence,
        "trace_hash": trace_hash,
        "crashes": [str(crash) for crash in cluster.rt.crashes],
        "controller_faults": list(cluster.recorder.controller_faults),
        "stale_indexes": stale_indexes(cluster),
    }


def stale_indexes(cluster: Cluster) -> list[int]:
    """The controllers that run with indexes that differ from those of their state (E41)."""
    return [
        node_id
        for node_id in cluster.controller_ids
        if (process := cluster.processes.get(node_id)) is not None
        and process.controller is not None
        and process.controller.controller.state.check_indexes()
    ]


def rows_at_end(cluster: Cluster, table: str) -> Iterator[dict[str, Any]]:
    """The rows of one of the tables ``AT_END``, as they are read from the brokers' disks."""
    recorder = cluster.recorder
    if table == "replica_log":
        records = sum(records_of(cluster.disks[broker_id]) for broker_id in cluster.broker_ids)
        if not recorder.lists_logs(records, "the brokers' logs at the end"):
            return
    common = recorder.at_end()
    for broker_id in cluster.broker_ids:
        with recorder.own_problems.noted(f"the rows of the logs of {broker_id}", table):
            for row in AT_END[table](cluster, broker_id):
                yield trace.row(table, row) | common


def _replica_rows(cluster: Cluster, broker_id: int) -> Iterator[dict[str, Any]]:
    process = cluster.processes.get(broker_id)
    incarnation = None if process is None else str(process.incarnation)
    return replica_rows(cluster.disks[broker_id], incarnation, "end")


AT_END: Mapping[str, Callable[[Cluster, int], Iterator[dict[str, Any]]]] = {
    "replica_log": _replica_rows,
    "log_batch": lambda cluster, broker_id: batch_rows(cluster.disks[broker_id]),
    "transaction_decision": lambda cluster, broker_id: decision_rows(cluster.disks[broker_id]),
}


HIDDEN = "[hidden]"  # as Kafka writes passwords


def _without_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    """Configs without the values of passwords, also of those that one listener has."""
    secret = tuple(f".{key.name}" for key in broker_configs() if key.is_sensitive)
    return {
        name: HIDDEN if f".{name}".endswith(secret) else value for name, value in config.items()
    }
