"""SaslHandshake (api key 17): a client selects a SASL mechanism.

Versions: 0-1, none flexible; Kafka 3.9 has 0-1, Kafka 4.3 has 0-1.
    1: SaslAuthenticate carries the bytes that follow (KIP-152).
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(api_key=17, kind="request", versions="0-1", flexible="none")
class SaslHandshakeRequest(s.Message):
    mechanism: str = s.string("0+", default="")


@s.message(api_key=17, kind="response", versions="0-1", flexible="none")
class SaslHandshakeResponse(s.Message):
    error_code: int = s.int16("0+", default=0)
    mechanisms: tuple[str, ...] = s.array("string", "0+", default=())
