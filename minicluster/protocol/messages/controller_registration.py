"""ControllerRegistration (api key 70): a controller registers with the active one.

KIP-919.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import TEXT_OF_CODE
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=70, kind="request", versions="0", flexible="0+")
class ControllerRegistrationRequest(s.Message):
    class Listener(s.Struct):
        name: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)
        security_protocol: int = s.int16("0+", default=0)

    class Feature(s.Struct):
        name: str = s.string("0+", default="")
        min_supported_version: int = s.int16("0+", default=0)
        max_supported_version: int = s.int16("0+", default=0)

    controller_id: int = s.int32("0+", default=0)
    incarnation_id: UUID = s.uuid("0+", default=ZERO_UUID)
    zk_migration_ready: bool = s.boolean("0+", default=False)
    listeners: tuple[Listener, ...] = s.array("Listener", "0+", default=())
    features: tuple[Feature, ...] = s.array("Feature", "0+", default=())


@s.message(api_key=70, kind="response", versions="0", flexible="0+")
class ControllerRegistrationResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+")


API = api(
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    error=TEXT_OF_CODE,
)
