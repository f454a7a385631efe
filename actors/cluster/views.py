"""Handles of a cluster's nodes, topics and partitions.

Each is a name, not a copy: its properties are looked up in the committed metadata at each use.
"""

from __future__ import annotations

from collections.abc import Iterator

from minicluster.actors.cluster.cluster import Cluster
from minicluster.errors import UserError, counted
from minicluster.metadata.image.cluster import BrokerRegistration
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.scenario.checks.limits import shown


class Node:
    """A broker or a controller, running or not."""

    __slots__ = {"_cluster": "", "id": "The node's id."}

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self._cluster = cluster
        self.id = node_id

    def __eq__(self, other: object) -> bool:
        """Compare with a handle of the same cluster, or with a node's id."""
        if isinstance(other, int) and not isinstance(other, bool):
            return other == self.id
        return isinstance(other, Node) and (other.id, other._cluster) == (self.id, self._cluster)

    def __hash__(self) -> int:
        return hash(self.id)

    def __lt__(self, other: Node) -> bool:
        return self.id < other.id

    def __repr__(self) -> str:
        return f"{'broker' if self.is_broker else 'controller'} {self.id}"

    @property
    def is_broker(self) -> bool:
        """True for a broker, one that is a controller as well included."""
        cluster = self._cluster
        return self.id in cluster.broker_ids or self.id not in cluster.controller_ids

    @property
    def is_running(self) -> bool:
        """True while its process runs; a paused process runs."""
        return self.id in self._cluster.processes

    @property
    def registration(self) -> BrokerRegistration | None:
        """The broker's committed registration, None before the first one."""
        return self._cluster.image.cluster.broker(self.id)

    @property
    def is_fenced(self) -> bool:
        """True if the broker is fenced or not registered."""
        registration = self.registration
        return registration is None or registration.fenced

    @property
    def in_controlled_shutdown(self) -> bool:
        """True if the broker's registration is in controlled shutdown (KIP-841)."""
        registration = self.registration
        return registration is not None and registration.in_controlled_shutdown

    @property
    def broker_epoch(self) -> int:
        """The epoch of the broker's registration, -1 if there is none."""
        registration = self.registration
        return -1 if registration is None else registration.epoch


class ClientNode:
    """One of Kafka's clients, by its ``client.id``."""

    __slots__ = {"_cluster": "", "id": "The number by which selectors know the client."}

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self._cluster = cluster
        self.id = node_id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClientNode):
            return False
        return (other.id, other._cluster) == (self.id, self._cluster)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"client {self.client_id}"

    @property
    def client_id(self) -> str:
        """Its ``client.id``."""
        return self._cluster.client_nodes.known[self.id]

    @property
    def is_connected(self) -> bool:
        """True while it has a connection on which it has sent a request."""
        return self._cluster.client_nodes.is_connected(self.id)


class NodeSet(tuple[Node, ...]):
    """Replicas in their order; they compare with nodes and ids as a set, whatever the order."""

    __slots__ = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """The nodes' ids, in the order of the replicas."""
        return tuple(node.id for node in self)

    def __eq__(self, other: object) -> bool:
        """Compare with nodes or ids as sets.

        Errors:  UserError for what holds no nodes, which would never be equal.
        """
        if not isinstance(other, list | tuple | set | frozenset):
            expected = "nodes or ids, such as [1, 2]; len() counts them"
            raise UserError(f"{list(self)} is compared with {shown(other)}; it takes {expected}")
        return set(self) == {self._checked(item) for item in other}

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(frozenset(self.ids))

    def __contains__(self, item: object) -> bool:
        return tuple.__contains__(self, self._checked(item))

    @staticmethod
    def _checked(item: object) -> object:
        if not isinstance(item, Node | int | None) or isinstance(item, bool):
            raise UserError(f"{shown(item)} is not a node; give a node or its id")
        return item


