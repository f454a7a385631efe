"""Where 4.3 and 3.9 part: one field of the rules each, seen from either side."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.controller import periodic_tasks as timers
from minicluster.controller.errors import ControllerFault, Rejected
from minicluster.controller.operations.broker_registration import register_broker
from minicluster.controller.placement import PlacementError, RackList
from minicluster.metadata.image.configs import BROKER, CLIENT_METRICS, GROUP, TOPIC
from minicluster.metadata.supported_features import supported_features
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.rules import Rules
from minicluster.values import replace
from tests.controller.kit import CLUSTER_ID, Cluster, JavaRandom, dir_id, incarnation

BOTH = pytest.mark.parametrize("on", [True, False])


def rules(**fields: Any) -> Rules:
    return replace(Rules.KAFKA_4_3, **fields)


@BOTH
def test_previous_broker_epoch_counts(on: bool) -> None:
    cluster = Cluster(elr=True, rules=rules(previous_broker_epoch_counts=on))
    cluster.start(1, 2, 3)
    cluster.create("foo", (1, 2, 3), configs={"min.insync.replicas": "2"})
    cluster.fence(2, 3)
    cluster.now_ms += 10_000
    cluster.register(3, number=1, previous_epoch=cluster.epoch(3))
    assert cluster.partition("foo").elr == ((3,) if on else ())


@pytest.mark.parametrize("version", [2, 3])
def test_only_from_version_3_on_a_clean_restart_can_be_proved(version: int) -> None:
    cluster = Cluster(elr=True)
    cluster.start(1, 2)
    cluster.create("foo", (1, 2), configs={"min.insync.replicas": "2"})
    cluster.fence(2)
    cluster.now_ms += 10_000
    request = m.BrokerRegistrationRequest
    feature = request.Feature(
        name="metadata.version", min_supported_version=7, max_supported_version=31
    )
    elr = request.Feature(
        name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1
    )
    requested = request(
        broker_id=2,
        cluster_id=CLUSTER_ID,
        incarnation_id=incarnation(2, 1),
        features=(feature, elr),
        log_dirs=(dir_id(2),),
        previous_broker_epoch=cluster.epoch(2),
    )
    assert cluster.request(requested, version).error_code == 0
    assert cluster.partition("foo").elr == ((2,) if version >= 3 else ())


@BOTH
def test_register_broker_is_atomic(on: bool) -> None:
    cluster = Cluster(rules=rules(register_broker_is_atomic=on))
    request = m.BrokerRegistrationRequest(
        broker_id=1,
        cluster_id=CLUSTER_ID,
        log_dirs=(dir_id(1),),
        features=(
            m.BrokerRegistrationRequest.Feature(
                name="metadata.version", min_supported_version=7, max_supported_version=31
            ),
        ),
    )
    decision = register_broker(cluster.machine.state, request, 4, 9, 0, 0)
    assert decision.atomic == on


@BOTH
def test_failed_task_renounces(on: bool) -> None:
    cluster = Cluster(rules=rules(failed_task_renounces=on))

    def broken(state: Any, now_ms: int) -> Any:
        raise ControllerFault("broken")

    before = dict(timers._RUN)
    timers._RUN[timers.ELECT_UNCLEAN] = broken
    try:
        cluster.take(cluster.machine.on_timer(timers.ELECT_UNCLEAN, 1_000))
    finally:
        timers._RUN.update(before)
    assert cluster.resigned == on
    assert cluster.machine.is_active == (not on)
    assert cluster.failed_tasks == ([] if on else [timers.ELECT_UNCLEAN])
    if not on:
        assert cluster.timers[timers.ELECT_UNCLEAN] == 1_000 + 300_000


def test_a_request_that_needs_too_many_records_is_refused_by_either_release() -> None:
    """CreateTopics as a whole, by its partitions; CreatePartitions finds no room for one topic.

    ReplicationControlManager.validateTotalNumberOfPartitions is in 3.9.2 as well.
    """
    for release, version in ((Rules.KAFKA_4_3, "4.3-IV0"), (Rules.KAFKA_3_9, "3.9-IV0")):
        cluster = Cluster(rules=release, metadata_version=version)
        cluster.start(1)
        topics = tuple(
            m.CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=count, replication_factor=1
            )
            for name, count in (("a", 1), ("b", 2_000_000_000))
        )
        response = cluster.request(m.CreateTopicsRequest(topics=topics))
        assert {(t.error_code, t.error_message) for t in response.topics} == {
            (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        }
        cluster.create("c", (1,))
        grown = m.CreatePartitionsRequest.CreatePartitionsTopic(
            name="c", count=2_000_000_000, assignments=None
        )
        more = cluster.request(m.CreatePartitionsRequest(topics=(grown,)))
        assert more.results[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert len(cluster.machine.image.topics) == 1


@BOTH
def test_config_value_length_max(on: bool) -> None:
    cluster = Cluster(rules=rules(config_value_length_max=10 if on else 0))
    cluster.start(1)
    result = cluster.create("foo", (1,), configs={"retention.ms": "1" * 11})
    assert (result.error_code == ErrorCode.INVALID_CONFIG) == on


@BOTH
def test_placement_errors_mention_cordoned(on: bool) -> None:
    with pytest.raises(PlacementError) as rejected:
        RackList([], JavaRandom(), cordoned_in_messages=on).reject_all_fenced()
    assert ("cordoned" in str(rejected.value)) == on


@BOTH
def test_alter_partition_version_lowest(on: bool) -> None:
    """4.x has no AlterPartition below version 2, from any sender."""
    cluster = Cluster(lowest_alter_partition=2 if on else 0)
    cluster.start(1, 2)
    cluster.create("foo", (1, 2))
    response = cluster.alter("foo", (1,), version=1)
    assert (response.error_code == ErrorCode.UNSUPPORTED_VERSION) == on
    assert cluster.partition("foo").isr == ((1, 2) if on else (1,))


@BOTH
def test_duplicate_registration_message_has_advice(on: bool) -> None:
    cluster = Cluster(rules=rules(duplicate_registration_message_has_advice=on))
    cluster.start(1)
    request = m.BrokerRegistrationRequest(
        broker_id=1, cluster_id=CLUSTER_ID, incarnation_id=incarnation(1, 1)
    )
    with pytest.raises(Rejected, match="Another broker is registered") as rejected:
        register_broker(cluster.machine.state, request, 4, 9, 0, 0)
    assert ("self-resolve" in str(rejected.value)) == on


@BOTH
def test_sessions_by_epoch(on: bool) -> None:
    """In 4.x a heartbeat counts by its epoch, known or not; in 3.9 the broker's contact counts."""
    cluster = Cluster(rules=rules(sessions_by_epoch=on), metadata_version="3.9-IV0")
    cluster.start(1)
    cluster.now_ms += 8_000
    stale = cluster.heartbeat(1, broker_epoch=99_999)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
    heartbeats = cluster.machine.state.heartbeats
    assert heartbeats is not None
    assert heartbeats.has_valid_session(1, 99_999, 12_000) == on
    assert not heartbeats.has_valid_session(1, cluster.epoch(1), 12_000)


