"""SaslHandshake (api key 17): a client selects a SASL mechanism.

Versions: 0-1, none flexible.
    1: SaslAuthenticate carries the bytes that follow (KIP-152).
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=17, kind="request", versions="0-1", flexible="none")
class SaslHandshakeRequest(s.Message):
    mechanism: str = s.string("0+", default="")


@s.message(api_key=17, kind="response", versions="0-1", flexible="none")
class SaslHandshakeResponse(s.Message):
    error_code: int = s.int16("0+", default=0)
    mechanisms: tuple[str, ...] = s.array("string", "0+", default=())


API = api(
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-1",
)
