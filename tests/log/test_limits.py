"""A small file cannot fill the memory or the day: limits of size, of unpacking, of searching."""

from __future__ import annotations

import gzip
import os
import random
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest
from crc32c import crc32c

from minicluster.files import UnusableFile, check_regular, read_bytes
from minicluster.log.batch import RecordBatch, metadata_batch
from minicluster.log.dump import dump_json
from minicluster.log.errors import LogCorruption, LogError, NotALog, TooLarge
from minicluster.log.format.limits import ReadLimits
from minicluster.log.locating import locate
from minicluster.log.segment import check_contents, read_segment, segment_name
from minicluster.protocol.records import PartitionRecord, TopicRecord, VersionedRecord

ZEROS = bytes(100 << 20)


def _xerial(plain: bytes) -> bytes:
    blocks = []
    for start in range(0, len(plain), 1 << 16):
        block = bytes(cramjam.snappy.compress_raw(plain[start : start + (1 << 16)]))
        blocks.append(len(block).to_bytes(4, "big") + block)
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(blocks)


PACK: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, gzip.compress),
    "snappy": (2, lambda plain: bytes(cramjam.snappy.compress_raw(plain))),
    "xerial": (2, _xerial),
    "lz4": (3, lambda plain: bytes(cramjam.lz4.compress(plain))),
    "zstd": (4, lambda plain: bytes(cramjam.zstd.compress(plain))),
}


def with_body(batch: RecordBatch, body: bytes, codec: int = 0) -> bytes:
    """The bytes of a batch with another body and a checksum that fits."""
    head = bytearray(batch.encoded[:61])
    head[21:23] = codec.to_bytes(2, "big")
    checked = bytes(head[21:]) + body
    head[8:12] = (len(head) - 12 + len(body)).to_bytes(4, "big")
    head[17:21] = crc32c(checked).to_bytes(4, "big")
    return bytes(head) + body


def topics(base_offset: int, count: int = 1) -> RecordBatch:
    """A batch of topic records."""
    records = [
        VersionedRecord(TopicRecord(name=f"topic-{base_offset + i}"), 0) for i in range(count)
    ]
    return metadata_batch(base_offset, 1, 0, records)


def packed(base_offset: int, name: str, count: int = 1) -> bytes:
    """The bytes of a sound compressed batch."""
    batch = topics(base_offset, count)
    codec, pack = PACK[name]
    return with_body(batch, pack(batch.encoded[61:]), codec)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    return tmp_path / segment_name(0)


def read_all(path: Path, **limits: int) -> int:
    """The number of records of a file."""
    content = read_segment(path, limits=ReadLimits(**limits))
    for placed in content.batches:
        check_contents(path, placed)
    return sum(len(placed.batch.metadata_records) for placed in content.batches)


@pytest.mark.parametrize("name", PACK)
def test_every_codec_unpacks_what_is_sound(name: str, segment: Path) -> None:
    segment.write_bytes(packed(0, name, 1_000) + packed(1_000, name, 1_000))
    assert read_all(segment) == 2_000


@pytest.mark.parametrize("name", PACK)
def test_a_batch_that_unpacks_without_end_is_refused_at_the_limit(name: str, segment: Path) -> None:
    codec, pack = PACK[name]
    bomb = with_body(topics(0), pack(ZEROS), codec)
    segment.write_bytes(bomb)
    with pytest.raises(LogCorruption, match="unpack to more than 20971520 bytes"):
        read_all(segment, batch_bytes=len(bomb))