@BOTH
def test_tasks_are_periodic(on: bool) -> None:
    cluster = Cluster(rules=rules(tasks_are_periodic=on))
    assert (timers.BALANCE in cluster.timers) == on
    cluster.start(1, 2)
    cluster.create("foo", (1, 2))
    cluster.fence(1)
    assert timers.BALANCE in cluster.timers


@BOTH
def test_new_incarnation_leaves_isr(on: bool) -> None:
    cluster = Cluster(rules=rules(new_incarnation_leaves_isr=on), metadata_version="3.9-IV0")
    cluster.start(1, 2)
    cluster.create("foo", (1, 2))
    cluster.now_ms += 10_000
    cluster.register(1, number=1)
    assert (cluster.partition("foo").leader == 2) == on


@pytest.mark.parametrize(("metadata_version", "leaves"), [("3.9-IV0", False), ("4.0-IV0", True)])
def test_new_incarnation_of_3_9_leaves_where_elrs_can_be_written(
    metadata_version: str, leaves: bool
) -> None:
    """The metadata.version alone decides, whether ELRs are on or not."""
    cluster = Cluster(rules=Rules.KAFKA_3_9, metadata_version=metadata_version)
    cluster.start(1, 2)
    cluster.create("foo", (1, 2))
    cluster.now_ms += 10_000
    cluster.register(1, number=1)
    assert (cluster.partition("foo").leader == 2) == leaves


