"""Kafka's JSON form of a message, both ways, as its dump tool and test data have it.

Names are in lower camel case, bytes in base64, uuids in Kafka's URL-safe base64. Fields that the
version lacks are left out, and so are tagged fields at their default. Names of fields in
earlier releases are also read.

Source:  org.apache.kafka.message.JsonConverterGenerator.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec.json import Encoder

from minicluster.protocol.codec import check_version
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.json_writer import JsonWriter, RecordsForm, compile_json_writer
from minicluster.protocol.schema import FieldSpec, Message, Struct
from minicluster.protocol.source import BAD_VALUES, explain_encoding
from minicluster.protocol.uuids import parse_uuid

_M = TypeVar("_M", bound=Message)

_WRITERS: dict[tuple[type[Message], int, RecordsForm, bool], JsonWriter] = {}


def to_json(
    message: Message, version: int, *, records: RecordsForm = "base64", defaults: bool = False
) -> dict[str, Any]:
    """The JSON form of a message in this version; with ``defaults``, also tagged fields at theirs.

    Errors:  UnsupportedVersion as in ``encode``.
    """
    cls = message.__class__
    key = cls, version, records, defaults
    writer = _WRITERS.get(key)
    if writer is None:
        check_version(cls, version)
        writer = _WRITERS[key] = compile_json_writer(cls, version, records, defaults)
    try:
        return writer(message)
    except BAD_VALUES as error:
        raise explain_encoding(message, version, error) from error


def to_json_text(message: Message, version: int, *, records: RecordsForm = "base64") -> str:
    """The text of ``to_json``, without spaces.

    Errors:  as ``to_json``.
    """
    return _text(to_json(message, version, records=records)).decode()


# A third of the time that ``json`` takes. The hook is called for numbers of a class of their own.
_text = Encoder(enc_hook=int).encode


def from_json(cls: type[_M], value: Mapping[str, Any], version: int) -> _M:
    """The message that a JSON form of this version describes.

    Errors:  ProtocolError for a missing or unknown field and for a value of another type.
    """
    check_version(cls, version)
    built: _M = _Reader(cls, version).struct(cls, value, "")
    return built


_PYTHON: Mapping[str, type | tuple[type, ...]] = {
    "float64": (float, int),
    "boolean": bool,
    "string": str,
    "uuid": str,
    "bytes": str,
    "records": str,
}


class _Reader:
    def __init__(self, cls: type[Message], version: int) -> None:
        self.name = f"{cls.__name__} v{version}"
        self.version = version
        self.flexible = version in cls.flexible_versions

    def struct(self, cls: type[Struct], value: Any, path: str) -> Any:
        """Read a JSON object as a structure."""
        if not isinstance(value, Mapping):
            raise ProtocolError(self.name, path.rstrip("."), f"{value!r} is not a JSON object")
        rest = dict(value)
        fields: dict[str, Any] = {}
        for spec in cls.schema:
            where = path + spec.name
            if self.version not in spec.versions:
                continue
            name = spec.json_name if spec.json_name in rest else spec.former
            if name in rest:
                fields[spec.name] = self.field(spec, rest.pop(name), where)
            elif not (self.flexible and self.version in spec.tagged):
                raise ProtocolError(self.name, where, f"{spec.json_name} is missing")
        for name in rest:
            raise ProtocolError(self.name, path + name, "there is no such field in this version")
        return cls(**fields)

    def field(self, spec: FieldSpec, value: Any, path: str) -> Any:
        """Read the value of a field."""
        if value is None:
            if self.version not in spec.nullable:
                raise ProtocolError(self.name, path, "it must not be null")
            return None
        if spec.type_ != "array":
            return self.value(spec, spec.type_, value, path)
        if not isinstance(value, (list, tuple)):
            raise ProtocolError(self.name, path, f"{value!r} is not a JSON array")
        return tuple(self.value(spec, spec.element, item, path) for item in value)

    def value(self, spec: FieldSpec, type_: str, value: Any, path: str) -> Any:
        """Read a value, or an element of an array, of this type."""
        if type_ == "struct":
            assert spec.struct is not None
            return self.struct(spec.struct, value, path + ".")
        ok = isinstance(value, _PYTHON.get(type_, int))
        if not ok or (isinstance(value, bool) and type_ != "boolean"):
            raise ProtocolError(self.name, path, f"{value!r} is no {type_}")
        try:
            if type_ == "uuid":
                return parse_uuid(value)
            if type_ in ("bytes", "records"):
                return base64.b64decode(value, validate=True)
        except (ValueError, binascii.Error) as error:
            raise ProtocolError(self.name, path, str(error)) from error
        return float(value) if type_ == "float64" else value
