"""Envelope (api key 58): a broker forwards a client's request to the controller.

KIP-590.

Versions: 0, all flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=58, kind="request", versions="0", flexible="0+")
class EnvelopeRequest(s.Message):
    request_data: bytes = s.bytes_("0+", default=b"")
    request_principal: bytes | None = s.bytes_("0+", default=b"", nullable="0+")
    client_host_address: bytes = s.bytes_("0+", default=b"")


@s.message(api_key=58, kind="response", versions="0", flexible="0+")
class EnvelopeResponse(s.Message):
    response_data: bytes | None = s.bytes_("0+", default=None, nullable="0+")
    error_code: int = s.int16("0+", default=0)


API = api(
    EnvelopeRequest,
    EnvelopeResponse,
    kafka_3_9="0",
    kafka_4_3="0",
)
