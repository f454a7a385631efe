"""What is other in this interpreter while a cluster has programs; several clusters share it.

Each switch asks who runs: outside of a program's step all is as ever.
"""

from __future__ import annotations

import sys

from minicluster.actors.programs.clocks import Switched
from minicluster.actors.programs.imported import ImportedNames
from minicluster.actors.programs.locks import ThreadNames
from minicluster.actors.programs.refused import Refusals
from minicluster.actors.programs.shims import aiokafka, faststream, kafka_python
from minicluster.actors.programs.shims.shim import Shim

SHIMS: tuple[Shim, ...] = (aiokafka.SHIM, faststream.SHIM, kafka_python.SHIM)

_clusters = 0
_switched: list[Switched | Refusals | ThreadNames | ImportedNames] = []


def begin() -> None:
    """A cluster has programs from now on."""
    global _clusters
    _clusters += 1
    if _clusters == 1:
        _switched.extend((Switched(), Refusals(), threads := ThreadNames()))
        _switched.append(ImportedNames(threads.own))
    for shim in SHIMS:
        shim.begin()


def look() -> None:
    """Reach what has been imported meanwhile."""
    for switched in _switched:
        if isinstance(switched, ImportedNames):
            switched.look()
    for shim in SHIMS:
        shim.look()


def end() -> None:
    """A cluster has none any more."""
    global _clusters
    _clusters -= 1
    if _clusters == 0:
        while _switched:
            _switched.pop().close()
        for shim in SHIMS:
            shim.close()


def versions() -> dict[str, str]:
    """The releases of the client libraries that are imported."""
    imported = (shim for shim in SHIMS if shim.package in sys.modules)
    return {shim.distribution: shim.version for shim in imported if shim.version is not None}
