"""An Apache Kafka KRaft cluster inside a Python test process.

This face is lazy (PEP 562): importing it loads neither Pykka nor Spark.
"""

from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import TYPE_CHECKING as _TYPE_CHECKING

from minicluster.version import VERSION as __version__

if _TYPE_CHECKING:
    from minicluster.actors.cluster.mini_cluster import MiniCluster
    from minicluster.actors.cluster.views import ClientNode, Node, Partition, Topic
    from minicluster.actors.listeners.address import ListenAddress
    from minicluster.errors import (
        MiniclusterError,
        NoResponse,
        RequestRejected,
        UserError,
        WaitTimeout,
    )
    from minicluster.faults import Faults
    from minicluster.fixtures.plugin import mini_cluster_fixture
    from minicluster.rules import Rules
    from minicluster.verify import Report

_HOMES = {
    "ClientNode": "minicluster.actors.cluster.views",
    "Faults": "minicluster.faults",
    "ListenAddress": "minicluster.actors.listeners.address",
    "MiniCluster": "minicluster.actors.cluster.mini_cluster",
    "MiniclusterError": "minicluster.errors",
    "NoResponse": "minicluster.errors",
    "Node": "minicluster.actors.cluster.views",
    "Partition": "minicluster.actors.cluster.views",
    "Report": "minicluster.verify",
    "RequestRejected": "minicluster.errors",
    "Rules": "minicluster.rules",
    "Topic": "minicluster.actors.cluster.views",
    "UserError": "minicluster.errors",
    "WaitTimeout": "minicluster.errors",
    "mini_cluster_fixture": "minicluster.fixtures.plugin",
}

__all__ = [
    "ClientNode",
    "Faults",
    "ListenAddress",
    "MiniCluster",
    "MiniclusterError",
    "NoResponse",
    "Node",
    "Partition",
    "Report",
    "RequestRejected",
    "Rules",
    "Topic",
    "UserError",
    "WaitTimeout",
    "__version__",
    "mini_cluster_fixture",
]

# A checkout on a file system without symbolic links has no minicluster/actors folder.
if not (_Path(__file__).parent / "actors").is_dir():
    __path__.append(str(_Path(__file__).resolve().parent.parent))


def __getattr__(name: str) -> object:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(_import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
