"""One incarnation of a node: its actors."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from msgspec import Struct

from minicluster.actors.nodes.broker import BrokerRoles
from minicluster.actors.nodes.metadata_publisher import MetadataPublisher
from minicluster.actors.nodes.quorum_controller import QuorumController
from minicluster.actors.nodes.replica_manager import ReplicaManager

if TYPE_CHECKING:  # loaded by clusters on ZooKeeper
    from minicluster.actors.zookeeper.broker import ZkBroker
    from minicluster.actors.zookeeper.server import ZooKeeperServer


class Process(Struct, kw_only=True):
    """One incarnation of a node."""

    node_id: int
    incarnation: uuid.UUID
    actors: tuple[str, ...]
    controller: QuorumController | None = None
    broker: BrokerRoles | None = None
    replicas: ReplicaManager | None = None
    publisher: MetadataPublisher | None = None
    zk_broker: ZkBroker | None = None
    zookeeper: ZooKeeperServer | None = None
    paused: bool = False
    shuts_down: bool = False  # a controlled shutdown has begun
    starts_again: bool = False  # once it has ended
