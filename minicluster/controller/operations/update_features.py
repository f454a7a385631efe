"""UpdateFeatures (57): raise or lower finalized feature levels.

Versions:  0-2. Kafka's controller reads upgrade_type in version 0 as well, where it is not on the
           wire, so that allow_downgrade of version 0 has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from minicluster.controller.api import ControllerApi
from minicluster.controller.decision import Decision, KRaftVersion
from minicluster.controller.errors import ApiError
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import hash_map_order, string_hash, timeline_order
from minicluster.metadata.bootstrap import cluster_min_isr_record
from minicluster.metadata.image.cluster import FeatureRange
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
)
from minicluster.metadata.supported_features import supported_features
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse
from minicluster.protocol.records import (
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    VersionedRecord,
)
from minicluster.security.acls import Operation

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
FAILED = "The update failed for all features since the following feature had an error: "

FEATURES = frozenset(
    {
        TRANSACTION_VERSION,
        GROUP_VERSION,
        ELR_VERSION,
        SHARE_VERSION,
        STREAMS_VERSION,
        "test.feature.version",
        *(f"unit.test.feature.version.{number}" for number in range(8)),
    }
)
"""The features that Kafka knows by name, but for those of the metadata and of the quorum; some are
for its own tests (server.common.Feature)."""

Update = UpdateFeaturesRequest.FeatureUpdateKey
Result = UpdateFeaturesResponse.UpdatableFeatureResult


def node_features(state: ClusterState) -> dict[str, range]:
    """The levels of each feature that this controller supports."""
    offered = supported_features(state.rules, unstable=state.settings.unstable_feature_versions)
    features = {name: range(low, high + 1) for name, (low, high) in offered.items()}
    rules = state.rules
    if not (rules.kraft_version_can_rise or rules.kraft_version_is_written_as_level):
        del features[KRAFT_VERSION]
    if not rules.features_of_4_0_are_offered:
        features.pop(ELR_VERSION, None)
    return features


def update_features(
    state: ClusterState,
    request: UpdateFeaturesRequest,
    version: int,
    kraft: KRaftVersion,
    now_ms: int,
) -> Decision:
    """Change feature levels: all or none (KIP-1022), or each for itself (3.9).

    kraft.version is not in the metadata: the quorum writes it, and the response waits for a NoOp
    record behind it. (Kafka raises it though a feature named after it is rejected.)

    Errors:  in the response: INVALID_UPDATE_VERSION of the first level that cannot be.
    Source:  KIP-584, KIP-778, KIP-853, KIP-966; QuorumController.updateFeatures,
             ConfigurationControlManager.updateFeatures, FeatureControlManager.updateFeatures.
    """
    updates = {update.feature: update for update in request.feature_updates}
    proposed = {name: update.max_version_level for name, update in updates.items()}
    records: list[VersionedRecord] = []
    errors: dict[str, ApiError] = {}
    for name in hash_map_order(updates, string_hash):
        errors[name] = error = _check(state, updates[name], proposed, kraft)
        if error and state.rules.features_change_together:
            return Decision(
                response=UpdateFeaturesResponse(
                    error_code=error.error, error_message=f"{FAILED}{error.message}"
                )
            )
        if not error:
            records += _records(state, updates[name])
    if request.validate_only:
        return Decision(response=_response(state, request, version, errors))
    # Before the level: from it on ELRs are kept, and they mean something only under one minimum.
    # Of a level that is rejected beside others (3.9), nothing is written.
    if proposed.get(ELR_VERSION, 0) > 0 and not errors[ELR_VERSION]:
        records = _elr_safety_records(state) + records
    raised, rises = proposed.get(KRAFT_VERSION, kraft.level), state.rules.kraft_version_can_rise
    return Decision(
        records=tuple(records),
        response=_response(state, request, version, errors),
        atomic=True,
        kraft_version=raised if rises and raised > kraft.level else None,
    )


def _response(
    state: ClusterState,
    request: UpdateFeaturesRequest,
    version: int,
    errors: Mapping[str, ApiError],
) -> UpdateFeaturesResponse:
    """The response to a request that is not rejected as a whole.

    The results are those of the request's features before version 2, and in 3.9 of all versions, by
    name. Kafka 4 gives each of them Errors.NONE.message(), which is "NONE".
    """
    if not state.rules.features_change_together:
        return UpdateFeaturesResponse(
            results=tuple(
                Result(feature=name, error_code=error.error, error_message=error.message)
                for name, error in sorted(errors.items())
            )
        )
    named = request.feature_updates if version < 2 else ()
    return UpdateFeaturesResponse(
        error_message=None,
        results=tuple(Result(feature=update.feature, error_message="NONE") for update in named),
    )


def _records(state: ClusterState, update: Update) -> list[VersionedRecord]:
    """The record of an update; for kraft.version one that has an offset to wait for."""
    if update.feature != KRAFT_VERSION or not state.rules.kraft_version_can_rise:
        level = FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level)
        return [VersionedRecord(level, 0)]
    return [VersionedRecord(NoOpRecord(), 0)] if update.upgrade_type == UPGRADE else []


def _invalid(feature: str, level: int, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {level} for feature {feature}. {reason}",
    )


def _check(
    state: ClusterState, update: Update, proposed: Mapping[str, int], kraft: KRaftVersion
) -> ApiError:
    """The reason to reject a level.

    Source:  FeatureControlManager.updateFeature.
    """
    feature, level, kind = update.feature, update.max_version_level, update.upgrade_type
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        reason = "The controller does not support the given upgrade type."
        return _invalid(feature, level, reason)
    if level < 0:
        return _invalid(feature, level, "A feature version cannot be less than 0.")
    problem = _unsupported(state, feature, level)
    if problem:
        return _invalid(feature, level, problem)
    of_quorum = feature == KRAFT_VERSION and state.rules.kraft_version_can_rise
    current = kraft.level if of_quorum else state.image.features.level(feature)
    if level < current and kind == UPGRADE:
        return _invalid(
            feature,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if level > current and kind != UPGRADE:
        return _invalid(feature, level, "Can't downgrade to a newer version.")
    if of_quorum and level < current:
        return _invalid(feature, level, "Can't downgrade the version of this feature.")
    if of_quorum and level > current and kraft.why_not is not None:
        return ApiError(ErrorCode.INVALID_UPDATE_VERSION, kraft.why_not)
    if feature == FEATURE_NAME and (error := _metadata_version_error(state, level, kind)):
        return error
    named = feature in (FEATURE_NAME, KRAFT_VERSION) or feature in FEATURES
    if state.rules.unknown_features_are_rejected and not named:
        return _invalid(feature, level, f"Feature {feature} not found.")
    if level >= 1 and feature not in (FEATURE_NAME, KRAFT_VERSION):
        problem = _unmet(state, feature, proposed)
        if problem:
            return _invalid(
                feature, level, f"{feature} could not be set to {level} because {problem}"
            )
    return ApiError()


def _unmet(state: ClusterState, feature: str, proposed: Mapping[str, int]) -> str:
    """The level of another feature that is too low, nothing if none is.

    The levels of the same request count. Only the eligible leader replicas depend on anything.

    Source:  Feature.validateVersion.
    """
    level = proposed.get(FEATURE_NAME, state.gates.metadata_version.level)
    lowest = state.rules.metadata_version_lowest
    if level < lowest:
        name = MetadataVersion.from_level(lowest).version_name
        return f"it depends on {FEATURE_NAME}={lowest} ({name})"
    if feature == ELR_VERSION and level < (needed := state.rules.metadata_version_with_elr):
        return f"it depends on {FEATURE_NAME} level {needed}"
    return ""


def _metadata_version_error(state: ClusterState, level: int, kind: int) -> ApiError:
    """A downgrade of metadata.version is rejected where records would be lost.

    Source:  FeatureControlManager.updateMetadataVersion.
    """
    current = state.gates.metadata_version
    form = f"Unsupported metadata.version downgrade from {current.level} to {level}."
    if not state.rules.features_change_together:
        form = f"Invalid metadata.version {level}."
        if level < MetadataVersion.V3_3_IV0:  # the first that writes its own level
            why = "Unable to set a metadata.version less than 3.3-IV0"
            return ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"{form} {why}")
    new = MetadataVersion.from_level(level)
    if new >= current or not new.changes_metadata_since(current, state.rules):
        return ApiError()
    if kind == UNSAFE_DOWNGRADE:
        why = "Unsafe metadata downgrade is not supported in this version."
    else:
        why = (
            "Refusing to perform the requested downgrade because it might delete metadata "
            "information."
        )
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"{form} {why}")


def _unsupported(state: ClusterState, feature: str, level: int) -> str:
    """The first node that does not support a level, nothing if all do.

    Controllers count where they can register. One that has not registered may be of any release.

    Source:  FeatureControlManager.reasonNotSupported.
    """
    own_id = state.settings.node_id
    local = node_features(state).get(feature, range(1))
    problem = _outside(f"Local controller {own_id}", level, local)
    if problem:
        return problem
    brokers, controllers = state.image.cluster.brokers, state.image.cluster.controllers
    for broker_id in timeline_order(brokers, int, put_again=True):
        offer = _offered(brokers[broker_id].features, feature)
        problem = _outside(f"Broker {broker_id}", level, offer)
        if problem:
            return problem
    if not state.gates.metadata_version.controller_registration_supported:
        return ""
    for controller_id in timeline_order(controllers, int):
        if controller_id != own_id:
            offer = _offered(controllers[controller_id].features, feature)
            problem = _outside(f"Controller {controller_id}", level, offer)
            if problem:
                return problem
    for controller_id in state.settings.static_voters:
        if controller_id != own_id and controller_id not in controllers:
            return (
                f"controller {controller_id} has not registered, and may not support this feature"
            )
    return ""


def _offered(offers: Iterable[FeatureRange], feature: str) -> range:
    for offer in offers:
        if offer.name == feature:
            return range(offer.min_supported_version, offer.max_supported_version + 1)
    return range(1)


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
    """One min.insync.replicas for the whole cluster, and none of single brokers (KIP-966).

    A leader goes by its own broker's value where there is one. The controller, which keeps the
    ELRs, cannot know which broker leads next, so the values of single brokers have to go.
    """
    records = []
    configs = state.image.configs
    if configs.value(BROKER, CLUSTER_DEFAULT, MIN_ISR) is None:
        records.append(cluster_min_isr_record(state.settings.static_min_isr))
    brokers = [int(n) for kind, n in configs.resources() if kind == BROKER and n != CLUSTER_DEFAULT]
    for broker_id in timeline_order(brokers, int):
        name = str(broker_id)
        if configs.value(BROKER, name, MIN_ISR):
            removed = ConfigRecord(
                resource_type=BROKER, resource_name=name, name=MIN_ISR, value=None
            )
            records.append(VersionedRecord(removed, 0))
    return records


API = ControllerApi(
    UpdateFeaturesRequest,
    lambda call: update_features(call.state, call.request, call.version, call.kraft, call.now_ms),
    right=Operation.ALTER,
)
