"""DescribeClientQuotas (api key 48): the quotas of clients.

Versions: 0-1, flexible from 1.
    1: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import ErrorShape


@s.message(api_key=48, kind="request", versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(s.Message):
    class ComponentData(s.Struct):
        entity_type: str = s.string("0+", default="")
        match_type: int = s.int8("0+", default=0)
        match: str | None = s.string("0+", default="", nullable="0+")

    components: tuple[ComponentData, ...] = s.array("ComponentData", "0+", default=())
    strict: bool = s.boolean("0+", default=False)


@s.message(api_key=48, kind="response", versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(s.Message):
    class EntityData(s.Struct):
        entity_type: str = s.string("0+", default="")
        entity_name: str | None = s.string("0+", default="", nullable="0+")

    class ValueData(s.Struct):
        key: str = s.string("0+", default="")
        value: float = s.float64("0+", default=0.0)

    class EntryData(s.Struct):
        entity: tuple[DescribeClientQuotasResponse.EntityData, ...] = s.array(
            "EntityData", "0+", default=()
        )
        values: tuple[DescribeClientQuotasResponse.ValueData, ...] = s.array(
            "ValueData", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+")
    entries: tuple[EntryData, ...] | None = s.array("EntryData", "0+", default=(), nullable="0+")


API = api(
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-1",
    error=ErrorShape(values={"entries": None}),
)
