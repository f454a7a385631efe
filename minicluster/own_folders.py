"""Temporary folders of one process, each with a lock on the folder itself.

The operating system lifts the lock when the process dies, so the next process can tell which
folders a killed one has left, and removes them. The descriptor of the lock can be inherited: Java
works on in its folder when the process that started it has died.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Self
from weakref import WeakSet

if sys.platform != "win32":  # there, nothing is locked and nothing of another process removed
    import fcntl

_present: WeakSet[OwnFolder] = WeakSet()


class OwnFolder(TemporaryDirectory[str]):
    """An empty folder whose name begins with a stem; ``descriptor`` holds its lock."""

    def __init__(self, parent: Path, stem: str) -> None:
        with suppress(OSError):
            _remove_abandoned(parent, stem)
        self.descriptor: int | None = None
        while True:
            super().__init__(prefix=stem, dir=parent, ignore_cleanup_errors=True)
            self.path = Path(self.name)
            with suppress(FileNotFoundError):
                self.descriptor = _lock(self.path)
                if self.path.exists():  # else another process took it for abandoned before the lock
                    break
        _present.add(self)

    def __enter__(self) -> Self:  # type: ignore[override]  # not its name alone
        return self

    def cleanup(self) -> None:
        """Remove it with all that is in it."""
        super().cleanup()
        descriptor, self.descriptor = self.descriptor, None  # another thread may do the same
        _unlock(descriptor)


def temporary_folder(purpose: str) -> OwnFolder:
    """A folder in the system's folder of temporary files."""
    return OwnFolder(Path(gettempdir()), f"minicluster-temporary-{purpose}-")


def remove_all() -> None:
    """Remove the folders of this process, which is about to end without their makers.

    One of these may be removing its own at this moment.
    """
    for folder in list(_present):
        with suppress(OSError):
            folder.cleanup()


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """The lock on a folder, for a while.

    Errors:  BlockingIOError where another process has it and ``wait`` is not set.
    """
    descriptor = _lock(folder, wait=wait)
    try:
        yield
    finally:
        _unlock(descriptor)


def _remove_abandoned(parent: Path, stem: str) -> None:
    for folder in parent.iterdir() if sys.platform != "win32" else ():
        if folder.name.startswith(stem) and not folder.is_symlink():
            with suppress(OSError), locked(folder, wait=False):
                shutil.rmtree(folder, ignore_errors=True)


def _lock(folder: Path, *, wait: bool = True) -> int | None:
    """Lock a folder until the descriptor is closed; None where the system has no such locks."""
    if sys.platform == "win32":
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _unlock(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)
