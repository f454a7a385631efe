"""AlterClientQuotas (api key 49): a client changes quotas.

Versions: 0-1, flexible from 1.
    1: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape, Text


@s.message(api_key=49, kind="request", versions="0-1", flexible="1+")
class AlterClientQuotasRequest(s.Message):
    class EntityData(s.Struct):
        entity_type: str = s.string("0+", default="")
        entity_name: str | None = s.string("0+", default="", nullable="0+")

    class OpData(s.Struct):
        key: str = s.string("0+", default="")
        value: float = s.float64("0+", default=0.0)
        remove: bool = s.boolean("0+", default=False)

    class EntryData(s.Struct):
        entity: tuple[AlterClientQuotasRequest.EntityData, ...] = s.array(
            "EntityData", "0+", default=()
        )
        ops: tuple[AlterClientQuotasRequest.OpData, ...] = s.array("OpData", "0+", default=())

    entries: tuple[EntryData, ...] = s.array("EntryData", "0+", default=())
    validate_only: bool = s.boolean("0+", default=False)


@s.message(api_key=49, kind="response", versions="0-1", flexible="1+")
class AlterClientQuotasResponse(s.Message):
    class EntityData(s.Struct):
        entity_type: str = s.string("0+", default="")
        entity_name: str | None = s.string("0+", default="", nullable="0+")

    class EntryData(s.Struct):
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default="", nullable="0+")
        entity: tuple[AlterClientQuotasResponse.EntityData, ...] = s.array(
            "EntityData", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    entries: tuple[EntryData, ...] = s.array("EntryData", "0+", default=())


API = api(
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-1",
    forwardable=True,
    error=ErrorShape(
        {
            "entries": Each(
                ("entries",),
                inside={"entity": Each(("entity",))},
                text=Text.OF_CODE,
            )
        }
    ),
)
