"""Starting the processes of a cluster on ZooKeeper: its server, and its brokers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.cluster.process import Process
from minicluster.actors.links import Packet
from minicluster.actors.nodes.replica_manager import REPLICA_APIS
from minicluster.actors.nodes.shell import NodeContext
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.actors.zookeeper.broker import ZkBroker
from minicluster.actors.zookeeper.replica_manager import ZkReplicaManager
from minicluster.actors.zookeeper.server import ZooKeeperServer
from minicluster.scenario.view import ZOOKEEPER_NODE


def start_server(cluster: Cluster, context: NodeContext) -> Process:
    """Start the process of the ZooKeeper server."""
    name = f"zookeeper-{context.node_id}"
    actor: Any = None
    cluster.network.attach(context.node_id, str(context.incarnation), lambda _: actor)
    cluster.rt.spawn(ZooKeeperServer, name, context, cluster.inlet, cluster.zookeeper_log)
    actor = cluster.rt.actor(name)
    return Process(
        node_id=context.node_id,
        incarnation=context.incarnation,
        actors=(name,),
        zookeeper=actor,
    )


def start_broker(cluster: Cluster, context: NodeContext) -> Process:
    """Start the process of a broker: its replica manager, and all else of it."""
    node_id, rt = context.node_id, cluster.rt
    names = (f"replica-manager-{node_id}", f"broker-{node_id}")
    rt.spawn(ZkReplicaManager, names[0], context, cluster.protocol)
    replicas: Any = rt.actor(names[0])
    broker: Any = None

    def route(packet: Packet) -> ClusterActor | None:
        target: ClusterActor | None = replicas if type(packet.body) in REPLICA_APIS else broker
        return target

    def topic_ids() -> Mapping[str, uuid.UUID]:
        ids: Mapping[str, uuid.UUID] = replicas.machine.state.image.topics.ids_by_name
        return ids

    draws = rt.rng(f"topic-ids/{node_id}/{context.incarnation}")

    def new_id() -> uuid.UUID:
        return uuid.UUID(int=draws.getrandbits(128), version=4)

    incarnation = str(context.incarnation)
    cluster.network.attach(node_id, incarnation, route, topic_ids, replicas.fetched)
    plan, protocol = cluster.plan, cluster.protocol
    rt.spawn(ZkBroker, names[1], context, plan, protocol, ZOOKEEPER_NODE, replicas, new_id)
    broker = rt.actor(names[1])
    return Process(
        node_id=node_id,
        incarnation=context.incarnation,
        actors=names,
        replicas=replicas,
        zk_broker=broker,
    )
