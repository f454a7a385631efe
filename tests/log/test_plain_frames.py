"""Metadata records are read from their frames; a frame of another kind is read field by field."""

from __future__ import annotations

import pytest

from minicluster.log.batch import Record, RecordBatch, metadata_batch
from minicluster.log.format.framing import plain_values
from minicluster.protocol.records import NoOpRecord, VersionedRecord, encode_record

NO_OP = VersionedRecord(NoOpRecord(), 0)
VALUE = encode_record(NO_OP)
LONG = 9_000  # offsets of more than two bytes


@pytest.mark.parametrize("count", [1, 64, 65, 8_192, LONG])
def test_records_of_a_metadata_batch_are_read_from_their_frames(count: int) -> None:
    batch = RecordBatch.decode(metadata_batch(7, 1, 1_000, [NO_OP] * count).encoded)
    values = plain_values(batch.unpacked_body(), count)

    assert values == (None if count > 8_192 else [VALUE] * count)
    assert batch.metadata_records == (NO_OP,) * count
    assert [record.offset for record in batch.records] == list(range(7, 7 + count))


@pytest.mark.parametrize(
    "second",
    [
        Record(12, 1_000, None, VALUE),
        Record(11, 1_001, None, VALUE),
        Record(11, 1_000, b"key", VALUE),
        Record(11, 1_000, None, VALUE, (("name", b"value"),)),
    ],
    ids=["a lost offset", "a time of its own", "a key", "a header"],
)
def test_a_record_with_more_than_a_value_is_read_field_by_field(second: Record) -> None:
    records = (Record(10, 1_000, None, VALUE), second)
    batch = RecordBatch.decode(RecordBatch.of(records, leader_epoch=1).encoded)

    assert plain_values(batch.unpacked_body(), 2) is None
    assert batch.metadata_records == (NO_OP, NO_OP)
    assert batch.records == records
