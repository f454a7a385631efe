"""A partition as its fetcher sees it."""

from __future__ import annotations

from minicluster.effects import Effect
from minicluster.log import Records
from minicluster.replica.partition.partition import Partition


class Following:
    """Gives a ``Partition`` the shape of the fetcher's ``FollowerLog``."""

    __slots__ = ("partition",)

    def __init__(self, partition: Partition) -> None:
        self.partition = partition

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.partition.topic

    @property
    def log_start_offset(self) -> int:
        """Where the log begins."""
        return self.partition.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """Where the next record goes."""
        return self.partition.log_end_offset

    @property
    def high_watermark(self) -> int:
        """The end of what consumers may read."""
        return self.partition.high_watermark

    @property
    def latest_epoch(self) -> int | None:
        """The highest leader epoch in the log."""
        return self.partition.latest_epoch

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """Where an epoch ends in this log."""
        return self.partition.end_offset_for(epoch)

    def append_fetched(
        self,
        now_ms: int,
        records: Records,
        *,
        leader_epoch: int,
        high_watermark: int,
        log_start_offset: int,
    ) -> list[Effect]:
        """Append, follow the leader's high watermark, and wake who waits to read here."""
        step = self.partition.append_as_follower(
            records.batches,
            partition_leader_epoch=leader_epoch,
            leader_high_watermark=high_watermark,
            leader_log_start_offset=log_start_offset,
        )
        if step.result.high_watermark_changed:
            return [*step.effects, self.partition.check_waiting()]
        return step.effects

    def truncate_to(self, now_ms: int, offset: int) -> list[Effect]:
        """Cut the log's end."""
        return self.partition.truncate(offset)

    def truncate_fully_to(self, now_ms: int, offset: int) -> list[Effect]:
        """Drop everything and begin at an offset."""
        return self.partition.truncate_fully(offset)
