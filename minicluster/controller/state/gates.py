"""The features of the cluster and the rules of the release, as partition changes need them."""

from __future__ import annotations

from minicluster.lazy_dataclass import dataclass
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.rules import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """The finalized features; they change with FeatureLevelRecords only."""

    rules: Rules
    metadata_version: MetadataVersion
    elr_enabled: bool = False
