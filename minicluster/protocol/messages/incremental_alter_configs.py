"""IncrementalAlterConfigs (api key 44): a client changes single configs.

KIP-339.

Versions: 0-1, flexible from 1.
    1: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape


@s.message(api_key=44, kind="request", versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest(s.Message):
    class AlterableConfig(s.Struct):
        name: str = s.string("0+", default="")
        config_operation: int = s.int8("0+", default=0)
        value: str | None = s.string("0+", default="", nullable="0+")

    class AlterConfigsResource(s.Struct):
        resource_type: int = s.int8("0+", default=0)
        resource_name: str = s.string("0+", default="")
        configs: tuple[IncrementalAlterConfigsRequest.AlterableConfig, ...] = s.array(
            "AlterableConfig", "0+", default=()
        )

    resources: tuple[AlterConfigsResource, ...] = s.array("AlterConfigsResource", "0+", default=())
    validate_only: bool = s.boolean("0+", default=False)


@s.message(api_key=44, kind="response", versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse(s.Message):
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
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-1",
    forwardable=True,
    error=ErrorShape({"responses": Each(("resources",))}),
)
