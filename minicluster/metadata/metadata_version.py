"""metadata.version: the feature level that decides which records exist and in which version.

Every gate in the project is a named property here; nothing else compares levels.

Source:  KIP-584, KIP-778; MetadataVersion.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

from minicluster.metadata.errors import UnknownMetadataVersion
from minicluster.rules import Rules

FEATURE_NAME = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"


class MetadataVersion(IntEnum):
    """Every level from the first with KRaft to the newest, by Kafka's name (``3.3-IV3``)."""

    V3_0_IV1 = 1
    V3_1_IV0 = 2
    V3_2_IV0 = 3
    V3_3_IV0 = 4
    V3_3_IV1 = 5
    V3_3_IV2 = 6
    V3_3_IV3 = 7
    V3_4_IV0 = 8
    V3_5_IV0 = 9
    V3_5_IV1 = 10
    V3_5_IV2 = 11
    V3_6_IV0 = 12
    V3_6_IV1 = 13
    V3_6_IV2 = 14
    V3_7_IV0 = 15
    V3_7_IV1 = 16
    V3_7_IV2 = 17
    V3_7_IV3 = 18
    V3_7_IV4 = 19
    V3_8_IV0 = 20
    V3_9_IV0 = 21
    V4_0_IV0 = 22
    V4_0_IV1 = 23
    V4_0_IV2 = 24
    V4_0_IV3 = 25
    V4_1_IV0 = 26
    V4_1_IV1 = 27
    V4_2_IV0 = 28
    V4_2_IV1 = 29
    V4_3_IV0 = 30
    V4_4_IV0 = 31

    @property
    def version_name(self) -> str:
        """Kafka's name of the level: ``4.3-IV0``."""
        major, minor, step = self.name[1:].split("_")
        return f"{major}.{minor}-{step}"

    def __str__(self) -> str:
        return self.version_name

    @property
    def level(self) -> int:
        """The number that a FeatureLevelRecord carries."""
        return int(self)

    @classmethod
    def from_level(cls, level: int) -> MetadataVersion:
        """The version of a level.

        Errors:  UnknownMetadataVersion.
        """
        if not MIN_LEVEL <= level <= MAX_LEVEL:
            raise UnknownMetadataVersion(
                f"metadata.version: level {level} is not known; "
                f"levels run from {MIN_LEVEL} to {MAX_LEVEL}"
            )
        return cls(level)

    @classmethod
    def parse(cls, text: str) -> MetadataVersion:
        """Read ``4.3-IV0``, a release (``4.3``: its newest level), or a level (``30``).

        Errors:  UnknownMetadataVersion, which lists what there is.
        """
        cleaned = text.strip()
        if cleaned.isdecimal():
            return cls.from_level(int(cleaned))
        by_name = _by_name()
        if cleaned in by_name:
            return by_name[cleaned]
        of_release = [v for v in cls if v.version_name.startswith(cleaned + "-")]
        if of_release:
            return of_release[-1]
        raise UnknownMetadataVersion(
            f"metadata.version: {text!r} is not known; "
            f"names run from {cls(MIN_LEVEL)} to {cls(MAX_LEVEL)}, "
            f"levels from {MIN_LEVEL} to {MAX_LEVEL}"
        )

    # Which records exist.

    @property
    def leader_recovery_supported(self) -> bool:
        """LeaderRecoveryState is written and sent (KIP-704)."""
        return self >= MetadataVersion.V3_2_IV0

    @property
    def no_op_record_supported(self) -> bool:
        """NoOpRecord exists (KIP-835)."""
        return self >= MetadataVersion.V3_3_IV1

    @property
    def broker_registration_change_supported(self) -> bool:
        """BrokerRegistrationChangeRecord replaces FenceBroker and UnfenceBroker."""
        return self >= MetadataVersion.V3_3_IV2

    @property
    def in_controlled_shutdown_supported(self) -> bool:
        """A controlled shutdown is persisted (KIP-841)."""
        return self >= MetadataVersion.V3_3_IV3

    @property
    def migration_supported(self) -> bool:
        """ZkMigrationStateRecord exists (KIP-866)."""
        return self >= MetadataVersion.V3_4_IV0

    @property
    def scram_supported(self) -> bool:
        """SCRAM credentials are metadata (KIP-900)."""
        return self >= MetadataVersion.V3_5_IV2

    @property
    def isr_shrink_bumps_leader_epoch(self) -> bool:
        """A smaller ISR forces a new leader epoch (until KAFKA-15021)."""
        return self < MetadataVersion.V3_6_IV0

    @property
    def metadata_transactions_supported(self) -> bool:
        """Begin, End and AbortTransactionRecord exist (KIP-868)."""
        return self >= MetadataVersion.V3_6_IV1

    @property
    def delegation_tokens_supported(self) -> bool:
        """Delegation tokens are metadata (KIP-48)."""
        return self >= MetadataVersion.V3_6_IV2

    @property
    def controller_registration_supported(self) -> bool:
        """RegisterControllerRecord exists (KIP-919)."""
        return self >= MetadataVersion.V3_7_IV0

    @property
    def directory_assignment_supported(self) -> bool:
        """Replicas are assigned to log directories (KIP-858)."""
        return self >= MetadataVersion.V3_7_IV2

    def elr_supported(self, rules: Rules) -> bool:
        """Eligible leader replicas can be written (KIP-966); the release says from which level."""
        return self >= rules.metadata_version_with_elr

    @property
    def cordoned_log_dirs_supported(self) -> bool:
        """Log directories can be cordoned (KIP-1066)."""
        return self >= MetadataVersion.V4_3_IV0

    # In which version records are written.

    @property
    def register_broker_record_version(self) -> int:
        """0 to 4: controlled shutdown, migrating, log dirs, cordoned log dirs."""
        return sum(
            (
                self.in_controlled_shutdown_supported,
                self.migration_supported,
                self.directory_assignment_supported,
                self.cordoned_log_dirs_supported,
            )
        )

    def partition_record_version(self, rules: Rules) -> int:
        """0 to 2: directories, eligible leader replicas."""
        return sum((self.directory_assignment_supported, self.elr_supported(rules)))

    def partition_change_record_version(self, rules: Rules) -> int:
        """0 to 2: directories, eligible leader replicas."""
        return self.partition_record_version(rules)

    @property
    def register_controller_record_version(self) -> int:
        """0, wherever the record exists."""
        return 0

    # Which versions of requests brokers use among themselves.

    @property
    def fetch_request_version(self) -> int:
        """The version of Fetch that replicas use."""
        return _greatest(
            self,
            {
                1: 12,
                MetadataVersion.V3_1_IV0: 13,
                MetadataVersion.V3_5_IV0: 14,
                MetadataVersion.V3_5_IV1: 15,
                MetadataVersion.V3_7_IV4: 16,
                MetadataVersion.V3_9_IV0: 17,
                MetadataVersion.V4_1_IV1: 18,
            },
        )

    @property
    def list_offsets_request_version(self) -> int:
        """The version of ListOffsets that replicas use."""
        return _greatest(
            self,
            {
                1: 7,
                MetadataVersion.V3_5_IV0: 8,
                MetadataVersion.V3_8_IV0: 9,
                MetadataVersion.V4_0_IV3: 10,
                MetadataVersion.V4_2_IV1: 11,
            },
        )

    def changes_metadata_since(self, other: MetadataVersion, rules: Rules) -> bool:
        """The records differ between two levels, so that going down would lose some.

        Source:  MetadataVersion.checkIfMetadataChanged.
        """
        low, high = sorted((self, other))
        changed = (*_METADATA_CHANGED, rules.metadata_version_with_elr)
        return any(low < level <= high for level in changed)


MIN_LEVEL = min(MetadataVersion).level
MAX_LEVEL = max(MetadataVersion).level
MINIMUM = MetadataVersion(MIN_LEVEL)

_METADATA_CHANGED = (3, 5, 6, 7, 8, 11, 13, 14, 15, 17, 30)
"""The levels with new records in every release; that of eligible leader replicas depends on it."""


def lowest_version(rules: Rules) -> MetadataVersion:
    """The lowest metadata.version that a release still reads."""
    return MetadataVersion(rules.metadata_version_lowest)


def latest_version(rules: Rules) -> MetadataVersion:
    """The newest metadata.version of a release, including those for testing only."""
    return MetadataVersion(rules.metadata_version_latest)


def production_version(rules: Rules) -> MetadataVersion:
    """The metadata.version that a release formats new clusters with."""
    return MetadataVersion(rules.metadata_version_production)


@cache
def _by_name() -> dict[str, MetadataVersion]:
    return {version.version_name: version for version in MetadataVersion}


def _greatest(version: MetadataVersion, steps: dict[int, int]) -> int:
    return max(value for level, value in steps.items() if level <= version)
