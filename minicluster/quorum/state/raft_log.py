"""The metadata log with the rules of the quorum: fetch positions, snapshots, truncation.

Source:  RaftLog, KafkaRaftLog.
"""

from __future__ import annotations

from enum import Enum

from minicluster.log.log import Log, SnapshotId, snapshot_order
from minicluster.values import Value

BOOTSTRAP_SNAPSHOT: SnapshotId = (0, 0)


class Position(Enum):
    """The relation of a fetch position to a log."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


class Validation(Value):
    """A verdict on a position, with the end of the epoch it diverges at or the snapshot to load."""

    position: Position
    end_offset: int = -1
    epoch: int = -1


VALID = Validation(Position.VALID)


class RaftLog:
    """A ``Log`` with the high watermark and the rules of the quorum."""

    __slots__ = ("high_watermark", "log")

    def __init__(self, log: Log) -> None:
        self.log = log
        self.high_watermark = log.start_offset

    # --- offsets and epochs -----------------------------------------------------------------

    @property
    def start_offset(self) -> int:
        """The first offset it holds."""
        return self.log.start_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last one."""
        return self.log.end_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of its end, 0 for a log without any."""
        latest = self.log.epochs.latest
        if latest is not None:
            return latest
        snapshot = self.log.latest_snapshot
        return 0 if snapshot is None else snapshot[1]

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The newest snapshot, a bootstrap checkpoint included."""
        return self.log.latest_snapshot

    def snapshot_to_offer(self) -> SnapshotId | None:
        """The newest snapshot that followers may load: never the bootstrap checkpoint."""
        latest = self.log.latest_snapshot
        return None if latest == BOOTSTRAP_SNAPSHOT else latest

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """(offset, epoch) where the largest epoch that is not above the given one ends.

        Shapes:  for an epoch older than all there are: where the log begins, with the epoch of
                 the snapshot at that offset, else 0.
        """
        latest = self.log.epochs.latest
        if latest is None:
            return self.end_offset, self.last_epoch
        if epoch >= latest:
            return self.log.end_offset, latest
        earlier = 0 if (snapshot := self.log.earliest_snapshot) is None else snapshot[1]
        for entry, start in self.log.epochs.entries:
            if entry > epoch:
                return start, earlier
            earlier = entry
        return self.end_offset, self.last_epoch

    def validate(self, offset: int, epoch: int) -> Validation:
        """Judge a position: the follower's record just before ``offset`` is of ``epoch``.

        Two logs that hold a record of one epoch at one offset are the same up to it (Raft's log
        matching). That is so here if ``epoch`` is in this log and does not end below ``offset``.
        Else the logs part at or before the end of the largest epoch here that is not above
        ``epoch``; the follower truncates to it and asks again, so it finds the place after at most
        one step for each epoch.

        Source:  RaftLog.validateOffsetAndEpoch.
        """
        log = self.log
        start_offset = log.start_offset
        if offset == 0 == start_offset:
            return VALID
        earliest = log.earliest_snapshot
        # At or before the log start no record shows the epoch of the one before; the snapshot that
        # the log starts from does, and only it.
        if earliest is not None and (
            offset < start_offset
            or (offset == start_offset and epoch != earliest[1])
            or epoch < earliest[1]
        ):
            latest = log.latest_snapshot or earliest
            return Validation(Position.SNAPSHOT, *latest)
        end, end_epoch = self.end_of_epoch(epoch)
        if end_epoch != epoch or end < offset:
            return Validation(Position.DIVERGING, end, end_epoch)
        return VALID

    def begins_batch(self, offset: int) -> bool:
        """The offset is the base of a batch, or the end of the log."""
        if offset == self.end_offset:
            return True
        batch = self.log.batch_at(offset)
        return batch is not None and batch.base_offset == offset

    # --- changes ----------------------------------------------------------------------------

    def begin_epoch(self, epoch: int) -> None:
        """Count an epoch as the log's last from its election on."""
        self.log.epochs.assign(epoch, self.end_offset)

    def recover(self) -> None:
        """Let a log that ends below its newest snapshot begin there, after a restart.

        A follower can crash when it has stored a downloaded snapshot and not yet emptied its log.

        Source:  KafkaRaftLog.createLog, truncateToLatestSnapshot.
        """
        latest = self.log.latest_snapshot
        if latest is not None and latest[0] > self.end_offset:
            self.install(latest, self.log.snapshots[latest])

    def forget_unwritten_epochs(self) -> None:
        """Forget an epoch of which nothing was written, after a restart.

        Otherwise this log would look more up to date than one with committed records of an epoch in
        between, and its node could win their election.
        """
        self.log.epochs.truncate_from_end(self.end_offset)

    def truncation_offset(self, epoch: int, end_offset: int) -> int:
        """The offset up to which this log and a leader's can agree at most.

        Shapes:  ``epoch`` and ``end_offset`` are the diverging epoch of a Fetch response.
        Source:  RaftLog.truncateToEndOffset.
        """
        if epoch == 0:
            target = end_offset
        else:
            # Where this log lacks the epoch, the leader's end of it says nothing about this log.
            end, end_epoch = self.end_of_epoch(epoch)
            target = min(end_offset, end) if end_epoch == epoch else end
        return min(target, self.end_offset)

    def install(self, snapshot_id: SnapshotId, content: bytes) -> None:
        """Begin again, empty, where a downloaded snapshot ends; older snapshots go."""
        self.log.snapshots[snapshot_id] = content
        self.log.truncate_fully(snapshot_id[0])
        self._drop_snapshots_before(snapshot_id)
        self.high_watermark = snapshot_id[0]

    def would_install(self, snapshot_id: SnapshotId) -> bool:
        """The snapshot is ahead of the log; Kafka replaces its log by no other."""
        offset, epoch = snapshot_id
        return epoch > self.last_epoch or (epoch == self.last_epoch and offset > self.end_offset)

    def delete_before_snapshot(self, snapshot_id: SnapshotId) -> bool:
        """Let the log begin at a snapshot's end, if that is committed; older snapshots go."""
        offset = snapshot_id[0]
        latest = self.log.latest_snapshot
        if (
            snapshot_id not in self.log.snapshots
            or latest is None
            or not self.start_offset <= offset <= latest[0]
            or offset > self.high_watermark
        ):
            return False
        moved = self.log.delete_before(offset)
        return self._drop_snapshots_before(snapshot_id) or moved

    def _drop_snapshots_before(self, snapshot_id: SnapshotId) -> bool:
        bound = snapshot_order(snapshot_id)
        older = [other for other in self.log.snapshots if snapshot_order(other) < bound]
        for other in older:
            del self.log.snapshots[other]
        return bool(older)
