"""GetTelemetrySubscriptions (api key 71): the metrics that a client is to push.

KIP-714.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=71, kind="request", versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(s.Message):
    client_instance_id: UUID = s.uuid("0+", default=ZERO_UUID)


@s.message(api_key=71, kind="response", versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    client_instance_id: UUID = s.uuid("0+", default=ZERO_UUID)
    subscription_id: int = s.int32("0+", default=0)
    accepted_compression_types: tuple[int, ...] = s.array("int8", "0+", default=())
    push_interval_ms: int = s.int32("0+", default=0)
    telemetry_max_bytes: int = s.int32("0+", default=0)
    delta_temporality: bool = s.boolean("0+", default=False)
    requested_metrics: tuple[str, ...] = s.array("string", "0+", default=())


API = api(
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    kafka_3_9="0",
    kafka_4_3="0",
)
