"""The logs of controllers, as they lie on their disks (KIP-595, KIP-630).

subject   the quorum: the batches of each controller's log in order, of all logs by their offsets;
          live, the committed log is that of node -1
keeps     by log, where its last batch ended and the epoch of it; by epoch, each LeaderChange that a
          log names; the batches that begin at the current offset

Bounded by the logs and their epochs: logs are read side by side, by their offsets.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from minicluster.log.batch import RecordBatch
from minicluster.log.control import control_records
from minicluster.protocol.records import LeaderChangeMessage
from minicluster.verify.histories.releases import Releases
from minicluster.verify.model import Evidence
from minicluster.verify.promises import Release
from minicluster.verify.rules.rule import CASE, NOT_PROMISED, Findings, Said, broken, rule

# Before, a leader may hear that it leads before its LeaderChange is appended (KAFKA-15345).
LEADER_CHANGE_COMES_FIRST = (3, 6)


class ControllerLog(Struct):
    """One log so far.

    Shapes:  begins_well: at offset 0, or a snapshot covers the records before it.
    Units:   end, epoch: of its last batch; None: there is none.
    """

    node: int
    begins_well: bool = True
    end: int | None = None
    epoch: int | None = None


class ControllerLogs:
    """The logs of a quorum.

    Shapes:  releases: what the committed log tells of those that may have written it; it comes
             first. elected: by epoch, the offsets of its LeaderChanges with the leaders they name.
    """

    def __init__(self, releases: Releases) -> None:
        self.elected: dict[int, dict[tuple[int, int], None]] = {}
        self._releases = releases
        self._logs: dict[int, ControllerLog] = {}
        self._offset = -1
        self._copies: dict[int, list[Copy]] = {}  # by epoch, at the current offset

    def begin(self, node: int, *, begins_well: bool) -> None:
        """The next batch of a node is the first of a log."""
        self._logs[node] = ControllerLog(node, begins_well)

    def on_batch(self, node: int, batch: RecordBatch) -> Said:
        """The next batch of a log."""
        base, epoch, elected = batch.base_offset, batch.leader_epoch, leader_of(batch)
        log = self._logs.get(node)
        if log is None:
            log = self._logs[node] = ControllerLog(node)
        if log.end is None:
            yield from _a_log_begins_at_0_or_in_a_snapshot(log, batch)
        else:
            yield from log_offsets_have_no_gap(log, batch)
        yield from leader_epochs_do_not_decrease(log, batch)
        # Where a log begins above 0, the records before it may have begun the epoch.
        if base == 0 if log.end is None else epoch != log.epoch:
            release = self._releases.at(batch.last_offset)
            yield from each_epoch_begins_with_its_leader_change(log, batch, release)
        log.end, log.epoch = batch.last_offset + 1, epoch
        if elected is not None:
            leaders = self.elected.setdefault(epoch, {})
            if (base, elected) not in leaders:
                yield from _of_which_the_logs_name_one(epoch, leaders, (base, elected))
                leaders[base, elected] = None
        if base != self._offset:
            yield from self.at_end()
            self._offset = base
        self._copies.setdefault(epoch, []).append((node, batch.crc))

    def at_end(self) -> Said:
        """There are no more batches at the current offset."""
        for epoch, copies in self._copies.items():
            if len(copies) > 1:
                yield from logs_match(self._offset, epoch, copies)
        self._copies.clear()

    @property
    def epoch_starts(self) -> dict[int, int]:
        """The offset of the first LeaderChange of each epoch."""
        return {epoch: min(leaders)[0] for epoch, leaders in self.elected.items()}


Copy = tuple[int, int]  # a node that has a batch, and the checksum of it there


def leader_of(batch: RecordBatch) -> int | None:
    """The leader that a batch names, if its first record is a LeaderChange."""
    if not batch.is_control:
        return None
    controls = control_records(batch)
    message = controls[0].message if controls else None
    return message.leader_id if isinstance(message, LeaderChangeMessage) else None


@rule("E01", "Log offsets have no gap",
      source="KIP-595, KIP-630, KAFKA-14238; UnifiedLog, KafkaMetadataLog.deleteBeforeSnapshot",
      evidence=Evidence.QUORUM,
      breaks="A batch begins one offset above the end of the one before.",
      keeps="Batches of one record and of two follow each other without a gap.")  # fmt: skip
def log_offsets_have_no_gap(log: ControllerLog, batch: RecordBatch) -> Findings:
    """A log is contiguous from offset 0, or from an offset that a snapshot covers: records are
    deleted once they are in one."""
    yield CASE
    if batch.base_offset != log.end:
        yield broken(
            f"controller {log.node}: a batch begins at {batch.base_offset} where {log.end} was "
            "expected",
            broker=log.node,
            offset=batch.base_offset,
        )


@log_offsets_have_no_gap.also
def _a_log_begins_at_0_or_in_a_snapshot(log: ControllerLog, batch: RecordBatch) -> Findings:
    yield CASE
    if not log.begins_well:
        yield broken(
            f"controller {log.node}: the log begins at {batch.base_offset}, and no snapshot "
            "covers the records before",
            broker=log.node,
            offset=batch.base_offset,
        )


@rule("E02", "Leader epochs do not decrease along a log",
      source="KIP-595; LeaderEpochFileCache", evidence=Evidence.QUORUM,
      breaks="A batch of epoch 3 follows the LeaderChange of epoch 4.",
      keeps="A batch of epoch 4 follows the LeaderChange of epoch 4, and those of "
      "epoch 1 come before.")  # fmt: skip
def leader_epochs_do_not_decrease(log: ControllerLog, batch: RecordBatch) -> Findings:
    """The leader epoch of batches never decreases along a log."""
    yield CASE
    if log.epoch is not None and batch.leader_epoch < log.epoch:
        yield broken(
            f"controller {log.node}: a batch of epoch {batch.leader_epoch} follows a batch of a "
            "later epoch",
            broker=log.node,
            offset=batch.base_offset,
        )


@rule("E03", "Each epoch begins with the LeaderChange of its one leader",
      source="KIP-595; LeaderState.appendLeaderChangeMessage", evidence=Evidence.QUORUM,
      tables=("raft_event",),
      breaks="Epoch 2 begins with a NoOpRecord.",
      keeps="Epochs 2 and 5 begin with their LeaderChange.")  # fmt: skip
def each_epoch_begins_with_its_leader_change(
    log: ControllerLog, batch: RecordBatch, release: Release
) -> Findings:
    """The first record of an epoch is the LeaderChange of its leader, and no epoch has two
    leaders. Up to Kafka 3.5 the leader's own records may come first."""
    elected = leader_of(batch)
    if elected is None and release < LEADER_CHANGE_COMES_FIRST:
        yield NOT_PROMISED
        return
    yield CASE
    if elected is None:
        yield broken(
            f"controller {log.node}: epoch {batch.leader_epoch} does not begin with a LeaderChange",
            broker=log.node,
            offset=batch.base_offset,
        )


