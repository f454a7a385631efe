"""UpdateFeatures (57) of a broker on ZooKeeper: such brokers support no feature.

Versions:  0-1 with a result for each feature, 2 with one for all.
Source:    KIP-584; KafkaController.validateFeatureUpdate, BrokerFeatures.createEmpty.
"""

from __future__ import annotations

from minicluster.broker.zookeeper.administration.admin_state import AdminState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse

DISABLED = "Feature versioning system is disabled."
NOT_SUPPORTED = (
    "Could not apply finalized feature update because the provided feature is not supported."
)


def update_features(state: AdminState, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Every update is refused, and below IBP 2.7 the request is."""
    if not state.controller.settings.protocol.features_supported:
        return UpdateFeaturesResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=DISABLED)
    if not request.feature_updates:
        return UpdateFeaturesResponse(error_message=None)
    return UpdateFeaturesResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=NOT_SUPPORTED,
        results=tuple(
            UpdateFeaturesResponse.UpdatableFeatureResult(
                feature=update.feature,
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=NOT_SUPPORTED,
            )
            for update in request.feature_updates
        ),
    )
