"""Records about brokers and controllers: registration, fencing, log directories.

FenceBrokerRecord and UnfenceBrokerRecord are read in old logs; newer controllers write
BrokerRegistrationChangeRecord (KIP-841).

Versions: RegisterBrokerRecord 0-4, UnregisterBrokerRecord 0, FenceBrokerRecord 0,
          UnfenceBrokerRecord 0, BrokerRegistrationChangeRecord 0-3, RegisterControllerRecord 0.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=0, kind="metadata", versions="0-4", flexible="0+")
class RegisterBrokerRecord(s.Message):
    """A broker has registered: its incarnation, endpoints, features, directories."""

    @s.struct
    class BrokerEndpoint(s.Struct):
        name: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)
        security_protocol: int = s.int16("0+", default=0)

    @s.struct
    class BrokerFeature(s.Struct):
        name: str = s.string("0+", default="")
        min_supported_version: int = s.int16("0+", default=0)
        max_supported_version: int = s.int16("0+", default=0)

    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    is_migrating_zk_broker: bool = s.boolean("2+", default=False)
    incarnation_id: UUID = s.uuid("0+", default=ZERO_UUID)
    broker_epoch: int = s.int64("0+", default=0)
    end_points: tuple[BrokerEndpoint, ...] = s.array("BrokerEndpoint", "0+", default=())
    features: tuple[BrokerFeature, ...] = s.array("BrokerFeature", "0+", default=())
    rack: str | None = s.string("0+", default="", nullable="0+")
    fenced: bool = s.boolean("0+", default=True)
    in_controlled_shutdown: bool = s.boolean("1+", default=False)
    log_dirs: tuple[UUID, ...] = s.array("uuid", "3+", default=(), tag=0)
    cordoned_log_dirs: tuple[UUID, ...] | None = s.array(
        "uuid", "4+", default=None, nullable="4+", tag=1
    )


@s.message(api_key=1, kind="metadata", versions="0", flexible="0+")
class UnregisterBrokerRecord(s.Message):
    """A broker is registered no longer."""

    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    broker_epoch: int = s.int64("0+", default=0)


@s.message(api_key=7, kind="metadata", versions="0", flexible="0+")
class FenceBrokerRecord(s.Message):
    """A broker is fenced; written before KIP-841 and by no one since."""

    id: int = s.int32("0+", default=0, entity="brokerId")
    epoch: int = s.int64("0+", default=0)


@s.message(api_key=8, kind="metadata", versions="0", flexible="0+")
class UnfenceBrokerRecord(s.Message):
    """A broker is fenced no longer; written before KIP-841 and by no one since."""

    id: int = s.int32("0+", default=0, entity="brokerId")
    epoch: int = s.int64("0+", default=0)


@s.message(api_key=17, kind="metadata", versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord(s.Message):
    """A broker's fencing, shutdown or directories have changed; what keeps its default has not."""

    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    broker_epoch: int = s.int64("0+", default=0)
    fenced: int = s.int8("0+", default=0, tag=0)
    in_controlled_shutdown: int = s.int8("1+", default=0, tag=1)
    log_dirs: tuple[UUID, ...] = s.array("uuid", "2+", default=(), tag=2)
    cordoned_log_dirs: tuple[UUID, ...] | None = s.array(
        "uuid", "3+", default=None, nullable="3+", tag=3
    )


@s.message(api_key=27, kind="metadata", versions="0", flexible="0+")
class RegisterControllerRecord(s.Message):
    """A controller has registered (KIP-919)."""

    @s.struct
    class ControllerEndpoint(s.Struct):
        name: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)
        security_protocol: int = s.int16("0+", default=0)

    @s.struct
    class ControllerFeature(s.Struct):
        name: str = s.string("0+", default="")
        min_supported_version: int = s.int16("0+", default=0)
        max_supported_version: int = s.int16("0+", default=0)

    controller_id: int = s.int32("0+", default=0)
    incarnation_id: UUID = s.uuid("0+", default=ZERO_UUID)
    zk_migration_ready: bool = s.boolean("0+", default=False)
    end_points: tuple[ControllerEndpoint, ...] = s.array("ControllerEndpoint", "0+", default=())
    features: tuple[ControllerFeature, ...] = s.array("ControllerFeature", "0+", default=())
