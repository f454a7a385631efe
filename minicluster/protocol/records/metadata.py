"""The records of the metadata log, by what they are about: partitions, brokers, settings, security.

The class of a record is all that the log's frame needs: ``framing`` finds it here by its key.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.uuids import ZERO_UUID

# Records about topics and their partitions.
#
# In a change, null (or -2 for the leader, -1 for the recovery state) means "as before".
#
# Versions: TopicRecord 0, RemoveTopicRecord 0, PartitionRecord 0-2, PartitionChangeRecord 0-2,
#           ClearElrRecord 0.


@s.message(api_key=2, kind="metadata", versions="0", flexible="0+")
class TopicRecord(s.Message):
    """A topic has been made."""

    name: str = s.string("0+", default="", entity="topicName")
    topic_id: UUID = s.uuid("0+", default=ZERO_UUID)


@s.message(api_key=9, kind="metadata", versions="0", flexible="0+")
class RemoveTopicRecord(s.Message):
    """A topic is gone, and its partitions with it."""

    topic_id: UUID = s.uuid("0+", default=ZERO_UUID)


@s.message(api_key=3, kind="metadata", versions="0-2", flexible="0+")
class PartitionRecord(s.Message):
    """A partition as a whole."""

    partition_id: int = s.int32("0+", default=-1)
    topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
    replicas: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
    isr: tuple[int, ...] = s.array("int32", "0+", default=())
    removing_replicas: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
    adding_replicas: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
    leader: int = s.int32("0+", default=-1, entity="brokerId")
    leader_recovery_state: int = s.int8("0+", default=0, tag=0)
    leader_epoch: int = s.int32("0+", default=-1)
    partition_epoch: int = s.int32("0+", default=-1)
    directories: tuple[UUID, ...] = s.array("uuid", "1+", default=())
    eligible_leader_replicas: tuple[int, ...] | None = s.array(
        "int32", "2+", default=None, nullable="2+", tag=1, entity="brokerId"
    )
    last_known_elr: tuple[int, ...] | None = s.array(
        "int32", "2+", default=None, nullable="2+", tag=2, entity="brokerId"
    )


@s.message(api_key=5, kind="metadata", versions="0-2", flexible="0+")
class PartitionChangeRecord(s.Message):
    """The changed fields of a partition."""

    partition_id: int = s.int32("0+", default=-1)
    topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
    isr: tuple[int, ...] | None = s.array(
        "int32", "0+", default=None, nullable="0+", tag=0, entity="brokerId"
    )
    leader: int = s.int32("0+", default=-2, tag=1, entity="brokerId")
    replicas: tuple[int, ...] | None = s.array(
        "int32", "0+", default=None, nullable="0+", tag=2, entity="brokerId"
    )
    removing_replicas: tuple[int, ...] | None = s.array(
        "int32", "0+", default=None, nullable="0+", tag=3, entity="brokerId"
    )
    adding_replicas: tuple[int, ...] | None = s.array(
        "int32", "0+", default=None, nullable="0+", tag=4, entity="brokerId"
    )
    leader_recovery_state: int = s.int8("0+", default=-1, tag=5)
    directories: tuple[UUID, ...] | None = s.array("uuid", "1+", default=None, nullable="1+", tag=8)
    eligible_leader_replicas: tuple[int, ...] | None = s.array(
        "int32", "2+", default=None, nullable="2+", tag=6, entity="brokerId"
    )
    last_known_elr: tuple[int, ...] | None = s.array(
        "int32", "2+", default=None, nullable="2+", tag=7, entity="brokerId"
    )


@s.message(api_key=28, kind="metadata", versions="0", flexible="0+")
class ClearElrRecord(s.Message):
    """A topic, or every topic, has forgotten its eligible leader replicas (KIP-966)."""

    topic_name: str = s.string("0+", default="", entity="topicName")


# Records about brokers and controllers: registration, fencing, log directories.
#
# FenceBrokerRecord and UnfenceBrokerRecord are read in old logs; newer controllers write
# BrokerRegistrationChangeRecord (KIP-841).
#
# Versions: RegisterBrokerRecord 0-4, UnregisterBrokerRecord 0, FenceBrokerRecord 0,
#           UnfenceBrokerRecord 0, BrokerRegistrationChangeRecord 0-3, RegisterControllerRecord 0.


@s.message(api_key=0, kind="metadata", versions="0-4", flexible="0+")
class RegisterBrokerRecord(s.Message):
    """A broker has registered: its incarnation, endpoints, features, directories."""

    class BrokerEndpoint(s.Struct):
        name: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)
        security_protocol: int = s.int16("0+", default=0)

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

    class ControllerEndpoint(s.Struct):
        name: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)
        security_protocol: int = s.int16("0+", default=0)

    class ControllerFeature(s.Struct):
        name: str = s.string("0+", default="")
        min_supported_version: int = s.int16("0+", default=0)
        max_supported_version: int = s.int16("0+", default=0)

    controller_id: int = s.int32("0+", default=0)
    incarnation_id: UUID = s.uuid("0+", default=ZERO_UUID)
    zk_migration_ready: bool = s.boolean("0+", default=False)
    end_points: tuple[ControllerEndpoint, ...] = s.array("ControllerEndpoint", "0+", default=())
    features: tuple[ControllerFeature, ...] = s.array("ControllerFeature", "0+", default=())


# Records about configs, quotas, feature levels and producer ids.
#
# Versions: ConfigRecord 0, ClientQuotaRecord 0, FeatureLevelRecord 0, ProducerIdsRecord 0,
#           ZkMigrationStateRecord 0.


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


# Records about ACLs, SCRAM credentials and delegation tokens.
#
# Versions: AccessControlEntryRecord 0, RemoveAccessControlEntryRecord 0, UserScramCredentialRecord
#           0, RemoveUserScramCredentialRecord 0, DelegationTokenRecord 0,
#           RemoveDelegationTokenRecord 0.


@s.message(api_key=18, kind="metadata", versions="0", flexible="0+")
class AccessControlEntryRecord(s.Message):
    """An ACL has been made."""

    id: UUID = s.uuid("0+", default=ZERO_UUID)
    resource_type: int = s.int8("0+", default=0)
    resource_name: str = s.string("0+", default="")
    pattern_type: int = s.int8("0+", default=0)
    principal: str = s.string("0+", default="")
    host: str = s.string("0+", default="")
    operation: int = s.int8("0+", default=0)
    permission_type: int = s.int8("0+", default=0)


@s.message(api_key=19, kind="metadata", versions="0", flexible="0+")
class RemoveAccessControlEntryRecord(s.Message):
    """An ACL is gone."""

    id: UUID = s.uuid("0+", default=ZERO_UUID)


@s.message(api_key=11, kind="metadata", versions="0", flexible="0+")
class UserScramCredentialRecord(s.Message):
    """A user has got SCRAM credentials (KIP-900)."""

    name: str = s.string("0+", default="")
    mechanism: int = s.int8("0+", default=0)
    salt: bytes = s.bytes_("0+", default=b"")
    stored_key: bytes = s.bytes_("0+", default=b"")
    server_key: bytes = s.bytes_("0+", default=b"")
    iterations: int = s.int32("0+", default=0)


@s.message(api_key=22, kind="metadata", versions="0", flexible="0+")
class RemoveUserScramCredentialRecord(s.Message):
    """A user's SCRAM credentials are gone."""

    name: str = s.string("0+", default="")
    mechanism: int = s.int8("0+", default=0)


