"""The users' programs of a cluster, opened by the first of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.cluster.listening import connection_limits, served_versions
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.errors import UserError

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
    from minicluster.actors.listeners.security import ListenerSecurity
    from minicluster.actors.programs.programs import Programs
    from minicluster.actors.programs.world import World

    listeners = MemoryListeners(
        cluster.network,
        cluster.client_nodes,
        served_versions(cluster),
        limits=partial(connection_limits, cluster),
        log=cluster.log.root.bind(actor="listeners"),
        security=lambda _: ListenerSecurity(),
        advertised=Advertised({}, {}),
    )
    plan = cluster.plan
    nodes = {(plan.host(node), plan.port(node)): node for node in cluster.node_ids}
    world = World(cluster.network, listeners, nodes)
    cluster.programs = Programs(world, cluster.client_nodes.node)
    cluster.rt.at_close.append(cluster.programs.close)
    return cluster.programs


def program_servers(cluster: Cluster) -> str:
    """The addresses of the brokers inside the simulation, as programs take them."""
    plan = cluster.plan
    return ",".join(f"{plan.host(node)}:{plan.port(node)}" for node in cluster.broker_ids)
