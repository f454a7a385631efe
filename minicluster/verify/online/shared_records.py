"""The records of a batch as one share of a log needs them."""

from __future__ import annotations

from uuid import UUID

from minicluster.lazy_dataclass import dataclass
from minicluster.log.batch import RecordBatch
from minicluster.log.record_scan import record_values
from minicluster.protocol.records import PartitionChangeRecord, decode_record
from minicluster.verify.evidence.operations import Decoded
from minicluster.verify.online.history import PartitionHistory
from minicluster.verify.online.log_state import LogState
from minicluster.verify.online.share import Share
from minicluster.verify.online.steps.transitions import Change

_CHANGE = bytes((1, 5))  # frame version and type of a PartitionChangeRecord
_VERSION_AT = 2
_KEY = slice(3, 23)  # partition (4 bytes), topic id
_REST = slice(23, None)
_KEPT_MAX = 20_000  # contents of changes that are remembered


@dataclass(frozen=True, slots=True, eq=False)
class PlacedChange:
    """A PartitionChangeRecord of a partition that this share judges."""

    history: PartitionHistory
    change: Change


CHANGES = (PartitionChangeRecord, PlacedChange)
"""The classes of changes of partitions."""

_ELSEWHERE: Decoded = (None, 0)


class SharedRecords:
    """Decodes the batches of a log, all but the changes of partitions of other shares."""

    def __init__(self, share: Share, state: LogState) -> None:
        self._share = share
        self._state = state
        # By the bytes of a key: a partition of this share, None for one of another share.
        self._places: dict[bytes, PartitionHistory | None] = {}
        self._changes: dict[tuple[int, bytes], Change] = {}

    def of(self, batch: RecordBatch) -> list[Decoded]:
        """The records of a batch, in order; none if it is a control batch.

        Errors:  InvalidBatch, ProtocolError for a batch that does not hold metadata records.
        """
        if batch.is_control:
            return []
        places, changes = self._places, self._changes
        records: list[Decoded] = []
        for value in record_values(batch):
            if value[:2] != _CHANGE or len(value) < _REST.start:
                records.append(_decoded(value))
                continue
            key = value[_KEY]
            if key not in places:
                places[key] = self._place(key)
            history = places[key]
            if history is None:
                # The replicas of a first partition count for all of its topic.
                records.append(_ELSEWHERE if any(key[:4]) else _decoded(value))
                continue
            version, rest = value[_VERSION_AT], value[_REST]
            change = changes.get((version, rest))
            if change is None:
                change = self._change(value)
                if len(changes) >= _KEPT_MAX:
                    changes.clear()
                changes[version, rest] = change
            records.append((PlacedChange(history, change), version))
        return records

    def _place(self, key: bytes) -> PartitionHistory | None:
        if not self._share.has(key):
            return None
        part = int.from_bytes(key[:4], "big", signed=True)
        return self._state.partition(UUID(bytes=key[4:]), part)

    def _change(self, value: bytes) -> Change:
        record, _ = _decoded(value)
        assert isinstance(record, PartitionChangeRecord)
        return self._state.changes.of_change(record)


def records_of(batch: RecordBatch, share: Share | None) -> list[Decoded]:
    """The records of a batch, all but the changes of partitions that are in no or another share.

    Errors:  InvalidBatch, ProtocolError for a batch that does not hold metadata records.
    """
    if batch.is_control:
        return []
    return [
        _ELSEWHERE if _is_elsewhere(value, share) else _decoded(value)
        for value in record_values(batch)
    ]


def _is_elsewhere(value: bytes, share: Share | None) -> bool:
    if value[:2] != _CHANGE or len(value) < _REST.start:
        return False
    key = value[_KEY]
    return any(key[:4]) and (share is None or not share.has(key))


def _decoded(value: bytes) -> Decoded:
    versioned = decode_record(value)
    return versioned.record, versioned.version
