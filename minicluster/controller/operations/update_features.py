"""UpdateFeatures (57): raise or lower finalized feature levels.

Versions:  0-2.
Leaves out: dependencies between features other than metadata.version.
"""

from __future__ import annotations

from collections.abc import Mapping

from minicluster.controller.deciding.decision import Decision, KRaftVersion
from minicluster.controller.errors import ApiError
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.bootstrap import cluster_min_isr_record
from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT, MIN_ISR
from minicluster.metadata.metadata_version import (
    ELR_VERSION,
    FEATURE_NAME,
    GROUP_VERSION,
    KRAFT_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
    MetadataVersion,
    supported_levels,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse
from minicluster.protocol.records import (
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    VersionedRecord,
)
from minicluster.rules import Rules

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
FAILED = "The update failed for all features since the following feature had an error: "

_OTHER_FEATURES: Mapping[str, range] = {
    ELR_VERSION: range(2),
    TRANSACTION_VERSION: range(3),
    GROUP_VERSION: range(2),
    SHARE_VERSION: range(2),
    STREAMS_VERSION: range(2),
}


def node_features(rules: Rules) -> dict[str, range]:
    """The levels of each feature that a node of a release offers when it registers."""
    features = {FEATURE_NAME: supported_levels(rules)}
    if rules.elr_starts_with_cluster_min_isr:
        features |= _OTHER_FEATURES
    if rules.kraft_version_can_rise:
        features[KRAFT_VERSION] = range(2)
    return features


def update_features(
    state: ClusterState,
    request: UpdateFeaturesRequest,
    version: int,
    kraft: KRaftVersion,
    now_ms: int,
) -> Decision:
    """Change feature levels, all or none.

    kraft.version is not in the metadata: the quorum writes it, and the response waits for a NoOp
    record behind it. (Kafka raises it though a feature named after it is refused.)

    Errors:  in the response: INVALID_UPDATE_VERSION of the first level that cannot be.
    Source:  KIP-584, KIP-778, KIP-853, KIP-966; FeatureControlManager.updateFeatures.
    """
    records: list[VersionedRecord] = []
    raised: int | None = None
    error = ApiError()
    for update in request.feature_updates:
        kind = update.upgrade_type
        if version == 0:
            kind = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
        error = _check(state, update.feature, update.max_version_level, kind, kraft)
        if error:
            break
        if update.feature == KRAFT_VERSION:
            if kind == UPGRADE:
                raised = update.max_version_level
                records.append(VersionedRecord(NoOpRecord(), 0))
            continue
        if update.feature == ELR_VERSION and update.max_version_level >= 1:
            records += _elr_safety_records(state)
        records.append(
            VersionedRecord(
                FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level), 0
            )
        )
    results: tuple[UpdateFeaturesResponse.UpdatableFeatureResult, ...] = ()
    if version < 2 and not error:  # one error is about the request as a whole (KIP-1022)
        results = tuple(
            UpdateFeaturesResponse.UpdatableFeatureResult(
                feature=update.feature, error_message=None
            )
            for update in request.feature_updates
        )
    writes = not (error or request.validate_only)
    return Decision(
        records=tuple(records) if writes else (),
        response=UpdateFeaturesResponse(
            error_code=error.error,
            error_message=f"{FAILED}{error.message}" if error else None,
            results=results,
        ),
        atomic=writes,
        kraft_version=raised if writes and raised != kraft.level else None,
    )


def _check(
    state: ClusterState, feature: str, level: int, kind: int, kraft: KRaftVersion
) -> ApiError:
    def invalid(reason: str) -> ApiError:
        return ApiError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid update version {level} for feature {feature}. {reason}",
        )

    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return invalid("The controller does not support the given upgrade type.")
    if level < 0:
        return invalid("A feature version cannot be less than 0.")
    problem = _unsupported(state, feature, level)
    if problem:
        return invalid(problem)
    of_quorum = feature == KRAFT_VERSION
    current = kraft.level if of_quorum else state.image.features.level(feature)
    if level < current and kind == UPGRADE:
        return invalid(
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if level > current and kind != UPGRADE:
        return invalid("Can't downgrade to a newer version.")
    if of_quorum and level < current:
        return invalid("Can't downgrade the version of this feature.")
    if of_quorum and level > current and kraft.why_not is not None:
        return invalid(kraft.why_not)
    if feature == FEATURE_NAME and level < current:
        return _downgrade_error(state.gates.metadata_version, level, kind)
    if feature == ELR_VERSION and level >= 1 and not state.gates.metadata_version.elr_supported:
        return invalid(
            f"{feature} could not be set to {level} because it depends on {FEATURE_NAME} level "
            f"{MetadataVersion.V4_0_IV1.level}"
        )
    return ApiError()


def _downgrade_error(current: MetadataVersion, level: int, kind: int) -> ApiError:
    """A downgrade of metadata.version is refused where records would be lost."""
    if not MetadataVersion.from_level(level).changes_metadata_since(current):
        return ApiError()
    if kind == UNSAFE_DOWNGRADE:
        why = "Unsafe metadata downgrade is not supported in this version."
    else:
        why = (
            "Refusing to perform the requested downgrade because it might delete metadata "
            "information."
        )
    return ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {current.level} to {level}. {why}",
    )


def _unsupported(state: ClusterState, feature: str, level: int) -> str:
    """The first node that does not support a level, nothing if all do.

    Source:  FeatureControlManager.reasonNotSupported.
    """
    local = node_features(state.rules).get(feature, range(1))
    problem = _outside(f"Local controller {state.settings.node_id}", level, local)
    if problem:
        return problem
    for broker in state.image.cluster.brokers.values():
        offer = broker.supported_range(feature)
        levels = range(1)
        if offer is not None:
            levels = range(offer.min_supported_version, offer.max_supported_version + 1)
        problem = _outside(f"Broker {broker.id}", level, levels)
        if problem:
            return problem
    return ""


def _outside(node: str, level: int, levels: range) -> str:
    """The reason why a node does not support a level, nothing if it does.

    Source:  QuorumFeatures.reasonNotSupported.
    """
    if level in levels:
        return ""
    low, high = levels.start, levels.stop - 1
    if high == 0:
        return f"{node} does not support this feature."
    shown = f"{low}-{high}" if low != high else f"{low}"
    return f"{node} only supports versions {shown}"


def _elr_safety_records(state: ClusterState) -> list[VersionedRecord]:
    """One min.insync.replicas for the whole cluster, and none of single brokers (KIP-966)."""
    records = []
    configs = state.image.configs
    if configs.value(BROKER, CLUSTER_DEFAULT, MIN_ISR) is None:
        records.append(cluster_min_isr_record(state.settings.static_min_isr))
    for kind, name in configs.resources():
        if kind == BROKER and name != CLUSTER_DEFAULT and configs.value(kind, name, MIN_ISR):
            removed = ConfigRecord(
                resource_type=BROKER, resource_name=name, name=MIN_ISR, value=None
            )
            records.append(VersionedRecord(removed, 0))
    return records
