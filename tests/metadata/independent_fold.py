"""A second fold of metadata records, which shares no step with ``metadata.image``.

Nodes publish the digest of their image, and the judge makes its own by the same function: a record
that ``metadata.image.metadata_image.apply`` forgets would be forgotten twice. This fold is compared
with it instead, record by record and on the logs of Apache Kafka. It holds plain rows and the sums
of their fingerprints, and gives the digest of an image with the same content. Values and the form
of a fingerprint are shared, since they are what is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.cluster import (
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
    FeatureRange,
)
from minicluster.metadata.image.configs import REMOVED_TOPIC_CONFIGS, TOPIC
from minicluster.metadata.image.directory_id import MIGRATING, java_order
from minicluster.metadata.image.quotas import NO_PRODUCER_IDS
from minicluster.metadata.image.security import (
    AccessControlEntry,
    DelegationToken,
    ScramCredential,
)
from minicluster.metadata.image.tables import digest_of, fingerprint, fingerprint_of_bytes
from minicluster.metadata.metadata_version import FEATURE_NAME, KRAFT_VERSION, MAX_LEVEL, MIN_LEVEL
from minicluster.protocol import records as r
from minicluster.values import replace

_SECTIONS = (
    "features",
    "cluster",
    "topics",
    "configs",
    "client_quotas",
    "producer_ids",
    "acls",
    "scram",
    "delegation_tokens",
)
_WITHOUT_CONTENT = (
    r.NoOpRecord,
    r.BeginTransactionRecord,
    r.EndTransactionRecord,
    r.AbortTransactionRecord,
    r.ZkMigrationStateRecord,
)
_Partition = dict[str, Any]


class IndependentFold:
    """The state that records make, row by row.

    Errors:  ReplayError from ``apply`` where a record does not fit the state.
    """

    def __init__(self, records: Iterable[r.VersionedRecord] = ()) -> None:
        self._sums = dict.fromkeys(_SECTIONS, 0)
        self._prints: dict[tuple[str, Any], int] = {}
        self._brokers: dict[int, BrokerRegistration] = {}
        self._ids: dict[str, UUID] = {}
        self._names: dict[UUID, str] = {}
        self._partitions: dict[UUID, dict[int, _Partition]] = {}
        self._configs: dict[str, set[str]] = {}
        for versioned in records:
            self.apply(versioned.record)

    def digest(self) -> str:
        """The digest of an image with this content."""
        return digest_of(self._sums.values())

    def apply(self, record: Any) -> None:
        """Take one record in.

        Errors:  ReplayError.
        """
        step = _STEPS.get(type(record))
        if step is not None:
            step(self, record)
        elif not isinstance(record, _WITHOUT_CONTENT):
            raise ReplayError(f"{type(record).__name__} is not a metadata record")

    def _row(self, section: str, key: Any, value: int | None) -> None:
        """Set the fingerprint of one row, None to remove it."""
        before = self._prints.pop((section, key), 0)
        if value is not None:
            self._prints[section, key] = value
        self._sums[section] += (value or 0) - before

    # --- features and nodes -------------------------------------------------------------------

    def feature(self, record: r.FeatureLevelRecord) -> None:
        """A feature is at a level; level 0 of any but metadata.version means none."""
        if record.name == KRAFT_VERSION:
            return
        if record.name == FEATURE_NAME:
            # MetadataVersion.fromFeatureLevel: a level that a release does not know ends its node.
            if not MIN_LEVEL <= record.feature_level <= MAX_LEVEL:
                raise ReplayError(f"metadata.version: there is no level {record.feature_level}")
            row = fingerprint(FEATURE_NAME, record.feature_level)
        elif record.feature_level:
            row = fingerprint("feature", record.name, record.feature_level)
        else:
            row = None
        self._row("features", record.name, row)

    def register_broker(self, record: r.RegisterBrokerRecord) -> None:
        """A registration replaces the one before it."""
        cordoned = record.cordoned_log_dirs
        self._broker(
            BrokerRegistration(
                id=record.broker_id,
                epoch=record.broker_epoch,
                incarnation_id=record.incarnation_id,
                endpoints=_endpoints(record),
                features=_features(record),
                rack=record.rack,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                is_migrating_zk_broker=record.is_migrating_zk_broker,
                log_dirs=_sorted(record.log_dirs or ()),
                cordoned_log_dirs=None if cordoned is None else _sorted(cordoned),
            )
        )

    def unregister_broker(self, record: r.UnregisterBrokerRecord) -> None:
        """A broker leaves."""
        self._registered(record.broker_id, record.broker_epoch)
        del self._brokers[record.broker_id]
        self._row("cluster", ("broker", record.broker_id), None)

    def fence_broker(self, record: r.FenceBrokerRecord) -> None:
        """A broker is fenced, below metadata.version 3.3-IV2."""
        self._broker(replace(self._registered(record.id, record.epoch), fenced=True))

    def unfence_broker(self, record: r.UnfenceBrokerRecord) -> None:
        """A broker is unfenced, below metadata.version 3.3-IV2."""
        self._broker(replace(self._registered(record.id, record.epoch), fenced=False))

    def change_broker(self, record: r.BrokerRegistrationChangeRecord) -> None:
        """A registration changes; an empty list of directories leaves them as they are."""
        after = self._registered(record.broker_id, record.broker_epoch)
        fenced = {-1: False, 0: after.fenced, 1: True}.get(record.fenced)
        stopping = {0: after.in_controlled_shutdown, 1: True}.get(record.in_controlled_shutdown)
        if fenced is None or stopping is None:
            raise ReplayError(f"broker {record.broker_id}: no change of a registration")
        after = replace(after, fenced=fenced, in_controlled_shutdown=stopping)
        if record.log_dirs:
            after = replace(after, log_dirs=_sorted(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            after = replace(after, cordoned_log_dirs=_sorted(record.cordoned_log_dirs))
        self._broker(after)

    def register_controller(self, record: r.RegisterControllerRecord) -> None:
        """A registration replaces the one before it."""
        value = ControllerRegistration(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            zk_migration_ready=record.zk_migration_ready,
            endpoints=_endpoints(record),
            features=_features(record),
        )
        row = fingerprint("controller", value.id, value)
        self._row("cluster", ("controller", value.id), row)

    def _registered(self, broker_id: int, epoch: int) -> BrokerRegistration:
        broker = self._brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise ReplayError(f"broker {broker_id} is not registered with epoch {epoch}")
        return broker

    def _broker(self, broker: BrokerRegistration) -> None:
        for other in self._brokers.values():
            if other.id != broker.id and set(broker.log_dirs) & set(other.log_dirs):
                raise ReplayError(f"brokers {broker.id} and {other.id} claim one log directory")
        self._brokers[broker.id] = broker
        self._row("cluster", ("broker", broker.id), fingerprint("broker", broker.id, broker))

    # --- topics and partitions ----------------------------------------------------------------

    def topic(self, record: r.TopicRecord) -> None:
        """A topic without partitions."""
        if record.name in self._ids or record.topic_id in self._names:
            raise ReplayError(f"topic {record.name} or its id is there already")
        self._ids[record.name], self._names[record.topic_id] = record.topic_id, record.name
        self._partitions[record.topic_id] = {}
        row = fingerprint("topic", record.name, record.topic_id)
        self._row("topics", record.topic_id, row)

    def remove_topic(self, record: r.RemoveTopicRecord) -> None:
        """A topic is gone, with its partitions and configs."""
        name, topic_id = self._name(record.topic_id), record.topic_id
        for number in self._partitions.pop(topic_id):
            self._row("topics", (topic_id, number), None)
        self._row("topics", topic_id, None)
        del self._ids[name], self._names[topic_id]
        for key in self._configs.pop(name, ()):
            self._row("configs", (TOPIC, name, key), None)

    def partition(self, record: r.PartitionRecord) -> None:
        """A partition with its whole state."""
        self._name(record.topic_id)
        state: _Partition = {
            "replicas": tuple(record.replicas),
            "isr": tuple(record.isr),
            "removing": tuple(record.removing_replicas or ()),
            "adding": tuple(record.adding_replicas or ()),
            "elr": tuple(record.eligible_leader_replicas or ()),
            "last_elr": tuple(record.last_known_elr or ()),
            "leader": record.leader,
            "recovery": record.leader_recovery_state,
            "leader_epoch": record.leader_epoch,
            "partition_epoch": record.partition_epoch,
            "directories": tuple(record.directories or ()),
        }
        self._partition(record.topic_id, record.partition_id, state)

    def change_partition(self, record: r.PartitionChangeRecord) -> None:
        """The fields that a record gives replace those before; each record is one epoch."""
        topic = self._name(record.topic_id)
        before = self._partitions[record.topic_id].get(record.partition_id)
        if before is None:
            raise ReplayError(f"topic {topic} has no partition {record.partition_id}")
        state = {**before, "partition_epoch": before["partition_epoch"] + 1}
        set_fields = {
            "replicas": record.replicas,
            "isr": record.isr,
            "removing": record.removing_replicas,
            "adding": record.adding_replicas,
            "elr": record.eligible_leader_replicas,
            "last_elr": record.last_known_elr,
        }
        state |= {name: tuple(value) for name, value in set_fields.items() if value is not None}
        if record.directories is not None:
            state["directories"] = tuple(record.directories)
        elif len(before["directories"]) != len(state["replicas"]):
            state["directories"] = ()
        if record.leader_recovery_state != -1:
            state["recovery"] = record.leader_recovery_state
        if record.leader != -2:
            state |= {"leader": record.leader, "leader_epoch": before["leader_epoch"] + 1}
        self._partition(record.topic_id, record.partition_id, state)

    def clear_elr(self, record: r.ClearElrRecord) -> None:
        """Partitions with eligible leaders, or a last known one, lose them; no name: all topics."""
        if record.topic_name and record.topic_name not in self._ids:
            raise ReplayError(f"topic {record.topic_name} does not exist")
        chosen = [self._ids[record.topic_name]] if record.topic_name else list(self._names)
        for topic_id in chosen:
            for number, state in list(self._partitions[topic_id].items()):
                if state["elr"] or state["last_elr"]:
                    epoch = state["partition_epoch"] + 1
                    cleared = {"elr": (), "last_elr": (), "partition_epoch": epoch}
                    self._partition(topic_id, number, {**state, **cleared})

    def _name(self, topic_id: UUID) -> str:
        if topic_id not in self._names:
            raise ReplayError(f"topic id {topic_id} does not exist")
        return self._names[topic_id]

    def _partition(self, topic_id: UUID, number: int, state: _Partition) -> None:
        replicas, directories = state["replicas"], state["directories"]
        state["directories"] = directories = directories or (MIGRATING,) * len(replicas)
        if len(directories) != len(replicas) or state["recovery"] not in (0, 1):
            raise ReplayError(f"partition {number} of {topic_id}: directories or recovery state")
        self._partitions[topic_id][number] = state
        lists = "".join(
            repr(state[name])
            for name in ("replicas", "isr", "removing", "adding", "elr", "last_elr")
        )
        numbers = ":".join(
            str(state[name]) for name in ("leader", "recovery", "leader_epoch", "partition_epoch")
        )
        text = f"{topic_id.int}:{number}:{lists}{numbers}:".encode()
        content = text + b"".join(directory.bytes for directory in directories)
        self._row("topics", (topic_id, number), fingerprint_of_bytes(content))

    # --- configs, quotas, producer ids, security ----------------------------------------------

    def config(self, record: r.ConfigRecord) -> None:
        """A config is set, or removed by null."""
        kind, name, key = record.resource_type, record.resource_name, record.name
        if kind == TOPIC:
            if key in REMOVED_TOPIC_CONFIGS:
                return
            self._configs.setdefault(name, set()).add(key)
        row = None
        if record.value is not None:
            row = fingerprint("config", (kind, name), key, record.value)
        self._row("configs", (kind, name, key), row)

    def quota(self, record: r.ClientQuotaRecord) -> None:
        """A quota is set or removed."""
        parts = sorted((part.entity_type, part.entity_name) for part in record.entity)
        entity = tuple(parts)
        row = None
        if not record.remove:
            row = fingerprint("quota", entity, record.key, record.value)
        self._row("client_quotas", (entity, record.key), row)

    def producer_ids(self, record: r.ProducerIdsRecord) -> None:
        """The first producer id that no broker has."""
        row = None
        if record.next_producer_id != NO_PRODUCER_IDS:
            row = fingerprint("producer ids", record.next_producer_id)
        self._row("producer_ids", "", row)

    def acl(self, record: r.AccessControlEntryRecord) -> None:
        """An entry; its id is given once."""
        if ("acls", record.id) in self._prints:
            raise ReplayError(f"access control entry {record.id} comes a second time")
        fields = {name: getattr(record, name) for name in AccessControlEntry.__struct_fields__}
        entry = AccessControlEntry(**fields)
        self._row("acls", record.id, fingerprint("acl", record.id, entry))

    def remove_acl(self, record: r.RemoveAccessControlEntryRecord) -> None:
        """An entry is gone."""
        if ("acls", record.id) not in self._prints:
            raise ReplayError(f"access control entry {record.id} does not exist")
        self._row("acls", record.id, None)

    def scram(self, record: r.UserScramCredentialRecord) -> None:
        """The credential of a user, for one mechanism."""
        fields = {name: getattr(record, name) for name in ScramCredential.__struct_fields__}
        key = (record.mechanism, record.name)
        self._row("scram", key, fingerprint("scram", key, ScramCredential(**fields)))

    def remove_scram(self, record: r.RemoveUserScramCredentialRecord) -> None:
        """A credential is gone."""
        key = (record.mechanism, record.name)
        if ("scram", key) not in self._prints:
            raise ReplayError(f"user {record.name} has no credential of {record.mechanism}")
        self._row("scram", key, None)

    def token(self, record: r.DelegationTokenRecord) -> None:
        """A token, or the same one renewed."""
        fields = {name: getattr(record, name) for name in DelegationToken.__struct_fields__}
        fields["renewers"] = tuple(record.renewers)
        row = fingerprint("delegation token", record.token_id, DelegationToken(**fields))
        self._row("delegation_tokens", record.token_id, row)

    def remove_token(self, record: r.RemoveDelegationTokenRecord) -> None:
        """A token is gone; an unknown one is gone already."""
        self._row("delegation_tokens", record.token_id, None)


_STEPS: dict[type, Callable[[IndependentFold, Any], None]] = {
    r.FeatureLevelRecord: IndependentFold.feature,
    r.RegisterBrokerRecord: IndependentFold.register_broker,
    r.UnregisterBrokerRecord: IndependentFold.unregister_broker,
    r.FenceBrokerRecord: IndependentFold.fence_broker,
    r.UnfenceBrokerRecord: IndependentFold.unfence_broker,
    r.BrokerRegistrationChangeRecord: IndependentFold.change_broker,
    r.RegisterControllerRecord: IndependentFold.register_controller,
    r.TopicRecord: IndependentFold.topic,
    r.RemoveTopicRecord: IndependentFold.remove_topic,
    r.PartitionRecord: IndependentFold.partition,
    r.PartitionChangeRecord: IndependentFold.change_partition,
    r.ClearElrRecord: IndependentFold.clear_elr,
    r.ConfigRecord: IndependentFold.config,
    r.ClientQuotaRecord: IndependentFold.quota,
    r.ProducerIdsRecord: IndependentFold.producer_ids,
    r.AccessControlEntryRecord: IndependentFold.acl,
    r.RemoveAccessControlEntryRecord: IndependentFold.remove_acl,
    r.UserScramCredentialRecord: IndependentFold.scram,
    r.RemoveUserScramCredentialRecord: IndependentFold.remove_scram,
    r.DelegationTokenRecord: IndependentFold.token,
    r.RemoveDelegationTokenRecord: IndependentFold.remove_token,
}


def _sorted(directories: Iterable[UUID]) -> tuple[UUID, ...]:
    return tuple(sorted(directories, key=java_order))


def _endpoints(
    record: r.RegisterBrokerRecord | r.RegisterControllerRecord,
) -> tuple[Endpoint, ...]:
    by_name = {
        endpoint.name: Endpoint(
            name=endpoint.name,
            host=endpoint.host,
            port=endpoint.port,
            security_protocol=endpoint.security_protocol,
        )
        for endpoint in record.end_points
    }
    return tuple(by_name[name] for name in sorted(by_name))


def _features(
    record: r.RegisterBrokerRecord | r.RegisterControllerRecord,
) -> tuple[FeatureRange, ...]:
    by_name = {
        feature.name: FeatureRange(
            name=feature.name,
            min_supported_version=feature.min_supported_version,
            max_supported_version=feature.max_supported_version,
        )
        for feature in record.features
    }
    return tuple(by_name[name] for name in sorted(by_name))
