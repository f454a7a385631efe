"""The actions on processes: killed, started, paused, shut down, late to see metadata.

A crash loses the part of the disk that its ``lose_tail`` names.
"""

from __future__ import annotations

import signal
from functools import partial

from minicluster.actors.cluster.actions import programs
from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.incarnations import end_process, record_logs, start_process
from minicluster.actors.cluster.process import Process
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.exchange import is_client
from minicluster.actors.links import Condition
from minicluster.actors.nodes.broker import BeginShutdown
from minicluster.actors.nodes.metadata_publisher import SetDelay
from minicluster.errors import UserError
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.scenario.actions import apps as of_apps
from minicluster.scenario.actions import nodes as declared


@performs(declared.Kill)
def kill(cluster: ClusterRoles, do: declared.Kill) -> None:
    for node_id in cluster.process_ids(do.node):
        if (program := cluster.program(node_id)) is not None:
            programs.kill(cluster, program)
            continue
        with cluster.lifecycle:
            _kill(cluster, node_id, do)


def _kill(cluster: ClusterRoles, node_id: int, do: declared.Kill) -> None:
    if node_id not in cluster.processes:
        cluster.note("kill", [node_id], "note", "it is down already")
        return
    record_logs(cluster, node_id, "crash")
    end_process(cluster, node_id, reset=do.connections == "reset")
    lost = cluster.disks[node_id].crash(do.lose_tail)
    detail = ", ".join(f"{name} lost {count}" for name, count in lost.items())
    cluster.note("kill", [node_id], "start", detail)


@performs(declared.Restart)
def restart(cluster: ClusterRoles, do: declared.Restart) -> None:
    for node_id in cluster.process_ids(do.node):
        if (program := cluster.program(node_id)) is not None:
            programs.restart(cluster, program)
            continue
        with cluster.lifecycle:
            process = cluster.processes.get(node_id)
            if process is not None and _is_about_to_end(process):
                process.starts_again = True
                cluster.note("restart", [node_id], "note", "it starts once it has shut down")
                continue
            if process is not None:
                kill(cluster, node_id)
            cluster.note("restart", [node_id], "start")
            start_process(cluster, node_id)


def _is_about_to_end(process: Process) -> bool:
    """A shutdown has begun, whose end a supervisor waits for between its SIGTERM and its start.

    A node that is killed then would lose its place in ELRs, of which a clean end tells the
    controller (KIP-966). One that no controller grants its shutdown ends after five minutes.
    """
    return process.shuts_down and not process.paused


@performs(declared.Bounce)
def bounce(cluster: ClusterRoles, do: declared.Bounce) -> None:
    for node_id in cluster.process_ids(do.node):
        if not cluster.is_running(node_id):
            cluster.note("bounce", [node_id], "note", "it is down already")
            continue
        kill(cluster, node_id, lose_tail=do.lose_tail, connections=do.connections)
        cluster.rt.schedule(cluster.now_ms + ms(do.down), partial(_start_again, cluster), node_id)


def _start_again(cluster: ClusterRoles, node_id: int) -> None:
    if not cluster.is_running(node_id):
        restart(cluster, node_id)


@performs(declared.Wipe)
def wipe(cluster: ClusterRoles, do: declared.Wipe) -> None:
    for node_id in cluster.own_ids(do.node):
        with cluster.lifecycle:
            if node_id in cluster.processes:
                kill(cluster, node_id)
            cluster.disks[node_id].wipe(cluster.new_directories(node_id))
            cluster.note("wipe", [node_id], "start")


@performs(declared.Pause)
def pause(cluster: ClusterRoles, do: declared.Pause) -> None:
    for node_id in cluster.ids_with_clients(do.node):
        if (program := cluster.program(node_id)) is not None:
            programs.pause(cluster, program, do.lasting)
            continue
        if is_client(node_id):
            _pause_client(cluster, node_id, do)
            continue
        cluster.own_ids(node_id)  # rejects those of other processes
        process = cluster.processes.get(node_id)
        if process is None or process.paused:
            cluster.note("pause", [node_id], "note", "it does not run")
            continue
        process.paused = True
        cluster.rt.pause(process.actors)
        cluster.on_process(node_id, False)
        cluster.note("pause", [node_id], "start")
        if do.lasting is not None:
            cluster.rt.schedule(cluster.now_ms + ms(do.lasting), partial(_resume, cluster), process)


