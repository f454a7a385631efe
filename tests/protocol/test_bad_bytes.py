"""Bytes that are no message give ProtocolError, at once and in little memory."""

from __future__ import annotations

import random
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicluster.protocol import Message, ProtocolError, decode, encode
from minicluster.protocol.messages import FetchResponse, MetadataResponse
from minicluster.protocol.records import PartitionRecord, decode_control, decode_record
from tests.protocol.values import class_name, every_class
from tests.wire.compare import find_class, read_lines

DATA = Path(__file__).parents[1] / "data" / "wire"
FILES = ("kafka-3.9.2.jsonl.gz", "kafka-4.3.0.jsonl.gz")
HUGE = (b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\xff\xff", b"\xfe\xff\x7f")


def _samples(name: str) -> list[tuple[type[Message], int, bytes]]:
    found = []
    for line in read_lines(DATA / name):
        cls = find_class(line["name"], line["kind"])
        assert cls is not None
        found.append((cls, line["version"], bytes.fromhex(line["bytes"])))
    return found


def _decode(cls: type[Message], data: bytes, version: int) -> bool:
    """The bytes decode; any error but ProtocolError fails the test."""
    try:
        decode(cls, data, version)
    except ProtocolError as error:
        assert error.offset is None or 0 <= error.offset <= len(data)
        return False
    return True


@pytest.mark.parametrize("name", FILES)
def test_every_prefix_of_a_message_is_refused(name: str) -> None:
    tried = 0
    for cls, version, data in _samples(name):
        cuts = range(len(data)) if len(data) < 200 else range(0, len(data), 7)
        for end in cuts:
            assert not _decode(cls, data[:end], version), (cls, version, end)
            tried += 1
    assert tried > 50_000


@pytest.mark.parametrize("name", FILES)
def test_changed_bytes_decode_to_something_or_are_refused(name: str) -> None:
    chance = random.Random(20_260_401)
    accepted = refused = 0
    for cls, version, data in _samples(name):
        for _ in range(8):
            if not data:
                break
            changed = bytearray(data)
            for _ in range(chance.randint(1, 3)):
                at = chance.randrange(len(changed))
                huge = chance.choice((*HUGE, bytes((chance.randrange(256),))))
                changed[at : at + len(huge)] = huge
            if _decode(cls, bytes(changed), version):
                accepted += 1
            else:
                refused += 1
    assert refused > 1000 and accepted > 1000


@pytest.mark.parametrize("cls", every_class(), ids=class_name)
def test_random_bytes_decode_to_something_or_are_refused(cls: type[Message]) -> None:
    chance = random.Random(class_name(cls))
    for version in cls.valid_versions:
        for size in (0, 1, 3, 8, 40, 300):
            for high in (256, 4):
                data = bytes(chance.randrange(high) for _ in range(size))
                _decode(cls, data, version)


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_record_or_refused(data: bytes) -> None:
    for read in (decode_record, lambda value: decode_control(value[:4], value[4:])):
        try:
            read(data)
        except ProtocolError as error:
            assert error.offset is not None or "no such version" in str(error)


def _peak_bytes(cls: type[Message], data: bytes, version: int) -> int:
    tracemalloc.start()
    try:
        _decode(cls, data, version)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_a_length_in_the_bytes() -> None:
    record = encode(PartitionRecord(replicas=(1, 2, 3)), 0)
    cases: list[tuple[type[Message], bytes, int]] = []
    for huge in HUGE:
        for at in range(4, 60):
            cases.append((MetadataResponse, b"\0" * at + huge + b"\0" * 40, 12))
            cases.append((FetchResponse, b"\0" * at + huge + b"\0" * 40, 4))
        for at in range(len(record)):
            cases.append((PartitionRecord, record[:at] + huge + record[at:], 0))
    for cls, data, version in cases:
        _decode(cls, data, version)  # compiled before anything is measured
    assert max(_peak_bytes(cls, data, version) for cls, data, version in cases) < 100_000


def test_memory_is_a_small_multiple_of_the_bytes() -> None:
    smallest = b"\x00" * 4 + struct.pack(">i", 20_000) + b"\0" * 20_000 * 6
    _decode(FetchResponse, b"", 4)
    assert _peak_bytes(FetchResponse, smallest, 4) < 200 * len(smallest)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no frame"),
        (b"\x01", "no frame"),
        (b"\x01\x03", "no frame"),
        (b"\x00\x03\x00", "frame version 0"),
        (b"\x02\x03\x00", "frame version 2"),
        (b"\x01\x06\x00", "no record has the key 6"),
        (b"\x01\x03\x09", "no such version; it has 0 to 2"),
        (b"\x01\x14\x00\x00\x00", "NoOpRecord v0 at byte 4: 1 bytes are left over"),
        (b"\x81\x80\x80\x80\x80\x80\x01\x00\x00", "longer than 32 bits"),
    ],
)
def test_a_bad_frame_is_an_error_that_names_the_fault(data: bytes, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        decode_record(data)
