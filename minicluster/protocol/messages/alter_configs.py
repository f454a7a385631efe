"""AlterConfigs (api key 33): a client replaces all configs of resources.

Versions: 0-2, flexible from 2.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape


@s.message(api_key=33, kind="request", versions="0-2", flexible="2+")
class AlterConfigsRequest(s.Message):
    class AlterableConfig(s.Struct):
        name: str = s.string("0+", default="")
        value: str | None = s.string("0+", default="", nullable="0+")

    class AlterConfigsResource(s.Struct):
        resource_type: int = s.int8("0+", default=0)
        resource_name: str = s.string("0+", default="")
        configs: tuple[AlterConfigsRequest.AlterableConfig, ...] = s.array(
            "AlterableConfig", "0+", default=()
        )

    resources: tuple[AlterConfigsResource, ...] = s.array("AlterConfigsResource", "0+", default=())
    validate_only: bool = s.boolean("0+", default=False)


@s.message(api_key=33, kind="response", versions="0-2", flexible="2+")
class AlterConfigsResponse(s.Message):
    class AlterConfigsResourceResponse(s.Struct):
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default="", nullable="0+")
        resource_type: int = s.int8("0+", default=0)
        resource_name: str = s.string("0+", default="")

    throttle_time_ms: int = s.int32("0+", default=0)
    responses: tuple[AlterConfigsResourceResponse, ...] = s.array(
        "AlterConfigsResourceResponse", "0+", default=()
    )


API = api(
    AlterConfigsRequest,
    AlterConfigsResponse,
    kafka_3_9="0-2",
    kafka_4_3="0-2",
    forwardable=True,
    error=ErrorShape({"responses": Each(("resources",))}),
)
