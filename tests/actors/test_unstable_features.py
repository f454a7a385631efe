"""unstable.feature.versions.enable: a metadata.version for testing only, on request."""

from __future__ import annotations

import pytest

from minicluster import MiniCluster
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
