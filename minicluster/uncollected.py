"""A time without collections of garbage, for work whose objects stay: an import, a played seed."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def uncollected() -> Iterator[None]:
    """Let no collection begin by itself meanwhile; each would look at all objects anew."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def imported(name: str) -> ModuleType:
    """Import a module, by far the most of a first start, without a collection of garbage.

    All that it makes stays, so it counts as old from the beginning. The next collection of young
    objects would else visit each of them, and the one after it again.
    """
    if name in sys.modules:
        return importlib.import_module(name)
    with uncollected():
        module = importlib.import_module(name)
        if not gc.get_freeze_count():  # what others have frozen stays so
            gc.freeze()
            gc.unfreeze()  # into the oldest generation, where no object was looked at
    return module
