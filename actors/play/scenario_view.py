"""A running cluster as selectors and conditions see it: its committed metadata and processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minicluster.actors.runtime import chance
from minicluster.scenario import ScenarioError

if TYPE_CHECKING:
    from minicluster.actors.cluster.mini_cluster import MiniCluster
    from minicluster.metadata.image.partition import PartitionRegistration


class ScenarioView:
    """What ``minicluster.scenario.ClusterView`` asks, answered by a cluster."""

    def __init__(self, cluster: MiniCluster) -> None:
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
    def active_controller_id(self) -> int | None:
        """The active controller, None while there is none."""
        active = self._cluster.active_controller
        return None if active is None else active.id

    def _partition(self, topic: str, index: int) -> PartitionRegistration:
        found = self._cluster.image.topics.named(topic)
        state = None if found is None else found.partitions.get(index)
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
        """Whether the leader is marked as recovering."""
        return self._partition(topic, partition).is_recovering

    def reassigning(self, topic: str, partition: int) -> bool:
        """Whether the partition is on the way to other replicas."""
        return self._partition(topic, partition).is_reassigning

    def high_watermark(self, topic: str, partition: int) -> int:
        """The leader's high watermark."""
        return self._cluster.high_watermark(topic, partition)

    def fenced(self, broker: int) -> bool:
        """Whether the broker is fenced or not registered."""
        return self._cluster.node(broker).is_fenced

    def in_controlled_shutdown(self, broker: int) -> bool:
        """Whether the broker's registration says controlled shutdown."""
        return self._cluster.node(broker).in_controlled_shutdown

    def running(self, node: int) -> bool:
        """Whether the node's process runs."""
        return self._cluster.is_running(node)

    def choose(self, key: str, bound: int) -> int:
        """A draw that depends only on the seed, the step and the key."""
        step = self._cluster.step or 0
        source = chance.key(self._cluster.seed, f"select/{step}/{key}")
        return chance.draw(source, 0) % bound
