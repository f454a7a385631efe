"""UUIDs as Kafka writes them: 16 bytes on the wire, 22 URL-safe base64 characters in text."""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from uuid import UUID

ZERO_UUID = UUID(int=0)
METADATA_TOPIC_ID = UUID(int=1)
"""The topic id of the metadata log (KIP-595)."""


@lru_cache(maxsize=65_536)
def uuid_of(data: bytes) -> UUID:
    """The UUID of 16 bytes; remembered, because the same few ids come again and again."""
    return UUID(bytes=data)


@lru_cache(maxsize=65_536)
def format_uuid(value: UUID) -> str:
    """Kafka's text of a UUID: URL-safe base64 without padding; remembered, as by ``uuid_of``."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


@lru_cache(maxsize=4_096)
def parse_uuid(text: str) -> UUID:
    """Read Kafka's text of a UUID; remembered, as by ``uuid_of``.

    Errors:  ValueError if the text is not 16 bytes of URL-safe base64.
    """
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{text!r} is not a uuid in Kafka's base64 form") from error
    if len(data) != 16:
        raise ValueError(f"{text!r} is not a uuid: it holds {len(data)} bytes, not 16")
    return UUID(bytes=data)
