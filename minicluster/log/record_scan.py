"""One pass over the records of a batch, without making the records.

A broker checks every record that a producer sends. Most batches are sound, so the pass keeps only
the facts that decide whether a closer look is needed. The reader of a long metadata log needs the
values alone.

Source:  DefaultRecord.readFrom, DefaultRecordBatch.RecordIterator.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicluster.log.batch import Record, RecordBatch
from minicluster.log.errors import InvalidBatch
from minicluster.log.format.framing import framed_values, read_varint


@dataclass(frozen=True, slots=True)
class RecordScan:
    """The facts about the records of a batch.

    Units:   timestamps in milliseconds; of the records, whatever the header has.
    Shapes:  are_consecutive: their offsets ascend by one from the base offset.
    """

    lowest_timestamp: int
    highest_timestamp: int
    all_have_keys: bool
    are_consecutive: bool


def scan(batch: RecordBatch) -> RecordScan:
    """Look through the records of a batch with at least one record.

    Errors:  InvalidBatch where the bytes do not hold the records that the header counts;
             UndecodableBatch where they cannot be unpacked.
    """
    records = batch.records_in_memory
    if records is not None:
        return _of_records(batch.base_offset, records)
    body = batch.unpacked_body()
    low, high, keys, consecutive = _scan_body(body, batch.count)
    if batch.is_log_append_time:
        return RecordScan(batch.max_timestamp, batch.max_timestamp, keys, consecutive)
    base = batch.base_timestamp
    return RecordScan(base + low, base + high, keys, consecutive)


def record_values(batch: RecordBatch) -> list[bytes]:
    """The values of all records, empty where a record has none.

    Errors:  InvalidBatch, as for the records themselves.
    """
    if batch.records_in_memory is None:
        values = framed_values(batch.unpacked_body(), batch.count)
        if values is not None:
            return values
    return [record.value or b"" for record in batch.records]


def _of_records(base_offset: int, records: tuple[Record, ...]) -> RecordScan:
    timestamps = [record.timestamp for record in records]
    return RecordScan(
        min(timestamps),
        max(timestamps),
        all(record.key is not None for record in records),
        all(record.offset == base_offset + index for index, record in enumerate(records)),
    )


def _scan_body(body: bytes, count: int) -> tuple[int, int, bool, bool]:
    """The lowest and highest timestamp delta, all have keys, the offset deltas are 0, 1, 2, …

    Varints of one and two bytes are read in place: this loop is what a broker spends its time on.
    """
    low = high = 0
    all_have_keys = are_consecutive = True
    position, end_of_body = 0, len(body)
    try:
        for index in range(count):
            length = body[position]
            position += 1
            if length > 127:
                if (second := body[position]) < 128:
                    length, position = length - 128 + (second << 7), position + 1
                else:
                    length, position = _more(body, position, length)
            length = (length >> 1) ^ -(length & 1)
            end = position + length
            if length < 0 or end > end_of_body:
                raise InvalidBatch(f"a record of {length} bytes does not fit into its batch")
            timestamp = body[position + 1]
            position += 2
            if timestamp > 127:
                timestamp, position = _more(body, position, timestamp)
            timestamp = (timestamp >> 1) ^ -(timestamp & 1)
            if index == 0:
                low = high = timestamp
            elif timestamp < low:
                low = timestamp
            elif timestamp > high:
                high = timestamp
            offset = body[position]
            position += 1
            if offset > 127:
                if (second := body[position]) < 128:
                    offset, position = offset - 128 + (second << 7), position + 1
                else:
                    offset, position = _more(body, position, offset)
            if offset != index << 1:
                are_consecutive = False
            key_bytes = body[position]
            position += 1
            if key_bytes > 127:
                key_bytes, position = _more(body, position, key_bytes)
            if key_bytes & 1:
                all_have_keys = False
            else:
                position += key_bytes >> 1
            value_bytes = body[position]
            position += 1
            if value_bytes > 127:
                if (second := body[position]) < 128:
                    value_bytes, position = value_bytes - 128 + (second << 7), position + 1
                else:
                    value_bytes, position = _more(body, position, value_bytes)
            if not value_bytes & 1:
                position += value_bytes >> 1
            position = position + 1 if body[position] == 0 else _skip_headers(body, position, end)
            if position != end:
                raise InvalidBatch(f"a record is not as long as its prefix, {length} bytes")
    except IndexError:
        raise InvalidBatch("the batch ends inside a record") from None
    if position != end_of_body:
        raise InvalidBatch(f"{end_of_body - position} bytes follow the batch's last record")
    return low, high, all_have_keys, are_consecutive


def _more(body: bytes, position: int, first: int) -> tuple[int, int]:
    """The number before its zigzag, of a varint with more than this first byte."""
    if (second := body[position]) < 128:
        return first - 128 + (second << 7), position + 1
    value, position = read_varint(body, position - 1)
    return (value << 1) ^ (value >> 63), position


def _skip_headers(body: bytes, position: int, end: int) -> int:
    count, position = read_varint(body, position)
    if not 0 <= count <= end - position:
        raise InvalidBatch(f"{count} headers do not fit into a record")
    for _ in range(count):
        name_bytes, position = read_varint(body, position)
        if name_bytes < 0:
            raise InvalidBatch("a header has no name")
        value_bytes, position = read_varint(body, position + name_bytes)
        position += max(0, value_bytes)
    return position
