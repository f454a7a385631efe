"""Users' programs are started, and what they connect to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minicluster.actors.cluster.actions.performing import performs
from minicluster.actors.cluster.app import App
from minicluster.actors.cluster.apps import open_programs
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.errors import UserError
from minicluster.scenario.actions import apps as declared
from minicluster.security.principals import principal_of


@performs(declared.App)
def app(cluster: ClusterRoles, do: declared.App) -> App:
    program = open_programs(cluster).add(
        do.name,
        do.run,
        principal=None if do.user is None else principal_of(do.user),
        allow_real=do.allow_real,
    )
    cluster.note("app", [program.node], "start", do.name, changes=False)
    return App(cluster, program)


def service(cluster: ClusterRoles, host: str, port: int, handler: Callable[[Any, Any], Any]) -> App:
    """Serve connections of apps to an address of the simulated network: a fake of a database.

    Shapes:  handler: as ``asyncio.start_server`` takes it; it runs as an app with the host's name.
    Errors:  those of ``app``.
    """
    cluster.check_started("service")
    if not isinstance(host, str) or not isinstance(port, int) or not callable(handler):
        raise UserError('service: it takes a host, a port and a handler: "db", 5432, handler')
    return App(cluster, open_programs(cluster).serve(host, port, handler))


def named(cluster: ClusterRoles) -> Sequence[App]:
    """The apps of a cluster, in the order of their first starts."""
    programs = () if cluster.programs is None else cluster.programs.by_name.values()
    return tuple(App(cluster, program) for program in programs)
