"""The committed part of controllers' logs: the batches that a majority of the voters holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from minicluster.errors import counted
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import Snapshot, read_checkpoint
from minicluster.log.control import control_records
from minicluster.log.directory import MetadataFiles
from minicluster.protocol.records import LeaderChangeMessage, VersionedRecord, VotersRecord
from minicluster.values import dataclass

_BatchKey = tuple[int, int, int]
_NO_END = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The snapshot that a log begins from, and the offset and epoch at which it ends."""

    end_offset: int
    epoch: int
    snapshot: Snapshot
    file: str

    @property
    def records(self) -> tuple[VersionedRecord, ...]:
        """The records of the snapshot, without those of its header."""
        return self.snapshot.records


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLog:
    """One controller's log as it lies on disk."""

    node: int
    files: MetadataFiles
    batches: tuple[RecordBatch, ...]
    snapshots: tuple[tuple[int, int, Path], ...]  # (end offset, epoch, file)
    alone: bool  # one segment, given as a file: the log before it cannot be seen
    torn: str | None = None  # the tail that recovery dropped

    @property
    def start(self) -> int:
        """Its first offset."""
        return self.batches[0].base_offset if self.batches else 0

    @property
    def begins_well(self) -> bool:
        """It begins at 0, or a snapshot ends at its first offset or later."""
        return (
            self.alone or self.start == 0 or any(end >= self.start for end, _, _ in self.snapshots)
        )


def committed_log(
    nodes: Sequence[NodeLog],
) -> tuple[tuple[RecordBatch, ...], NodeLog | None, int]:
    """Compare the logs of a run's controllers; one log alone is taken as it is.

    Shapes:  -> the batches that a majority holds, the log that they are taken from, the number of
             records beyond them.
    """
    if len(nodes) <= 1:
        only = nodes[0] if nodes else None
        return (only.batches if only else ()), only, 0
    needed = min(len(_voters(nodes)) // 2 + 1, len(nodes))
    holders = Counter(batch_key(batch) for node in nodes for batch in node.batches)
    starts = sorted(node.start for node in nodes)

    def is_held(batch: RecordBatch) -> bool:
        later = sum(1 for start in starts if start > batch.base_offset)
        return holders[batch_key(batch)] + later >= needed

    prefixes: list[tuple[tuple[RecordBatch, ...], NodeLog]] = []
    for node in nodes:
        length = next(
            (i for i, batch in enumerate(node.batches) if not is_held(batch)), len(node.batches)
        )
        prefixes.append((node.batches[:length], node))
    ends = [prefix[-1].last_offset if prefix else -1 for prefix, _ in prefixes]
    usable = [prefix for prefix, end in zip(prefixes, ends, strict=True) if end == max(ends)]
    best, reference = min(usable, key=lambda prefix: (not prefix[1].begins_well, prefix[1].start))
    certain = {batch_key(batch) for batch in best}
    beyond: dict[_BatchKey, int] = {}
    for node in nodes:
        for batch in node.batches:
            if batch_key(batch) not in certain and batch.base_offset >= reference.start:
                beyond[batch_key(batch)] = batch.count
    return best, reference, sum(beyond.values())


def starting_snapshot(
    reference: NodeLog, nodes: Sequence[NodeLog], committed: tuple[RecordBatch, ...]
) -> Start | None:
    """The earliest snapshot from which the committed log can be read; None if it begins at 0.

    Errors:  LogError, ProtocolError for a snapshot that is damaged.
    """
    if committed and committed[0].base_offset == 0:
        return None
    first = committed[0].base_offset if committed else 0
    end_offset = committed[-1].next_offset if committed else _NO_END
    every = sorted(snapshot for node in nodes for snapshot in node.snapshots)
    usable = [snapshot for snapshot in every if first <= snapshot[0] <= end_offset]
    if not usable:
        return None
    end, epoch, file = usable[0] if committed else usable[-1]
    snapshot = read_checkpoint(file, reference.files.limits)
    return Start(end_offset=end, epoch=epoch, snapshot=snapshot, file=file.name)


def batch_key(batch: RecordBatch) -> _BatchKey:
    """Equal for the same batch on two nodes."""
    return batch.base_offset, batch.leader_epoch, batch.crc


def no_start(path: Path, first: int) -> str:
    """The problem of a log whose first state is not recorded."""
    return f"{path}: the log begins at offset {first}, no snapshot ends in it"


def uncommitted_note(count: int) -> str:
    """The note about records beyond the committed log."""
    return f"never committed: {counted(count, 'record')} at the end of some log"


def _voters(nodes: Sequence[NodeLog]) -> list[int]:
    """The voters that the logs name last, or the nodes themselves."""
    latest: tuple[int, list[int]] = (-1, [])
    for node in nodes:
        for batch in node.batches:
            for control in control_records(batch):
                message = control.message
                if isinstance(message, LeaderChangeMessage | VotersRecord):
                    voters = [voter.voter_id for voter in message.voters]
                    if voters and batch.base_offset > latest[0]:
                        latest = (batch.base_offset, voters)
    return latest[1] or [node.node for node in nodes]
