"""Starting and ending the processes of a cluster's nodes.

A crash loses mailboxes, connections and soft state. A restart makes a new incarnation on the same
disk.

The actors of a cluster on ZooKeeper are loaded by its first start: 75 modules that others save.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from minicluster.actors.cluster.client import CLIENT_ID
from minicluster.actors.cluster.cluster import KRAFT, ZOOKEEPER, Cluster
from minicluster.actors.cluster.process import Process
from minicluster.actors.links import Packet
from minicluster.actors.nodes.authorization import authorizer_of
from minicluster.actors.nodes.broker import Broker, CombinedBroker
from minicluster.actors.nodes.metadata_publisher import MetadataPublisher
from minicluster.actors.nodes.quorum_controller import QuorumController
from minicluster.actors.nodes.replica_manager import REPLICA_APIS, ReplicaManager
from minicluster.actors.nodes.shell import NodeContext
from minicluster.actors.recording.replica_log import records_of, replica_rows
from minicluster.actors.recording.tables import PIECE_ROWS
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.broker.kafka_apis import APIS as BROKER_APIS
from minicluster.protocol.messages import FetchRequest
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.protocol.uuids import METADATA_TOPIC_ID
from minicluster.replica.log_manager import ReplicaStore
from minicluster.security.protocols import LISTENER
from minicluster.trace import EXIT


def start_process(cluster: Cluster, node_id: int) -> None:
    """Start a node's process on its disk; on a broken disk the process ends at once."""
    with cluster.lifecycle:
        _start_process(cluster, node_id)


def _start_process(cluster: Cluster, node_id: int) -> None:
    cluster.starts[node_id] = count = cluster.starts.get(node_id, 0) + 1
    disk = cluster.disks[node_id]
    config = cluster.node_configs.get(node_id, cluster.config)
    metadata_directory = config.metadata_directory(disk.directory_ids)
    is_broker = node_id in cluster.broker_ids
    if is_broker and (why := ReplicaStore(disk).cannot_run(metadata_directory)):
        cluster.note(EXIT, [node_id], "note", why)
        return
    draws = cluster.rt.rng(f"incarnation/{node_id}/{count}")
    incarnation = uuid.UUID(int=draws.getrandbits(128), version=4)
    continued = cluster.continued.pop(node_id, None)
    context = NodeContext(
        node_id=node_id,
        incarnation=incarnation if continued is None else continued.incarnation_id,
        continued_epoch=-1 if continued is None else continued.epoch,
        network=cluster.network,
        recorder=cluster.recorder,
        disk=disk,
        clock=cluster.clocks[node_id],
        config=config,
        rules=cluster.rules,
        faults=cluster.faults,
        folds=cluster.folds,
        log=cluster.log.root.bind(node=node_id),
        exited=partial(_exited, cluster),
        authorizer=authorizer_of(config.static, cluster.rules, cluster.faults),
        listener=cluster.plan.inter_broker_listener if cluster.mode == KRAFT else LISTENER,
    )
    if cluster.mode == ZOOKEEPER:
        from minicluster.actors.zookeeper.starting import start_broker, start_server

        start = start_broker if is_broker else start_server
    elif is_broker and node_id in cluster.controller_ids:
        start = _start_combined
    else:
        start = _start_broker if is_broker else _start_controller
    cluster.processes[node_id] = start(cluster, context)
    cluster.recorder.event("start", node_id, str(context.incarnation))
    cluster.on_process(node_id, True)


def _start_controller(cluster: Cluster, context: NodeContext) -> Process:
    name = f"controller-{context.node_id}"
    actor: Any = None  # until it is there, connections are refused
    cluster.network.attach(context.node_id, str(context.incarnation), lambda _: actor)
    cluster.rt.spawn(
        QuorumController, name, context, cluster.plan, cluster.inlet, cluster.bootstrap, None
    )
    actor = cluster.rt.actor(name)
    cluster.network.listen(context.node_id)
    return Process(
        node_id=context.node_id,
        incarnation=context.incarnation,
        actors=(name,),
        controller=actor,
    )


def _start_broker(cluster: Cluster, context: NodeContext) -> Process:
    replicas, publisher = _spawn_replicas(cluster, context)
    broker: Any = None  # until it is there, connections are refused

    def route(packet: Packet) -> ClusterActor | None:
        target: ClusterActor | None = replicas if type(packet.body) in REPLICA_APIS else broker
        return target

    _attach_broker(cluster, context, route, replicas)
    name = f"broker-{context.node_id}"
    inlet = None if cluster.quorum is None else cluster.inlet
    cluster.rt.spawn(Broker, name, context, cluster.plan, publisher, replicas, inlet)
    broker = cluster.rt.actor(name)
    return Process(
        node_id=context.node_id,
        incarnation=context.incarnation,
        actors=(replicas.name, publisher.name, name),
        broker=broker,
        replicas=replicas,
        publisher=publisher,
    )


