"""Attributes of a client library that are others while a cluster has programs."""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

Replaced = tuple[Any, str, Any]  # an owner, the name of its attribute, the value


class Shim:
    """One client library's shim, put in place once the library is imported.

    Shapes:  package: as it is imported; distribution: as it is installed; tried: the releases with
             which it was tried, by their beginnings; replaced: made when the library is there;
             counters: attributes that count in a process, and where they begin.
    """

    def __init__(
        self,
        package: str,
        distribution: str,
        tried: tuple[str, ...],
        replaced: Callable[[], Iterable[Replaced]],
        counters: Callable[[], Iterable[Replaced]] = lambda: (),
    ) -> None:
        self.package, self.distribution, self.tried = package, distribution, tried
        self._replaced, self._counters = replaced, counters
        self._originals: list[Replaced] | None = None

    def begin(self) -> None:
        """A cluster with programs begins: let counters begin as in a new process."""
        self.look()
        if self._originals is not None:
            for owner, name, value in self._counters():
                setattr(owner, name, value)

    def look(self) -> None:
        """Put it in place, if the library has been imported since the last look."""
        if self._originals is not None or self.package not in sys.modules:
            return
        self._originals = []
        installed = self.version or "unknown"
        if not any(installed == known or installed.startswith(f"{known}.") for known in self.tried):
            warnings.warn(
                f"{self.distribution} {installed} was not tried in the simulation "
                f"({', '.join(self.tried)} were): a seed may not repeat",
                stacklevel=2,
            )
        for owner, name, value in self._replaced():
            own = getattr(owner, name, getattr(builtins, name, None))
            self._originals.append((owner, name, own))
            setattr(owner, name, value)

    @property
    def version(self) -> str | None:
        """The release that is installed."""
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None

    def close(self) -> None:
        """Give the library its own attributes back."""
        originals, self._originals = self._originals, None
        for owner, name, value in reversed(originals or ()):
            setattr(owner, name, value)
