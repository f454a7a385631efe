"""The committed metadata and processes of a running cluster, for selectors and conditions."""

from __future__ import annotations

from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.cluster.views import Node, Partition
from minicluster.actors.listeners.client_nodes import ClientNodes
from minicluster.actors.runtime import chance
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.scenario import ScenarioError


class ScenarioView:
    """A cluster as a ``minicluster.scenario.ClusterView``."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """All brokers."""
        return self._cluster.broker_ids

    @property
    def controller_ids(self) -> tuple[int, ...]:
        """All controllers."""
        return self._cluster.controller_ids

    @property
    def clients(self) -> ClientNodes:
        """Kafka's clients, of which some may connect later."""
        return self._cluster.client_nodes

    @property
    def apps(self) -> tuple[int, ...]:
        """The programs inside the simulation."""
        programs = self._cluster.programs
        return () if programs is None else tuple(programs.by_node)

    def app(self, name: str) -> int:
        """A program inside the simulation."""
        programs = self._cluster.programs
        program = None if programs is None else programs.by_name.get(name)
        if program is None:
            raise ScenarioError(f"there is no app {name}; a step `do: app` starts one")
        return program.node

    @property
    def active_controller_id(self) -> int | None:
        """The active controller, None while there is none."""
        return self._cluster.active_controller_id()

    def _partition(self, topic: str, index: int) -> PartitionRegistration:
        state = self._cluster.partition_state(topic, index)
        if state is None:
            raise ScenarioError(f"there is no partition {topic}-{index}")
        return state

    def replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        """The replicas in their order."""
        return self._partition(topic, partition).replicas

    def isr(self, topic: str, partition: int) -> tuple[int, ...]:
        """The in-sync replicas."""
        return self._partition(topic, partition).isr

    def leader(self, topic: str, partition: int) -> int:
        """The leader, -1 for none."""
        return self._partition(topic, partition).leader

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The leader epoch."""
        return self._partition(topic, partition).leader_epoch

    def partition_epoch(self, topic: str, partition: int) -> int:
        """The partition epoch."""
        return self._partition(topic, partition).partition_epoch

    def recovering(self, topic: str, partition: int) -> bool:
        """True while the leader is marked as recovering."""
        return self._partition(topic, partition).is_recovering

    def reassigning(self, topic: str, partition: int) -> bool:
        """True while a reassignment of the partition is ongoing."""
        return self._partition(topic, partition).is_reassigning

    def high_watermark(self, topic: str, partition: int) -> int:
        """The leader's high watermark."""
        return Partition(self._cluster, topic, partition).high_watermark

    def fenced(self, broker: int) -> bool:
        """True if the broker is fenced or not registered."""
        return Node(self._cluster, broker).is_fenced

    def rack(self, broker: int) -> str | None:
        """The rack in the broker's registration, None where it has none."""
        registration = self._cluster.image.cluster.broker(broker)
        return None if registration is None else registration.rack

    def in_controlled_shutdown(self, broker: int) -> bool:
        """True if the broker's registration is in controlled shutdown."""
        return Node(self._cluster, broker).in_controlled_shutdown

    def running(self, node: int) -> bool:
        """True while the node's process runs, or the client has a connection."""
        programs = self._cluster.programs
        if programs is not None and node in programs.by_node:
            return programs.by_node[node].is_running
        here = Node(self._cluster, node).is_running
        return here or self._cluster.client_nodes.is_connected(node)

    def choose(self, key: str, bound: int) -> int:
        """A draw that depends only on the seed, the step and the key."""
        step = self._cluster.step or 0
        source = chance.key(self._cluster.seed, f"select/{step}/{key}")
        return chance.draw(source, 0) % bound
