"""Values are read from the frames of their records; an odd frame is read field by field."""

from __future__ import annotations

import pytest

from minicluster.log.batch import Record, RecordBatch, metadata_batch
from minicluster.log.format.framing import framed_values
from minicluster.protocol.records import NoOpRecord, VersionedRecord, encode_record

NO_OP = VersionedRecord(NoOpRecord(), 0)
VALUE = encode_record(NO_OP)


@pytest.mark.parametrize("count", [1, 64, 65, 8_192, 9_000])
def test_records_of_a_metadata_batch_are_read_from_their_frames(count: int) -> None:
    batch = RecordBatch.decode(metadata_batch(7, 1, 1_000, [NO_OP] * count).encoded)

    assert framed_values(batch.unpacked_body(), count) == [VALUE] * count
    assert batch.metadata_records == (NO_OP,) * count
    assert [record.offset for record in batch.records] == list(range(7, 7 + count))


@pytest.mark.parametrize(
    ("second", "is_framed"),
    [
        (Record(12, 1_000, None, VALUE), True),
        (Record(11, 90_000_000, None, VALUE), True),
        (Record(11, 1_000, b"key" * 90, VALUE), True),
        (Record(11, 1_000, b"key" * 9_000, VALUE), False),
        (Record(11, 1_000, None, VALUE, (("name", b"value"),)), False),
        (Record(30_000, 1_000 + (1 << 60), None, VALUE), False),
    ],
    ids=["a lost offset", "a later time", "a key", "a long key", "a header", "a far time"],
)
def test_a_record_with_more_than_a_value_has_the_same_value(
    second: Record, is_framed: bool
) -> None:
    records = (Record(10, 1_000, None, VALUE), second)
    batch = RecordBatch.decode(RecordBatch.of(records, leader_epoch=1).encoded)

    assert framed_values(batch.unpacked_body(), 2) == ([VALUE, VALUE] if is_framed else None)
    assert batch.metadata_records == (NO_OP, NO_OP)
    assert batch.records == records
