"""The handles of a cluster's nodes and topics, and the selection of nodes."""

from __future__ import annotations

from collections.abc import Iterable

from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.cluster.scenario_view import ScenarioView
from minicluster.actors.cluster.views import ClientNode, Node, Topic
from minicluster.actors.recording.exchange import is_client
from minicluster.errors import UserError
from minicluster.scenario.actions.arguments import NODES, HasId, Nodes, Selector
from minicluster.scenario.bounds import shown
from minicluster.scenario.selectors import select


class ClusterRoles(Cluster):
    """A cluster whose nodes and topics have handles."""

    def node(self, node: Node | int) -> Node:
        """A node by its id, or by a handle of it.

        Errors:  UserError if there is none.
        """
        if not isinstance(node, Node | int) or isinstance(node, bool):
            raise UserError(f"node: {shown(node)} is not the id of a node, such as 1")
        return Node(self, self._checked(node.id if isinstance(node, Node) else node))

    def is_running(self, node: Nodes) -> bool:
        """True while the processes of nodes run, all of them; a paused process runs.

        Errors:  UserError for what names no node.
        """
        return all(node_id in self.processes for node_id in self.ids(node))

    @property
    def brokers(self) -> tuple[Node, ...]:
        """All brokers, running or not."""
        return tuple(Node(self, node_id) for node_id in self.broker_ids)

    @property
    def controllers(self) -> tuple[Node, ...]:
        """All controllers, running or not."""
        return tuple(Node(self, node_id) for node_id in self.controller_ids)

    @property
    def active_controller(self) -> Node | None:
        """The controller that leads the quorum in the highest epoch, None while there is none."""
        active = self.active_controller_id()
        return None if active is None else Node(self, active)

    def client(self, client_id: str) -> ClientNode:
        """One of Kafka's clients by its ``client.id``, connected or not."""
        if not isinstance(client_id, str):
            raise UserError(f"client: {shown(client_id)} is no client.id, such as app-1")
        return ClientNode(self, self.client_nodes.node(client_id))

    @property
    def clients(self) -> tuple[ClientNode, ...]:
        """Kafka's clients that have sent a request so far."""
        found = self.client_nodes.ids
        self.client_nodes.keep(found)
        return tuple(ClientNode(self, node_id) for node_id in found)

    def topic(self, name: str | Topic) -> Topic:
        """A topic by its name, or by a handle of it.

        Errors:  UserError if there is none.
        """
        name = name.name if isinstance(name, Topic) else name
        if not isinstance(name, str):
            raise UserError(f"topic: {shown(name)} is not the name of a topic")
        if self.image.topics.named(name) is None:
            raise UserError(f"there is no topic {name}")
        return Topic(self, name)

    def ids(self, nodes: Nodes) -> tuple[int, ...]:
        """The ids of brokers and controllers that are named by handles, ids or selectors.

        Errors:  UserError for a node that does not exist, for a client, and where a selector names
                 nobody now.
        """
        found = self.ids_with_clients(nodes)
        if not found:
            raise UserError("an empty list names no node")
        for node_id in found:
            if is_client(node_id):
                raise UserError(
                    f"{ClientNode(self, node_id)} is no process of the cluster; "
                    "cut, delay, loss, hold and pause take clients"
                )
        return found

    def ids_with_clients(self, nodes: Nodes) -> tuple[int, ...]:
        """The ids of nodes, of which some may be clients."""
        alone = isinstance(nodes, HasId | Selector | str | int)
        if not alone and not isinstance(nodes, Iterable):
            raise UserError(f"{shown(nodes)} is not {NODES.text}")
        items: Iterable[HasId | Selector | str | int] = (nodes,) if alone else nodes  # type: ignore[assignment]
        found = tuple(node_id for item in items for node_id in self._ids_of(item))
        self.client_nodes.keep(found)
        return found

    def own_ids(self, nodes: Nodes) -> tuple[int, ...]:
        """The ids of named nodes whose processes and disks are here.

        Errors:  those of ``ids``; UserError for a node of another process.
        """
        found = self.ids(nodes)
        for node_id in found:
            if node_id not in self.node_ids:
                raise UserError(f"node {node_id} is of another process; start and stop that one")
        return found

    def _ids_of(self, item: HasId | Selector | str | int) -> tuple[int, ...]:
        if isinstance(item, int):
            return (self._checked(item),)
        if isinstance(item, HasId):
            return (self._checked(item.id),)
        if not isinstance(item, str | Selector):
            raise UserError(f"{shown(item)} is not {NODES.text}")
        if isinstance(item, str) and item.strip().isdecimal():
            raise UserError(f"{item!r} is text; a node's id is a number: {item.strip()}")
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
