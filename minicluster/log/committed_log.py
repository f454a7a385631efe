"""The committed part of controllers' logs: the batches that a majority of the voters holds.

Logs are compared by the headers of their batches, so nothing that is long need be held for it.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby, starmap
from operator import itemgetter
from pathlib import Path

from minicluster.errors import counted
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import Snapshot
from minicluster.log.control import control_records
from minicluster.log.directory import MetadataFiles
from minicluster.protocol.records import LeaderChangeMessage, VersionedRecord, VotersRecord
from minicluster.values import Value

_NO_END = 2**62
_HEAD = struct.Struct(">qqiIi")

SnapshotFile = tuple[int, int, Path]
"""End offset, epoch and file of a snapshot."""
Voters = tuple[int, tuple[int, ...]]
"""The offset of the record that names voters last, and their ids."""
NO_VOTERS: Voters = (-1, ())


class Head(Value):
    """A batch by its header; a ``RecordBatch`` has the same fields."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    count: int


Header = Head | RecordBatch


def pack_head(batch: RecordBatch) -> bytes:
    """The header of a batch in 28 bytes."""
    return _HEAD.pack(
        batch.base_offset, batch.last_offset, batch.leader_epoch, batch.crc, batch.count
    )


def unpack_heads(content: bytes) -> Iterator[Head]:
    """The headers that ``pack_head`` has packed, one behind the other."""
    return starmap(Head, _HEAD.iter_unpack(content))


class Start(Value, kw_only=True):
    """The snapshot that a log begins from, and the offset and epoch at which it ends."""

    end_offset: int
    epoch: int
    snapshot: Snapshot
    file: str

    @property
    def records(self) -> tuple[VersionedRecord, ...]:
        """The records of the snapshot, without those of its header."""
        return self.snapshot.records


class NodeLog(Value, kw_only=True):
    """One controller's log as it lies on disk.

    Shapes:  batches: all of them, where the log is held. start: its first offset, 0 without a
             batch. alone: one segment, given as a file: the log before it cannot be seen. torn: the
             tail that recovery dropped.
    """

    node: int
    files: MetadataFiles
    batches: tuple[RecordBatch, ...] = ()
    start: int
    has_batches: bool
    voters: Voters
    snapshots: tuple[SnapshotFile, ...]
    alone: bool
    torn: str | None = None

    @property
    def begins_well(self) -> bool:
        """It begins at 0, or a snapshot ends at its first offset or later."""
        return (
            self.alone or self.start == 0 or any(end >= self.start for end, _, _ in self.snapshots)
        )


class Committed(Value, kw_only=True):
    """The committed log: the first batches of one controller's.

    Shapes:  log: whose; None where there is none. place: of that log among those compared.
    Units:   batches, records: how many; end: exclusive. beyond: records that are not in it.
    """

    log: NodeLog | None
    place: int = -1
    batches: int = 0
    records: int = 0
    end: int = 0
    beyond: int = 0

    @property
    def first(self) -> int:
        """Its first offset; 0 where it is empty."""
        return self.log.start if self.log is not None and self.batches else 0


class _Prefix:
    """How far a log is committed, and how many records of other logs that leaves out."""

    def __init__(self, log: NodeLog) -> None:
        self.log = log
        self.is_held = True
        self.batches = self.records = self.end = self.beyond = 0

    def take(self, head: Header) -> None:
        """The next batch is committed."""
        self.batches += 1
        self.records += head.count
        self.end = head.last_offset + 1


def committed_log(logs: Sequence[NodeLog], heads: Sequence[Iterable[Header]]) -> Committed:
    """Compare the logs of a run's controllers; one log alone is taken as it is.

    Shapes:  heads: of the batches of each log.
    """
    prefixes = [_Prefix(log) for log in logs]
    if len(logs) == 1:
        for head in heads[0]:
            prefixes[0].take(head)
    elif logs:
        _compare(prefixes, heads)
    end = max((prefix.end for prefix in prefixes), default=0)
    usable = [place for place, prefix in enumerate(prefixes) if prefix.end == end]
    if not usable:
        return Committed(log=None)
    place = min(usable, key=lambda place: (not logs[place].begins_well, logs[place].start))
    best = prefixes[place]
    return Committed(
        log=best.log,
        place=place,
        batches=best.batches,
        records=best.records,
        end=best.end,
        beyond=best.beyond,
    )


def _compare(prefixes: Sequence[_Prefix], heads: Sequence[Iterable[Header]]) -> None:
    """Walk the logs side by side, an offset at a time.

    A log that begins later has had every batch before, so it counts as a holder of each.
    """
    needed = min(len(_voters(prefixes)) // 2 + 1, len(prefixes))
    every = merge(*(_placed(place, log) for place, log in enumerate(heads)), key=itemgetter(0))
    for offset, group in groupby(every, key=itemgetter(0)):
        present = {place: head for _, place, head in group}
        holders = Counter(map(batch_key, present.values()))
        later = sum(prefix.log.start > offset for prefix in prefixes)
        sizes = {batch_key(head): head.count for head in present.values()}
        for place, prefix in enumerate(prefixes):
            head = present.get(place)
            own = None if head is None else batch_key(head)
            if head is not None and own is not None and prefix.is_held:
                prefix.is_held = holders[own] + later >= needed
                if prefix.is_held:
                    prefix.take(head)
            if prefix.log.start <= offset:
                kept = own if prefix.is_held else None
                prefix.beyond += sum(count for key, count in sizes.items() if key != kept)


def _placed(place: int, heads: Iterable[Header]) -> Iterator[tuple[int, int, Header]]:
    return ((head.base_offset, place, head) for head in heads)


def _voters(prefixes: Sequence[_Prefix]) -> Sequence[int]:
    """The voters that the logs name last, or the nodes themselves."""
    _, named = max((prefix.log.voters for prefix in prefixes), key=itemgetter(0))
    return named or [prefix.log.node for prefix in prefixes]


def voters_in(batch: RecordBatch) -> Voters:
    """The voters that a batch names.

    Errors:  ProtocolError.
    """
    for control in control_records(batch):
        message = control.message
        if isinstance(message, LeaderChangeMessage | VotersRecord) and message.voters:
            return batch.base_offset, tuple(voter.voter_id for voter in message.voters)
    return NO_VOTERS


def starting_snapshot(logs: Sequence[NodeLog], committed: Committed) -> SnapshotFile | None:
    """The earliest snapshot from which the committed log can be read; None if it begins at 0."""
    first, end = committed.first, committed.end if committed.batches else _NO_END
    if committed.batches and first == 0:
        return None
    every = sorted(snapshot for log in logs for snapshot in log.snapshots)
    usable = [snapshot for snapshot in every if first <= snapshot[0] <= end]
    if not usable:
        return None
    return usable[0] if committed.batches else usable[-1]


def batch_key(batch: Header) -> tuple[int, int, int]:
    """Equal for the same batch on two nodes."""
    return batch.base_offset, batch.leader_epoch, batch.crc


def no_start(path: Path, first: int) -> str:
    """The problem of a log whose first state is not recorded."""
    return f"{path}: the log begins at offset {first}, no snapshot ends in it"


def uncommitted_note(count: int) -> str:
    """The note about records beyond the committed log."""
    return f"never committed: {counted(count, 'record')} at the end of some log"
