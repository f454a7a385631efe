"""The checks of a producer's batch by its log, and the batch that the log takes in its place.

The order is Kafka's: the header, the size, the checksum, then each record. Timestamps are checked
before sequences, so a repeat with a timestamp that is too old by now is rejected.

Leaves out: message format v0 and v1, levels of compression.
Source:     UnifiedLog.analyzeAndValidateRecords, LogValidator, MemoryRecordsBuilder.
"""

from __future__ import annotations

from minicluster.log import InvalidBatch, Record, RecordBatch
from minicluster.log.batch import CODEC_MASK, NO_TIMESTAMP, TRANSACTIONAL_BIT
from minicluster.log.errors import UndecodableBatch
from minicluster.log.format.compression import Codec
from minicluster.log.record_scan import RecordScan, scan
from minicluster.log.records import packed
from minicluster.protocol import ErrorCode
from minicluster.replica.config import LogConfig
from minicluster.replica.errors import InvalidRecords, RecordError, ReplicaError
from minicluster.replica.producers.states import AppendOrigin

_LAST_CODEC = max(Codec)


def validate(
    batch: RecordBatch, origin: AppendOrigin, config: LogConfig, partition: str, now_ms: int
) -> RecordBatch:
    """The batch to append: that of the producer, or another one with its records.

    Shapes:  partition: its name (``orders-0``), for messages. Offsets and leader epoch are not
             assigned yet.
    Errors:  INVALID_RECORD, MESSAGE_TOO_LARGE, CORRUPT_MESSAGE,
             RECORD_LIST_TOO_LARGE; InvalidRecords with an error for each rejected record;
             UNKNOWN_SERVER_ERROR where the records cannot be unpacked.
    """
    if batch.base_offset != 0:
        raise ReplicaError(ErrorCode.INVALID_RECORD, f"base offset {batch.base_offset}")
    _check_size(batch, config)
    if not batch.has_valid_crc:
        raise ReplicaError(ErrorCode.CORRUPT_MESSAGE, f"stored crc = {batch.crc}")
    codec = batch.attributes & CODEC_MASK
    if codec > _LAST_CODEC:
        raise ReplicaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"codec {codec} is not known")
    _check_header(batch, origin)
    try:
        scanned = scan(batch)
        _check_records(batch, scanned, config, partition, now_ms)
        to_append = _to_append(batch, scanned, config, now_ms)
    except UndecodableBatch as damage:
        raise ReplicaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(damage)) from damage
    except InvalidBatch as damage:
        raise ReplicaError(ErrorCode.INVALID_RECORD, str(damage)) from damage
    if to_append.size > config.segment_bytes:
        raise ReplicaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{to_append.size} bytes")
    return to_append


def _check_size(batch: RecordBatch, config: LogConfig) -> None:
    if batch.size > config.max_message_bytes:
        raise ReplicaError(ErrorCode.MESSAGE_TOO_LARGE, f"{batch.size} bytes")


def _check_header(batch: RecordBatch, origin: AppendOrigin) -> None:
    """Reject a client's header whose numbers contradict each other.

    Source:  LogValidator.validateBatch.
    """
    if origin is not AppendOrigin.CLIENT:
        return
    # The log assigns offsets by the header alone. One that promises more records than there are
    # would leave a hole, and fewer would give two records one offset.
    from_offsets = batch.last_offset - batch.base_offset + 1
    if from_offsets <= 0 or batch.count <= 0 or from_offsets != batch.count:
        raise ReplicaError(
            ErrorCode.INVALID_RECORD, f"{from_offsets} offsets for {batch.count} records"
        )
    # A marker from a client would end a transaction behind its coordinator's back.
    if batch.is_control:
        raise ReplicaError(ErrorCode.INVALID_RECORD, "clients write no control records")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise ReplicaError(ErrorCode.INVALID_RECORD, f"sequence {batch.base_sequence}")


