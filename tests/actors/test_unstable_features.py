"""unstable.feature.versions.enable: a metadata.version for testing only, on request."""

from __future__ import annotations

import pytest

from minicluster import MiniCluster
from minicluster.errors import UserError
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse


def raised_to_31(cluster: MiniCluster) -> UpdateFeaturesResponse:
    key = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="metadata.version", max_version_level=31, upgrade_type=1
    )
    response = cluster.admin(UpdateFeaturesRequest(feature_updates=(key,)))
    assert isinstance(response, UpdateFeaturesResponse)
    return response


@pytest.mark.parametrize(("enabled", "error"), [(False, 95), (True, 0)])
def test_a_release_finalizes_what_it_supports(enabled: bool, error: int) -> None:
    config = {"unstable.feature.versions.enable": enabled}
    with MiniCluster(brokers=1, controllers=1, config=config, seed=2) as cluster:
        response = raised_to_31(cluster)
        assert response.error_code == ErrorCode(error)
        if not enabled:
            assert "Local controller 101 only supports versions 7-30" in response.error_message
        assert cluster.image.metadata_version.level == (31 if enabled else 30)


def test_a_cluster_begins_at_levels_that_its_nodes_support() -> None:
    """At others no node could register, and the start would wait for two minutes."""
    stable = "4.4-IV0 is for testing only and 4.3-IV0 the last stable one"
    with pytest.raises(UserError, match=stable):
        MiniCluster(metadata_version="4.4-IV0")
    config = {"unstable.feature.versions.enable": True}
    with MiniCluster(metadata_version="4.4-IV0", config=config, brokers=1, seed=2) as cluster:
        assert cluster.image.metadata_version.level == 31
    with pytest.raises(UserError, match=r"group\.version: 2 is above 1, the last of this release"):
        MiniCluster(features={"group.version": 2})
