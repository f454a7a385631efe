"""The users' programs of a cluster, opened by the first of them."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.cluster.listening import (
    connection_limits,
    node_api_versions,
    served_versions,
)
from minicluster.actors.cluster.securing import listener_security
from minicluster.actors.nodes.quorum_shell import BETWEEN_LISTENERS
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.errors import UserError
from minicluster.security.protocols import LISTENER, SecurityProtocol

if TYPE_CHECKING:
    from minicluster.actors.programs.programs import Programs


def takes_programs(cluster: Cluster) -> bool:
    """True for a cluster inside of which programs run."""
    return isinstance(cluster.rt, SimulatedRuntime) and cluster.listen_address is None


def open_programs(cluster: Cluster) -> Programs:
    """The programs of a cluster.

    Errors:  UserError for a cluster that is not simulated, or that has listeners.
    """
    if cluster.programs is not None:
        return cluster.programs
    if not takes_programs(cluster):
        raise UserError(
            "app: a program runs inside a simulated cluster without listeners; other clients "
            "connect to a cluster with listeners=True, in real time"
        )
    # asyncio and the clients are loaded by clusters that have programs alone.
    from minicluster.actors.listeners.endpoints import Advertised
    from minicluster.actors.listeners.memory import MemoryListeners
    from minicluster.actors.programs.programs import Programs
    from minicluster.actors.programs.world import World

    of_nodes = partial(node_api_versions, cluster, served_versions(cluster))
    addresses = program_addresses(cluster)
    listeners = MemoryListeners(
        cluster.network,
        cluster.client_nodes,
        served_versions(cluster),
        limits=partial(connection_limits, cluster),
        log=cluster.log.root.bind(actor="listeners"),
        security=cache(
            lambda name: listener_security(cluster, of_nodes, name, SecurityProtocol(name))
        ),
        advertised=Advertised(
            {address: node for node, address in addresses[LISTENER].items()}, addresses
        ),
    )
    nodes = {at: node for places in addresses.values() for node, at in places.items()}
    secured = {at: name for name, places in addresses.items() for at in places.values()}
    world = World(cluster.network, listeners, nodes, secured)
    cluster.programs = Programs(world, cluster.client_nodes.node)
    cluster.rt.at_close.append(cluster.programs.close)
    return cluster.programs


def program_addresses(cluster: Cluster) -> dict[str, dict[int, tuple[str, int]]]:
    """The addresses of nodes inside the simulation, by listener: one for each protocol.

    Those with SASL are there where somebody may log in.
    """
    plan = cluster.plan
    return {
        str(protocol): {
            node: (plan.host(node), plan.port(node) + protocol.id * BETWEEN_LISTENERS)
            for node in cluster.node_ids
        }
        for protocol in program_protocols(cluster).values()
    }


def program_protocols(cluster: Cluster) -> dict[str, SecurityProtocol]:
    """The protocols by which programs connect."""
    has_users = bool(cluster.security.users)
    return {str(each): each for each in SecurityProtocol if has_users or not each.has_sasl}


def program_servers(cluster: Cluster, listener: str = LISTENER) -> str:
    """The addresses of the brokers inside the simulation, as programs take them."""
    places = program_addresses(cluster)[listener]
    return ",".join(f"{places[node][0]}:{places[node][1]}" for node in cluster.broker_ids)
