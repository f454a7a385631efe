"""Records about configs, quotas, feature levels and producer ids.

Versions: ConfigRecord 0, ClientQuotaRecord 0, FeatureLevelRecord 0, ProducerIdsRecord 0,
          ZkMigrationStateRecord 0.
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(api_key=4, kind="metadata", versions="0", flexible="0+")
class ConfigRecord(s.Message):
    """A config key has got a value; null takes it away."""

    resource_type: int = s.int8("0+", default=0)
    resource_name: str = s.string("0+", default="")
    name: str = s.string("0+", default="")
    value: str | None = s.string("0+", default="", nullable="0+")


@s.message(api_key=14, kind="metadata", versions="0", flexible="0+")
class ClientQuotaRecord(s.Message):
    """A client quota has got a value or is gone."""

    @s.struct
    class EntityData(s.Struct):
        entity_type: str = s.string("0+", default="")
        entity_name: str | None = s.string("0+", default="", nullable="0+")

    entity: tuple[EntityData, ...] = s.array("EntityData", "0+", default=())
    key: str = s.string("0+", default="")
    value: float = s.float64("0+", default=0.0)
    remove: bool = s.boolean("0+", default=False)


@s.message(api_key=12, kind="metadata", versions="0", flexible="0+")
class FeatureLevelRecord(s.Message):
    """A feature such as metadata.version is finalized at a level."""

    name: str = s.string("0+", default="")
    feature_level: int = s.int16("0+", default=0)


@s.message(api_key=15, kind="metadata", versions="0", flexible="0+")
class ProducerIdsRecord(s.Message):
    """A broker has been given a block of producer ids."""

    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    broker_epoch: int = s.int64("0+", default=-1)
    next_producer_id: int = s.int64("0+", default=0)


@s.message(api_key=21, kind="metadata", versions="0", flexible="0+")
class ZkMigrationStateRecord(s.Message):
    """The state of the migration from ZooKeeper (KIP-866)."""

    zk_migration_state: int = s.int8("0+", default=0)
