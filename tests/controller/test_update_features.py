"""UpdateFeatures: levels that each node supports, in the order and form of Kafka's controller."""

from __future__ import annotations

import pytest

from minicluster.metadata.image.configs import BROKER, MIN_ISR
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import ConfigRecord, FeatureLevelRecord
from minicluster.rules import Rules
from tests.controller.kit import Cluster, incarnation

Request = m.UpdateFeaturesRequest
UPGRADE, SAFE = 1, 2
ELR, METADATA = "eligible.leader.replicas.version", "metadata.version"
GROUPS, TRANSACTIONS = "group.version", "transaction.version"


def update(
    cluster: Cluster, *levels: tuple[str, int], version: int = 2, kind: int = UPGRADE
) -> m.UpdateFeaturesResponse:
    """Send one request with these features in this order."""
    keys = tuple(
        Request.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level in levels
    )
    token = cluster.send(Request(feature_updates=keys), version)
    response = cluster.responses[token].response
    assert isinstance(response, m.UpdateFeaturesResponse)
    return response


def register_controller(cluster: Cluster, node_id: int, **features: tuple[int, int]) -> None:
    """Register a controller that supports these levels (a dash is an underscore here)."""
    kind = m.ControllerRegistrationRequest
    offers = tuple(
        kind.Feature(
            name=name.replace("_", "."), min_supported_version=low, max_supported_version=high
        )
        for name, (low, high) in features.items()
    )
    cluster.request(
        kind(controller_id=node_id, incarnation_id=incarnation(node_id), features=offers)
    )


def test_every_voter_must_have_registered_before_a_level_changes() -> None:
    """FeatureControlManager.reasonNotSupported: an unregistered voter may be of any release."""
    cluster = Cluster(settings={"node_id": 1, "static_voters": (1, 2, 3)})
    register_controller(cluster, 2, group_version=(0, 1))
    refused = update(cluster, (GROUPS, 1))
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert (refused.error_message or "").endswith(
        "Invalid update version 1 for feature group.version. controller 3 has not registered, and "
        "may not support this feature"
    )
    register_controller(cluster, 3, group_version=(0, 1))
    assert update(cluster, (GROUPS, 1)).error_code == ErrorCode.NONE


def test_every_registered_controller_must_support_the_level() -> None:
    cluster = Cluster(settings={"node_id": 1})
    register_controller(cluster, 1)  # its own registration does not count
    register_controller(cluster, 2, group_version=(0, 1), transaction_version=(0, 1))
    assert update(cluster, (GROUPS, 1)).error_code == ErrorCode.NONE
    refused = update(cluster, (TRANSACTIONS, 2))
    assert (refused.error_message or "").endswith("Controller 2 only supports versions 0-1")
    refused = update(cluster, (ELR, 1))
    assert (refused.error_message or "").endswith("Controller 2 does not support this feature.")


@pytest.mark.parametrize(
    ("arrived", "named"),
    [((3, 0, 2), 2), ((0, 2, 1, 3, 4, 0), 0)],
)
def test_the_first_broker_in_the_order_of_kafkas_own_hash_table_is_named(
    arrived: tuple[int, ...], named: int
) -> None:
    """ClusterControlManager.brokerSupportedFeatures."""
    cluster = Cluster()
    for number, broker in enumerate(arrived):
        registered = cluster.register(broker, number=number, without=GROUPS)
        assert registered.error_code == ErrorCode.NONE
    refused = update(cluster, (GROUPS, 1))
    assert (refused.error_message or "").endswith(f"Broker {named} does not support this feature.")


