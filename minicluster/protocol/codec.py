"""Values to bytes and back.

The bytes are a message's body, without size, header or frame. Encoders and decoders are compiled
for each version when it is first used.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, cast

from minicluster.protocol.decoder import compile_decoder
from minicluster.protocol.encoder import compile_encoder
from minicluster.protocol.errors import ProtocolError, UnsupportedVersion
from minicluster.protocol.schema import Message
from minicluster.protocol.source import BAD_BYTES, BAD_VALUES, explain_decoding, explain_encoding

_M = TypeVar("_M", bound=Message)


def check_version(cls: type[Message], version: int) -> None:
    """Raise UnsupportedVersion unless the message has this version."""
    valid = cls.valid_versions
    if version not in valid:
        have = f"it has {valid.start} to {valid.stop - 1}" if valid else "it has none"
        raise UnsupportedVersion(f"{cls.__name__} v{version}", "", f"no such version; {have}")


def encode(message: Message, version: int) -> bytes:
    """The body of a message in this version.

    Errors:  UnsupportedVersion if the version does not exist or lacks a field that holds
             something and may not be ignored; ProtocolError for a value of the wrong type or range.
    """
    cls = message.__class__
    try:
        encoder = cls.encoders[version]
    except KeyError:
        check_version(cls, version)
        encoder = cls.encoders[version] = compile_encoder(cls, version)
    try:
        return encoder(message)
    except BAD_VALUES as error:
        raise explain_encoding(message, version, error) from error


def decode_prefix(
    cls: type[_M], buffer: bytes | bytearray | memoryview, version: int, offset: int = 0
) -> tuple[_M, int]:
    """The message at an offset of a buffer and the offset behind it.

    Errors:  UnsupportedVersion if the version does not exist, ProtocolError for bad bytes.
    """
    try:
        decoder = cls.decoders[version]
    except KeyError:
        check_version(cls, version)
        decoder = cls.decoders[version] = compile_decoder(cls, version)
    data = buffer if buffer.__class__ is bytes else bytes(buffer)
    size = len(data)
    try:
        return cast("tuple[_M, int]", decoder(data, offset, size))
    except BAD_BYTES as error:
        raise explain_decoding(cls, version, size, error) from error


def decode(
    cls: type[_M],
    buffer: bytes | bytearray | memoryview,
    version: int,
    *,
    rest_allowed: bool = False,
) -> _M:
    """The message that a buffer holds.

    A request may have bytes behind the fields of its version (librdkafka leaves some); who reads
    requests from a connection allows a rest, as Kafka does. Elsewhere it is an error.

    Errors:  UnsupportedVersion if the version does not exist, ProtocolError for bad bytes.
    """
    message, end = decode_prefix(cls, buffer, version)
    if end != len(buffer) and not rest_allowed:
        raise ProtocolError(
            f"{cls.__name__} v{version}", "", f"{len(buffer) - end} bytes are left over", offset=end
        )
    return message


def decode_limited(cls: type[_M], data: bytes, version: int, offset: int, elements_max: int) -> _M:
    """The message at an offset of what a stranger has sent; a rest is allowed.

    Source:  Kafka limits the bytes alone (socket.request.max.bytes).
    Errors:  as ``decode``, and ProtocolError for more elements.
    """
    check_version(cls, version)
    size = len(data)
    try:
        decoder = _limited_decoder(cls, version, elements_max)
        message, _ = decoder(data, offset, size)
    except BAD_BYTES as error:
        raise explain_decoding(cls, version, size, error) from error
    return cast("_M", message)


_limited_decoder = cache(compile_decoder)


def has_many_elements(message: Message, many: int) -> bool:
    """True if the arrays of a message have more elements than that, all together."""
    return _elements_left(message, _plan(message.__class__), many) < 0


def _elements_left(value: Any, plan: Any, left: int) -> int:
    for name, inner in plan:
        elements = getattr(value, name)
        if elements:
            left -= len(elements)
            if inner is not None:
                for element in elements:
                    if left < 0:
                        break
                    left = _elements_left(element, inner, left)
    return left


@cache
def _plan(cls: type[Any]) -> Any:
    """The arrays of a structure, each with those of its elements, if they can have some."""
    return tuple(
        (spec.name, None if spec.struct is None else _plan(spec.struct) or None)
        for spec in cls.schema
        if spec.type_ == "array"
    )
