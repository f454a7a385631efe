"""What of a node survives a crash.

A process that dies leaves its page cache to the operating system: nothing that was written is lost
(``lose_tail="none"``). A machine that dies loses what was not flushed (``"unflushed"``). ``"all"``
empties the logs, which keeps only the small files: who I am, and what I promised in elections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from minicluster.errors import UserError
from minicluster.log.log import Log

LoseTail = Literal["none", "unflushed", "all"]
LOSE_TAIL: tuple[LoseTail, ...] = ("none", "unflushed", "all")


@dataclass(slots=True, kw_only=True)
class Disk:
    """The disk of one node; its restarted process gets the same one."""

    node_id: int
    directory_ids: tuple[UUID, ...] = ()
    logs: dict[str, Log] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    write_ms: int = 0  # how long a controller's write to its log or election state takes
    flushed_when_lying: dict[str, int] | None = None  # the disk says that it flushes, but does not

    def log(self, name: str) -> Log:
        """The log of this name (``__cluster_metadata-0``, ``orders-0``), made if missing."""
        found = self.logs.get(name)
        if found is None:
            found = self.logs[name] = Log()
        return found

    def read(self, name: str, default: Any = None) -> Any:
        """The content of a small file (quorum-state, checkpoints)."""
        return self.files.get(name, default)

    def write(self, name: str, content: Any) -> None:
        """Replace a small file; such writes are flushed."""
        self.files[name] = content

    def crash(self, lose_tail: LoseTail) -> Mapping[str, int]:
        """Lose what a crash of this kind takes; says how many offsets each log lost.

        Errors:  UserError for a word that is none of the three.
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
            elif lose_tail == "all":
                log.snapshots.clear()
                log.truncate_fully(0)
            if log.end_offset != before:
                lost[name] = before - log.end_offset
        return lost

    def lie(self, on: bool) -> None:
        """From now on flush nothing and say that it is done; or flush everything again."""
        if on and self.flushed_when_lying is None:
            self.flushed_when_lying = {n: log.flushed_offset for n, log in self.logs.items()}
        elif not on:
            self.flushed_when_lying = None

    def wipe(self, directory_ids: Iterable[UUID]) -> None:
        """Empty the disk, as a new one: other directory ids, nothing remembered."""
        self.logs.clear()
        self.files.clear()
        self.directory_ids = tuple(directory_ids)
