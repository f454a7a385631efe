"""The records of internal topics by name, as a log on disk holds them.

Source:  DumpLogSegments.OffsetsMessageParser, TransactionLogMessageParser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from minicluster.protocol.coordinator_records.framing import (
    GROUP_RECORDS,
    TRANSACTION_RECORDS,
    KeyAndValue,
    decode_coordinator_record,
)
from minicluster.protocol.schema import Message
from minicluster.protocol.topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from minicluster.values import Value

RecordTypes = Mapping[int, KeyAndValue]
_TYPES: Mapping[str, RecordTypes] = {
    GROUP_METADATA_TOPIC: GROUP_RECORDS,
    TRANSACTION_STATE_TOPIC: TRANSACTION_RECORDS,
}
_FOLDER = r"(.+)-[0-9]+"


class DescribedRecord(Value):
    """A record by name; without value it is a tombstone. A type that is not known has no key."""

    name: str
    version: int
    key: Message | None
    value: Message | None


def record_types_of(file: Path) -> RecordTypes | None:
    """The records of the internal topic in whose partition folder a file lies, else None."""
    match = re.fullmatch(_FOLDER, file.resolve().parent.name)
    return None if match is None else _TYPES.get(match[1])


def described_records(records: Iterable[Any], types: RecordTypes) -> Iterator[DescribedRecord]:
    """The records of a data batch.

    Shapes:  a record has a key and a value, either of them bytes or None.
    Errors:  ProtocolError for a key or a value that is damaged.
    """
    for record in records:
        read = decode_coordinator_record(types, record.key, record.value)
        if read is None:
            assert record.key is not None
            number = int.from_bytes(record.key[:2], "big", signed=True)
            yield DescribedRecord(f"Unknown{number}", -1, None, None)
        else:
            name = type(read.key).__name__.removesuffix("Key")
            yield DescribedRecord(name, read.version, read.key, read.value)
