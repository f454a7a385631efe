"""Segment files: reading with recovery, and writing.

A damaged batch that no valid batch follows is a torn tail, as a crash leaves it: it is left
off and reported. One that a valid batch follows is corruption in the middle, an error, since its
content is unknown: to leave it off would be to lose records that were flushed, and that nobody
would miss. A checkpoint has the same bytes but is written whole, so that there a torn tail is an
error.

Source:  LogSegment.recover, FileRecords.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from pathlib import Path

from minicluster.errors import counted
from minicluster.files import UnusableFile, read_bytes
from minicluster.log.batch import (
    CRC_START,
    HEADER_BYTES,
    LENGTH_END,
    RECORD_HEADER_BYTES,
    RecordBatch,
)
from minicluster.log.control import control_records
from minicluster.log.errors import InvalidBatch, LogCorruption, LogError, NotALog, TooLarge
from minicluster.log.format.limits import DEFAULT_LIMITS, DecompressionBudget, ReadLimits
from minicluster.protocol.errors import ProtocolError
from minicluster.values import Value

LOG_SUFFIX = ".log"
_MAGIC_AT = 16
_SEARCH_FACTOR = 8


class TornTail(Value):
    """The bytes that recovery left off at the end of a file."""

    file: str
    position: int
    lost_bytes: int
    next_offset: int | None
    why: str

    def __str__(self) -> str:
        after = "" if self.next_offset is None else f" (log end {self.next_offset})"
        return (
            f"{self.file}: torn tail of {counted(self.lost_bytes, 'byte')} at byte {self.position} "
            f"dropped{after}: {self.why}"
        )


class PlacedBatch(Value):
    """A batch and the byte at which it begins in its file."""

    batch: RecordBatch
    position: int


class SegmentContent(Value):
    """The batches of a segment, and the tail that recovery left off, if any."""

    path: Path
    batches: tuple[PlacedBatch, ...]
    torn: TornTail | None = None


def segment_name(base_offset: int) -> str:
    """The file name of the segment that begins at an offset."""
    return f"{base_offset:020d}{LOG_SUFFIX}"


def read_segment(
    path: Path, *, whole: bool = False, limits: ReadLimits = DEFAULT_LIMITS
) -> SegmentContent:
    """Read every batch of a file.

    Shapes:  ``whole``: the file was written at once (a checkpoint), so a torn tail is also damage.
    Errors:  NotALog (missing, a folder, no regular file, no batch at all), LogCorruption,
             TooLarge.
    """
    return read_batches(path, bytes_of(path), whole=whole, limits=limits)


def read_batches(
    path: Path,
    buffer: bytes,
    *,
    whole: bool = False,
    limits: ReadLimits = DEFAULT_LIMITS,
    start: int = 0,
) -> SegmentContent:
    """Read every batch of a file, or of a part of it that begins with a batch.

    Shapes:  start: the place of the first of these bytes in the file.
    Errors:  as ``read_segment``.
    """
    placed: list[PlacedBatch] = []
    last_offset = -1
    position = 0
    budget = DecompressionBudget(limits.decompressed_bytes)
    while position < len(buffer):
        try:
            batch = RecordBatch.decode(buffer, position, budget=budget)
        except InvalidBatch as error:
            torn = _torn_tail(path, buffer, position, start, last_offset, str(error), whole)
            return SegmentContent(path, tuple(placed), torn)
        if batch.base_offset <= last_offset:
            # No checksum covers a base offset. A whole batch is not a torn tail: dropped as one, it
            # would take all good batches behind a wrong offset with it.
            raise LogCorruption(
                file=str(path),
                position=start + position,
                base_offset=batch.base_offset,
                why=f"offset {batch.base_offset} comes after {last_offset}",
            )
        if batch.size - HEADER_BYTES - RECORD_HEADER_BYTES * batch.count > limits.batch_bytes:
            raise TooLarge(
                f"{path}: the batch at byte {start + position} has {batch.size} bytes; "
                f"at most {limits.batch_bytes} are read"
            )
        placed.append(PlacedBatch(batch, start + position))
        position += batch.size
        last_offset = batch.last_offset
    return SegmentContent(path, tuple(placed))


def read_piece(
    path: Path,
    start: int,
    end: int,
    *,
    whole: bool = False,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> SegmentContent:
    """Read the batches between two places of a file, which are bounds of batches.

    Errors:  LogError; LogCorruption with the place in the file.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            buffer = file.read(end - start)
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        return read_batches(path, buffer, whole=whole, limits=limits, start=start)
    except NotALog:
        # A whole batch further on makes it a log that is damaged, and it need not be in this piece.
        read_segment(path, whole=whole, limits=limits)
        raise


