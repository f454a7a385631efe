"""Reading files that users name: regular files of a bounded size, and nothing else.

A device, a pipe or a file that is nearly all hole never ends or fills the memory, so the kind and
the size are looked at before the first byte is read, through links.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from minicluster.errors import UserError

MAX_FILE_BYTES = (1 << 31) - 1
"""Kafka's own limit: positions in a segment or a snapshot are 32-bit numbers (FileRecords)."""

FILE_NAME_BYTES_MAX = 255

_HOLES_MATTER_BYTES = 64 << 20
_MOST_HOLE = 16

_KINDS = {
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a character device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


class UnusableFile(UserError):
    """A file that is not read because of its kind or size."""

    exit_code = 66


def read_bytes(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """The content of a regular file.

    Errors:  UnusableFile for another kind of file or too large a one; OSError as ``open`` has it,
             also for a folder.
    """
    check_regular(path, max_bytes=max_bytes)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        _check(path, os.fstat(descriptor), max_bytes)  # the path may name another file by now
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise UnusableFile(f"{path}: has grown past {max_bytes} bytes, the most that is read")
    return content


def check_regular(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> None:
    """Reject what cannot be read to its end.

    Errors:  as ``read_bytes``.
    """
    _check(path, path.stat(), max_bytes)


def _check(path: Path, status: os.stat_result, max_bytes: int) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(21, "Is a directory", str(path))
    if kind != stat.S_IFREG:
        shown = _KINDS.get(kind, "no regular file")
        raise UnusableFile(f"{path}: is {shown}; give a regular file")
    if status.st_size > max_bytes:
        raise UnusableFile(
            f"{path}: has {status.st_size} bytes; at most {max_bytes} are read of one file"
        )
    on_disk = getattr(status, "st_blocks", status.st_size) * 512
    if status.st_size > _HOLES_MATTER_BYTES and on_disk < status.st_size // _MOST_HOLE:
        raise UnusableFile(
            f"{path}: has {status.st_size} bytes, of which {on_disk} are on disk; "
            "a sparse file is not read"
        )