@pytest.mark.parametrize("name", PACK)
def test_the_batches_of_a_file_share_one_budget(name: str, segment: Path) -> None:
    segment.write_bytes(b"".join(packed(100 * i, name, 100) for i in range(40)))
    size = sum(len(topics(100 * i, 100).encoded) - 61 for i in range(40))
    assert read_all(segment, decompressed_bytes=size) == 4_000
    with pytest.raises(LogCorruption, match="the compressed batches of this file") as refused:
        read_all(segment, decompressed_bytes=size // 2)
    assert refused.value.base_offset and refused.value.base_offset > 1_000


def test_a_batch_beyond_kafkas_own_limit_is_refused_before_it_is_decoded(segment: Path) -> None:
    isr = tuple(range(2_200_000))
    batch = metadata_batch(0, 1, 0, [VersionedRecord(PartitionRecord(isr=isr), 0)])
    segment.write_bytes(batch.encoded)
    with pytest.raises(TooLarge, match="at most 8388608 are read"):
        read_segment(segment)
    assert read_all(segment, batch_bytes=16 << 20) == 1


def test_a_batch_that_is_full_by_kafkas_rule_is_read(segment: Path) -> None:
    names = ["x" * 8_000] * 1_047  # with the overhead of records it is a little above 8 MiB
    records = [VersionedRecord(TopicRecord(name=name), 0) for name in names]
    segment.write_bytes(metadata_batch(0, 1, 0, records).encoded)
    assert read_all(segment) == len(names)


@pytest.mark.parametrize("step", [1, 3, 61])
def test_the_search_behind_damage_takes_time_in_proportion_to_the_file(
    step: int, segment: Path
) -> None:
    """Headers wherever one looks, each with a length that reaches to the end of the file."""

    def seconds(size: int) -> float:
        head = bytearray(topics(0).encoded[:61])
        head[61 - 4 :] = (1).to_bytes(4, "big")
        data = bytearray(topics(0).encoded + bytes(size))
        for at in range(200, size - 61, step if step >= 61 else 61 + step):
            length = len(data) - at - 12
            data[at : at + 61] = head
            data[at + 8 : at + 12] = length.to_bytes(4, "big")
        segment.write_bytes(data)
        began = time.process_time()
        with pytest.raises(LogCorruption):
            read_segment(segment)
        return time.process_time() - began

    assert seconds(2_300_000) < 5


def test_a_torn_tail_of_random_bytes_is_still_a_torn_tail(segment: Path) -> None:
    chance = random.Random(7)
    for _ in range(20):
        torn = chance.randbytes(chance.randrange(1, 100_000))
        segment.write_bytes(topics(0, 5).encoded + bytes(8) + torn)
        content = read_segment(segment)
        assert content.torn is not None and content.torn.next_offset == 5


def _hostile(chance: random.Random) -> bytes:
    """A file of sound and odd batches: wrong codecs, random bodies, torn ones."""
    data = b""
    for offset in range(0, 100 * chance.randrange(1, 5), 100):
        batch = topics(offset, chance.randrange(1, 100))
        body = batch.encoded[61:]
        codec, pack = chance.choice([*PACK.values(), (0, bytes)])
        match chance.randrange(6):
            case 0:
                body = chance.randbytes(chance.randrange(2_000))
            case 1:
                body = pack(bytes(chance.randrange(1 << 22)))
            case 2:
                packed_body = bytearray(pack(body))
                packed_body[chance.randrange(len(packed_body))] ^= 1 << chance.randrange(8)
                body = bytes(packed_body)
            case 3:
                body = pack(body)[: chance.randrange(len(body))]
            case _:
                body = pack(body)
        data += with_body(batch, body, codec if chance.random() < 0.9 else chance.randrange(8))
    return data[: chance.randrange(len(data))] if chance.random() < 0.3 else data


@pytest.mark.parametrize("seeds", [150, pytest.param(1_500, marks=pytest.mark.slow)])
def test_whatever_is_packed_how_the_file_is_read_or_refused_in_one_line(
    seeds: int, segment: Path
) -> None:
    read = refused = 0
    for seed in range(seeds):
        segment.write_bytes(_hostile(random.Random(seed)))
        try:
            read_all(segment, decompressed_bytes=1 << 20)
            read += 1
        except LogError as error:
            assert str(segment) in str(error) and "\n" not in str(error), seed
            refused += 1
    assert read > seeds // 20 and refused > seeds // 20


def _special(kind: str, path: Path) -> Path:
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            socket.socket(socket.AF_UNIX).bind(str(path))
        case "device":
            path.symlink_to("/dev/zero")
        case "link to a pipe":
            os.mkfifo(path.with_name("pipe"))
            path.symlink_to(path.with_name("pipe"))
        case "holes":
            with path.open("wb") as file:
                file.truncate(1 << 30)
        case "giant":
            with path.open("wb") as file:
                file.truncate(1 << 40)
    return path


SPECIAL = ("pipe", "socket", "device", "link to a pipe", "holes", "giant")


@pytest.mark.parametrize("kind", SPECIAL)
def test_special_files_are_refused_before_a_byte_is_read(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    path = _special(kind, Path(segment_name(0)))
    with pytest.raises(UnusableFile) as refused:
        read_bytes(path)
    assert "\n" not in str(refused.value) and str(path) in str(refused.value)
    with pytest.raises(LogError):
        read_segment(path)
    with pytest.raises(NotALog):
        list(dump_json(locate(path)))
    folder = tmp_path / "controller-1" / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    path.rename(folder / path.name)
    with pytest.raises(NotALog):
        locate(tmp_path / "controller-1")


def test_a_regular_file_is_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    check_regular(tmp_path / "link")
    assert read_bytes(tmp_path / "link") == b"abc"
    with pytest.raises(UnusableFile, match="has 3 bytes; at most 2"):
        read_bytes(tmp_path / "link", max_bytes=2)
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path)
