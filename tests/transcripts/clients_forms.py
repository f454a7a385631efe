"""The forms of a client recording: names in place of drawn values, batches written out.

Names (``<topic-id-1>``, ``<session-2>``) are bound by their first appearance. ``<time>`` and
``<port>`` match any number.
"""

from __future__ import annotations

import base64
import random
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from minicluster.log.batch import Record, RecordBatch
from minicluster.log.errors import InvalidBatch
from minicluster.log.format.compression import Codec
from minicluster.protocol.schema import FieldSpec, Message, Struct
from minicluster.protocol.uuids import format_uuid
from tests.transcripts.report import NotBuilt

_NAME = re.compile(r"<[a-z-]+-\d+>")
TIME = "<time>"
ANY_NUMBER = (TIME, "<port>")
_CODEC_MASK = 7


@dataclass(slots=True)
class Names:
    """The value of each name of a recording."""

    values: dict[str, Any] = field(default_factory=dict)
    unbound: random.Random = field(default_factory=lambda: random.Random(1))

    def replaced(self, value: Any) -> Any:
        """The same JSON with every name replaced; one that is not bound yet gets a value."""
        if isinstance(value, dict):
            return {key: self.replaced(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.replaced(item) for item in value]
        if isinstance(value, str) and _NAME.fullmatch(value):
            if value not in self.values:
                self.values[value] = self._new(value)
            return self.values[value]
        return value

    def in_text(self, text: str) -> str:
        """A text with the names that are bound in it replaced by their values."""
        return _NAME.sub(lambda match: str(self.values.get(match[0], "?")), text)

    def matches(self, name: str, value: Any) -> bool:
        """Bind a name to the value in its place, or compare it with the bound one."""
        if name in self.values:
            return bool(self.values[name] == value)
        kind = name.rstrip("0123456789>")
        if any(v == value for n, v in self.values.items() if n.startswith(kind)):
            return False  # another name of this kind has it
        self.values[name] = value
        return True

    def _new(self, name: str) -> Any:
        if name.startswith(("<topic-id", "<dir", "<member")):
            return format_uuid(uuid.UUID(int=self.unbound.getrandbits(128), version=4))
        return self.unbound.randrange(1, 1 << 31)


def is_name(value: Any) -> bool:
    """A recorded value is a name."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def holds_name(value: str) -> bool:
    """A recorded text has a name within it."""
    return not is_name(value) and _NAME.search(value) is not None


# Record batches.


def batches_to_bytes(batches: list[Mapping[str, Any]]) -> bytes:
    """The bytes of a recording's batches."""
    return b"".join(_batch(batch) for batch in batches)


def _batch(form: Mapping[str, Any]) -> bytes:
    known = {"attributes", "producerId", "producerEpoch", "baseSequence", "records"}
    if set(form) - known:
        raise NotBuilt(f"a batch with {sorted(set(form) - known)}")
    if form["attributes"] & _CODEC_MASK != Codec.NONE:
        raise NotBuilt("a compressed batch")
    records = [
        Record(
            offset=offset,
            timestamp=record["timestamp"],
            key=_bytes(record.get("key")),
            value=_bytes(record.get("value")),
            headers=tuple(
                (header["key"], _bytes(header["value"])) for header in record.get("headers", ())
            ),
        )
        for offset, record in enumerate(form["records"])
    ]
    return RecordBatch(
        base_offset=0,
        last_offset=len(records) - 1,
        leader_epoch=-1,
        base_timestamp=records[0].timestamp,
        max_timestamp=max(record.timestamp for record in records),
        count=len(records),
        attributes=form["attributes"],
        producer_id=form["producerId"],
        producer_epoch=form["producerEpoch"],
        base_sequence=form["baseSequence"],
        records=tuple(records),
    ).encoded


def batches_from_bytes(data: bytes) -> list[dict[str, Any]]:
    """Batches in the form of recorded responses; an incomplete last one is counted in bytes."""
    forms: list[dict[str, Any]] = []
    position = 0
    while position < len(data):
        try:
            batch = RecordBatch.decode(data, position)
        except InvalidBatch:
            forms.append({"incompleteBytes": len(data) - position})
            break
        position += batch.size
        forms.append(
            {
                "baseOffset": batch.base_offset,
                "lastOffset": batch.last_offset,
                "leaderEpoch": batch.leader_epoch,
                "attributes": batch.attributes,
                "producerId": batch.producer_id,
                "producerEpoch": batch.producer_epoch,
                "baseSequence": batch.base_sequence,
                "records": [
                    {
                        "offset": record.offset,
                        "timestamp": record.timestamp,
                        "key": _text(record.key),
                        "value": _text(record.value),
                        "headers": [
                            {"key": name, "value": _text(value)} for name, value in record.headers
                        ],
                    }
                    for record in batch.records
                ],
            }
        )
    return forms


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


# Records fields inside messages.


def with_bytes(cls: type[Message], form: Mapping[str, Any]) -> Any:
    """A recorded request with its batches as the base64 text that the codec reads."""
    return _records(cls, form, lambda value: _base64_of(value))


def with_batches(cls: type[Message], form: Mapping[str, Any]) -> Any:
    """A response's JSON with its record bytes written out as batches."""
    return _records(cls, form, lambda value: batches_from_bytes(base64.b64decode(value)))


def _base64_of(batches: list[Mapping[str, Any]]) -> str:
    return base64.b64encode(batches_to_bytes(batches)).decode("ascii")


def _records(cls: type[Struct], form: Mapping[str, Any], change: Any) -> dict[str, Any]:
    changed = dict(form)
    for spec in cls.schema:
        value = changed.get(spec.json_name)
        if value is not None:
            changed[spec.json_name] = _field(spec, value, change)
    return changed


def _field(spec: FieldSpec, value: Any, change: Any) -> Any:
    if spec.type_ == "records":
        return change(value)
    if spec.struct is None:
        return value
    if spec.type_ == "array":
        return [_records(spec.struct, item, change) for item in value]
    return _records(spec.struct, value, change)