@BOTH
def test_min_isr_clears_elr(on: bool) -> None:
    cluster = Cluster(elr=True, rules=rules(min_isr_clears_elr=on))
    cluster.start(1, 2, 3)
    cluster.create("foo", (1, 2, 3), configs={"min.insync.replicas": "2"})
    cluster.fence(2, 3)
    assert cluster.partition("foo").elr == (3,)
    broker, topic = 4, 2
    refused = ErrorCode.INVALID_CONFIG if on else ErrorCode.NONE
    assert cluster.set_config(broker, "1", "min.insync.replicas", "2") == refused
    assert cluster.set_config(broker, "", "min.insync.replicas", None) == refused
    assert cluster.set_config(topic, "foo", "min.insync.replicas", "3") == ErrorCode.NONE
    assert cluster.partition("foo").elr == (() if on else (3,))


@BOTH
def test_registration_needs_metadata_version(on: bool) -> None:
    cluster = Cluster(
        rules=rules(registration_needs_metadata_version=on), metadata_version="3.3-IV3"
    )
    request = m.BrokerRegistrationRequest(broker_id=1, cluster_id=CLUSTER_ID)
    error = cluster.request(request).error_code
    assert error == (ErrorCode.INVALID_REGISTRATION if on else ErrorCode.UNSUPPORTED_VERSION)


@BOTH
def test_reassignment_needs_all_replicas(on: bool) -> None:
    cluster = Cluster(rules=rules(reassignment_needs_all_replicas=on))
    cluster.start(0, 1, 2, 3)
    cluster.create("foo", (0, 1, 2))
    cluster.propose("foo", (0, 2))
    kind = m.AlterPartitionReassignmentsRequest
    wanted = kind.ReassignablePartition(partition_index=0, replicas=(0, 1, 3))
    cluster.request(kind(topics=(kind.ReassignableTopic(name="foo", partitions=(wanted,)),)))
    cluster.alter("foo", (0, 2, 3))
    assert cluster.partition("foo").is_reassigning == on


@BOTH
def test_kraft_version_can_rise(on: bool) -> None:
    cluster = Cluster(rules=rules(kraft_version_can_rise=on))
    cluster.start(1)
    end = cluster.end
    response = cluster.request(raise_kraft_version())
    assert response.error_code == (ErrorCode.NONE if on else ErrorCode.INVALID_UPDATE_VERSION)
    assert cluster.raised == ([(1, end)] if on else [])


@BOTH
def test_kraft_version_is_written_as_level(on: bool) -> None:
    """Where it cannot rise (3.9): a level in the metadata, while the quorum stays as it is."""
    release = replace(Rules.KAFKA_3_9, kraft_version_is_written_as_level=on)
    cluster = Cluster(rules=release, metadata_version="3.9-IV0")
    end = cluster.end
    (result,) = cluster.request(raise_kraft_version()).results
    assert result.error_code == (ErrorCode.NONE if on else ErrorCode.INVALID_UPDATE_VERSION)
    assert (cluster.end - end, cluster.raised) == (int(on), [])


