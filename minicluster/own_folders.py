"""Temporary folders of one process, each with a lock on the folder itself.

The operating system lifts the lock when the process dies, so the next process can tell which
folders a killed one has left, and removes them. The descriptor of the lock can be inherited: Java
works on in its folder when the process that started it has died.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

if sys.platform != "win32":  # there, nothing is locked and nothing of another process removed
    import fcntl

_PREFIX = "minicluster-temporary-"
_swept: set[Path] = set()
_present: set[Path] = set()  # those of this process


class OwnFolder:
    """An empty folder whose name begins with a stem; ``descriptor`` holds its lock."""

    def __init__(self, parent: Path, stem: str) -> None:
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=stem, dir=parent))
            with suppress(FileNotFoundError):  # another process removed it before the lock
                self.descriptor = lock(self.path)
                if self.path.exists():
                    break
        _present.add(self.path)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        _present.discard(self.path)
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def remove_all() -> None:
    """Remove the folders of this process, which is about to end without their makers."""
    for path in list(_present):
        shutil.rmtree(path, ignore_errors=True)


def temporary_folder(purpose: str) -> OwnFolder:
    """A folder in the system's folder of temporary files; those of killed processes go."""
    parent = Path(tempfile.gettempdir())
    if parent not in _swept:
        _swept.add(parent)
        with suppress(OSError):
            remove_abandoned(parent, _PREFIX)
    return OwnFolder(parent, f"{_PREFIX}{purpose}-")


def remove_abandoned(parent: Path, stem: str) -> None:
    """Remove the folders of killed processes whose names begin with a stem."""
    if sys.platform == "win32":
        return
    for folder in parent.iterdir():
        if folder.name.startswith(stem) and not folder.is_symlink():
            with suppress(OSError), locked(folder, wait=False):
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """The lock on a folder, for a while.

    Errors:  BlockingIOError where another process has it and ``wait`` is not set.
    """
    descriptor = lock(folder, wait=wait)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def lock(folder: Path, *, wait: bool = True) -> int | None:
    """Lock a folder until the descriptor is closed; None where the system has no such locks.

    Errors:  as ``locked``.
    """
    if sys.platform == "win32":
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
