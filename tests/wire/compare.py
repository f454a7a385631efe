"""One line of a wire file against the codec.

A line holds a message's name, version, value in Kafka's JSON form and bytes. It agrees if the
bytes decode to the value, the value's message encodes to the bytes, and both messages are equal.
Kafka's form shows record batches as an empty text, so such a message is encoded from its bytes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minicluster.errors import UserError
from minicluster.protocol import Message, ProtocolError, decode, encode, messages, records
from minicluster.protocol.json_form import from_json, to_json
from minicluster.protocol.messages.read_share_group_state_summary import (
    EarlyReadShareGroupStateSummaryResponse,
)
from minicluster.protocol.schema import Struct


@dataclass(slots=True)
class Tally:
    """The lines of one message in one file, by outcome."""

    kind: str
    api_key: int
    agree: int = 0
    differ: int = 0
    not_declared: int = 0
    versions: set[int] = field(default_factory=set)
    missing_versions: set[int] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)

    @property
    def lines(self) -> int:
        return self.agree + self.differ + self.not_declared


def find_class(name: str, kind: str) -> type[Message] | None:
    """The class that declares a message, if there is one."""
    home = messages if kind in ("request", "response") else records
    found = getattr(home, name, None) or getattr(messages, name, None)
    return found if isinstance(found, type) and issubclass(found, Message) else None


# Kafka 3.9 and 4.3 have a version 0 each, of different fields, and a line does not have its
# release: it agrees if it agrees with one of the two.
EARLY_FORMS: Mapping[str, type[Message]] = {
    "ReadShareGroupStateSummaryResponse": EarlyReadShareGroupStateSummaryResponse,
}


def holds_records(cls: type[Struct]) -> bool:
    """A message has a field of record batches, at any depth."""
    return any(
        spec.type_ == "records" or (spec.struct is not None and holds_records(spec.struct))
        for spec in cls.schema
    )


def current_names(cls: type[Struct], value: Any) -> Any:
    """A JSON form with the names of today for fields that an earlier release named otherwise."""
    if not isinstance(value, dict):
        return value
    names = {spec.former: spec.json_name for spec in cls.schema if spec.former}
    inner = {spec.json_name: spec.struct for spec in cls.schema if spec.struct is not None}
    out = {}
    for key, held in value.items():
        struct = inner.get(key)
        if struct is not None and isinstance(held, list):
            held = [current_names(struct, item) for item in held]
        elif struct is not None and held is not None:
            held = current_names(struct, held)
        out[names.get(key, key)] = held
    return out


def difference(cls: type[Message], line: Mapping[str, Any]) -> str | None:
    """The first difference of a line; None if all agrees."""
    version, data = line["version"], bytes.fromhex(line["bytes"])
    value = current_names(cls, line["value"])
    if (version in cls.flexible_versions) is not line["flexible"]:
        return f"flexible is {line['flexible']} for Kafka"
    if line["api_key"] != cls.api_key:
        return f"the api key is {line['api_key']} for Kafka, {cls.api_key} here"
    try:
        decoded = decode(cls, data, version)
        shown = to_json(decoded, version, records="blank")
        if shown != value:
            return f"decodes to {shown}, not to {value}"
        again = encode(decoded, version)
        if again != data:
            return f"encodes to {again.hex()}, not to {data.hex()}"
        read = from_json(cls, line["value"], version)
        if holds_records(cls):
            if to_json(read, version, records="blank") != value:
                return f"the value is read as {read}"
        elif read != decoded:
            return f"the value is read as {read}, the bytes as {decoded}"
        elif encode(read, version) != data:
            return f"the value encodes to {encode(read, version).hex()}, not to {data.hex()}"
    except ProtocolError as error:
        return f"{type(error).__name__}: {error}"
    return None


_KEYS: Mapping[str, type] = {
    "name": str,
    "kind": str,
    "api_key": int,
    "version": int,
    "flexible": bool,
    "value": dict,
    "bytes": str,
}


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a wire file, packed or not.

    Errors:  UserError if there is no such file or it holds something else.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a wire file: {error}") from error
    if not text.strip():
        raise UserError(f"{path}: the file is empty; a wire file has one JSON object per line")
    for number, line in enumerate(text.splitlines(), 1):
        try:
            value = json.loads(line)
            for key, wanted in _KEYS.items():
                if not isinstance(value[key], wanted):
                    raise TypeError(f"{key} is {value[key]!r}")
            bytes.fromhex(value["bytes"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UserError(f"{path}:{number}: no line of a wire file: {error!r}") from error
        yield value


def compare(path: Path, show: int = 3) -> dict[str, Tally]:
    """Every message of a file, by name."""
    out: dict[str, Tally] = {}
    for line in read_lines(path):
        tally = out.get(line["name"])
        if tally is None:
            tally = out[line["name"]] = Tally(line["kind"], line["api_key"])
        cls = find_class(line["name"], line["kind"])
        tally.versions.add(line["version"])
        if cls is None or line["version"] not in cls.valid_versions:
            tally.not_declared += 1
            tally.missing_versions.add(line["version"])
            continue
        wrong = difference(cls, line)
        early = EARLY_FORMS.get(line["name"])
        if wrong is not None and early is not None and line["version"] in early.valid_versions:
            wrong = wrong if difference(early, line) is not None else None
        if wrong is None:
            tally.agree += 1
        else:
            tally.differ += 1
            if len(tally.differences) < show:
                tally.differences.append(f"v{line['version']}: {wrong}")
    return out
