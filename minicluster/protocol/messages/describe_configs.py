"""DescribeConfigs (api key 32): the configs of resources and their sources.

Versions: 0-4, flexible from 4.
    1: include_synonyms; response config_source, synonyms, source; response without is_default.
    2: on a quota violation the broker responds before it throttles (KIP-219).
    3: include_documentation; response config_type, documentation.
    4: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape, Text


@s.message(api_key=32, kind="request", versions="0-4", flexible="4+")
class DescribeConfigsRequest(s.Message):
    class DescribeConfigsResource(s.Struct):
        resource_type: int = s.int8("0+", default=0)
        resource_name: str = s.string("0+", default="")
        configuration_keys: tuple[str, ...] | None = s.array(
            "string", "0+", default=(), nullable="0+"
        )

    resources: tuple[DescribeConfigsResource, ...] = s.array(
        "DescribeConfigsResource", "0+", default=()
    )
    include_synonyms: bool = s.boolean("1+", default=False)
    include_documentation: bool = s.boolean("3+", default=False)


@s.message(api_key=32, kind="response", versions="0-4", flexible="4+")
class DescribeConfigsResponse(s.Message):
    class DescribeConfigsSynonym(s.Struct):
        name: str = s.string("1+", default="")
        value: str | None = s.string("1+", default="", nullable="0+")
        source: int = s.int8("1+", default=0)

    class DescribeConfigsResourceResult(s.Struct):
        name: str = s.string("0+", default="")
        value: str | None = s.string("0+", default="", nullable="0+")
        read_only: bool = s.boolean("0+", default=False)
        is_default: bool = s.boolean("0", default=False)
        config_source: int = s.int8("1+", default=-1, ignorable=True)
        is_sensitive: bool = s.boolean("0+", default=False)
        synonyms: tuple[DescribeConfigsResponse.DescribeConfigsSynonym, ...] = s.array(
            "DescribeConfigsSynonym", "1+", default=(), ignorable=True
        )
        config_type: int = s.int8("3+", default=0, ignorable=True)
        documentation: str | None = s.string("3+", default="", nullable="0+", ignorable=True)

    class DescribeConfigsResult(s.Struct):
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default="", nullable="0+")
        resource_type: int = s.int8("0+", default=0)
        resource_name: str = s.string("0+", default="")
        configs: tuple[DescribeConfigsResponse.DescribeConfigsResourceResult, ...] = s.array(
            "DescribeConfigsResourceResult", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    results: tuple[DescribeConfigsResult, ...] = s.array("DescribeConfigsResult", "0+", default=())


API = api(
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    kafka_3_9="0-4",
    kafka_4_3="1-4",
    error=ErrorShape({"results": Each(("resources",), text=Text.OF_CODE)}),
)