def _spawn_replicas(cluster: Cluster, context: NodeContext) -> tuple[Any, Any]:
    """Start the replica manager of a broker, and the publisher of its metadata."""
    rt, node_id = cluster.rt, context.node_id
    rt.spawn(ReplicaManager, f"replica-manager-{node_id}", context)
    rt.spawn(MetadataPublisher, f"publisher-{node_id}", context, None)
    return rt.actor(f"replica-manager-{node_id}"), rt.actor(f"publisher-{node_id}")


def _attach_broker(
    cluster: Cluster,
    context: NodeContext,
    route: Callable[[Packet], ClusterActor | None],
    replicas: Any,
) -> None:
    """Open a broker for connections, before it sends anything: requests have its incarnation."""
    cluster.network.attach(
        context.node_id,
        str(context.incarnation),
        route,
        topic_ids=partial(_topic_ids, replicas),
        fetched=replicas.fetched,
    )


def _topic_ids(replicas: Any) -> Mapping[str, uuid.UUID]:
    """The ids of the topics by name, in the image that a broker's replicas have now."""
    ids: Mapping[str, uuid.UUID] = replicas.machine.state.image.topics.ids_by_name
    return ids


def _start_combined(cluster: Cluster, context: NodeContext) -> Process:
    """Start a process that is a broker and a controller."""
    replicas, publisher = _spawn_replicas(cluster, context)
    broker: Any = None
    controller: Any = None  # until it is there, connections are refused

    def route(packet: Packet) -> ClusterActor | None:
        target: ClusterActor | None = controller
        if controller is not None and not _is_metadata_fetch(packet.body):
            if type(packet.body) in REPLICA_APIS:
                target = replicas
            elif _is_of_client(packet) and type(packet.body) in BROKER_APIS:
                target = broker
        return target

    _attach_broker(cluster, context, route, replicas)
    rt, name = cluster.rt, f"broker-{context.node_id}"
    rt.spawn(CombinedBroker, name, context, cluster.plan, publisher, replicas)
    broker = rt.actor(name)
    of_controller = f"controller-{context.node_id}"
    rt.spawn(
        QuorumController,
        of_controller,
        context,
        cluster.plan,
        cluster.inlet,
        cluster.bootstrap,
        broker,
    )
    controller = rt.actor(of_controller)
    return Process(
        node_id=context.node_id,
        incarnation=context.incarnation,
        actors=(replicas.name, publisher.name, name, of_controller),
        controller=controller,
        broker=broker,
        replicas=replicas,
        publisher=publisher,
    )


def _is_of_client(packet: Packet) -> bool:
    """A request of a client, which comes to a broker; nodes and the test's own administration send
    theirs to a controller.
    """
    src, client_id = packet.exchange.src, packet.exchange.sender.client_id
    return src < CLIENT_ID or (src == CLIENT_ID and bool(client_id))


def _is_metadata_fetch(request: Any) -> bool:
    """A fetch of the metadata log, which a controller's listener takes."""
    return isinstance(request, FetchRequest) and any(
        fetched.topic_id == METADATA_TOPIC_ID or fetched.topic == METADATA_TOPIC
        for fetched in request.topics
    )


def end_process(cluster: Cluster, node_id: int, *, reset: bool = False) -> None:
    """End a node's process at once: its mailboxes are gone, its connections break."""
    with cluster.lifecycle:
        process = cluster.processes.pop(node_id)
        for name in reversed(process.actors):
            cluster.rt.kill(name)
        cluster.network.detach(node_id, reset=reset)
        cluster.recorder.event("end", node_id, str(process.incarnation))
        cluster.on_process(node_id, False)


def record_logs(cluster: Cluster, node_id: int, at: str) -> None:
    """Add the trace rows of a broker's logs (``replica_log``)."""
    if node_id in cluster.broker_ids:
        incarnation, recorder = str(cluster.processes[node_id].incarnation), cluster.recorder
        disk = cluster.disks[node_id]
        if not recorder.lists_logs(records_of(disk), f"the logs of a broker at its {at}"):
            return
        with recorder.own_problems.noted(f"the record of the logs of {node_id}", "replica_log"):
            for count, row in enumerate(replica_rows(disk, incarnation, at), 1):
                recorder.trace("replica_log", row)
                if count % PIECE_ROWS == 0:
                    recorder.tables.relieve_table("replica_log")


def _exited(cluster: Cluster, node_id: int, halted: str) -> None:
    """Record that a process ended by itself; it is removed after its actor's step."""
    process = cluster.processes.get(node_id)
    cluster.rt.schedule(cluster.now_ms, partial(_take_away, cluster), (process, halted))


def _take_away(cluster: Cluster, process_and_reason: tuple[Process | None, str]) -> None:
    process, halted = process_and_reason
    with cluster.lifecycle:
        if process is not None and cluster.processes.get(process.node_id) is process:
            record_logs(cluster, process.node_id, "crash" if halted else "end")
            end_process(cluster, process.node_id)
            cluster.note(EXIT, [process.node_id], "note", halted)
            if process.starts_again:
                cluster.note("restart", [process.node_id], "start")
                start_process(cluster, process.node_id)
