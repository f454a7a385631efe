"""The nodes and clients that handles, ids and selectors name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.cluster.scenario_view import ScenarioView
from minicluster.actors.cluster.views import ClientNode, Node
from minicluster.actors.exchange import is_client
from minicluster.errors import UserError
from minicluster.scenario.actions.arguments import NODES, HasId, Nodes, Selector
from minicluster.scenario.checks.limits import shown
from minicluster.scenario.selectors import select

if TYPE_CHECKING:
    from minicluster.actors.programs.program import Program


class ClusterRoles(Cluster):
    """A cluster whose nodes can be named."""

    def node_id(self, node: Node | int) -> int:
        """The id of a node that is named by its id or a handle.

        Errors:  UserError if there is none.
        """
        if not isinstance(node, Node | int) or isinstance(node, bool):
            raise UserError(f"node: {shown(node)} is not the id of a node, such as 1")
        return self._checked(node.id if isinstance(node, Node) else node)

    def is_running(self, node: Nodes) -> bool:
        """True while the processes of nodes run, all of them; a paused process runs.

        Errors:  UserError for what names no node.
        """
        return all(
            node_id in self.processes
            if (program := self.program(node_id)) is None
            else program.is_running
            for node_id in self.process_ids(node)
        )

    def program(self, node_id: int) -> Program | None:
        """The program that is a node; None for every other node."""
        return None if self.programs is None else self.programs.by_node.get(node_id)

    def process_ids(self, nodes: Nodes) -> tuple[int, ...]:
        """The ids of named nodes whose processes are here, and of named programs.

        Errors:  those of ``own_ids``.
        """
        node_ids = self.ids_with_clients(nodes)
        others = [node_id for node_id in node_ids if self.program(node_id) is None]
        if others or not node_ids:
            self.own_ids(others)
        return node_ids

    def client_ids(self) -> tuple[int, ...]:
        """Kafka's clients that have sent a request so far."""
        client_ids = self.client_nodes.ids
        self.client_nodes.keep(client_ids)
        return client_ids

    def ids(self, nodes: Nodes) -> tuple[int, ...]:
        """The ids of brokers and controllers that are named by handles, ids or selectors.

        Errors:  UserError for a node that does not exist, for a client, and where a selector names
                 nobody now.
        """
        node_ids = self.ids_with_clients(nodes)
        if not node_ids:
            raise UserError("an empty list names no node")
        for node_id in node_ids:
            if is_client(node_id):
                raise UserError(
                    f"{ClientNode(self, node_id)} is not a process of the cluster; "
                    "cut, delay, loss, hold and pause take clients"
                )
        return node_ids

    def ids_with_clients(self, nodes: Nodes) -> tuple[int, ...]:
        """The ids of nodes, of which some may be clients."""
        alone = isinstance(nodes, HasId | Selector | str | int)
        if not alone and not isinstance(nodes, Iterable):
            raise UserError(f"{shown(nodes)} is not {NODES.text}")
        items: Iterable[HasId | Selector | str | int] = (nodes,) if alone else nodes  # type: ignore[assignment]
        node_ids = tuple(node_id for item in items for node_id in self._ids_of(item))
        self.client_nodes.keep(node_ids)
        return node_ids

    def own_ids(self, nodes: Nodes) -> tuple[int, ...]:
        """The ids of named nodes whose processes and disks are here.

        Errors:  those of ``ids``; UserError for a node of another process.
        """
        node_ids = self.ids(nodes)
        for node_id in node_ids:
            if node_id not in self.node_ids:
                raise UserError(f"node {node_id} is of another process; start and stop that one")
        return node_ids

    def _ids_of(self, item: HasId | Selector | str | int) -> tuple[int, ...]:
        if isinstance(item, int):
            return (self._checked(item),)
        if isinstance(item, HasId):
            return (self._checked(item.id),)
        if not isinstance(item, str | Selector):
            raise UserError(f"{shown(item)} is not {NODES.text}")
        if isinstance(item, str) and item.strip().isdecimal():
            raise UserError(f"{item!r} is text; a node's id is a number: {item.strip()}")
        selected = select(item if isinstance(item, str) else item.expression, ScenarioView(self))
        if not selected:
            raise UserError(f"{item} names nobody now")
        return selected

    def _checked(self, node_id: int) -> int:
        registered = self.image.cluster.brokers.rows  # those of another process have joined
        clients = self.client_nodes.known
        if node_id not in self.node_ids and node_id not in registered and node_id not in clients:
            known = ", ".join(str(other) for other in self.node_ids)
            raise UserError(f"there is no node {node_id}; nodes are {known}")
        return node_id
