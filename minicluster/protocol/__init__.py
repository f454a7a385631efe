"""Kafka's messages and records, and the codec between them and bytes.

Messages are in ``minicluster.protocol.messages``, records in ``minicluster.protocol.records``.
"""

from __future__ import annotations

from minicluster.protocol.codec import decode, decode_prefix, encode
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.errors import ProtocolError, UnsupportedVersion
from minicluster.protocol.schema import Message, Struct
from minicluster.protocol.uuids import (
    METADATA_TOPIC_ID,
    ZERO_UUID,
    format_uuid,
    parse_uuid,
)

__all__ = [
    "METADATA_TOPIC_ID",
    "ZERO_UUID",
    "ErrorCode",
    "Message",
    "ProtocolError",
    "Struct",
    "UnsupportedVersion",
    "decode",
    "decode_prefix",
    "encode",
    "format_uuid",
    "parse_uuid",
]
