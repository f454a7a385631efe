"""The facts of a cluster that selectors and conditions read."""

from __future__ import annotations

from typing import Protocol

ZOOKEEPER_NODE = 201


class Clients(Protocol):
    """Kafka's clients as nodes."""

    @property
    def ids(self) -> tuple[int, ...]:
        """The nodes of those that have sent a request so far."""

    def node(self, client_id: str) -> int:
        """The node of the client with this ``client.id``."""


class ClusterView(Protocol):
    """The cluster as its committed metadata shows it; node ids, -1 for no leader."""

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """All brokers, running or not, ascending."""

    @property
    def controller_ids(self) -> tuple[int, ...]:
        """All controllers, running or not, ascending."""

    @property
    def clients(self) -> Clients:
        """Kafka's clients."""

    @property
    def apps(self) -> tuple[int, ...]:
        """Users' programs inside the simulation, in the order of their first starts."""

    def app(self, name: str) -> int:
        """The node of the program with this name.

        Errors:  ScenarioError if there is none.
        """

    @property
    def active_controller_id(self) -> int | None:
        """The controller that leads the quorum, in the eyes of a majority."""

    def replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        """The replicas in their order.

        Errors:  ScenarioError for a topic or partition that does not exist.
        """

    def isr(self, topic: str, partition: int) -> tuple[int, ...]:
        """The in-sync replicas."""

    def leader(self, topic: str, partition: int) -> int:
        """The leader."""

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The leader epoch."""

    def partition_epoch(self, topic: str, partition: int) -> int:
        """The partition epoch."""

    def recovering(self, topic: str, partition: int) -> bool:
        """True while the leader is marked as recovering (KIP-704)."""

    def reassigning(self, topic: str, partition: int) -> bool:
        """True while the partition is on the way to other replicas (KIP-455)."""

    def high_watermark(self, topic: str, partition: int) -> int:
        """The leader's high watermark, -1 where there is none."""

    def fenced(self, broker: int) -> bool:
        """True while the broker is fenced; one that is not registered counts as fenced."""

    def rack(self, broker: int) -> str | None:
        """The rack in the broker's registration, None where it has none."""

    def in_controlled_shutdown(self, broker: int) -> bool:
        """True while the broker's registration has inControlledShutdown (KIP-841)."""

    def running(self, node: int) -> bool:
        """True while the node's process runs."""

    def choose(self, key: str, bound: int) -> int:
        """A draw below the bound that depends only on the seed and the key."""