@each_epoch_begins_with_its_leader_change.also
def _of_which_the_logs_name_one(
    epoch: int, known: dict[tuple[int, int], None], named: tuple[int, int]
) -> Findings:
    """The first disagreement makes findings of what was agreed on before, too."""
    leaders = {leader for _, leader in known}
    if not leaders or leaders == {named[1]}:
        return
    for offset, leader in (*known, named) if len(leaders) == 1 else (named,):
        yield broken(
            f"epoch {epoch} has a second leader besides {leader}", broker=leader, offset=offset
        )


@rule("E05", "Logs match: one epoch and offset is one record",
      source="KIP-595, KAFKA-10527; log matching", at_end=True, evidence=Evidence.QUORUM,
      tables=("raft_event",),
      breaks="Controllers 101 and 102 hold different records at one offset of epoch 1.",
      keeps="Controllers 101 and 102 hold different records at one offset, in "
      "epochs 1 and 2.")  # fmt: skip
def logs_match(offset: int, epoch: int, copies: Sequence[Copy]) -> Findings:
    """Two nodes never hold different records at the same offset of the same epoch, not even before
    a truncation."""
    differ = len({crc for _, crc in copies}) > 1
    for node, _ in copies:
        yield CASE
        if differ:
            yield broken(
                f"node {node} held a batch of epoch {epoch} at {offset} that differs from other "
                "nodes'",
                broker=node,
                offset=offset,
            )
