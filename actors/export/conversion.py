"""Batches as Apache Kafka is to find them: on the time of day, with addresses that exist.

A simulated cluster begins at time 0. Kafka would find its records to be older than any retention,
roll their segments and delete them, so the end of a run becomes the moment of its export. Offsets
and epochs stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.log.batch import (
    CODEC_MASK,
    HEADER_BYTES,
    NO_TIMESTAMP,
    Record,
    RecordBatch,
    metadata_batch,
)
from minicluster.log.control import control_batch, control_records
from minicluster.log.records import packed
from minicluster.protocol.coordinator_records.described import RecordTypes
from minicluster.protocol.coordinator_records.framing import (
    decode_coordinator_record,
    encode_coordinator_record,
)
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import (
    RegisterBrokerRecord,
    RegisterControllerRecord,
    SnapshotHeaderRecord,
    VersionedRecord,
    VotersRecord,
)
from minicluster.values import Value, replace

Address = tuple[str, int]

_TIMES_OF_COORDINATORS = (
    "assignment_timestamp",
    "commit_timestamp",
    "current_state_timestamp",
    "expire_timestamp",
    "timestamp",
    "transaction_last_update_timestamp_ms",
    "transaction_start_timestamp_ms",
)


class TimeShift(Value, kw_only=True):
    """The way from the clocks of a run to the time of day.

    Shapes:  ended_ms: the end of the run by the cluster's clock; epoch_ms: the time of day at its
             zero, which producers' records have where clients came, else 0; now_ms: the time of day
             that the end is to have.
    """

    ended_ms: int
    epoch_ms: int
    now_ms: int

    def of(self, timestamp: int) -> int:
        """The milliseconds to add to a timestamp; none to one that a client chose by itself."""
        if timestamp == NO_TIMESTAMP:
            return 0
        if timestamp <= self.ended_ms:
            return self.now_ms - self.ended_ms
        return self.now_ms - self.ended_ms - self.epoch_ms if self.epoch_ms else 0

    def moved(self, timestamp: int) -> int:
        """A timestamp of the run by the time of day."""
        return timestamp + self.of(timestamp)


def shifted(batch: RecordBatch, shift: TimeShift) -> RecordBatch:
    """The same records at another time, whatever their compression."""
    by_ms = shift.of(batch.max_timestamp)
    return _later(batch, by_ms, body=batch.encoded[HEADER_BYTES:]) if by_ms else batch


def metadata_converted(
    batch: RecordBatch, shift: TimeShift, addresses: Mapping[int, Address]
) -> RecordBatch:
    """A batch of the metadata log or of a snapshot, on the time of day and with real addresses."""
    time_ms = shift.moved(batch.max_timestamp)
    if batch.is_control:
        messages = [control.message for control in control_records(batch)]
        if not any(
            isinstance(message, VotersRecord | SnapshotHeaderRecord) for message in messages
        ):
            return shifted(batch, shift)
        converted = [_control(message, shift, addresses) for message in messages]
        return control_batch(batch.base_offset, batch.leader_epoch, time_ms, converted)
    records = batch.metadata_records
    placed = [_placed(record, addresses) for record in records]
    if all(new is old for new, old in zip(placed, records, strict=True)):
        return shifted(batch, shift)
    return metadata_batch(batch.base_offset, batch.leader_epoch, time_ms, placed)


def _control(message: Any, shift: TimeShift, addresses: Mapping[int, Address]) -> Any:
    match message:
        case SnapshotHeaderRecord():
            time_ms = shift.moved(message.last_contained_log_timestamp)
            return replace(message, last_contained_log_timestamp=time_ms)
        case VotersRecord():
            voters = tuple(
                replace(voter, endpoints=_endpoints(voter.endpoints, voter.voter_id, addresses))
                for voter in message.voters
            )
            return replace(message, voters=voters)
        case _:
            return message


def _placed(versioned: VersionedRecord, addresses: Mapping[int, Address]) -> VersionedRecord:
    """A registration at the address of its node; any other record as it is."""
    record: Any = versioned.record
    match record:
        case RegisterBrokerRecord(broker_id=node_id) if node_id in addresses:
            points = _endpoints(record.end_points, node_id, addresses)
        case RegisterControllerRecord(controller_id=node_id) if node_id in addresses:
            points = _endpoints(record.end_points, node_id, addresses)
        case _:
            return versioned
    return VersionedRecord(replace(record, end_points=points), versioned.version)


def _endpoints(
    endpoints: Sequence[Any], node_id: int, addresses: Mapping[int, Address]
) -> tuple[Any, ...]:
    if node_id not in addresses:
        return tuple(endpoints)
    host, port = addresses[node_id]
    return tuple(replace(endpoint, host=host, port=port) for endpoint in endpoints)


def coordinator_converted(batch: RecordBatch, shift: TimeShift, types: RecordTypes) -> RecordBatch:
    """A batch of an internal topic: its values name times as well, by which a group expires."""
    by_ms = shift.of(batch.max_timestamp)
    if batch.is_control:
        return shifted(batch, shift)
    records = tuple(
        Record(
            record.offset,
            record.timestamp + by_ms if record.timestamp != NO_TIMESTAMP else NO_TIMESTAMP,
            record.key,
            _value(record, shift, types),
            record.headers,
        )
        for record in batch.records
    )
    return packed(_later(batch, by_ms, records=records), batch.codec)


def _value(record: Record, shift: TimeShift, types: RecordTypes) -> bytes | None:
    try:
        read = decode_coordinator_record(types, record.key, record.value)
    except ProtocolError:  # no client reads it either
        return record.value
    if read is None or read.value is None:
        return record.value
    value: Any = read.value
    times = {
        name: shift.moved(offset)
        for name in _TIMES_OF_COORDINATORS
        if isinstance(offset := getattr(value, name, None), int) and offset > 0
    }
    if not times:
        return record.value
    return encode_coordinator_record(replace(read, value=replace(value, **times)))[1]


def _later(
    batch: RecordBatch,
    by_ms: int,
    *,
    body: bytes | None = None,
    records: tuple[Record, ...] | None = None,
) -> RecordBatch:
    """A batch whose header is some milliseconds later, with a body or with records."""
    base = batch.base_timestamp
    return RecordBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        base_timestamp=base if base == NO_TIMESTAMP else base + by_ms,
        max_timestamp=batch.max_timestamp + by_ms,
        count=batch.count,
        attributes=batch.attributes if records is None else batch.attributes & ~CODEC_MASK,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        records=records,
        body=body,
    )
