"""The small files of a broker, byte by byte as Apache Kafka 4.3.0 writes them."""

from __future__ import annotations

import struct
import uuid
from pathlib import Path

import pytest

from minicluster.log import InvalidBatch, Log, Record, RecordBatch
from minicluster.log.indexes import AbortedTransaction, encode_aborted, segment_indexes
from minicluster.log.log import Segment
from minicluster.log.replica_folder import future_name, replica_files
from minicluster.log.segment import read_batches
from minicluster.log.text_files import clean_shutdown_text, offset_checkpoint_text
from minicluster.replica.producers.snapshot_file import decode_producers, encode_producers
from minicluster.replica.producers.states import BatchMetadata, ProducerStateEntry

TOPIC_ID = uuid.UUID(int=7)

# Written by ProducerStateManager.writeSnapshot.
KAFKAS_SNAPSHOT = bytes.fromhex(
    "0001c10205c3000000020000000000000fa0000200000009000000000000001100000002"
    "0000018bcfe5687b0000000500000000000000110000000000000fa10000ffffffff"
    "ffffffffffffffff000000000000018bcfe569f4ffffffffffffffffffffffff"
)
PRODUCERS = (
    ProducerStateEntry(
        4000, 2, (BatchMetadata(7, 9, 15, 17, 1_700_000_000_123),), 5, 1_700_000_000_123, 17
    ),
    ProducerStateEntry(4001, 0, (), -1, 1_700_000_000_500),
)


def batch(base_offset: int, *, time_ms: int, size: int = 10, count: int = 1) -> RecordBatch:
    records = [Record(base_offset + i, time_ms, None, b"x" * size) for i in range(count)]
    return RecordBatch.of(records, leader_epoch=0)


def test_producers_are_written_and_read_as_kafka_does() -> None:
    assert encode_producers(PRODUCERS) == KAFKAS_SNAPSHOT
    assert decode_producers(KAFKAS_SNAPSHOT) == PRODUCERS


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (KAFKAS_SNAPSHOT[:-1] + b"\0", "checksum"),
        (b"\0\2" + KAFKAS_SNAPSHOT[2:], "version 1, not 2"),
        (KAFKAS_SNAPSHOT[:20], "ProducerSnapshot"),
    ],
)
def test_a_damaged_snapshot_of_producers_is_refused(damaged: bytes, why: str) -> None:
    with pytest.raises(InvalidBatch, match=why):
        decode_producers(damaged)


def test_offset_checkpoints_have_a_version_a_number_and_sorted_lines() -> None:
    offsets = {("orders", 10): 3, ("orders", 2): 7, ("logs", 0): 0}
    assert offset_checkpoint_text(offsets) == "0\n3\nlogs 0 0\norders 2 7\norders 10 3\n"
    assert offset_checkpoint_text({}) == "0\n0\n"


def test_a_clean_shutdown_has_the_broker_epoch() -> None:
    assert clean_shutdown_text(14) == '{"version":0,"brokerEpoch":14}'


def test_indexes_have_an_entry_for_every_4_kib_and_the_greatest_timestamp() -> None:
    times = [5, 9, 7, 8]
    batches = [batch(100 + n, time_ms=time, size=3_000) for n, time in enumerate(times)]
    size = batches[0].size
    indexes = segment_indexes(100, batches, 4_096)
    # After two batches there are more than 4,096 bytes: the third has an entry, with its position.
    assert indexes.offsets == struct.pack(">ii", 2, 2 * size)
    assert indexes.times == struct.pack(">qi", 9, 1)


def test_an_empty_segment_has_empty_indexes() -> None:
    indexes = segment_indexes(0, [], 4_096)
    assert (indexes.offsets, indexes.times) == (b"", b"")


def test_aborted_transactions_have_34_bytes_each() -> None:
    content = encode_aborted([AbortedTransaction(4000, 3, 9, 10)])
    assert content == struct.pack(">hqqqq", 0, 4000, 3, 9, 10)


def test_a_log_is_written_by_its_segments() -> None:
    log = Log()
    for base_offset in (0, 3, 6):
        if base_offset == 6:
            log.roll(Segment(6))
        log.append(batch(base_offset, time_ms=base_offset, count=3))
    log.transactions.append(AbortedTransaction(1, 0, 4, 5))
    log.transactions.append(AbortedTransaction(1, 6, 7, 8))
    files = dict(replica_files(log, TOPIC_ID))
    first, second = "00000000000000000000", "00000000000000000006"
    assert set(files) == {
        f"{first}.log", f"{first}.txnindex", f"{second}.log", f"{second}.txnindex",
        "leader-epoch-checkpoint", "partition.metadata",
    }  # fmt: skip
    assert files[f"{first}.txnindex"] == encode_aborted([AbortedTransaction(1, 0, 4, 5)])
    assert files["leader-epoch-checkpoint"] == b"0\n1\n0 0\n"
    assert files["partition.metadata"] == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw"
    segments = [read_batches(Path(n), files[n]) for n in sorted(files) if n.endswith(".log")]
    assert [one.batch for segment in segments for one in segment.batches] == list(log.batches)


def test_a_future_log_has_a_folder_of_at_most_255_bytes() -> None:
    assert future_name("orders", 0, TOPIC_ID) == f"orders-0.{TOPIC_ID.hex}-future"
    assert len(future_name("t" * 249, 12, TOPIC_ID)) == 255
