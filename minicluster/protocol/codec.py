"""Values to bytes and back.

The bytes are a message's body, without size, header or frame. Encoders and decoders are compiled
for each version when it is first used.
"""

from __future__ import annotations

from typing import TypeVar, cast

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
