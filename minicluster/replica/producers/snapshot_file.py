"""The snapshot of a log's producers on disk: ``<offset>.snapshot``.

Versions: 1, the only one.
Source:   ProducerSnapshot, ProducerStateManager.writeSnapshot, readSnapshot.
"""

from __future__ import annotations

from collections.abc import Iterable

from minicluster.log import InvalidBatch
from minicluster.log.format.checksums import crc32c
from minicluster.protocol import schema as s
from minicluster.protocol.codec import decode, encode
from minicluster.protocol.errors import ProtocolError
from minicluster.replica.producers.states import BatchMetadata, ProducerStateEntry

SNAPSHOT_SUFFIX = ".snapshot"
_VERSION = 1
_VERSION_BYTES = 2
_CRC_END = 6
_NONE = -1


@s.message(kind="data", versions="1", flexible="none")
class ProducerSnapshot(s.Message):
    """The producers of a log at an offset."""

    class ProducerEntry(s.Struct):
        producer_id: int = s.int64("1", default=0)
        epoch: int = s.int16("1", default=0)
        last_sequence: int = s.int32("1", default=0)
        last_offset: int = s.int64("1", default=0)
        offset_delta: int = s.int32("1", default=0)
        timestamp: int = s.int64("1", default=0)
        coordinator_epoch: int = s.int32("1", default=0)
        current_txn_first_offset: int = s.int64("1", default=0)

    crc: int = s.uint32("1", default=0)
    producer_entries: tuple[ProducerEntry, ...] = s.array("ProducerEntry", "1", default=())


def snapshot_name(offset: int) -> str:
    """The file name of a snapshot."""
    return f"{offset:020d}{SNAPSHOT_SUFFIX}"


def encode_producers(producers: Iterable[ProducerStateEntry]) -> bytes:
    """The bytes of a snapshot; the checksum covers what follows it."""
    message = ProducerSnapshot(producer_entries=tuple(_entry(producer) for producer in producers))
    rest = encode(message, _VERSION)[_CRC_END - _VERSION_BYTES :]
    return _VERSION.to_bytes(2, "big") + crc32c(rest).to_bytes(4, "big") + rest


def decode_producers(buffer: bytes) -> tuple[ProducerStateEntry, ...]:
    """The producers in a snapshot.

    Errors:  InvalidBatch for another version, a wrong checksum and damaged bytes.
    """
    version = int.from_bytes(buffer[:_VERSION_BYTES], "big", signed=True)
    if version != _VERSION:
        raise InvalidBatch(f"a snapshot of producers has version {_VERSION}, not {version}")
    try:
        message = decode(ProducerSnapshot, buffer[_VERSION_BYTES:], _VERSION)
    except ProtocolError as error:
        raise InvalidBatch(str(error)) from None
    if message.crc != crc32c(buffer[_CRC_END:]):
        raise InvalidBatch("the checksum of a snapshot of producers is wrong")
    return tuple(_state(entry) for entry in message.producer_entries)


def _entry(producer: ProducerStateEntry) -> ProducerSnapshot.ProducerEntry:
    last = producer.batches[-1] if producer.batches else None
    first_offset = producer.current_txn_first_offset
    return ProducerSnapshot.ProducerEntry(
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_offset=producer.last_data_offset,
        offset_delta=0 if last is None else last.last_offset - last.first_offset,
        timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_first_offset=_NONE if first_offset is None else first_offset,
    )


def _state(entry: ProducerSnapshot.ProducerEntry) -> ProducerStateEntry:
    batches: tuple[BatchMetadata, ...] = ()
    if entry.last_offset >= 0:
        delta = entry.offset_delta
        batches = (
            BatchMetadata(
                (entry.last_sequence - delta) & 0x7FFFFFFF if entry.last_sequence >= 0 else _NONE,
                entry.last_sequence,
                entry.last_offset - delta,
                entry.last_offset,
                entry.timestamp,
            ),
        )
    first_offset = entry.current_txn_first_offset
    return ProducerStateEntry(
        entry.producer_id,
        entry.epoch,
        batches,
        entry.coordinator_epoch,
        entry.timestamp,
        None if first_offset < 0 else first_offset,
    )
