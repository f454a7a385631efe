"""UpdateFeatures (57) of a broker on ZooKeeper: such brokers support no feature.

Versions:  0 allows a downgrade by a flag, 1 has a type for it; both have a result for each feature
           and no error for the whole. 2 is younger than this mode: one error for all.
Source:    KIP-584; KafkaController.validateFeatureUpdate, BrokerFeatures.createEmpty,
           UpdateFeaturesResponse.createWithErrors (release 3.9).
"""

from __future__ import annotations

from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse
from minicluster.zookeeper.broker.admin_state import AdminState
from minicluster.zookeeper.process import Process

DISABLED = "Feature versioning system is disabled."
NOT_SUPPORTED = (
    "Could not apply finalized feature update because the provided feature is not supported."
)
TYPES_SINCE, ONE_ERROR_SINCE = 1, 2
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

Update = UpdateFeaturesRequest.FeatureUpdateKey


def update_features(
    state: AdminState, request: UpdateFeaturesRequest, version: int
) -> Process[UpdateFeaturesResponse]:
    """Every update is rejected, and below IBP 2.7 the whole request."""
    yield from ()  # without a look into ZooKeeper
    if not state.controller.settings.protocol.features_supported:
        return UpdateFeaturesResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=DISABLED)
    problems = {update.feature: _problem_of(update, version) for update in request.feature_updates}
    if problems and version >= ONE_ERROR_SINCE:
        first = next(iter(problems.values()))
        return UpdateFeaturesResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=first)
    return UpdateFeaturesResponse(
        error_message=None,
        results=tuple(
            UpdateFeaturesResponse.UpdatableFeatureResult(
                feature=feature, error_code=ErrorCode.INVALID_REQUEST, error_message=problem
            )
            for feature, problem in problems.items()
        ),
    )


def _problem_of(update: Update, version: int) -> str:
    """The first reason to reject an update; no feature is finalized."""
    kind, level = update.upgrade_type, update.max_version_level
    if version < TYPES_SINCE:
        kind = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    if not update.feature:
        return "Feature name can not be empty."
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "Received unknown upgrade type."
    if level >= 1:
        return NOT_SUPPORTED
    if kind != UPGRADE:
        return "Can not delete non-existing finalized feature."
    return (
        f"Can not provide versionLevel: {level} less than 1 without setting the SAFE downgradeType "
        "in the request."
    )