@BOTH
def test_features_of_4_0_are_offered(on: bool) -> None:
    """QuorumFeatures.defaultFeatureMap of 3.9.2; an update of ELR finds nobody who supports it."""
    release = rules(features_of_4_0_are_offered=on)
    offered = supported_features(release)
    assert set(offered) >= {"kraft.version", "metadata.version"}
    assert ("group.version" in offered, "transaction.version" in offered) == (on, on)
    assert supported_features(release, unstable=True)["transaction.version"] == (0, 2)
    cluster = Cluster(rules=release, settings={"unstable_feature_versions": True})
    Key = m.UpdateFeaturesRequest.FeatureUpdateKey
    key = Key(feature="eligible.leader.replicas.version", max_version_level=1)
    response = cluster.request(m.UpdateFeaturesRequest(feature_updates=(key,)))
    assert (response.error_code == ErrorCode.NONE) == on


@BOTH
def test_features_change_together(on: bool) -> None:
    """In 3.9 a refused feature does not keep the others down, and has a result of its own."""
    cluster = Cluster(rules=rules(features_change_together=on))
    Key = m.UpdateFeaturesRequest.FeatureUpdateKey
    wanted = {"transaction.version": 2, "group.version": 9}
    keys = tuple(Key(feature=name, max_version_level=wanted[name]) for name in wanted)
    response = cluster.request(m.UpdateFeaturesRequest(feature_updates=keys))
    assert cluster.machine.state.image.features.level("transaction.version") == (0 if on else 2)
    results = {result.feature: result.error_code for result in response.results}
    refused = ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_code == (refused if on else ErrorCode.NONE)
    assert list(results.items()) == (
        [] if on else [("group.version", refused), ("transaction.version", ErrorCode.NONE)]
    )


def raise_kraft_version(**fields: Any) -> m.UpdateFeaturesRequest:
    key = m.UpdateFeaturesRequest.FeatureUpdateKey(
        feature="kraft.version", max_version_level=1, upgrade_type=1
    )
    return m.UpdateFeaturesRequest(feature_updates=(key,), **fields)


@BOTH
def test_groups_have_configs(on: bool) -> None:
    """To 3.9 a group is a kind of resource that it has not."""
    cluster = Cluster(rules=rules(groups_have_configs=on))
    Request = m.IncrementalAlterConfigsRequest
    change = Request.AlterableConfig(name="consumer.session.timeout.ms", value="50000")
    resource = Request.AlterConfigsResource(
        resource_type=32, resource_name="team", configs=(change,)
    )
    result = cluster.request(Request(resources=(resource,))).responses[0]
    assert result.error_code == (ErrorCode.NONE if on else ErrorCode.UNSUPPORTED_VERSION)
    assert result.error_message == (None if on else "Unknown resource type 32.")


@BOTH
def test_zk_migration_ready_is_kept(on: bool) -> None:
    cluster = Cluster(rules=rules(zk_migration_ready_is_kept=on))
    request = m.ControllerRegistrationRequest(controller_id=9, zk_migration_ready=True)
    (record,) = cluster.records_of(lambda: cluster.request(request))
    assert record.zk_migration_ready == on


@BOTH
def test_full_batches_are_fatal(on: bool) -> None:
    """Two records of an unregistration, in batches of two."""
    cluster = Cluster(rules=rules(full_batches_are_fatal=on))
    cluster.start(1, 2)
    cluster.create("foo", (1, 2))
    cluster.machine._max_records = 2
    response = cluster.request(m.UnregisterBrokerRequest(broker_id=2))
    assert response.error_code == (ErrorCode.UNKNOWN_SERVER_ERROR if on else ErrorCode.NONE)
    assert cluster.resigned == on


@BOTH
def test_registered_controllers_have_configs(on: bool) -> None:
    """A static voter may have configs in any release; a node that is neither may not."""
    cluster = Cluster(
        rules=rules(registered_controllers_have_configs=on), settings={"static_voters": (7,)}
    )
    cluster.request(m.ControllerRegistrationRequest(controller_id=9))
    codes = [cluster.set_config(4, node, "log.retention.ms", "5") for node in ("7", "8", "9")]
    unknown = ErrorCode.BROKER_ID_NOT_REGISTERED
    assert codes == [ErrorCode.NONE, unknown, ErrorCode.NONE if on else unknown]


