"""An Apache Kafka KRaft cluster inside a Python test process.

This face is lazy (PEP 562): importing it loads neither Pykka nor Spark.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.version import VERSION as __version__

if TYPE_CHECKING:
    from minicluster.actors.cluster.mini_cluster import MiniCluster as MiniCluster
    from minicluster.faults import Faults as Faults
    from minicluster.fixtures.plugin import mini_cluster_fixture as mini_cluster_fixture
    from minicluster.rules import Rules as Rules
    from minicluster.verify import verify as verify

_HOMES = {
    "MiniCluster": "minicluster.actors.cluster.mini_cluster",
    "Faults": "minicluster.faults",
    "Rules": "minicluster.rules",
    "mini_cluster_fixture": "minicluster.fixtures.plugin",
    "verify": "minicluster.verify",
}

__all__ = ["Faults", "MiniCluster", "Rules", "__version__", "mini_cluster_fixture", "verify"]

# A checkout on a file system without symbolic links has no minicluster/actors folder.
if not (Path(__file__).parent / "actors").is_dir():
    __path__.append(str(Path(__file__).resolve().parent.parent))


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
