"""The changes of this interpreter while a cluster has programs; several clusters share them.

Each switch asks who runs: outside of a program's step all is as ever.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from minicluster.actors.programs.clocks import Switched
from minicluster.actors.programs.imported import ImportedNames
from minicluster.actors.programs.locks import ThreadNames
from minicluster.actors.programs.refused import Refusals
from minicluster.actors.programs.shims import aiokafka, faststream, kafka_python
from minicluster.actors.programs.shims.shim import Shim

SHIMS: tuple[Shim, ...] = (aiokafka.SHIM, faststream.SHIM, kafka_python.SHIM)
PACKAGES = frozenset(shim.package for shim in SHIMS)

_clusters = 0
_switched: list[Switched | Refusals | ThreadNames | ImportedNames | Imports] = []


def begin() -> None:
    """A cluster has programs from now on."""
    global _clusters
    _clusters += 1
    if _clusters == 1:
        _switched.extend((Switched(), Refusals(), threads := ThreadNames()))
        _switched.extend((ImportedNames(threads.own), Imports()))
    for shim in SHIMS:
        shim.begin()


def look() -> None:
    """Reach what has been imported meanwhile."""
    for switched in _switched:
        if isinstance(switched, ImportedNames):
            switched.look()
    for shim in SHIMS:
        shim.look()


class Imports:
    """Looks as soon as a client library has been imported, which a program may do in its step."""

    def __init__(self) -> None:
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The library as it would be found anyway, with a loader that looks when it has loaded."""
        spec = PathFinder.find_spec(name, path, target) if name in PACKAGES else None
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            load = loader.exec_module

            def load_and_look(module: Any) -> None:
                load(module)
                look()

            loader.exec_module = load_and_look
        return spec

    def close(self) -> None:
        """Look no more."""
        sys.meta_path.remove(self)


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