def test_controllers_do_not_count_where_none_can_register() -> None:
    cluster = Cluster(metadata_version="3.6-IV2", settings={"static_voters": (1, 2)})
    assert update(cluster, (METADATA, 14)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("raised", [None, 21, 22])
def test_eligible_leader_replicas_depend_on_the_proposed_metadata_version(
    raised: int | None,
) -> None:
    """Feature.validateVersion: 4.0-IV1 (level 23) is needed; the same request may raise it."""
    cluster = Cluster(metadata_version="3.9-IV0")
    levels = [(ELR, 1)] if raised is None else [(ELR, 1), (METADATA, raised)]
    refused = update(cluster, *levels)
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert (refused.error_message or "").endswith("depends on metadata.version level 23")
    assert update(cluster, (ELR, 1), (METADATA, 23)).error_code == ErrorCode.NONE


def test_records_have_the_order_of_a_hash_map_after_the_safety_records_of_elr() -> None:
    """ConfigurationControlManager.updateFeatures puts min.insync.replicas before all features."""
    cluster = Cluster()
    before = cluster.end
    assert update(cluster, (GROUPS, 1), (ELR, 1), (TRANSACTIONS, 2)).error_code == ErrorCode.NONE
    written = [cluster.log[offset].record for offset in range(before, cluster.end)]
    assert isinstance(written[0], ConfigRecord)
    assert (written[0].resource_type, written[0].name) == (BROKER, MIN_ISR)
    names = [record.name for record in written if isinstance(record, FeatureLevelRecord)]
    assert names == [GROUPS, TRANSACTIONS, ELR]


def test_the_minima_of_brokers_go_in_the_order_of_kafkas_own_hash_table() -> None:
    """ConfigurationControlManager.maybeGenerateElrSafetyRecords: brokersWithConfigs."""
    cluster = Cluster()
    cluster.start(0, 1, 2)
    for broker in ("0", "1", "2"):
        cluster.set_config(BROKER, broker, MIN_ISR, "2")
    before = cluster.end
    assert update(cluster, (ELR, 1)).error_code == ErrorCode.NONE
    written = [cluster.log[offset].record for offset in range(before, cluster.end)]
    removed = [r.resource_name for r in written if isinstance(r, ConfigRecord) and r.value is None]
    assert removed == ["2", "0", "1"]


def test_allow_downgrade_of_version_0_has_no_effect() -> None:
    """QuorumController reads upgrade_type alone, which version 0 does not carry."""
    cluster = Cluster()
    assert update(cluster, (GROUPS, 1)).error_code == ErrorCode.NONE
    key = Request.FeatureUpdateKey(feature=GROUPS, max_version_level=0, allow_downgrade=True)
    token = cluster.send(Request(feature_updates=(key,)), 0)
    refused = cluster.responses[token].response
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert refused.error_message.endswith("upgrade type to either safe or unsafe downgrade.")
    assert update(cluster, (GROUPS, 0), kind=SAFE).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("version", "named"), [(0, 2), (1, 2), (2, 0)])
def test_results_of_single_features_end_with_version_1(version: int, named: int) -> None:
    response = update(Cluster(), (GROUPS, 1), (TRANSACTIONS, 2), version=version)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert [result.error_message for result in response.results] == ["NONE"] * named


@pytest.mark.parametrize(
    ("settings", "levels"), [({}, "7-30"), ({"unstable_feature_versions": True}, "7-31")]
)
def test_levels_for_testing_only_are_not_supported_by_default(
    settings: dict[str, bool], levels: str
) -> None:
    """unstable.feature.versions.enable; QuorumFeatures.defaultSupportedFeatureMap."""
    refused = update(Cluster(settings=settings), (METADATA, 32))
    assert (refused.error_message or "").endswith(
        f"Invalid update version 32 for feature {METADATA}. "
        f"Local controller 0 only supports versions {levels}"
    )


@pytest.mark.parametrize(
    ("rules", "error"),
    [(Rules.KAFKA_4_3, ErrorCode.INVALID_UPDATE_VERSION), (Rules.KAFKA_3_9, ErrorCode.NONE)],
)
def test_a_feature_without_a_name_is_rejected_at_level_0_as_well(
    rules: Rules, error: ErrorCode
) -> None:
    """Since 4.0 (Feature.featureFromName); every node supports level 0 of anything."""
    cluster = Cluster(rules)
    response = update(cluster, ("nothing", 0))
    if error:
        assert response.error_code == error
        assert (response.error_message or "").endswith("Feature nothing not found.")
    else:
        assert [result.error_code for result in response.results] == [ErrorCode.NONE]


@pytest.mark.parametrize("level", [1, 2, 3])
def test_3_9_sets_no_level_that_cannot_be_written(level: int) -> None:
    """Nor one that it has or that is higher: FeatureControlManager.updateMetadataVersion."""
    cluster = Cluster(Rules.KAFKA_3_9, metadata_version="3.0-IV1")
    (result,) = update(cluster, (METADATA, level)).results
    assert result.error_message == (
        f"Invalid metadata.version {level}. Unable to set a metadata.version less than 3.3-IV0"
    )


def test_a_feature_of_kafkas_own_tests_has_a_name() -> None:
    assert update(Cluster(), ("unit.test.feature.version.0", 0)).error_code == ErrorCode.NONE


def test_a_rejected_level_of_elr_leaves_no_record_where_features_change_one_by_one() -> None:
    """It depends on 4.0-IV1; min.insync.replicas, which is written before it, stays away too."""
    cluster = Cluster(Rules.KAFKA_3_9, metadata_version="3.9-IV0")
    before = cluster.end
    response = update(cluster, (ELR, 1))
    assert [result.error_code for result in response.results] == [ErrorCode.INVALID_UPDATE_VERSION]
    assert cluster.end == before
