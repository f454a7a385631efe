"""A producer's batch is checked in Kafka's order, and taken with the log's timestamps and codec."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.configs.effective import BrokerLevels
from minicluster.log import Record, RecordBatch
from minicluster.log.batch import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from minicluster.log.format.compression import Codec, compress
from minicluster.protocol import ErrorCode
from minicluster.replica.config import DEFAULT_LOG_CONFIG, LogConfig
from minicluster.replica.errors import InvalidRecords, ReplicaError
from minicluster.replica.partition.log_validator import validate
from minicluster.replica.producers.states import AppendOrigin

NOW_MS = 1_000_000
HOUR_MS = 3_600_000


def records(*timestamps: int, key: bytes | None = b"k") -> tuple[Record, ...]:
    return tuple(Record(i, t, key, b"value-%d" % i) for i, t in enumerate(timestamps))


def sent(
    *timestamps: int, codec: int = Codec.NONE, key: bytes | None = b"k", **header: Any
) -> RecordBatch:
    """A batch as it comes from a socket, some fields of its header other than they should be."""
    plain = RecordBatch.of(records(*timestamps, key=key), leader_epoch=-1)
    fields = {
        "base_offset": 0,
        "last_offset": plain.last_offset,
        "leader_epoch": -1,
        "base_timestamp": plain.base_timestamp,
        "max_timestamp": plain.max_timestamp,
        "count": plain.count,
        "attributes": codec,
        "body": compress(codec, plain.unpacked_body()),
    }
    attributes = header.pop("attributes", 0) | codec
    made = RecordBatch(**{**fields, **header, "attributes": attributes})
    return RecordBatch.decode(made.encoded, lenient=True)


def damaged() -> RecordBatch:
    """A batch whose last byte is another one than was summed up."""
    encoded = bytearray(sent(NOW_MS).encoded)
    encoded[-1] ^= 1
    return RecordBatch.decode(bytes(encoded), lenient=True)


def taken(batch: RecordBatch, **config: Any) -> RecordBatch:
    return validate(batch, AppendOrigin.CLIENT, LogConfig(**config), "orders-0", NOW_MS)


REFUSALS = [
    ("a base offset", {"base_offset": 1, "last_offset": 1}, {}, ErrorCode.INVALID_RECORD),
    ("a large batch", {}, {"max_message_bytes": 70}, ErrorCode.MESSAGE_TOO_LARGE),
    ("no such codec", {"attributes": 7}, {}, ErrorCode.UNKNOWN_SERVER_ERROR),
    ("offsets below the base", {"last_offset": -1}, {}, ErrorCode.INVALID_RECORD),
    ("no records", {"count": 0}, {}, ErrorCode.INVALID_RECORD),
    ("more offsets than records", {"last_offset": 1}, {}, ErrorCode.INVALID_RECORD),
    ("a control batch", {"attributes": CONTROL_BIT}, {}, ErrorCode.INVALID_RECORD),
    ("a producer without sequence", {"producer_id": 7}, {}, ErrorCode.INVALID_RECORD),
    ("records that are none", {"body": b"\x02\x00"}, {}, ErrorCode.INVALID_RECORD),
    ("bytes after the records", {"body": b"\x0c\x00\x00\x00\x01\x00\x00\x00"}, {},
     ErrorCode.INVALID_RECORD),
    ("bytes that are no gzip", {"attributes": 1, "body": b"x"}, {},
     ErrorCode.UNKNOWN_SERVER_ERROR),
    ("a segment too small", {}, {"segment_bytes": 70}, ErrorCode.RECORD_LIST_TOO_LARGE),
]  # fmt: skip


@pytest.mark.parametrize(
    ("header", "config", "error"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS]
)
def test_each_refusal(header: dict[str, Any], config: dict[str, Any], error: ErrorCode) -> None:
    with pytest.raises(ReplicaError) as refusal:
        taken(sent(NOW_MS, **header), **config)
    assert refusal.value.error == error


def test_a_damaged_batch_is_refused_for_its_checksum_but_for_its_size_first() -> None:
    with pytest.raises(ReplicaError) as refusal:
        taken(damaged())
    assert refusal.value.error == ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(ReplicaError) as refusal:
        taken(damaged(), max_message_bytes=70)
    assert refusal.value.error == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    ("first", "second"),
    [(a, b) for a, b in combinations(REFUSALS[:8], 2) if not set(a[1]) & set(b[1])],
    ids=lambda refusal: refusal[0],
)
def test_of_two_faults_the_earlier_one_is_reported(first: Any, second: Any) -> None:
    with pytest.raises(ReplicaError) as refusal:
        taken(sent(NOW_MS, **first[1], **second[1]), **first[2], **second[2])
    assert refusal.value.error == first[3]


def test_every_record_with_a_bad_timestamp_has_an_error() -> None:
    batch = sent(NOW_MS - 1001, NOW_MS - 1000, NOW_MS + 500, NOW_MS + 501, -1)
    with pytest.raises(InvalidRecords) as refusal:
        taken(batch, timestamp_before_max_ms=1000, timestamp_after_max_ms=500)
    assert refusal.value.error == ErrorCode.INVALID_TIMESTAMP
    assert (
        refusal.value.message == "One or more records have been rejected due to invalid timestamp"
    )
    assert [(e.batch_index, e.message) for e in refusal.value.errors] == [
        (
            index,
            f"Timestamp {timestamp} of message with offset {index} is out of range. "
            "The timestamp should be within [999000, 1000500]",
        )
        for index, timestamp in ((0, NOW_MS - 1001), (3, NOW_MS + 501))
    ]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compacted_log_takes_no_record_without_a_key(codec: Codec) -> None:
    with pytest.raises(InvalidRecords) as refusal:
        taken(sent(*[NOW_MS] * 4, key=None, codec=codec), compacted=True)
    error = "Compacted topic cannot accept message without key in topic partition orders-0"
    shown = ", ".join(f"RecordError(batchIndex={i}, message='{error}')" for i in range(3))
    assert refusal.value.error == ErrorCode.INVALID_RECORD
    assert refusal.value.message == (
        "One or more records have been rejected due to 4 record errors in total, and only "
        f"showing the first three errors at most: [{shown}]"
    )
    assert len(refusal.value.errors) == 4


def test_a_producer_may_not_claim_the_time_of_the_append() -> None:
    """In a log that has its own times; elsewhere the claim is dropped."""
    claims = sent(NOW_MS - 7, NOW_MS - 5, attributes=TIMESTAMP_TYPE_BIT)
    with pytest.raises(InvalidRecords) as refusal:
        taken(claims, log_append_time=True)
    assert refusal.value.errors[1].message == (
        f"Invalid timestamp type in message DefaultRecord(offset=1, timestamp={NOW_MS - 5}, "
        "key=1 bytes, value=7 bytes). Producer should not set timestamp type to LogAppendTime."
    )
    kept = taken(claims)
    assert (kept.is_log_append_time, kept.max_timestamp) == (False, NOW_MS - 5)


def test_a_record_whose_key_is_skipped_is_printed_as_a_partial_one() -> None:
    """A compressed batch that the log would take as it is (PartialDefaultRecord.toString)."""
    claims = sent(NOW_MS, key=None, codec=Codec.GZIP, attributes=TIMESTAMP_TYPE_BIT)
    texts = []
    for compression in (Codec.GZIP, Codec.LZ4):
        with pytest.raises(InvalidRecords) as refusal:
            taken(claims, log_append_time=True, compression=compression)
        texts.append(refusal.value.errors[0].message.split("message ")[1].split(".")[0])
    fields = f"offset=0, timestamp={NOW_MS}, key="
    assert texts == [
        f"PartialDefaultRecord({fields}-1 bytes, value=7 bytes)",
        f"DefaultRecord({fields}0 bytes, value=7 bytes)",
    ]


def test_a_timestamp_below_0_is_taken_but_not_written_anew() -> None:
    """MemoryRecordsBuilder.appendWithOffset refuses it; -1 is no timestamp."""
    assert taken(sent(-5, codec=Codec.GZIP)).max_timestamp == -1
    assert taken(sent(-1, codec=Codec.GZIP), compression=Codec.LZ4).max_timestamp == -1
    with pytest.raises(ReplicaError) as refusal:
        taken(sent(-5, codec=Codec.GZIP), compression=Codec.LZ4)
    assert refusal.value.error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_delete_horizon_stays_where_the_timestamp_type_changes() -> None:
    """DefaultRecordBatch.computeAttributes keeps the bit, and none that it does not have."""
    kept = taken(sent(NOW_MS, attributes=DELETE_HORIZON_BIT | 0x80), log_append_time=True)
    assert kept.attributes == DELETE_HORIZON_BIT | TIMESTAMP_TYPE_BIT


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("target", [None, *Codec])
@pytest.mark.parametrize("log_append_time", [False, True])
def test_the_log_has_its_own_compression_and_time(
    codec: Codec, target: Codec | None, log_append_time: bool
) -> None:
    producer = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 9}
    given = sent(5, 9, 7, codec=codec, attributes=TRANSACTIONAL_BIT, **producer)
    log = taken(given, compression=target, log_append_time=log_append_time)
    log = RecordBatch.decode(log.with_base(40, 3).encoded)
    assert log.codec == (codec if target is None else target)
    assert (log.base_offset, log.last_offset, log.leader_epoch, log.count) == (40, 42, 3, 3)
    assert log.is_log_append_time == log_append_time
    assert log.max_timestamp == (NOW_MS if log_append_time else 9)
    assert (log.producer_id, log.producer_epoch, log.base_sequence) == (7, 2, 9)
    assert log.is_transactional
    times = [NOW_MS] * 3 if log_append_time else [5, 9, 7]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in log.records] == [
        (40 + i, time, b"k", b"value-%d" % i) for i, time in enumerate(times)
    ]


def test_a_batch_that_needs_no_change_is_taken_as_it_is() -> None:
    batch = sent(5, 9, codec=Codec.LZ4)
    assert taken(batch) is batch
    given = sent(5, 9, max_timestamp=100)
    assert taken(given).max_timestamp == 9


@given(codec=st.sampled_from(list(Codec)), data=st.binary(max_size=200_000))
def test_what_is_compressed_unpacks_to_the_same(codec: Codec, data: bytes) -> None:
    batch = RecordBatch.of([Record(0, 0, None, data)], leader_epoch=0)
    packed = RecordBatch(
        base_offset=0, last_offset=0, leader_epoch=0, base_timestamp=0, max_timestamp=0, count=1,
        attributes=codec, body=compress(codec, batch.unpacked_body()),
    )  # fmt: skip
    assert RecordBatch.decode(packed.encoded).records == batch.records


def test_the_defaults_are_those_of_the_table_of_configs() -> None:
    everywhere = BrokerLevels({}, {}, {"log.cleaner.min.compaction.lag.ms": "0"})
    assert LogConfig.of({}, BrokerLevels({}, {}, {})) is DEFAULT_LOG_CONFIG
    assert LogConfig.of({}, everywhere) == DEFAULT_LOG_CONFIG


def test_the_configs_of_a_topic_come_before_those_of_its_broker() -> None:
    broker = BrokerLevels({"log.retention.ms": "7"}, {"log.segment.bytes": "8"}, {})
    config = LogConfig.of({"cleanup.policy": "compact,delete", "retention.ms": "9"}, broker)
    assert (config.compacted, config.deleted) == (True, True)
    assert (config.retention_ms, config.segment_bytes) == (9, 8)
    assert LogConfig.of({"compression.type": "uncompressed"}, broker).compression is Codec.NONE
    assert LogConfig.of({"compression.type": "zstd"}, broker).compression is Codec.ZSTD