def _check_records(
    batch: RecordBatch, scanned: RecordScan, config: LogConfig, partition: str, now_ms: int
) -> None:
    """Reject a batch with any bad record, with an error for each.

    Source:  LogValidator.validateRecord, processRecordErrors.
    """
    keys_needed = config.compacted and not scanned.all_have_keys
    if config.log_append_time:
        timestamps_bad = batch.is_log_append_time
    else:
        timestamps_bad = (
            now_ms - scanned.lowest_timestamp > config.timestamp_before_max_ms
            or scanned.highest_timestamp - now_ms > config.timestamp_after_max_ms
            or (batch.is_log_append_time and scanned.lowest_timestamp == NO_TIMESTAMP)
        )
    if not (keys_needed or timestamps_bad):
        return
    errors: list[RecordError] = []
    invalid_timestamp = False
    for index, record in enumerate(batch.records):
        why = None
        if config.compacted and record.key is None:
            why = (
                f"Compacted topic cannot accept message without key in topic partition {partition}"
            )
        elif (why := _timestamp_error(batch, record, config, now_ms)) is not None:
            invalid_timestamp = True
        if why is not None:
            errors.append(RecordError(index, why))
    if errors:
        raise InvalidRecords(tuple(errors), invalid_timestamp=invalid_timestamp)


def _timestamp_error(
    batch: RecordBatch, record: Record, config: LogConfig, now_ms: int
) -> str | None:
    """Source:  LogValidator.validateTimestamp."""
    if not config.log_append_time and record.timestamp != NO_TIMESTAMP:
        age_ms = now_ms - record.timestamp
        if age_ms > config.timestamp_before_max_ms or -age_ms > config.timestamp_after_max_ms:
            lowest = now_ms - config.timestamp_before_max_ms
            highest = now_ms + config.timestamp_after_max_ms
            return (
                f"Timestamp {record.timestamp} of message with offset {record.offset} is out of "
                f"range. The timestamp should be within [{lowest}, {highest}]"
            )
    elif batch.is_log_append_time:
        return (
            f"Invalid timestamp type in message {_shown(batch, record, config)}. Producer should "
            "not set timestamp type to LogAppendTime."
        )
    return None


def _shown(batch: RecordBatch, record: Record, config: LogConfig) -> str:
    """A record as its class prints it.

    Of a compressed batch that is taken as it is the keys and values are skipped.

    Source:  DefaultRecord.toString, PartialDefaultRecord.toString.
    """
    source = batch.attributes & CODEC_MASK
    is_skipped = source != Codec.NONE and source == _target_codec(source, config)
    kind, without = ("PartialDefaultRecord", -1) if is_skipped else ("DefaultRecord", 0)
    key = without if record.key is None else len(record.key)
    value = without if record.value is None else len(record.value)
    return (
        f"{kind}(offset={record.offset}, timestamp={record.timestamp}, "
        f"key={key} bytes, value={value} bytes)"
    )


def _target_codec(source: int, config: LogConfig) -> int:
    return source if config.compression is None else config.compression


def _to_append(
    batch: RecordBatch, scanned: RecordScan, config: LogConfig, now_ms: int
) -> RecordBatch:
    """The batch with the log's timestamps and compression.

    A batch of the log's compression is taken as it is, and a marker; others are written again.

    Source:  LogValidator.assignOffsetsNonCompressed, validateMessagesAndAssignOffsetsCompressed,
             buildRecordsAndAssignOffsets.
    """
    source = batch.attributes & CODEC_MASK
    target = _target_codec(source, config)
    highest = now_ms if config.log_append_time else max(NO_TIMESTAMP, scanned.highest_timestamp)
    is_plain = source == Codec.NONE and (target == Codec.NONE or batch.is_control)
    if is_plain or (source == target and scanned.are_consecutive):
        return batch.with_timestamps(log_append_time=config.log_append_time, max_timestamp=highest)
    if scanned.lowest_timestamp < NO_TIMESTAMP:  # MemoryRecordsBuilder.appendWithOffset throws
        raise ReplicaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"negative timestamp {scanned.lowest_timestamp}"
        )
    written = _written_again(batch, target, config, highest)
    _check_size(written, config)
    return written


def _written_again(
    batch: RecordBatch, codec: int, config: LogConfig, max_timestamp: int
) -> RecordBatch:
    records = tuple(
        Record(offset, record.timestamp, record.key, record.value, record.headers)
        for offset, record in enumerate(batch.records)
    )
    plain = RecordBatch.of(
        records,
        leader_epoch=-1,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        attributes=batch.attributes & TRANSACTIONAL_BIT,
    )
    stamped = plain.with_timestamps(
        log_append_time=config.log_append_time, max_timestamp=max_timestamp
    )
    return packed(stamped, codec)
