"""Names that modules have imported: ``from time import sleep``, ``from threading import Lock``.

A switch of ``time.sleep`` does not reach them, and a program's sleep would be real. The standard
library has some as well: ``queue`` looks at a ``monotonic`` of its own. So the modules that are
loaded are searched for the very functions, again at each start of a program.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from minicluster.actors.runtime import tripwire

_LEFT_ALONE = (
    *("minicluster", "_pytest", "pytest", "pykka", "time_machine", *sys.builtin_module_names),
    *(module.__name__ for module, _ in tripwire.GUARDED),  # whose names the trip-wire sets
)
_THREADS = ((threading, "Lock"), (threading, "RLock"), (queue, "SimpleQueue"))


class ImportedNames:
    """The names of loaded modules that are switched, for as long as a cluster has programs."""

    def __init__(self, own: Mapping[tuple[Any, str], Any]) -> None:
        """Begin with what ``threading`` and ``queue`` had before they were switched."""
        self._seen: dict[str, ModuleType] = {}
        self._originals: list[tuple[ModuleType, str, Any]] = []
        self._others: dict[int, Any] = {}  # by the id of the function in whose place they come
        for called, original in tripwire.originals().items():
            self._others[id(original)] = _switched(called, original)
        for module, name in _THREADS:
            self._others[id(own[module, name])] = getattr(module, name)
        self.look()

    def look(self) -> None:
        """Search the modules that have been loaded meanwhile."""
        for name, module in list(sys.modules.items()):
            if self._seen.get(name) is module:
                continue
            self._seen[name] = module
            if isinstance(module, ModuleType) and name.partition(".")[0] not in _LEFT_ALONE:
                self._search(module)

    def close(self) -> None:
        """Give every module its own names back."""
        while self._originals:
            module, name, original = self._originals.pop()
            setattr(module, name, original)

    def _search(self, module: ModuleType) -> None:
        for name, value in list(vars(module).items()):
            other = self._others.get(id(value))
            if other is not None:
                self._originals.append((module, name, value))
                setattr(module, name, other)


def _switched(called: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        program = tripwire.program()
        if program is None:
            return original(*args, **kwargs)
        return program.virtual.get(called, original)(*args, **kwargs)

    return call
