"""Which Kafka: every difference between releases, and every known bug, is one named field.

No rule anywhere compares release numbers; it asks a field of this value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

from minicluster.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One release's rules. The defaults are those of Kafka 4.3."""

    KAFKA_4_3: ClassVar[Rules]
    KAFKA_3_9: ClassVar[Rules]

    name: str = "kafka-4.3"

    # Levels of metadata.version that a node reads, formats with, and knows (MetadataVersion).
    metadata_version_lowest: int = 7
    metadata_version_production: int = 30
    metadata_version_latest: int = 31
    # ZkMigrationStateRecord ends the features of a snapshot and the bootstrap records (3.9).
    zk_migration_state_is_written: bool = False
    # A cluster that starts with ELR first fixes the cluster's min.insync.replicas (4.x).
    elr_starts_with_cluster_min_isr: bool = True
    # The metadata loader publishes after any snapshot (3.9), or only after a record (4.x).
    empty_snapshot_counts_as_record: bool = False
    # Records after an AbortTransaction in one delivery bring the aborted ones back
    # (MetadataBatchLoader.replay).
    aborted_transaction_leaks: bool = field(default=False, metadata={"bug": True})

    # A failed registration or heartbeat is tried again after a growing back-off (3.9), or after
    # the heartbeat interval (4.x; BrokerLifecycleManager).
    broker_retry_backs_off: bool = False

    @classmethod
    def named(cls, name: str) -> Rules:
        """Find the rules that a scenario names (``kafka-4.3``, ``kafka-3.9``)."""
        known = {rules.name: rules for rules in (cls.KAFKA_4_3, cls.KAFKA_3_9)}
        if name not in known:
            raise UserError(f"rules: {name!r} is not known; choose one of {', '.join(known)}")
        return known[name]

    def as_shipped(self) -> Rules:
        """These rules with every bug of the release as it shipped."""
        bugs = {f.name: True for f in fields(self) if f.metadata.get("bug")}
        return replace(self, **bugs)  # type: ignore[arg-type]


Rules.KAFKA_4_3 = Rules()
Rules.KAFKA_3_9 = Rules(
    name="kafka-3.9",
    metadata_version_lowest=1,
    metadata_version_production=21,
    metadata_version_latest=23,
    zk_migration_state_is_written=True,
    elr_starts_with_cluster_min_isr=False,
    empty_snapshot_counts_as_record=True,
    broker_retry_backs_off=True,
)