@s.message(api_key=10, kind="metadata", versions="0", flexible="0+")
class DelegationTokenRecord(s.Message):
    """A delegation token has been made or renewed (KIP-900)."""

    owner: str = s.string("0+", default="")
    requester: str = s.string("0+", default="")
    renewers: tuple[str, ...] = s.array("string", "0+", default=())
    issue_timestamp: int = s.int64("0+", default=0)
    max_timestamp: int = s.int64("0+", default=0)
    expiration_timestamp: int = s.int64("0+", default=0)
    token_id: str = s.string("0+", default="")


@s.message(api_key=26, kind="metadata", versions="0", flexible="0+")
class RemoveDelegationTokenRecord(s.Message):
    """A delegation token is gone."""

    token_id: str = s.string("0+", default="")


# Records that bind others together (KIP-866), and the one without content (KIP-835).
#
# Versions: BeginTransactionRecord 0, EndTransactionRecord 0, AbortTransactionRecord 0, NoOpRecord
#           0.


@s.message(api_key=23, kind="metadata", versions="0", flexible="0+")
class BeginTransactionRecord(s.Message):
    """The records from here on take effect together."""

    name: str | None = s.string("0+", default=None, nullable="0+", tag=0)


@s.message(api_key=24, kind="metadata", versions="0", flexible="0+")
class EndTransactionRecord(s.Message):
    """The transaction is whole: its records take effect."""


@s.message(api_key=25, kind="metadata", versions="0", flexible="0+")
class AbortTransactionRecord(s.Message):
    """The transaction is dropped: its records take no effect."""

    reason: str | None = s.string("0+", default=None, nullable="0+", tag=0)


@s.message(api_key=20, kind="metadata", versions="0", flexible="0+")
class NoOpRecord(s.Message):
    """Nothing has changed, but the log grows."""
