"""FindCoordinator (api key 10): the coordinator of a group, a transaction or a share.

Versions: 0-6, flexible from 3.
    1: key_type; response throttle_time_ms, error_message.
    2: on a quota violation the broker responds before it throttles (KIP-219).
    3: flexible.
    4: coordinator_keys; without key; response coordinators, key.
    5: TRANSACTION_ABORTABLE is a possible error (KIP-890).
    6: coordinators of share groups (KIP-932).
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape, Text


@s.message(api_key=10, kind="request", versions="0-6", flexible="3+")
class FindCoordinatorRequest(s.Message):
    key: str = s.string("0-3", default="")
    key_type: int = s.int8("1+", default=0)
    coordinator_keys: tuple[str, ...] = s.array("string", "4+", default=())


@s.message(api_key=10, kind="response", versions="0-6", flexible="3+")
class FindCoordinatorResponse(s.Message):
    class Coordinator(s.Struct):
        key: str = s.string("4+", default="")
        node_id: int = s.int32("4+", default=0, entity="brokerId")
        host: str = s.string("4+", default="")
        port: int = s.int32("4+", default=0)
        error_code: int = s.int16("4+", default=0)
        error_message: str | None = s.string("4+", default="", nullable="4+", ignorable=True)

    throttle_time_ms: int = s.int32("1+", default=0, ignorable=True)
    error_code: int = s.int16("0-3", default=0)
    error_message: str | None = s.string("1-3", default="", nullable="1-3", ignorable=True)
    node_id: int = s.int32("0-3", default=0, entity="brokerId")
    host: str = s.string("0-3", default="")
    port: int = s.int32("0-3", default=0)
    coordinators: tuple[Coordinator, ...] = s.array("Coordinator", "4+", default=())


API = api(
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    kafka_3_9="0-6",
    kafka_4_3="0-6",
    error=ErrorShape(
        {
            "coordinators": Each(
                ("coordinator_keys",),
                plain="key",
                values={"node_id": -1, "port": -1},
                text=Text.OF_CODE,
            )
        },
        values={"node_id": -1, "port": -1},
        text=Text.OF_CODE,
    ),
)
