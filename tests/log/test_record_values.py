"""The values of a batch alone: the same as those of its records, whatever these look like."""

from __future__ import annotations

import random

import pytest

from minicluster.log.batch import HEADER_BYTES, Record, RecordBatch
from minicluster.log.errors import InvalidBatch
from minicluster.log.record_scan import record_values

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
    ],
)
def test_values_are_those_of_the_records(records: list[Record]) -> None:
    batch = RecordBatch.of(records, leader_epoch=1)
    read = RecordBatch.decode(batch.encoded)

    assert record_values(batch) == record_values(read) == values_of_records(read)


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
                record_values(RecordBatch.decode(bytes(damaged), lenient=True))
            assert str(raised.value) == str(error)
        else:
            assert record_values(RecordBatch.decode(bytes(damaged), lenient=True)) == expected
    assert refused > 100
