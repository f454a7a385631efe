"""Committed offsets, and those of transactions that no marker has ended yet.

    OffsetCommit ---------------------------------------> committed
    TxnOffsetCommit --> pending, by producer id
                           commit marker ---------------> committed, unless there is a later one
                           abort marker ----------------> forgotten

The marker is a control batch in the same partition of ``__consumer_offsets``, so a coordinator that
loads it gets the same committed and pending offsets from its records and markers.

"Later" is the offset of the record. Otherwise, an OffsetCommit between a TxnOffsetCommit and its
marker would be overwritten, and the group would continue from an older position.

A pending offset can still become the committed one. Hence, while it is pending:

* an OffsetFetch that requires stable offsets gets UNSTABLE_OFFSET_COMMIT (KIP-447). Otherwise, a
  consumer that takes a partition over would process the records of that transaction again;
* neither the offset nor its group expires;
* a deletion (a tombstone) removes it as well as the committed one.

Source:  OffsetMetadataManager, OffsetAndMetadata.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from minicluster.coordinator.runtime.timeline import Timeline, TimelineDict
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord
from minicluster.protocol.coordinator_records.groups import OffsetCommitKey, OffsetCommitValue
from minicluster.protocol.uuids import ZERO_UUID

OffsetKey = tuple[str, str, int]
"""Group, topic and partition."""

_WITH_EXPIRY = 1
_WITH_TOPIC_ID = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetAndMetadata:
    """One committed offset.

    Units:   *_ms milliseconds since the epoch; expires_ms is None where the broker's retention
             decides; record_offset is that of the record in ``__consumer_offsets``.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int | None = None
    topic_id: uuid.UUID = ZERO_UUID
    record_offset: int = -1


class Offsets:
    """All offsets of a shard."""

    def __init__(self, timeline: Timeline) -> None:
        self.committed: TimelineDict[OffsetKey, OffsetAndMetadata] = timeline.new_dict()
        self._pending: dict[int, dict[OffsetKey, OffsetAndMetadata]] = {}

    def of_group(self, group_id: str) -> dict[OffsetKey, OffsetAndMetadata]:
        """The newest offsets of a group."""
        of_group = ((key, self.committed[key]) for key in self.committed if key[0] == group_id)
        return dict(of_group)

    def everything(self) -> Iterator[tuple[OffsetKey, OffsetAndMetadata]]:
        """The offsets of all groups, those of open transactions included."""
        yield from ((key, self.committed[key]) for key in self.committed)
        for offsets in self._pending.values():
            yield from offsets.items()

    def has(self, key: OffsetKey) -> bool:
        """An offset is committed, or would be with its transaction."""
        return key in self.committed or self.is_pending(key)

    def is_pending(self, key: OffsetKey) -> bool:
        """An open transaction has an offset for this partition."""
        return any(key in offsets for offsets in self._pending.values())

    def pending_of_group(self, group_id: str) -> Iterator[OffsetKey]:
        """The partitions with offsets in open transactions."""
        pending = (key for offsets in self._pending.values() for key in offsets)
        return (key for key in dict.fromkeys(pending) if key[0] == group_id)

    def replay(self, key: OffsetKey, value: OffsetAndMetadata | None, producer_id: int) -> None:
        """Apply a record; the offset of a transaction counts once that is committed."""
        if value is None:
            self.committed.pop(key)
            for offsets in self._pending.values():
                offsets.pop(key, None)
        elif producer_id < 0:
            self.committed[key] = value
        else:
            self._pending.setdefault(producer_id, {})[key] = value

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a marker; an offset that was committed later without transaction stays."""
        for key, value in self._pending.pop(producer_id, {}).items():
            before = self.committed.get(key)
            if committed and (before is None or value.record_offset > before.record_offset):
                self.committed[key] = value


def offset_record(key: OffsetKey, value: OffsetAndMetadata | None) -> CoordinatorRecord:
    """The record of a committed offset; None: its tombstone.

    Source:  GroupCoordinatorRecordHelpers.newOffsetCommitRecord.
    """
    group, topic, partition = key
    record_key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    if value is None:
        return CoordinatorRecord(record_key)
    record = OffsetCommitValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.committed_ms,
        expire_timestamp=-1 if value.expires_ms is None else value.expires_ms,
        topic_id=value.topic_id,
    )
    version = _WITH_TOPIC_ID if value.expires_ms is None else _WITH_EXPIRY
    return CoordinatorRecord(record_key, record, version)


def offset_of(value: OffsetCommitValue, record_offset: int) -> OffsetAndMetadata:
    """The offset that a record holds."""
    return OffsetAndMetadata(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        committed_ms=value.commit_timestamp,
        expires_ms=None if value.expire_timestamp < 0 else value.expire_timestamp,
        topic_id=value.topic_id,
        record_offset=record_offset,
    )
