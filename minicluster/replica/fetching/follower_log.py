"""What a fetcher needs of a replica that follows."""

from __future__ import annotations

from typing import Protocol

from minicluster.effects import Effect
from minicluster.log import Records


class FollowerLog(Protocol):
    """A log that is filled from a leader's."""

    @property
    def topic(self) -> str:
        """The topic's name."""

    @property
    def log_start_offset(self) -> int:
        """Where the log begins."""

    @property
    def log_end_offset(self) -> int:
        """Where the next record goes."""

    @property
    def high_watermark(self) -> int:
        """The end of what is committed, as far as known here."""

    @property
    def latest_epoch(self) -> int | None:
        """The highest leader epoch in the log."""

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """(largest epoch not above it, its end), (-1, -1) where nothing can be said."""

    def append_fetched(
        self,
        now_ms: int,
        records: Records,
        *,
        leader_epoch: int,
        high_watermark: int,
        log_start_offset: int,
    ) -> list[Effect]:
        """Append what was fetched, then follow the leader's high watermark and log start."""

    def truncate_to(self, now_ms: int, offset: int) -> list[Effect]:
        """Cut the log's end."""

    def truncate_fully_to(self, now_ms: int, offset: int) -> list[Effect]:
        """Drop everything and begin at an offset."""
