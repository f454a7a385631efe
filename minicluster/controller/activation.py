"""What a controller writes when it becomes active, before anything else.

Source:  ActivationRecordsGenerator; BootstrapMetadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minicluster.controller.settings import DEFAULTS, MIN_ISR, ControllerSettings
from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.metadata_version import ELR_VERSION, FEATURE_NAME, MetadataVersion
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

BOOTSTRAP_NAME = "Bootstrap records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The first records of an active controller."""

    records: tuple[VersionedRecord, ...] = ()
    atomic: bool = False


def bootstrap_records(
    metadata_version: MetadataVersion, features: Mapping[str, int] | None = None
) -> tuple[VersionedRecord, ...]:
    """What formatting a cluster leaves for its first controller: its feature levels."""
    levels = {FEATURE_NAME: metadata_version.level} | dict(features or {})
    return tuple(
        VersionedRecord(FeatureLevelRecord(name=name, feature_level=level), 0)
        for name, level in levels.items()
        if level
    )


def activation_records(
    image: MetadataImage,
    *,
    bootstrap: Sequence[VersionedRecord],
    log_is_empty: bool,
    in_transaction: bool,
    rules: Rules,
    settings: ControllerSettings,
) -> Activation:
    """Bootstrap a cluster that has none of its records, or end what a predecessor left open.

    Shapes:  image is the state without an open transaction.
    """
    version = image.features.metadata_version
    abort = VersionedRecord(
        AbortTransactionRecord(reason="the controller that began it is gone"), 0
    )
    if version is not None or not (log_is_empty or rules.tasks_are_periodic):
        return Activation(records=(abort,) if in_transaction else ())
    levels = {
        record.record.name: record.record.feature_level
        for record in bootstrap
        if isinstance(record.record, FeatureLevelRecord)
    }
    first = MetadataVersion.from_level(levels.get(FEATURE_NAME, 0))
    records = list(bootstrap)
    if rules.elr_starts_with_cluster_min_isr and levels.get(ELR_VERSION):
        records.append(cluster_min_isr(settings))
    if rules.zk_migration_state_is_written and first.migration_supported:
        records.append(VersionedRecord(ZkMigrationStateRecord(zk_migration_state=0), 0))
    if not first.metadata_transactions_supported:
        return Activation(records=tuple(records), atomic=True)
    begin = VersionedRecord(BeginTransactionRecord(name=BOOTSTRAP_NAME), 0)
    end = VersionedRecord(EndTransactionRecord(), 0)
    start = [abort] if in_transaction else []
    return Activation(records=(*start, begin, *records, end))


def cluster_min_isr(settings: ControllerSettings) -> VersionedRecord:
    """Fix the cluster's min.insync.replicas at the static value, as ELR needs it (KIP-966)."""
    value = settings.static_config.get(MIN_ISR, DEFAULTS[MIN_ISR])
    record = ConfigRecord(
        resource_type=BROKER, resource_name=CLUSTER_DEFAULT, name=MIN_ISR, value=value
    )
    return VersionedRecord(record, 0)
