"""Bytes changed by chance, the checksum often mended: a log is read, or refused in one line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from crc32c import crc32c

from minicluster.log.batch import CRC_START
from minicluster.log.dump import dump_json
from minicluster.log.errors import LogCorruption, LogError
from minicluster.log.locating import locate
from minicluster.log.segment import read_segment

KAFKA_LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
FILES = sorted([*KAFKA_LOGS.rglob("*.log"), *KAFKA_LOGS.rglob("*.checkpoint")])
CRC_AT = CRC_START - 4


def damage(path: Path, chance: random.Random) -> bytes:
    """A file's bytes with some of one batch changed, perhaps under a checksum that fits."""
    data = bytearray(path.read_bytes())
    placed = chance.choice(read_segment(path).batches)
    begin, end = placed.position, placed.position + placed.batch.size
    mends = chance.random() < 0.8
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(begin + (CRC_START if mends else 0), end)
        data[at] = chance.choice((0x00, 0x7F, 0x80, 0xFF, data[at] ^ (1 << chance.randrange(8))))
    if mends:
        checksum = crc32c(bytes(data[begin + CRC_START : end]))
        data[begin + CRC_AT : begin + CRC_START] = checksum.to_bytes(4, "big")
    return bytes(data if chance.random() < 0.9 else data[: chance.randrange(len(data))])


@pytest.mark.parametrize("block", range(8))
def test_whatever_happened_to_the_bytes_the_result_is_lines_or_one_line(
    block: int, tmp_path: Path
) -> None:
    read = refused = 0
    for seed in range(block * 50, block * 50 + 50):
        chance = random.Random(seed)
        source = chance.choice(FILES)
        path = tmp_path / source.name
        path.write_bytes(damage(source, chance))
        try:
            for item in dump_json(locate(path)):
                json.dumps(item)
            read += 1
        except LogError as error:
            assert str(path) in str(error), seed
            assert "\n" not in str(error), seed
            refused += 1

    assert read and refused


def test_a_record_that_is_damaged_under_a_good_checksum_is_placed(tmp_path: Path) -> None:
    source = KAFKA_LOGS / "smoke/controller-1/__cluster_metadata-0/00000000000000000000.log"
    placed = read_segment(source).batches[3]
    data = bytearray(source.read_bytes())
    begin, end = placed.position, placed.position + placed.batch.size
    record = bytes(data).index(placed.batch.records[0].value or b"", begin, end)
    data[record] = 0x7F  # the frame version
    data[begin + CRC_AT : begin + CRC_START] = crc32c(
        bytes(data[begin + CRC_START : end])
    ).to_bytes(4, "big")
    path = tmp_path / source.name
    path.write_bytes(data)

    with pytest.raises(LogCorruption) as refused:
        list(dump_json(locate(path)))

    assert (refused.value.position, refused.value.base_offset) == (begin, placed.batch.base_offset)