class Partition:
    """One partition of a topic."""

    __slots__ = {"_cluster": "", "index": "Its number.", "topic": "The name of its topic."}

    def __init__(self, cluster: Cluster, topic: str, index: int) -> None:
        self._cluster = cluster
        self.topic = topic
        self.index = index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Partition):
            return NotImplemented
        mine, its = (self._cluster, self.topic, self.index), (other._cluster, other.topic)
        return mine == (*its, other.index)

    def __hash__(self) -> int:
        return hash((self.topic, self.index))

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def state(self) -> PartitionRegistration:
        """The committed state.

        Errors:  UserError if the topic or the partition does not exist.
        """
        state = self._cluster.partition_state(self.topic, self.index)
        if state is None:
            raise UserError(f"there is no partition {self!r}")
        return state

    def _nodes(self, ids: tuple[int, ...]) -> NodeSet:
        return NodeSet(Node(self._cluster, node_id) for node_id in ids)

    @property
    def leader(self) -> Node | None:
        """The leader, None while there is none."""
        leader = self.state.leader
        return None if leader < 0 else Node(self._cluster, leader)

    @property
    def replicas(self) -> NodeSet:
        """All replicas, the preferred leader first."""
        return self._nodes(self.state.replicas)

    @property
    def followers(self) -> NodeSet:
        """The replicas but the leader, in the order of the replicas."""
        state = self.state
        return self._nodes(tuple(r for r in state.replicas if r != state.leader))

    @property
    def isr(self) -> NodeSet:
        """The in-sync replicas."""
        return self._nodes(self.state.isr)

    @property
    def leader_epoch(self) -> int:
        """The leader epoch, which rises with each change of leader."""
        return self.state.leader_epoch

    @property
    def partition_epoch(self) -> int:
        """The partition epoch, which rises with each change of the partition's state."""
        return self.state.partition_epoch

    @property
    def is_recovering(self) -> bool:
        """True while the leader is recovering from an unclean election (KIP-704)."""
        return self.state.leader_recovery_state != 0

    @property
    def is_reassigning(self) -> bool:
        """True while a reassignment of the partition is ongoing."""
        return self.state.is_reassigning

    @property
    def high_watermark(self) -> int:
        """The leader's high watermark, -1 while there is no leader that runs."""
        return self._cluster.high_watermark(self.topic, self.index)

    @property
    def log_start_offset(self) -> int:
        """The first offset of the leader's log, which retention and ``delete_records`` raise.

        -1 while there is no leader that runs.
        """
        leading = self._cluster.leading(self.topic, self.index)
        return -1 if leading is None else leading.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the leader's next record, -1 while there is no leader that runs."""
        leading = self._cluster.leading(self.topic, self.index)
        return -1 if leading is None else leading.log_end_offset

    def fully_in_sync(self) -> bool:
        """True if every replica is in the ISR."""
        state = self.state
        return set(state.isr) == set(state.replicas)


class Topic:
    """A topic; ``topic[0]`` is its first partition."""

    __slots__ = {"_cluster": "", "name": "The topic's name."}

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self.name = name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topic):
            return NotImplemented
        return (self._cluster, self.name) == (other._cluster, other.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"topic {self.name}"

    def __len__(self) -> int:
        topic = self._cluster.image.topics.named(self.name)
        return 0 if topic is None else len(topic)

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """Its partitions; none where it does not exist."""
        return tuple(Partition(self._cluster, self.name, index) for index in range(len(self)))

    def __getitem__(self, index: int) -> Partition:
        """A partition by its number.

        Errors:  IndexError if there is none; UserError for another type, or no topic.
        """
        if not isinstance(index, int) or isinstance(index, bool):
            raise UserError(f"{self}: {shown(index)} is not the number of a partition; write [0]")
        if not self.exists:
            raise UserError(f"there is no topic {self.name}")
        if not 0 <= index < len(self):
            raise IndexError(
                f"topic {self.name} has {counted(len(self), 'partition')}, no {self.name}-{index}"
            )
        return Partition(self._cluster, self.name, index)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.partitions)

    @property
    def exists(self) -> bool:
        """True if the committed metadata has the topic."""
        return self._cluster.image.topics.named(self.name) is not None

    def fully_in_sync(self) -> bool:
        """True if every replica of every partition is in its ISR."""
        return self.exists and all(partition.fully_in_sync() for partition in self)
