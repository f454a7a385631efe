"""PushTelemetry (api key 72): a client pushes metrics.

KIP-714.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=72, kind="request", versions="0", flexible="0+")
class PushTelemetryRequest(s.Message):
    client_instance_id: UUID = s.uuid("0+", default=ZERO_UUID)
    subscription_id: int = s.int32("0+", default=0)
    terminating: bool = s.boolean("0+", default=False)
    compression_type: int = s.int8("0+", default=0)
    metrics: bytes = s.bytes_("0+", default=b"")


@s.message(api_key=72, kind="response", versions="0", flexible="0+")
class PushTelemetryResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)


API = api(
    PushTelemetryRequest,
    PushTelemetryResponse,
    kafka_3_9="0",
    kafka_4_3="0",
)