def _torn_tail(
    path: Path, buffer: bytes, position: int, start: int, last_offset: int, why: str, whole: bool
) -> TornTail:
    """The rest of a file, from a batch on that is not whole.

    Shapes:  position: in the buffer, whose first byte is at ``start`` of the file.
    Errors:  NotALog, LogCorruption.
    """
    at = start + position
    is_first = at == 0
    if is_first and not _begins_like_one(buffer) and not _valid_batch_in(buffer, 0, -1):
        raise NotALog(f"{path}: not a Kafka log: {why} (at byte 0)")
    if whole or _valid_batch_in(buffer, position + 1, last_offset):
        head = buffer[position : position + 8] if len(buffer) - position >= LENGTH_END else b""
        base_offset = int.from_bytes(head, "big", signed=True) if head else None
        raise LogCorruption(file=str(path), position=at, base_offset=base_offset, why=why)
    next_offset = None if last_offset < 0 else last_offset + 1
    return TornTail(str(path), at, len(buffer) - position, next_offset, why)


def read_alone(
    path: Path, *, whole: bool = False, limits: ReadLimits = DEFAULT_LIMITS
) -> SegmentContent:
    """Read a file that is all there is, so that something must be in it.

    Errors:  NotALog without one whole batch; else as ``read_segment``.
    """
    content = read_segment(path, whole=whole, limits=limits)
    if not content.batches and content.torn is not None:
        raise NotALog(f"{path}: holds no whole batch: {content.torn.why}")
    return content


def check_contents(path: Path, placed: PlacedBatch) -> None:
    """Decode the records of a batch, which the checksum alone does not vouch for.

    Errors:  LogCorruption if the batch does not hold the records of its header.
    """
    from minicluster.protocol.coordinator_records.described import (
        described_records,
        record_types_of,
    )

    batch = placed.batch
    try:
        types = record_types_of(path)
        if batch.is_control:
            control_records(batch)
        elif types is not None:
            deque(described_records(batch.records, types), maxlen=0)
        else:
            _ = batch.metadata_records
    except (InvalidBatch, ProtocolError) as error:
        doubt = " (is this a metadata log?)" if isinstance(error, ProtocolError) else ""
        raise LogCorruption(
            file=str(path),
            position=placed.position,
            base_offset=batch.base_offset,
            why=f"{error}{doubt}",
        ) from None


def write_segment(path: Path, batches: Iterable[RecordBatch]) -> int:
    """Write a file of batches.

    Shapes:  -> bytes written.
    """
    size = 0
    with path.open("wb") as file:
        for batch in batches:
            size += file.write(batch.encoded)
    return size


def bytes_of(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except UnusableFile as error:
        raise NotALog(str(error)) from None
    except FileNotFoundError:
        raise NotALog(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise NotALog(f"{path}: is a folder, not a segment or checkpoint") from None
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror}") from None


def _begins_like_one(buffer: bytes) -> bool:
    """A file begins with a batch, torn or damaged: offset, length, magic."""
    if len(buffer) < CRC_START:
        return False
    length = int.from_bytes(buffer[8:LENGTH_END], "big", signed=True)
    return buffer[0] == 0 and length >= HEADER_BYTES - LENGTH_END and buffer[16] == 2


def _valid_batch_in(buffer: bytes, start: int, last_offset: int) -> bool:
    """An intact batch of a later offset follows: magic, length, header and checksum.

    Bytes that look like headers everywhere would have each checksum read the whole rest again, so
    the work is bounded by the size of the file. Past the bound the result is true: what cannot be
    searched counts as damage. Otherwise a file could be built so that sound batches behind damage
    are dropped as a torn tail.
    """
    work_left = _SEARCH_FACTOR * (len(buffer) - start)
    magic_at = start + _MAGIC_AT
    while (magic_at := buffer.find(b"\x02", magic_at)) != -1:
        position = magic_at - _MAGIC_AT
        length = int.from_bytes(buffer[position + 8 : position + LENGTH_END], "big", signed=True)
        if HEADER_BYTES - LENGTH_END <= length <= len(buffer) - position - LENGTH_END:
            work_left -= length
            if work_left < 0:
                return True
            try:
                if RecordBatch.decode(buffer, position).base_offset > last_offset:
                    return True
            except InvalidBatch:
                pass
        magic_at += 1
    return False
