"""A log as text: one line per batch, for people or as JSON with the names of Kafka's dump tool.

Source:  the fields and names are those of DumpLogSegments with --cluster-metadata-decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from minicluster.errors import counted
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import CHECKPOINT_SUFFIX, checked_snapshot
from minicluster.log.control import control_records
from minicluster.log.directory import MetadataFiles, read_metadata_log
from minicluster.log.errors import LogError
from minicluster.log.locating import Located
from minicluster.log.segment import (
    PlacedBatch,
    SegmentContent,
    TornTail,
    check_contents,
    read_alone,
    read_segment,
)
from minicluster.moments import Span, shown_moment
from minicluster.protocol.coordinator_records.described import (
    RecordTypes,
    described_records,
    record_types_of,
)
from minicluster.protocol.json_form import to_json
from minicluster.protocol.records import record_name

TORN, DAMAGED = "torn tail", "damaged"
Keeps = Callable[[Mapping[str, Any]], bool]


def dump_json(
    located: Located, keeps: Keeps | None = None, *, checkpoints: bool = True
) -> Iterator[dict[str, Any]]:
    """One object per batch of every segment and checkpoint; torn tails come as notes, and so do
    checkpoints that are damaged, beside the rest of the log.

    Shapes:  a batch: file, base_offset, last_offset, epoch, is_control, count, create_time,
             position, size, magic, codec, crc, valid, records. A note: {"note", "file", …}.
             keeps: which records are shown, as ``records`` has them; batches without one are not.
    Errors:  LogError for a damaged segment, or where the one file that is named is damaged.
    """
    for files in located.logs:
        for path, placed, torn, damage in _contents(files, checkpoints):
            name = _shown(path, located.path)
            for placed_batch in placed:
                check_contents(path, placed_batch)
                item = batch_json(placed_batch, name, record_types_of(path))
                if keeps is not None:
                    item["records"] = [record for record in item["records"] if keeps(record)]
                if item["records"] or keeps is None:
                    yield item
            if damage is not None:
                yield {"note": DAMAGED, "file": name, "why": str(damage)}
            if torn is not None:
                yield {
                    "note": TORN,
                    "file": name,
                    "position": torn.position,
                    "lost_bytes": torn.lost_bytes,
                    "why": torn.why,
                }


def span_of(located: Located) -> Span:
    """The time between the first and the last record of the segments.

    Errors:  LogError.
    """
    times = [
        placed.batch.max_timestamp
        for files in located.logs
        for segment in files.segments
        for placed in read_segment(segment, limits=files.limits).batches
    ]
    return Span(min(times, default=0), max(times, default=0))


def _contents(
    files: MetadataFiles, checkpoints: bool
) -> Iterator[tuple[Path, tuple[PlacedBatch, ...], TornTail | None, LogError | None]]:
    if len(files.segments) > 1:
        read_metadata_log(files)  # rejects a gap between segments before anything is printed
    named = [*files.segments, *(files.checkpoints if checkpoints else ())]
    named.sort(key=lambda path: path.name)
    if files.bootstrap is not None and checkpoints:
        named.append(files.bootstrap)
    for path in named:
        whole = path not in files.segments[-1:]
        read = read_alone if path == files.path else read_segment
        content, damage = SegmentContent(path, ()), None
        try:
            content = read(path, whole=whole, limits=files.limits)
            if path.suffix == CHECKPOINT_SUFFIX:
                checked_snapshot(content)
        except LogError as error:
            if path == files.path or path.suffix != CHECKPOINT_SUFFIX:
                raise
            damage = error
        yield path, content.batches, content.torn, damage


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if root.is_dir() else path.name


def batch_json(placed: PlacedBatch, file: str, types: RecordTypes | None = None) -> dict[str, Any]:
    """One batch with its records, as the lines of ``dump.jsonl`` have it.

    Shapes:  types are those of an internal topic, None in a metadata log.
    """
    batch = placed.batch
    return {
        "file": file,
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "epoch": batch.leader_epoch,
        "is_control": batch.is_control,
        "count": batch.count,
        "create_time": batch.max_timestamp,
        "position": placed.position,
        "size": batch.size,
        "magic": 2,
        "codec": batch.codec.name.lower(),
        "crc": batch.crc,
        "valid": True,
        "records": list(_records_json(batch, types)),
    }


def _records_json(batch: RecordBatch, types: RecordTypes | None) -> Iterator[dict[str, Any]]:
    if batch.is_control:
        content = _control_json(batch)
    else:
        content = _metadata_json(batch) if types is None else _coordinator_json(batch, types)
    for record, fields in zip(batch.records, content, strict=True):
        yield {
            "offset": record.offset,
            "create_time": record.timestamp,
            "key_size": -1 if record.key is None else len(record.key),
            "value_size": -1 if record.value is None else len(record.value),
            **fields,
        }


def _control_json(batch: RecordBatch) -> Iterator[dict[str, Any]]:
    for control in control_records(batch):
        message = control.message
        data = message.hex() if isinstance(message, bytes) else to_json(message, control.version)
        yield {"control": control.name, "data": data}


def _metadata_json(batch: RecordBatch) -> Iterator[dict[str, Any]]:
    for versioned in batch.metadata_records:
        record, version = versioned.record, versioned.version
        yield {
            "type": record_name(type(record)),
            "version": version,
            "data": to_json(record, version),
        }


def _coordinator_json(batch: RecordBatch, types: RecordTypes) -> Iterator[dict[str, Any]]:
    for record in described_records(batch.records, types):
        yield {
            "type": record.name,
            "version": record.version,
            "key": None if record.key is None else to_json(record.key, 0),
            "data": None if record.value is None else to_json(record.value, record.version),
        }


def dump_text(items: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Lines for people: a heading per file, a line per batch, an indented line per record.

    Shapes:  items: of ``dump_json``.
    """
    file = None
    for item in items:
        if item["file"] != file:
            file = item["file"]
            yield f"== {file}"
        if item.get("note") == DAMAGED:
            yield f"   {item['why']}"
            continue
        if "note" in item:
            where = f"{counted(item['lost_bytes'], 'byte')} at byte {item['position']}"
            yield f"   torn tail: {where}: {item['why']}"
            continue
        yield (
            f"{item['base_offset']:>8}..{item['last_offset']:<8} epoch {item['epoch']}  "
            f"{shown_moment(item['create_time'])}  "
            f"{counted(item['count'], 'record')}, {counted(item['size'], 'byte')}"
        )
        for record in item["records"]:
            kind = record.get("control") or _typed(record)
            yield f"{record['offset']:>12}  {kind}  {_content(record)}"


def _content(record: Mapping[str, Any]) -> str:
    """A metadata record's fields; a coordinator's record has a key before them."""
    if record.get("key") is None:
        return _fields(record["data"])
    data = record["data"]
    return f"{_fields(record['key'])}: {'tombstone' if data is None else _fields(data)}"


def _typed(record: Mapping[str, Any]) -> str:
    if record["data"] is None:  # a tombstone has no version
        return str(record["type"])
    return f"{record['type']} v{record['version']}"


def _fields(data: Any) -> str:
    if not isinstance(data, dict):
        return str(data)
    return " ".join(f"{name}={_value(value)}" for name, value in data.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + _fields(value) + "}"
    return "null" if value is None else str(value)