@BOTH
@pytest.mark.parametrize(("operation", "value"), [(9, "x"), (2, None), (3, None)])
def test_malformed_config_change_is_fatal(on: bool, operation: int, value: str | None) -> None:
    cluster = Cluster(rules=rules(malformed_config_change_is_fatal=on))
    cluster.start(1)
    cluster.create("foo", (1,))
    Request = m.IncrementalAlterConfigsRequest
    change = Request.AlterableConfig(name="cleanup.policy", config_operation=operation, value=value)
    resource = Request.AlterConfigsResource(resource_type=2, resource_name="foo", configs=(change,))
    (result,) = cluster.request(Request(resources=(resource,))).responses
    assert (result.error_code, result.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert cluster.resigned == on


@pytest.mark.parametrize("operation", [4, 9, -1])
@pytest.mark.parametrize(
    ("kind", "name"), [(TOPIC, "foo"), (GROUP, "team"), (CLIENT_METRICS, "all"), (BROKER, "1")]
)
def test_an_unknown_operation_fails_the_whole_request(kind: int, name: str, operation: int) -> None:
    """Also the resources that are sound, and without a text (ApiError.fromThrowable)."""
    cluster = Cluster()
    cluster.start(1)
    cluster.create("foo", (1,))
    Request = m.IncrementalAlterConfigsRequest

    def resource(kind: int, name: str, operation: int) -> Any:
        change = Request.AlterableConfig(
            name="segment.ms", config_operation=operation, value="900000"
        )
        return Request.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=(change,)
        )

    resources = resource(TOPIC, "sound", 0), resource(kind, name, operation)
    results = cluster.request(Request(resources=resources)).responses
    assert {(r.resource_name, r.error_code, r.error_message) for r in results} == {
        (n, ErrorCode.UNKNOWN_SERVER_ERROR, None) for n in ("sound", name)
    }
    assert not cluster.resigned


@BOTH
def test_unknown_recovery_state_is_fatal(on: bool) -> None:
    """The ISR is looked at first: a request that is rejected for it brings nobody down."""
    cluster = Cluster(rules=rules(unknown_recovery_state_is_fatal=on))
    cluster.start(1, 2)
    cluster.create("foo", (1, 2))
    rejected = cluster.propose("foo", (2,), leader_recovery_state=2)
    assert (rejected.error_code, cluster.resigned) == (ErrorCode.INVALID_REQUEST, False)
    response = cluster.alter("foo", (1,), leader_recovery_state=2)
    if on:
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    else:
        assert response.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    assert cluster.resigned == on
    assert cluster.partition("foo").isr == (1, 2)


@BOTH
@pytest.mark.parametrize("malformed_first", [True, False])
def test_of_several_wrong_config_changes_the_first_counts(on: bool, malformed_first: bool) -> None:
    """ConfigurationControlManager.incrementalAlterConfigResource: one change after the other.

    The order is that of a hash map of the names, max.message.bytes before segment.ms, whatever
    that of the request.
    """
    cluster = Cluster(rules=rules(malformed_config_change_is_fatal=on))
    cluster.start(1)
    cluster.create("foo", (1,))
    Request = m.IncrementalAlterConfigsRequest
    unknown, appended = 9, 2  # max.message.bytes and segment.ms are no lists
    first, second = (unknown, appended) if malformed_first else (appended, unknown)
    changes = (
        Request.AlterableConfig(name="segment.ms", config_operation=second, value="1"),
        Request.AlterableConfig(name="max.message.bytes", config_operation=first, value="1"),
    )
    resource = Request.AlterConfigsResource(resource_type=2, resource_name="foo", configs=changes)
    (result,) = cluster.request(Request(resources=(resource,))).responses
    malformed = ErrorCode.UNKNOWN_SERVER_ERROR
    assert result.error_code == (malformed if malformed_first else ErrorCode.INVALID_CONFIG)
    assert cluster.resigned == (on and malformed_first)
