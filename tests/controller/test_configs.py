"""Configs: precedence, validation, feature levels."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.controller.settings import UNCLEAN_ELECTION
from minicluster.metadata.image.configs import BROKER, MIN_ISR, TOPIC
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import ConfigRecord, FeatureLevelRecord
from minicluster.rules import Rules
from minicluster.values import replace
from tests.controller.kit import Cluster, dir_id, started

ELR = "eligible.leader.replicas.version"
MV = "metadata.version"


def test_the_nearest_config_wins() -> None:
    cluster = started(0, 1, settings={"node_id": 0, "static_config": {MIN_ISR: "5"}})
    cluster.create("foo", (0,))
    state = cluster.machine.state

    def value() -> str:
        return state.topic_config("foo", MIN_ISR)

    assert state.topic_config("foo", UNCLEAN_ELECTION) == "false"
    assert value() == "5"
    steps = [(BROKER, "", "4"), (BROKER, "0", "3"), (TOPIC, "foo", "2")]
    for kind, name, wanted in steps:
        assert cluster.set_config(kind, name, MIN_ISR, wanted) == 0
        assert value() == wanted
    cluster.set_config(BROKER, "1", MIN_ISR, "9")  # another node's
    assert value() == "2"
    for (kind, name, _), wanted in zip(reversed(steps), ("3", "4", "5"), strict=True):
        assert cluster.set_config(kind, name, MIN_ISR, None) == 0
        assert value() == wanted


def test_a_topic_config_is_written_only_when_it_changes_a_broker_config_always() -> None:
    cluster = started(0)
    cluster.create("foo", (0,))
    for kind, name, again in ((TOPIC, "foo", 0), (BROKER, "0", 1)):
        first = cluster.records_of(lambda k=kind, n=name: cluster.set_config(k, n, MIN_ISR, "1"))  # type: ignore[misc]
        second = cluster.records_of(lambda k=kind, n=name: cluster.set_config(k, n, MIN_ISR, "1"))  # type: ignore[misc]
        assert (len(first), len(second)) == (1, again)


@pytest.mark.parametrize(
    ("kind", "name", "key", "value", "error"),
    [
        (TOPIC, "foo", MIN_ISR, "0", ErrorCode.INVALID_CONFIG),
        (TOPIC, "foo", MIN_ISR, "many", ErrorCode.INVALID_CONFIG),
        (TOPIC, "foo", UNCLEAN_ELECTION, "yes", ErrorCode.INVALID_CONFIG),
        (TOPIC, "foo", "note", "x" * 32_768, ErrorCode.INVALID_CONFIG),
        (TOPIC, "nowhere", MIN_ISR, "1", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "nowhere", MIN_ISR, "many", ErrorCode.INVALID_CONFIG),  # the value comes first
        (TOPIC, "nowhere", "note", "x" * 32_768, ErrorCode.INVALID_CONFIG),
        (BROKER, "77", MIN_ISR, "1", ErrorCode.BROKER_ID_NOT_REGISTERED),
        (BROKER, "x", MIN_ISR, "1", ErrorCode.INVALID_REQUEST),
        (3, "foo", MIN_ISR, "1", ErrorCode.UNSUPPORTED_VERSION),
        (TOPIC, "foo", "note", "x", ErrorCode.INVALID_CONFIG),  # no topic has such a config
        (TOPIC, "foo", "retention.ms", "-1", ErrorCode.NONE),
    ],
)
def test_what_a_config_may_be(kind: int, name: str, key: str, value: str, error: ErrorCode) -> None:
    cluster = started(0)
    cluster.create("foo", (0,))
    codes: list[int] = []
    records = cluster.records_of(lambda: codes.append(cluster.set_config(kind, name, key, value)))
    assert codes == [error]
    assert bool(records) == (error is ErrorCode.NONE)


def alter(cluster: Cluster, operation: int, key: str, value: str | None) -> int:
    Request = m.IncrementalAlterConfigsRequest
    change = Request.AlterableConfig(name=key, config_operation=operation, value=value)
    resource = Request.AlterConfigsResource(
        resource_type=TOPIC, resource_name="foo", configs=(change,)
    )
    return int(cluster.request(Request(resources=(resource,))).responses[0].error_code)


def test_list_configs_can_be_added_to_and_taken_from() -> None:
    cluster = started(0)
    cluster.create("foo", (0,))
    assert alter(cluster, 2, "cleanup.policy", "compact") == 0
    assert alter(cluster, 2, "cleanup.policy", "delete,compact") == 0
    of_foo = cluster.machine.image.configs
    assert of_foo.value(TOPIC, "foo", "cleanup.policy") == "delete,compact"
    assert alter(cluster, 3, "cleanup.policy", "compact") == 0
    assert cluster.machine.image.configs.value(TOPIC, "foo", "cleanup.policy") == "delete"
    for operation, value, after in (
        (2, "compact,,", "delete,compact"),  # trailing empty entries are dropped
        (2, ",", "delete,compact"),
        (3, "delete,delete", "compact"),
        (3, "x", "compact"),
        (3, "compact", ""),
    ):
        assert alter(cluster, operation, "cleanup.policy", value) == 0
        assert cluster.machine.image.configs.value(TOPIC, "foo", "cleanup.policy") == after
    assert alter(cluster, 2, MIN_ISR, "1") == ErrorCode.INVALID_CONFIG
    assert alter(cluster, 9, MIN_ISR, "1") == ErrorCode.UNKNOWN_SERVER_ERROR


def test_alter_configs_replaces_all_that_a_resource_had() -> None:
    cluster = started(0)
    cluster.create("foo", (0,), configs={"flush.ms": "1", "retention.ms": "2"})
    Request = m.AlterConfigsRequest
    resource = Request.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="foo",
        configs=(Request.AlterableConfig(name="retention.ms", value="3"),),
    )
    records = cluster.records_of(lambda: cluster.request(Request(resources=(resource,))))
    assert [(r.name, r.value) for r in records] == [("retention.ms", "3"), ("flush.ms", None)]
    assert cluster.machine.image.configs.of(TOPIC, "foo") == {"retention.ms": "3"}


@pytest.mark.parametrize(
    ("metadata_version", "forwarded", "error"),
    [
        ("4.2-IV1", True, ErrorCode.INVALID_CONFIG),
        ("4.3-IV0", True, ErrorCode.NONE),
        ("4.3-IV0", False, ErrorCode.INVALID_CONFIG),
    ],
)
def test_cordoned_directories_are_for_4_3_and_for_brokers_to_name(
    metadata_version: str, forwarded: bool, error: ErrorCode
) -> None:
    cluster = started(0, metadata_version=metadata_version)
    Request = m.IncrementalAlterConfigsRequest
    change = Request.AlterableConfig(name="cordoned.log.dirs", value="/data/1")
    resource = Request.AlterConfigsResource(
        resource_type=BROKER, resource_name="0", configs=(change,)
    )
    response = cluster.request(Request(resources=(resource,)), forwarded=forwarded)
    assert response.responses[0].error_code == error


def update(cluster: Cluster, feature: str, level: int, kind: int = 1, **fields: Any) -> ErrorCode:
    Request = m.UpdateFeaturesRequest
    key = Request.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
    return ErrorCode(cluster.request(Request(feature_updates=(key,), **fields)).error_code)


@pytest.mark.parametrize(
    ("feature", "level", "kind", "error"),
    [
        (MV, 30, 1, "NONE"),
        (MV, 31, 1, "INVALID_UPDATE_VERSION"),  # for testing only
        (MV, 32, 1, "INVALID_UPDATE_VERSION"),
        (MV, -1, 1, "INVALID_UPDATE_VERSION"),
        (MV, 28, 1, "INVALID_UPDATE_VERSION"),  # lower, and no downgrade
        (MV, 28, 2, "NONE"),
        (MV, 22, 2, "INVALID_UPDATE_VERSION"),  # would lose metadata
        (MV, 22, 3, "INVALID_UPDATE_VERSION"),
        (MV, 30, 2, "INVALID_UPDATE_VERSION"),  # higher, and no upgrade
        (MV, 30, 7, "INVALID_UPDATE_VERSION"),
        (MV, 6, 3, "INVALID_UPDATE_VERSION"),
        ("no.such.version", 1, 1, "INVALID_UPDATE_VERSION"),
        (ELR, 1, 1, "NONE"),
        (ELR, 2, 1, "INVALID_UPDATE_VERSION"),
    ],
)
def test_feature_levels(feature: str, level: int, kind: int, error: str) -> None:
    cluster = started(0, metadata_version="4.2-IV1")
    before = cluster.machine.image
    assert update(cluster, feature, level, kind) == ErrorCode[error]
    assert (cluster.machine.image is before) == (error != "NONE")


def test_a_level_that_a_broker_does_not_offer_is_refused() -> None:
    cluster = Cluster(metadata_version="4.2-IV1")
    request = m.BrokerRegistrationRequest
    low = request.Feature(name=MV, min_supported_version=7, max_supported_version=29)
    cluster.request(request(broker_id=1, cluster_id="test", features=(low,), log_dirs=(dir_id(1),)))
    assert update(cluster, MV, 30) == ErrorCode.INVALID_UPDATE_VERSION


def test_turning_elr_on_fixes_one_minimum_for_the_cluster() -> None:
    cluster = started(0, 1, settings={"static_config": {MIN_ISR: "2"}})
    cluster.set_config(BROKER, "1", MIN_ISR, "3")
    assert cluster.records_of(lambda: update(cluster, ELR, 1, validate_only=True)) == []
    records = cluster.records_of(lambda: update(cluster, ELR, 1))
    assert records == [
        ConfigRecord(resource_type=BROKER, resource_name="", name=MIN_ISR, value="2"),
        ConfigRecord(resource_type=BROKER, resource_name="1", name=MIN_ISR, value=None),
        FeatureLevelRecord(name=ELR, feature_level=1),
    ]
    assert cluster.machine.state.gates.elr_enabled


def test_turning_elr_off_empties_an_elr_with_the_next_change_only() -> None:
    cluster = started(0, 1, 2, elr=True)
    cluster.create("foo", (0, 1, 2), configs={MIN_ISR: "2"})
    cluster.propose("foo", (0,))
    assert cluster.partition("foo").elr == (1, 2)
    assert update(cluster, ELR, 0, 2) == ErrorCode.NONE
    assert cluster.partition("foo").elr == (1, 2)
    cluster.propose("foo", (0, 1))
    assert cluster.partition("foo").elr == ()


def test_up_to_3_9_tasks_are_scheduled_when_there_is_something_to_do() -> None:
    rules = replace(Rules.KAFKA_3_9)
    cluster = Cluster(rules=rules, metadata_version="3.9-IV0")
    assert set(cluster.timers) == {"writeNoOpRecord"}
    cluster.start(1, 2)
    cluster.create("foo", (1, 2))
    assert "electPreferred" not in cluster.timers
    assert cluster.timers["maybeFenceStaleBroker"] == 9_001
    cluster.fence(1)
    assert cluster.timers["electPreferred"] == 300_000
    cluster.heartbeat(1)
    cluster.propose("foo", (1, 2))
    cluster.run(9_001)
    assert cluster.machine.image.cluster.brokers[1].fenced


def test_a_cluster_min_isr_that_is_no_number_does_not_end_the_controller() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.create("foo", (1, 2))
    assert cluster.set_config(BROKER, "", MIN_ISR, "x") == 0
    cluster.fence(2)
    assert cluster.partition("foo").isr == (1,)
