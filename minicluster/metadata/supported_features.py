"""The feature levels that a node of a release supports.

Source:  QuorumFeatures.defaultSupportedFeatureMap.
"""

from __future__ import annotations

from minicluster.metadata import metadata_version as mv
from minicluster.rules import Rules

UNSTABLE = "unstable.feature.versions.enable"
UNSTABLE_APIS = "unstable.api.versions.enable"


def supported_features(rules: Rules, *, unstable: bool = False) -> dict[str, tuple[int, int]]:
    """The feature levels that a node of this release supports, and offers at registration.

    Shapes:  unstable: levels for testing only as well (unstable.feature.versions.enable).
    """
    highest = rules.metadata_version_latest if unstable else rules.metadata_version_production
    levels = rules.metadata_version_lowest, highest
    features = {mv.FEATURE_NAME: levels, mv.KRAFT_VERSION: (0, 1)}
    if rules.features_of_4_0_are_offered:
        features |= {
            mv.ELR_VERSION: (0, 1),
            mv.GROUP_VERSION: (0, 1),
            mv.TRANSACTION_VERSION: (0, 2),
            mv.SHARE_VERSION: (0, 1),
            mv.STREAMS_VERSION: (0, 1),
        }
    elif unstable:
        # In 3.9 a config turns eligible leader replicas on. Here they are a feature of any release.
        features |= {mv.ELR_VERSION: (0, 1), mv.TRANSACTION_VERSION: (0, 2)}
    return features
