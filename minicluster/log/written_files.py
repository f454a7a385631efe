"""Sizes and digests of the files that a run wrote, as ``run.json`` lists them under ``written``.

The verification compares them with what lies in the folder: evidence that is no longer what the run
wrote is damaged, and a rule that needs it is *unknown*.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from minicluster.log.checkpoint import CHECKPOINT_SUFFIX
from minicluster.log.heads import batch_heads
from minicluster.log.segment import LOG_SUFFIX
from minicluster.values import Value

WRITTEN = "written"  # the key in run.json
_EVIDENCE = ("controller-*/**/*", "trace/*.parquet", "zookeeper/*.jsonl")


class WrittenFile(Value, kw_only=True):
    """One file as it was written; end_offset (exclusive) where it is a segment with a batch."""

    size: int
    sha256: str
    end_offset: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The entry in ``run.json``."""
        end = {} if self.end_offset is None else {"end_offset": self.end_offset}
        return {"size": self.size, "sha256": self.sha256, **end}


def written_files(folder: Path) -> dict[str, WrittenFile]:
    """The evidence in a run folder, by path in that folder."""
    return {str(path.relative_to(folder).as_posix()): _file(path) for path in _evidence(folder)}


def damages(folder: Path, written: Mapping[str, WrittenFile]) -> dict[str, str]:
    """The files of a run folder that are not what the run wrote.

    Shapes:  -> path in the folder: one line that names the file and what is wrong with it.
    """
    by_name: dict[str, str] = {}
    for name, expected in written.items():
        why = _damage(folder / name, expected)
        if why is not None:
            by_name[name] = f"{folder / name}: {why}"
    for path in _evidence(folder):
        name = path.relative_to(folder).as_posix()
        if name not in written and path.name.endswith((LOG_SUFFIX, CHECKPOINT_SUFFIX)):
            by_name[name] = f"{path}: the run did not write this file"
    return by_name


def _evidence(folder: Path) -> Iterator[Path]:
    for pattern in _EVIDENCE:
        yield from sorted(path for path in folder.glob(pattern) if path.is_file())


def _file(path: Path) -> WrittenFile:
    heads = list(batch_heads(path)) if path.name.endswith(LOG_SUFFIX) else []
    return WrittenFile(
        size=path.stat().st_size,
        sha256=_digest(path),
        end_offset=heads[-1].last_offset + 1 if heads else None,
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damage(path: Path, expected: WrittenFile) -> str | None:
    end = "" if expected.end_offset is None else f" (log end offset {expected.end_offset})"
    try:
        if not path.is_file():
            return f"there is no such file, but the run wrote one of {expected.size} bytes{end}"
        size = path.stat().st_size
        if size != expected.size:
            return f"{size} bytes, where the run wrote {expected.size}{end}"
        if _digest(path) != expected.sha256:
            return f"not what the run wrote: its SHA-256 differs{end}"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None
