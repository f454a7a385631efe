"""BrokerRegistration (api key 62): a broker registers with the controller and gets its epoch.

KIP-631; KIP-858 (v2) adds log directories, KIP-966 (v3) the epoch before a clean shutdown.

Versions: 0-4, all flexible.
    1: is_migrating_zk_broker.
    2: log_dirs.
    3: previous_broker_epoch.
    4: fields as in version 3.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=62, kind="request", versions="0-4", flexible="0+")
class BrokerRegistrationRequest(s.Message):
    class Listener(s.Struct):
        name: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)
        security_protocol: int = s.int16("0+", default=0)

    class Feature(s.Struct):
        name: str = s.string("0+", default="")
        min_supported_version: int = s.int16("0+", default=0)
        max_supported_version: int = s.int16("0+", default=0)

    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    cluster_id: str = s.string("0+", default="")
    incarnation_id: UUID = s.uuid("0+", default=ZERO_UUID)
    listeners: tuple[Listener, ...] = s.array("Listener", "0+", default=())
    features: tuple[Feature, ...] = s.array("Feature", "0+", default=())
    rack: str | None = s.string("0+", default="", nullable="0+")
    is_migrating_zk_broker: bool = s.boolean("1+", default=False)
    log_dirs: tuple[UUID, ...] = s.array("uuid", "2+", default=(), ignorable=True)
    previous_broker_epoch: int = s.int64("3+", default=-1, ignorable=True)


@s.message(api_key=62, kind="response", versions="0-4", flexible="0+")
class BrokerRegistrationResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    broker_epoch: int = s.int64("0+", default=-1)


API = api(
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    kafka_3_9="0-4",
    kafka_4_3="0-4",
)