def _pause_client(cluster: ClusterRoles, node_id: int, do: declared.Pause) -> None:
    """Hold all that a client sends and all that is sent to it: its process runs elsewhere."""
    if node_id in cluster.paused_clients:
        cluster.note("pause", [node_id], "note", "it is paused already")
        return
    pairs = [(node_id, broker) for broker in cluster.broker_ids]
    pairs += [(broker, client) for client, broker in pairs]
    cluster.paused_clients[node_id] = [
        cluster.network.add(Condition(kind="hold", src=src, dst=dst)) for src, dst in pairs
    ]
    cluster.note("pause", [node_id], "start")
    if do.lasting is not None:
        until_ms = cluster.now_ms + ms(do.lasting)
        cluster.rt.schedule(until_ms, partial(_resume_client, cluster), node_id)


def _resume_client(cluster: ClusterRoles, node_id: int) -> None:
    conditions = cluster.paused_clients.pop(node_id, None)
    if conditions is None:
        cluster.note("resume", [node_id], "note", "it is not paused")
        return
    cluster.network.lift(conditions)
    cluster.note("resume", [node_id], "stop")


@performs(declared.Resume)
def resume(cluster: ClusterRoles, do: declared.Resume) -> None:
    for node_id in cluster.ids_with_clients(do.node):
        if (program := cluster.program(node_id)) is not None:
            programs.resume(cluster, program)
            continue
        if is_client(node_id):
            _resume_client(cluster, node_id)
            continue
        cluster.own_ids(node_id)  # rejects those of other processes
        process = cluster.processes.get(node_id)
        if process is None or not process.paused:
            cluster.note("resume", [node_id], "note", "it is not paused")
        else:
            _resume(cluster, process)


def _resume(cluster: ClusterRoles, process: Process) -> None:
    if process.paused:
        process.paused = False
        cluster.rt.resume(process.actors)
        cluster.on_process(process.node_id, True)
        cluster.note("resume", [process.node_id], "stop")


@performs(declared.ControlledShutdown)
def controlled_shutdown(cluster: ClusterRoles, do: declared.ControlledShutdown) -> None:
    for node_id in cluster.own_ids(do.node):
        process = cluster.processes.get(node_id)
        if process is None:
            cluster.note("controlled_shutdown", [node_id], "note", "it is down already")
        elif (broker := process.broker or process.zk_broker) is not None:
            broker.deliver(BeginShutdown())
            process.shuts_down = True
            cluster.note("controlled_shutdown", [node_id], "start")
        else:
            end_process(cluster, node_id)
            cluster.disks[node_id].log(METADATA_DIRECTORY).flush()
            cluster.note("controlled_shutdown", [node_id], "start")


@performs(of_apps.Terminate)
def terminate(cluster: ClusterRoles, do: of_apps.Terminate) -> None:
    for node_id in cluster.ids_with_clients(do.app):
        program = cluster.program(node_id)
        if program is None:
            raise UserError("terminate: it takes apps; controlled_shutdown takes nodes")
        if not program.is_running:
            cluster.note("terminate", [node_id], "note", "it is down already")
            continue
        cluster.note("terminate", [node_id], "start", do.signal)
        program.terminate(signal.Signals[do.signal])


@performs(declared.PublishDelay)
def publish_delay(cluster: ClusterRoles, do: declared.PublishDelay) -> None:
    ids = cluster.own_ids(do.broker)
    for node_id in ids:
        _set_publish_delay(cluster, (node_id, ms(do.delay)))
    if do.lasting is not None:
        until_ms = cluster.now_ms + ms(do.lasting)
        for node_id in ids:
            cluster.rt.schedule(until_ms, partial(_set_publish_delay, cluster), (node_id, 0))


def _set_publish_delay(cluster: ClusterRoles, node_and_ms: tuple[int, int]) -> None:
    node_id, delay_ms = node_and_ms
    process = cluster.processes.get(node_id)
    if process is None or process.publisher is None:
        cluster.note("publish_delay", [node_id], "note", "it publishes nothing")
        return
    changes = process.publisher.delay_ms != delay_ms
    process.publisher.deliver(SetDelay(delay_ms))
    phase = "start" if delay_ms else "stop"
    cluster.note("publish_delay", [node_id], phase, f"{delay_ms}ms", changes=changes)


@performs(declared.Mutate)
def mutate(cluster: ClusterRoles, do: declared.Mutate) -> None:
    cluster.faults.plant(do.fault, do.planted)
    cluster.note("mutate", [do.fault], "start" if do.planted else "stop")
