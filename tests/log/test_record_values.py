"""What a batch's records hold is the same with the records and without them."""

from __future__ import annotations

import random

import pytest

from minicluster.log.batch import HEADER_BYTES, Record, RecordBatch
from minicluster.log.errors import InvalidBatch

PLAIN = [Record(5, 1_000, None, b"one"), Record(6, 1_000, None, b"x" * 300)]


def values_of_records(batch: RecordBatch) -> list[bytes]:
    return [record.value or b"" for record in batch.records]


@pytest.mark.parametrize(
    "records",
    [
        PLAIN,
        [Record(n, 1_000, None, b"v" * (n % 90)) for n in range(400)],
        [*PLAIN, Record(7, 1_000, b"key", b"value")],
        [*PLAIN, Record(7, 1_000, None, None)],
        [*PLAIN, Record(7, 1_000, None, b"value", (("name", b"h"),))],
        [*PLAIN, Record(7, 9_000_000, None, b"later")],
        [*PLAIN, Record(20_000, 1_000, None, b"far away")],
        [*PLAIN, Record(7, 1_000, None, b"y" * 20_000)],
        [*PLAIN, Record(7, 1_000, b"key" * 9_000, b"value")],
        [*PLAIN, Record(7, 1_000 + (1 << 60), None, b"centuries later")],
    ],
)
def test_contents_are_those_of_the_records(records: list[Record]) -> None:
    batch = RecordBatch.of(records, leader_epoch=1)
    read = RecordBatch.decode(batch.encoded)
    contents = [(r.offset, r.timestamp, r.key, r.value) for r in records]

    assert list(read.contents()) == list(batch.contents()) == contents
    assert read.values() == batch.values() == [record.value or b"" for record in records]
    assert read.records == tuple(records)


def test_the_time_of_an_append_is_that_of_each_record() -> None:
    batch = RecordBatch.of(PLAIN, leader_epoch=1)
    appended = batch.with_timestamps(log_append_time=True, max_timestamp=2_000)

    assert [timestamp for _, timestamp, _, _ in appended.contents()] == [2_000, 2_000]


def test_damaged_records_are_refused_as_the_records_themselves_are() -> None:
    """Bytes behind the checksum: as a broken writer leaves them."""
    short = [Record(n, 1_000, None, b"some") for n in range(5, 9)]
    encoded = RecordBatch.of([*short, Record(9, 1_000, b"k", b"v")], leader_epoch=1).encoded
    chance = random.Random(7)
    refused = 0
    for _ in range(300):
        damaged = bytearray(encoded)
        place = chance.randrange(HEADER_BYTES, len(encoded))
        damaged[place] = chance.randrange(256)
        batch = RecordBatch.decode(bytes(damaged), lenient=True)
        try:
            expected = values_of_records(batch)
        except InvalidBatch as error:
            refused += 1
            with pytest.raises(InvalidBatch) as raised:
                RecordBatch.decode(bytes(damaged), lenient=True).values()
            assert str(raised.value) == str(error)
        else:
            assert RecordBatch.decode(bytes(damaged), lenient=True).values() == expected
    assert refused > 100
