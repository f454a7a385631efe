"""UnregisterBroker (api key 64): a client removes a broker from the cluster.

KIP-631.

Versions: 0, all flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import ErrorShape, Text


@s.message(api_key=64, kind="request", versions="0", flexible="0+")
class UnregisterBrokerRequest(s.Message):
    broker_id: int = s.int32("0+", default=0, entity="brokerId")


@s.message(api_key=64, kind="response", versions="0", flexible="0+")
class UnregisterBrokerResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+")


API = api(
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    forwardable=True,
    error=ErrorShape(text=Text.OF_EXCEPTION),
)
