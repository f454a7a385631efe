"""The first records of a cluster, and the first records of each new active controller.

Nothing in an empty log says what the cluster is: its metadata.version and features come from the
``bootstrap.checkpoint`` of the controller that is elected first. It writes them in a transaction.
If it fails within it, the next controller finds the transaction open, aborts it, and writes its
own: so the cluster has the bootstrap records of one node, whole.

Source:  KIP-778, KIP-868, KIP-966; ActivationRecordsGenerator, BootstrapMetadata, Formatter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from minicluster.errors import UserError
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT, MIN_ISR
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.metadata.metadata_version import (
    ELR_VERSION,
    FEATURE_NAME,
    GROUP_VERSION,
    MINIMUM,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
    MetadataVersion,
    lowest_version,
)
from minicluster.metadata.snapshot import MIGRATION_STATE_NONE
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    VersionedRecord,
    ZkMigrationStateRecord,
)
from minicluster.rules import Rules
from minicluster.values import Value

BOOTSTRAP_TRANSACTION = "Bootstrap records"

_DEFAULT_LEVELS = {
    ELR_VERSION: (1, MetadataVersion.V4_1_IV0),
    GROUP_VERSION: (1, MetadataVersion.V4_0_IV0),
    SHARE_VERSION: (1, MetadataVersion.V4_2_IV0),
    STREAMS_VERSION: (1, MetadataVersion.V4_2_IV1),
    TRANSACTION_VERSION: (2, MetadataVersion.V4_0_IV2),
}
"""feature -> (its level in a new cluster, the first metadata.version that has it so)"""


class Activation(Value, kw_only=True):
    """The records that a new active controller appends first.

    Shapes:  atomic records are one batch; others may be several, held together by a transaction.
    """

    records: tuple[VersionedRecord, ...]
    atomic: bool


def default_features(version: MetadataVersion) -> dict[str, int]:
    """The features that formatting at a metadata.version turns on, by name."""
    return {
        name: level for name, (level, first) in sorted(_DEFAULT_LEVELS.items()) if version >= first
    }


def bootstrap_records(
    version: MetadataVersion,
    features: Mapping[str, int] | None = None,
    more: Sequence[VersionedRecord] = (),
    rules: Rules = Rules.KAFKA_4_3,
) -> tuple[VersionedRecord, ...]:
    """The records of ``bootstrap.checkpoint``: metadata.version, other features, credentials.

    Shapes:  features None means the defaults of the version; level 0 leaves a feature out.
    Errors:  UserError for a version that cannot be a cluster's first.
    """
    lowest = max(lowest_version(rules), MetadataVersion.V3_3_IV0)
    if version < lowest:
        raise UserError(
            f"metadata.version: a new cluster cannot start at {version}, below {lowest}"
        )
    if version > rules.metadata_version_latest:
        highest = MetadataVersion(rules.metadata_version_latest)
        raise UserError(f"metadata.version: {version} is above {highest}, the last of {rules.name}")
    levels = default_features(version) if features is None else dict(features)
    levels.pop(FEATURE_NAME, None)
    if levels.get(ELR_VERSION) and not version.elr_supported(rules):
        raise UserError(f"{ELR_VERSION}: not possible at metadata.version {version}")
    return (
        _feature(FEATURE_NAME, version.level),
        *(_feature(name, level) for name, level in sorted(levels.items()) if level),
        *more,
    )


def activation_records(
    image: MetadataImage,
    *,
    log_is_empty: bool,
    transaction_is_open: bool,
    bootstrap: Sequence[VersionedRecord],
    static_min_insync_replicas: int = 1,
    rules: Rules = Rules.KAFKA_4_3,
) -> Activation:
    """The records that a controller writes when it becomes active, before any other.

    A log without metadata.version (3.9: one without any metadata record) gets the bootstrap
    records, in a transaction where there are transactions. Otherwise an open transaction, which
    no controller can end any more, is aborted.

    Shapes:  image is that of the committed log, without an open transaction.
    Errors:  ReplayError when a transaction is open that the metadata.version cannot abort.
    Source:  ActivationRecordsGenerator.generate.
    """
    unknown = image.features.metadata_version is None
    if unknown if rules.bootstraps_log_without_metadata_version else log_is_empty:
        return _bootstrap(transaction_is_open, bootstrap, static_min_insync_replicas, rules)
    if not transaction_is_open:
        return Activation(records=(), atomic=True)
    version = image.features.metadata_version or MINIMUM
    if not version.metadata_transactions_supported:
        raise ReplayError(
            f"Detected in-progress transaction, but the metadata.version {version} does not "
            "support transactions. Cannot continue."
        )
    return Activation(records=(_ABORT,), atomic=True)


def _bootstrap(
    transaction_is_open: bool,
    bootstrap: Sequence[VersionedRecord],
    static_min_insync_replicas: int,
    rules: Rules,
) -> Activation:
    after = apply_all(MetadataImage.EMPTY, bootstrap).features
    version = after.metadata_version
    if version is None:
        raise ReplayError("the bootstrap records set no metadata.version")
    records = list(bootstrap)
    if rules.zk_migration_state_is_written and version.migration_supported:
        none = ZkMigrationStateRecord(zk_migration_state=MIGRATION_STATE_NONE)
        records.append(VersionedRecord(none, 0))
    if rules.elr_starts_with_cluster_min_isr and after.elr_enabled:
        records.append(cluster_min_isr_record(static_min_insync_replicas))
    if not version.metadata_transactions_supported:
        if transaction_is_open:
            raise ReplayError(
                f"Detected partial bootstrap records transaction, but the metadata.version "
                f"{version} does not support transactions. Cannot continue."
            )
        return Activation(records=tuple(records), atomic=True)
    begin = VersionedRecord(BeginTransactionRecord(name=BOOTSTRAP_TRANSACTION), 0)
    end = VersionedRecord(EndTransactionRecord(), 0)
    aborts = [_ABORT] if transaction_is_open else []
    return Activation(records=(*aborts, begin, *records, end), atomic=False)


def cluster_min_isr_record(value: int) -> VersionedRecord:
    """The cluster's min.insync.replicas, without which ELR is not safe (KIP-966)."""
    record = ConfigRecord(
        resource_type=BROKER,
        resource_name=CLUSTER_DEFAULT,
        name=MIN_ISR,
        value=str(value),
    )
    return VersionedRecord(record, 0)


def _feature(name: str, level: int) -> VersionedRecord:
    return VersionedRecord(FeatureLevelRecord(name=name, feature_level=level), 0)


_ABORT = VersionedRecord(AbortTransactionRecord(reason="Controller failover"), 0)
