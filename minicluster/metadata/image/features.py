"""The finalized features.

Source:  KIP-584, KIP-778; FeaturesImage, FeaturesDelta.
"""

from __future__ import annotations

from functools import cache

from msgspec import field

from minicluster.metadata.errors import ReplayError, UnknownMetadataVersion
from minicluster.metadata.image.tables import Fold, Table, fingerprint
from minicluster.metadata.metadata_version import (
    ELR_VERSION,
    FEATURE_NAME,
    KRAFT_VERSION,
    MetadataVersion,
)
from minicluster.protocol.records import FeatureLevelRecord, ZkMigrationStateRecord
from minicluster.values import Value


class FeaturesImage(Value, kw_only=True):
    """metadata.version and the other features' levels; a feature at level 0 is not finalized."""

    metadata_version: MetadataVersion | None = None
    levels: Table[str, int] = field(default_factory=lambda: Table("feature"))

    @property
    def fingerprint(self) -> int:
        """The hash of this section."""
        if self.metadata_version is None:
            return self.levels.fingerprint
        return self.levels.fingerprint + _of_version(self.metadata_version.level)

    def require_metadata_version(self) -> MetadataVersion:
        """The metadata.version.

        Errors:  ReplayError before the first record that sets it.
        Source:  FeaturesImage.metadataVersionOrThrow.
        """
        if self.metadata_version is None:
            raise ReplayError("no record has set the metadata.version")
        return self.metadata_version

    def level(self, feature: str) -> int:
        """The finalized level of a feature, 0 if there is none."""
        if feature == FEATURE_NAME:
            return 0 if self.metadata_version is None else self.metadata_version.level
        return self.levels.get(feature) or 0

    def finalized(self) -> dict[str, int]:
        """Every finalized feature's level, metadata.version first, then by name."""
        first = {} if self.metadata_version is None else {FEATURE_NAME: self.metadata_version.level}
        return first | dict(self.levels.items())

    @property
    def elr_enabled(self) -> bool:
        """Eligible leader replicas are on (KIP-966, by feature level)."""
        return self.level(ELR_VERSION) >= 1


@cache
def _of_version(level: int) -> int:
    return fingerprint(FEATURE_NAME, level)


def set_level(features: FeaturesImage, record: FeatureLevelRecord, _: int) -> FeaturesImage:
    """Apply a FeatureLevelRecord. kraft.version lives in control records and is ignored here."""
    if record.name == KRAFT_VERSION:
        return features
    if record.name == FEATURE_NAME:
        try:
            version = MetadataVersion.from_level(record.feature_level)
        except UnknownMetadataVersion as error:
            raise ReplayError(str(error)) from error
        return FeaturesImage(metadata_version=version, levels=features.levels)
    if record.feature_level == 0:
        levels = features.levels.remove(record.name)
    else:
        levels = features.levels.put(record.name, record.feature_level)
    return FeaturesImage(metadata_version=features.metadata_version, levels=levels)


def ignore_migration_state(
    features: FeaturesImage, _: ZkMigrationStateRecord, __: int
) -> FeaturesImage:
    """There is no ZooKeeper to migrate from; the record states that and changes nothing."""
    return features


FOLDS: dict[type, Fold] = {
    FeatureLevelRecord: set_level,
    ZkMigrationStateRecord: ignore_migration_state,
}
