"""UnregisterBroker (api key 64): a client removes a broker from the cluster.

KIP-631.

Versions: 0, all flexible; Kafka 3.9 has 0, Kafka 4.3 has 0.
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(api_key=64, kind="request", versions="0", flexible="0+")
class UnregisterBrokerRequest(s.Message):
    broker_id: int = s.int32("0+", default=0, entity="brokerId")


@s.message(api_key=64, kind="response", versions="0", flexible="0+")
class UnregisterBrokerResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+")
