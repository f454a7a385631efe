"""The leader-epoch cache: which epoch began at which offset (KIP-101, KIP-279).

It says what two logs have in common without a look at their records. ``end_offset_for`` is the
question that a follower asks of its leader: where does my last epoch end in your log? The response
names the largest epoch not above it, since the leader may not have that epoch at all; of an epoch
above all of its own it knows nothing (-1, -1).

    epochs here     0 from 0    2 from 5    3 from 9    log end 12
    end of 3        (3, 12)     ends where the log does
    end of 2        (2, 9)      ends where the next one begins
    end of 1        (0, 5)      not here: the one below it
    end of 4        (-1, -1)    not here yet

Invariant: epochs and start offsets strictly ascend (F17).
Source:    LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_right

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1
NO_EPOCH = -1
"""The leader epoch of a request that states none (RecordBatch.NO_PARTITION_LEADER_EPOCH)."""


def optional_epoch(epoch: int) -> int | None:
    """The epoch in a request; None from a sender without one (RequestUtils.getLeaderEpoch)."""
    return None if epoch == NO_EPOCH else epoch


class LeaderEpochs:
    """The epochs of one log, oldest first, each with the offset at which it began."""

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self, entries: tuple[tuple[int, int], ...] = ()) -> None:
        self._epochs = [epoch for epoch, _ in entries]
        self._starts = [start for _, start in entries]
        self.latest: int | None = entries[-1][0] if entries else None  # the highest epoch

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """(epoch, start offset), ascending."""
        return tuple(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that an epoch begins at an offset; a conflicting younger entry gives way.

        Shapes:  -> whether anything changed. An epoch or offset below 0 is rejected (ValueError).
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} from offset {start_offset}: neither may be negative")
        if self._epochs and self._epochs[-1] == epoch and start_offset >= self._starts[-1]:
            return False
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch
        return True

    def epoch_of(self, offset: int) -> int | None:
        """The epoch that an offset belongs to."""
        index = bisect_right(self._starts, offset)
        return self._epochs[index - 1] if index else None

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch not above a given one, and its end offset.

        Shapes:  -> (epoch, end offset), (-1, -1) where there is none. An epoch below all others
                 ends where the first one begins, a negative one other than -1 as well.
        Source:  LeaderEpochFileCache.endOffsetFor.
        """
        if epoch == UNDEFINED_EPOCH or not self._epochs or epoch > self._epochs[-1]:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end_offset
        index = bisect_right(self._epochs, epoch)
        if index == 0:
            return epoch, self._starts[0]
        return self._epochs[index - 1], self._starts[index]

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at or after an offset."""
        while self._starts and self._starts[-1] >= end_offset:
            self._epochs.pop()
            self._starts.pop()
        self.latest = self._epochs[-1] if self._epochs else None

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the log begin at an offset: the epoch that holds it begins there now."""
        index = bisect_right(self._starts, start_offset)
        if index:
            del self._epochs[: index - 1], self._starts[: index - 1]
            self._starts[0] = start_offset

    def clear(self) -> None:
        """Forget everything."""
        self._epochs.clear()
        self._starts.clear()
        self.latest = None
