"""The disk of a node: the state that survives a crash.

A process that dies leaves its page cache to the operating system: no written byte is lost
(``lose_tail="none"``). A machine that dies loses the bytes that were not flushed
(``"unflushed"``), or of them the last write alone (``"torn"``). ``"all"`` empties the logs and
keeps the small files: identity and votes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct, field

from minicluster.errors import UserError
from minicluster.log.log import Log

LoseTail = Literal["none", "torn", "unflushed", "all"]
LOSE_TAIL: tuple[LoseTail, ...] = ("none", "torn", "unflushed", "all")


class Disk(Struct, kw_only=True):
    """The disk of one node; its restarted process gets the same one."""

    node_id: int
    directory_ids: tuple[UUID, ...] = ()
    logs: dict[str, Log] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    write_ms: int = 0  # how long a controller's write to its log or election state takes
    flushed_when_lying: dict[str, int] | None = (
        None  # set while flushes are acknowledged and not done
    )

    def log(self, name: str) -> Log:
        """The log of this name (``__cluster_metadata-0``, ``orders-0``), made if missing."""
        log = self.logs.get(name)
        if log is None:
            log = self.logs[name] = Log()
        return log

    def read(self, name: str, default: Any = None) -> Any:
        """The content of a small file (quorum-state, checkpoints)."""
        return self.files.get(name, default)

    def write(self, name: str, content: Any) -> None:
        """Replace a small file; such writes are flushed."""
        self.files[name] = content

    def crash(self, lose_tail: LoseTail) -> Mapping[str, int]:
        """Drop the data that a crash of this kind loses; the number of lost offsets per log.

        Errors:  UserError for a word that is none of the four.
        """
        if lose_tail not in LOSE_TAIL:
            raise UserError(
                f"lose_tail: {lose_tail!r} is not known; choose one of {', '.join(LOSE_TAIL)}"
            )
        lost: dict[str, int] = {}
        for name, log in self.logs.items():
            before = log.end_offset
            if lose_tail == "unflushed":
                log.lose_unflushed()
                if self.flushed_when_lying is not None:
                    kept = max(log.start_offset, self.flushed_when_lying.get(name, 0))
                    log.truncate(min(log.end_offset, kept))
            elif lose_tail == "torn":
                log.tear()
            elif lose_tail == "all":
                log.snapshots.clear()
                log.truncate_fully(0)
            if log.end_offset != before:
                lost[name] = before - log.end_offset
        return lost

    def lie(self, on: bool) -> None:
        """Acknowledge flushes without doing them, or end that."""
        if on and self.flushed_when_lying is None:
            self.flushed_when_lying = {n: log.flushed_offset for n, log in self.logs.items()}
        elif not on:
            self.flushed_when_lying = None

    def wipe(self, directory_ids: Iterable[UUID]) -> None:
        """Replace the disk by an empty one with other directory ids."""
        self.logs.clear()
        self.files.clear()
        self.directory_ids = tuple(directory_ids)
