"""Batches on the time of day and with addresses that exist; nothing else of them changes."""

from __future__ import annotations

import pytest

from minicluster.actors.export.conversion import (
    TimeShift,
    coordinator_converted,
    metadata_converted,
    shifted,
)
from minicluster.log import ControlRecord, Record, RecordBatch, control_records, metadata_batch
from minicluster.log.control import control_batch
from minicluster.log.format.compression import Codec
from minicluster.log.records import packed
from minicluster.protocol.coordinator_records.framing import (
    GROUP_RECORDS,
    CoordinatorRecord,
    decode_coordinator_record,
    encode_coordinator_record,
)
from minicluster.protocol.coordinator_records.groups import OffsetCommitKey, OffsetCommitValue
from minicluster.protocol.records import (
    NoOpRecord,
    RegisterBrokerRecord,
    SnapshotHeaderRecord,
    VersionedRecord,
    VotersRecord,
)

NOON = 1_700_000_000_000
SIMULATED = TimeShift(ended_ms=60_000, epoch_ms=0, now_ms=NOON)
ADDRESSES = {1: ("127.0.0.1", 9092), 101: ("127.0.0.1", 9095)}


def data(*times: int, **more: int) -> RecordBatch:
    records = [Record(n, time, b"k", b"v") for n, time in enumerate(times)]
    return RecordBatch.of(records, leader_epoch=3, producer_id=7, producer_epoch=1, **more)


@pytest.mark.parametrize(
    ("shift", "before", "after"),
    [
        (SIMULATED, 60_000, NOON),
        (SIMULATED, 0, NOON - 60_000),
        (SIMULATED, -1, -1),
        (SIMULATED, NOON + 5, NOON + 5),  # a client's own time
        # Clients came to a paced cluster three days ago: their records have the time of day.
        (TimeShift(ended_ms=60_000, epoch_ms=NOON - 1_000_000, now_ms=NOON), 50_000, NOON - 10_000),
        (
            TimeShift(ended_ms=60_000, epoch_ms=NOON - 1_000_000, now_ms=NOON),
            NOON - 1_000_000 + 50_000,
            NOON - 10_000,
        ),
    ],
)
def test_the_end_of_a_run_becomes_the_present(shift: TimeShift, before: int, after: int) -> None:
    assert shift.moved(before) == after


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_a_batch_keeps_all_but_its_times(codec: Codec) -> None:
    batch = packed(data(1_000, 3_000, 2_000), codec)
    moved = RecordBatch.decode(shifted(batch, SIMULATED).encoded)
    assert moved.has_valid_crc
    assert [r.timestamp for r in moved.records] == [NOON - 59_000, NOON - 57_000, NOON - 58_000]
    assert [(r.offset, r.key, r.value) for r in moved.records] == [
        (r.offset, r.key, r.value) for r in batch.records
    ]
    assert (moved.max_timestamp, moved.codec) == (NOON - 57_000, codec)
    assert (moved.leader_epoch, moved.producer_id, moved.producer_epoch) == (3, 7, 1)


def test_a_batch_without_times_stays() -> None:
    batch = data(-1)
    assert shifted(batch, SIMULATED) == batch


def test_registrations_and_voters_get_addresses_that_exist() -> None:
    broker = RegisterBrokerRecord(
        broker_id=1,
        end_points=(
            RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="node1", port=9091),
        ),
    )
    elsewhere = RegisterBrokerRecord(broker_id=9)
    batch = metadata_batch(
        5, 2, 1_000, [VersionedRecord(record, 1) for record in (broker, elsewhere)]
    )
    converted = RecordBatch.decode(metadata_converted(batch, SIMULATED, ADDRESSES).encoded)
    assert (converted.base_offset, converted.leader_epoch) == (5, 2)
    first, second = (one.record for one in converted.metadata_records)
    assert isinstance(first, RegisterBrokerRecord)
    assert [(p.name, p.host, p.port) for p in first.end_points] == [
        ("PLAINTEXT", "127.0.0.1", 9092)
    ]
    assert second == elsewhere

    endpoint = VotersRecord.Endpoint(name="CONTROLLER", host="node101", port=9191)
    voter = VotersRecord.Voter(voter_id=101, endpoints=(endpoint,))
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=60_000)
    snapshot = control_batch(0, 2, 1_000, [header, VotersRecord(voters=(voter,))])
    found: list[ControlRecord] = list(
        control_records(metadata_converted(snapshot, SIMULATED, ADDRESSES))
    )
    assert found[0].message.last_contained_log_timestamp == NOON
    (placed,) = found[1].message.voters[0].endpoints
    assert (placed.name, placed.host, placed.port) == ("CONTROLLER", "127.0.0.1", 9095)


def test_metadata_without_addresses_keeps_its_bytes_but_for_the_time() -> None:
    batch = metadata_batch(5, 2, 1_000, [VersionedRecord(NoOpRecord(), 0)])
    converted = metadata_converted(batch, SIMULATED, ADDRESSES)
    assert converted.encoded[61:] == batch.encoded[61:]
    assert converted.max_timestamp == NOON - 59_000


def test_committed_offsets_do_not_expire() -> None:
    key = OffsetCommitKey(group="g", topic="orders", partition=0)
    value = OffsetCommitValue(offset=5, commit_timestamp=50_000)
    encoded = encode_coordinator_record(CoordinatorRecord(key, value, 3))
    tombstone = encode_coordinator_record(CoordinatorRecord(key))
    unknown = (b"\x00\x63", b"\x00\x00")
    records = [Record(n, 50_000, *one) for n, one in enumerate([encoded, tombstone, unknown])]
    batch = packed(RecordBatch.of(records, leader_epoch=0), Codec.GZIP)
    moved = RecordBatch.decode(coordinator_converted(batch, SIMULATED, GROUP_RECORDS).encoded)
    assert moved.codec == Codec.GZIP
    read = decode_coordinator_record(GROUP_RECORDS, moved.records[0].key, moved.records[0].value)
    assert read is not None
    assert isinstance(read.value, OffsetCommitValue)
    assert (read.version, read.value.offset) == (3, 5)
    assert read.value.commit_timestamp == NOON - 10_000
    assert [(r.key, r.value) for r in moved.records[1:]] == [tombstone, unknown]
    assert {r.timestamp for r in moved.records} == {NOON - 10_000}
