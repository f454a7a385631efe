"""The headers in front of requests and responses.

A request's client id is never compact, not even in header version 2. Which header version belongs
to which request is in ``minicluster.protocol.api_keys``.

RequestHeader: Versions: 0-2, flexible from 2; Kafka 3.9 has 0-2, Kafka 4.3 has 1-2.
ResponseHeader: Versions: 0-1, flexible from 1; Kafka 3.9 has 0-1, Kafka 4.3 has 0-1.
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(kind="header", versions="0-2", flexible="2+")
class RequestHeader(s.Message):
    """In front of every request."""

    request_api_key: int = s.int16("0+", default=0)
    request_api_version: int = s.int16("0+", default=0)
    correlation_id: int = s.int32("0+", default=0)
    client_id: str | None = s.string("1+", default="", nullable="1+", flexible="none")


@s.message(kind="header", versions="0-1", flexible="1+")
class ResponseHeader(s.Message):
    """In front of every response."""

    correlation_id: int = s.int32("0+", default=0)
