"""Conformance group E: registration, heartbeats, sessions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from minicluster.controller.state.broker_heartbeat_manager import (
    BrokerControlState,
    BrokerHeartbeatManager,
)
from minicluster.metadata.image.directory_id import MIGRATING, UNASSIGNED
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)
from minicluster.rules import Rules
from minicluster.values import replace
from tests.controller.applying import apply_record
from tests.controller.kit import CLUSTER_ID, Cluster, dir_id, incarnation

Request = m.BrokerRegistrationRequest
V3_9 = {"rules": Rules.KAFKA_3_9, "metadata_version": "3.9-IV0"}


def feature(name: str, low: int, high: int) -> Request.Feature:
    return Request.Feature(name=name, min_supported_version=low, max_supported_version=high)


def register(cluster: Cluster, broker_id: int, **fields: Any) -> m.BrokerRegistrationResponse:
    values: dict[str, Any] = {
        "cluster_id": CLUSTER_ID,
        "incarnation_id": incarnation(broker_id),
        "features": (feature("metadata.version", 1, 31),),
        "log_dirs": (dir_id(broker_id),),
    }
    response = cluster.request(Request(broker_id=broker_id, **(values | fields)))
    assert isinstance(response, m.BrokerRegistrationResponse)
    if response.error_code:
        assert response.broker_epoch == -1
    return response


def test_E01_only_the_registered_epoch_acts_for_a_broker() -> None:
    cluster = Cluster()
    cluster.register(1)
    epoch = cluster.epoch(1)
    assert cluster.heartbeat(1, broker_epoch=epoch).error_code == 0
    for broker_id, wrong in ((1, epoch + 1), (2, epoch)):
        response = cluster.heartbeat(broker_id, broker_epoch=wrong)
        assert response.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_E02_E06_a_registration_remembers_its_offset_until_it_is_gone() -> None:
    cluster = Cluster()
    state = cluster.machine.state
    record = RegisterBrokerRecord(
        broker_id=1, broker_epoch=100, incarnation_id=incarnation(1), in_controlled_shutdown=True
    )
    apply_record(state, VersionedRecord(record, 4), 100)
    broker = state.image.cluster.broker(1)
    assert broker is not None
    assert (broker.register_offset, broker.fenced, broker.in_controlled_shutdown) == (
        100,
        True,
        True,
    )
    unregister = UnregisterBrokerRecord(broker_id=1, broker_epoch=100)
    apply_record(state, VersionedRecord(unregister, 0), 101)
    assert state.image.cluster.broker(1) is None


def test_E03_unfencing_keeps_the_controlled_shutdown_bit() -> None:
    cluster = Cluster()
    cluster.start(1)
    epoch = cluster.epoch(1)
    for change in ({"in_controlled_shutdown": 1}, {"fenced": -1}):
        record = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, **change)
        apply_record(cluster.machine.state, VersionedRecord(record, 1), cluster.end)
    assert cluster.machine.image.cluster.brokers[1].in_controlled_shutdown


def test_E04_another_clusters_broker_is_refused() -> None:
    response = register(Cluster(), 1, cluster_id="other")
    assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize(
    ("features", "error"),
    [
        ((), ErrorCode.INVALID_REGISTRATION),
        ((feature("metadata.version", 31, 31),), ErrorCode.UNSUPPORTED_VERSION),
        ((feature("metadata.version", 7, 29),), ErrorCode.UNSUPPORTED_VERSION),
        ((feature("metadata.version", 7, 31),), ErrorCode.UNSUPPORTED_VERSION),
        (
            (feature("test.feature", 0, 1), feature("metadata.version", 7, 31)),
            ErrorCode.NONE,
        ),
        (
            (feature("test.feature", 2, 3), feature("metadata.version", 31, 31)),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_E07_every_finalized_level_must_be_offered(features: Any, error: ErrorCode) -> None:
    cluster = Cluster()
    record = FeatureLevelRecord(name="test.feature", feature_level=1)
    apply_record(cluster.machine.state, VersionedRecord(record, 0), cluster.end)
    assert register(cluster, 1, features=features).error_code == error


def test_E07_3_9_takes_a_broker_without_metadata_version_for_the_first_level() -> None:
    assert register(Cluster(**V3_9), 1, features=()).error_code == ErrorCode.UNSUPPORTED_VERSION
    low = Cluster(rules=Rules.KAFKA_3_9, metadata_version="3.0-IV1")
    assert register(low, 1, features=()).error_code == 0


@pytest.mark.parametrize("finalized", [0, 1])
@pytest.mark.parametrize("broker_max", [0, 1])
def test_E08_E09_kraft_version_must_be_offered_once_it_is_finalized(
    finalized: int, broker_max: int
) -> None:
    cluster = Cluster()
    cluster.machine.kraft_version = finalized
    features = [feature("metadata.version", 7, 31)]
    if broker_max:
        features.append(feature("kraft.version", 0, 1))
    response = register(cluster, 1, features=tuple(features))
    refused = (finalized, broker_max) == (1, 0)
    assert response.error_code == (ErrorCode.UNSUPPORTED_VERSION if refused else 0)


def test_E10_directories_are_checked_in_order() -> None:
    cluster = Cluster()
    a, b, c = dir_id(0, 1), dir_id(0, 2), dir_id(0, 3)
    assert register(cluster, 0, log_dirs=(a, b)).error_code == 0
    assert register(cluster, 0, log_dirs=(a, b)).error_code == 0
    for log_dirs in ((), (c, b), (c, UNASSIGNED), (c, c)):
        response = register(cluster, 1, log_dirs=log_dirs)
        assert response.error_code == ErrorCode.INVALID_REGISTRATION


def test_E12_the_directory_of_a_new_replica() -> None:
    state = Cluster().machine.state
    for offset, (broker_id, count) in enumerate(((1, 0), (2, 1), (3, 2)), start=100):
        record = RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=offset,
            log_dirs=tuple(dir_id(broker_id, number) for number in range(count)),
        )
        apply_record(state, VersionedRecord(record, 3), offset)
    assert state.default_dir(1) == MIGRATING
    assert state.default_dir(2) == dir_id(2)
    assert [state.default_dir(broker_id) for broker_id in (3, 4)] == [UNASSIGNED] * 2


def test_E13_a_new_incarnation_gets_a_new_epoch_and_the_same_one_keeps_its_own() -> None:
    cluster = Cluster()
    first = register(cluster, 1).broker_epoch
    register(cluster, 2)
    assert register(cluster, 1).broker_epoch == first
    renewed = register(cluster, 1, incarnation_id=incarnation(1, 1)).broker_epoch
    assert renewed == cluster.end - 1 > first


def test_amending_keeps_fencing_and_controlled_shutdown() -> None:
    cluster = Cluster()
    cluster.start(1)
    cluster.create("a", (1,))
    cluster.heartbeat(1, want_shut_down=True)
    records = cluster.records_of(lambda: register(cluster, 1))
    assert len(records) == 1 and isinstance(records[0], RegisterBrokerRecord)
    assert (records[0].fenced, records[0].in_controlled_shutdown) == (False, True)
    cluster.now_ms += 20_000
    register(cluster, 1, incarnation_id=incarnation(1, 1))
    broker = cluster.machine.image.cluster.brokers[1]
    assert (broker.fenced, broker.in_controlled_shutdown) == (True, False)


@pytest.mark.parametrize("shipped", [True, False])
def test_amending_and_cordoned_directories(shipped: bool) -> None:
    rules = replace(Rules.KAFKA_4_3, amend_forgets_cordoned_dirs=shipped)
    cluster = Cluster(rules=rules)
    cluster.start(1)
    cluster.heartbeat(1, cordoned_log_dirs=(dir_id(1),))
    register(cluster, 1)
    kept = cluster.machine.image.cluster.brokers[1].cordoned_log_dirs
    assert kept == (None if shipped else (dir_id(1),))


@pytest.mark.parametrize(
    ("metadata_version", "version"),
    [("3.3-IV3", 1), ("3.4-IV0", 2), ("3.7-IV2", 3), ("4.3-IV0", 4)],
)
def test_the_registration_record_follows_the_metadata_version(
    metadata_version: str, version: int
) -> None:
    cluster = Cluster(metadata_version=metadata_version)
    register(cluster, 1)
    assert cluster.log[cluster.end - 1].version == version


def test_a_live_session_keeps_out_another_incarnation() -> None:
    cluster = Cluster()
    cluster.start(1)
    other = {"incarnation_id": incarnation(1, 1)}
    cluster.now_ms += 9_000
    duplicate = ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert register(cluster, 1, **other).error_code == duplicate
    cluster.now_ms += 1
    assert register(cluster, 1, **other).error_code == 0


@pytest.mark.parametrize(
    ("rules", "blocks"),
    [
        (Rules.KAFKA_4_3, True),
        (replace(Rules.KAFKA_4_3, fenced_broker_holds_session=False), False),
        (Rules.KAFKA_3_9, False),
    ],
    ids=["4.3", "4.3 mended", "3.9"],
)
def test_whether_a_fenced_broker_has_a_session(rules: Rules, blocks: bool) -> None:
    cluster = Cluster(rules=rules, metadata_version="3.9-IV0")
    cluster.start(1)
    cluster.fence(1)
    features = (feature("metadata.version", 7, 23),)
    other = {"incarnation_id": incarnation(1, 1), "features": features}
    assert (register(cluster, 1, **other).error_code != 0) == blocks


def test_a_broker_that_never_sent_a_heartbeat_keeps_nobody_out() -> None:
    cluster = Cluster()
    register(cluster, 1)
    assert register(cluster, 1, incarnation_id=incarnation(1, 1)).error_code == 0


def test_a_new_incarnation_leaves_isr_and_leadership_before_it_is_registered() -> None:
    for options, cleans in (({}, True), (V3_9, False)):
        cluster = Cluster(**options)  # type: ignore[arg-type]
        cluster.start(1, 2)
        cluster.create("a", (1, 2))
        cluster.now_ms += 10_000
        before = cluster.end
        register(
            cluster,
            1,
            incarnation_id=incarnation(1, 1),
            features=(feature("metadata.version", 7, 23 if not cleans else 31),),
        )
        kinds = [type(cluster.log[o].record).__name__ for o in range(before, cluster.end)]
        assert kinds == ["PartitionChangeRecord"] * cleans + ["RegisterBrokerRecord"]
        assert cluster.epoch(1) == before  # the epoch is where the decision began
        assert cluster.partition("a").leader == (2 if cleans else 1)


# The heartbeat state, without a cluster.


def beats(rules: Rules = Rules.KAFKA_3_9, session_timeout_ms: int = 10) -> BrokerHeartbeatManager:
    return BrokerHeartbeatManager(rules, session_timeout_ms)


def test_E16_sessions_by_last_contact_3_9() -> None:
    heartbeats = beats()
    for broker_id in (0, 1, 2):
        heartbeats.register(broker_id, True, 0)
    heartbeats.touch(0, False, 0, 0)
    for broker_id in (1, 2):
        heartbeats.touch(broker_id, False, 0, 5)
    assert [heartbeats.has_valid_session(b, 0, 11) for b in range(4)] == [False, True, True, False]
    heartbeats.remove(1)
    assert not heartbeats.has_valid_session(1, 0, 11)


def test_E18_when_to_look_for_stale_brokers_3_9() -> None:
    heartbeats = beats()
    assert heartbeats.next_check_ms() is None
    for broker_id in range(4):
        heartbeats.register(broker_id, True, 0)
    for broker_id, contact_ms in enumerate((0, 2, 3, 4)):
        heartbeats.touch(broker_id, False, 0, contact_ms)
    assert heartbeats.next_check_ms() == 10
    heartbeats.touch(0, True, 0, 0)
    assert heartbeats.next_check_ms() == 12
    assert heartbeats.stale_broker(14) == 1
    heartbeats.touch(1, True, 0, 14)
    assert heartbeats.stale_broker(14) == 2
    heartbeats.touch(2, True, 0, 14)
    assert heartbeats.stale_broker(14) is None
    assert heartbeats.next_check_ms() == 14


def test_sessions_by_id_and_epoch_4_3() -> None:
    heartbeats = beats(Rules.KAFKA_4_3)
    heartbeats.contact(1, 100, 0)
    heartbeats.contact(1, 99, 5)
    assert heartbeats.has_valid_session(1, 100, 10)
    assert not heartbeats.has_valid_session(1, 100, 11)
    assert [s.epoch for s in heartbeats.expired_sessions(11)] == [100]
    assert [s.epoch for s in heartbeats.expired_sessions(16)] == [100, 99]


def test_E20_usable_brokers_and_the_slowest_of_the_active() -> None:
    heartbeats = beats()
    for broker_id in range(5):
        heartbeats.register(broker_id, True, 0)
    for broker_id in range(4):
        heartbeats.touch(broker_id, False, 98 if broker_id == 2 else 100, 0)
    assert heartbeats.lowest_active_offset() == 98
    heartbeats.set_shutdown_offset(2, 0)
    assert heartbeats.lowest_active_offset() == 100
    assert list(heartbeats.usable()) == [(0, False), (1, False), (3, False), (4, True)]
    with pytest.raises(ValueError, match="Fenced brokers cannot enter controlled shutdown"):
        heartbeats.set_shutdown_offset(4, 0)
    heartbeats.touch(4, False, 100, 0)
    heartbeats.set_shutdown_offset(4, 0)
    assert [broker_id for broker_id, _ in heartbeats.usable()] == [0, 1, 3]


def test_E21_the_shutdown_offset_is_set_once() -> None:
    heartbeats = beats()
    for broker_id, offsets in ((2, (98, 99)), (3, (101, 102))):
        heartbeats.register(broker_id, False, 0)
        for offset in offsets:
            heartbeats.set_shutdown_offset(broker_id, offset)
        assert heartbeats._entry(broker_id).shutdown_offset == offsets[0]


def test_E22_unfenced_brokers_are_in_the_order_of_last_contact() -> None:
    heartbeats = beats()
    for broker_id, contact_ms in ((0, 200), (1, 100), (2, 50), (3, 150)):
        heartbeats.register(broker_id, False, contact_ms)
    assert heartbeats.by_last_contact() == (2, 1, 3, 0)


def next_state(
    heartbeats: BrokerHeartbeatManager, broker_id: int, **fields: Any
) -> BrokerControlState:
    values: dict[str, Any] = {
        "want_fence": False,
        "want_shut_down": False,
        "metadata_offset": 100,
        "register_offset": 100,
        "has_leaderships": lambda: False,
    }
    return heartbeats.next_state(broker_id, **(values | fields))


def states() -> BrokerHeartbeatManager:
    """0 fenced; 1 active at 98; 2 at 99; 5 shuts down since 99."""
    heartbeats = beats()
    for broker_id in (0, 1, 2, 5):
        heartbeats.register(broker_id, True, 0)
    heartbeats.touch(1, False, 98, 0)
    heartbeats.touch(2, False, 100, 0)
    heartbeats.touch(5, False, 99, 0)
    heartbeats.set_shutdown_offset(5, 99)
    return heartbeats


FENCED, UNFENCED = BrokerControlState.FENCED, BrokerControlState.UNFENCED
SHUTDOWN, NOW = BrokerControlState.CONTROLLED_SHUTDOWN, BrokerControlState.SHUTDOWN_NOW


@pytest.mark.parametrize(
    ("broker_id", "fields", "expected"),
    [
        pytest.param(0, {"want_shut_down": True}, NOW, id="E23-a"),
        pytest.param(0, {}, UNFENCED, id="E23-b"),
        pytest.param(0, {"metadata_offset": 50}, FENCED, id="E23-c"),
        pytest.param(0, {"want_fence": True}, FENCED, id="E23-d"),
        pytest.param(5, {"has_leaderships": lambda: True}, SHUTDOWN, id="E24-a"),
        pytest.param(5, {}, SHUTDOWN, id="E24-b"),
        pytest.param(1, {"want_fence": True}, FENCED, id="E26-a"),
        pytest.param(1, {"want_fence": True, "want_shut_down": True}, NOW, id="E26-b"),
        pytest.param(
            1, {"want_shut_down": True, "has_leaderships": lambda: True}, SHUTDOWN, id="E26-c"
        ),
        pytest.param(1, {"want_shut_down": True}, NOW, id="E26-d"),
        pytest.param(1, {}, UNFENCED, id="E26-e"),
    ],
)
def test_what_a_heartbeat_makes_of_a_broker(
    broker_id: int, fields: dict[str, Any], expected: BrokerControlState
) -> None:
    assert next_state(states(), broker_id, **fields) is expected


def test_E25_once_the_slowest_has_passed_the_offset_the_broker_may_go() -> None:
    heartbeats = states()
    heartbeats.touch(1, True, 98, 0)
    assert heartbeats.lowest_active_offset() == 100
    assert next_state(heartbeats, 5) is NOW
    assert next_state(heartbeats, 5, has_leaderships=lambda: True) is SHUTDOWN


def test_E27_an_unknown_broker_has_no_state() -> None:
    for act in (
        lambda: next_state(states(), 6),
        lambda: states().touch(6, False, 0, 0),
    ):
        with pytest.raises(ValueError, match=r"Broker 6 is not registered\."):
            act()


@pytest.mark.parametrize("again", [True, False])
def test_whether_a_fenced_brokers_session_fences_it_again(again: bool) -> None:
    cluster = Cluster(rules=replace(Rules.KAFKA_4_3, fenced_broker_is_fenced_again=again))
    cluster.start(1)
    cluster.fence(1)
    records = cluster.records_of(lambda: cluster.run(11_000))
    fences = [r for r in records if isinstance(r, BrokerRegistrationChangeRecord)]
    assert len(fences) == (1 if again else 0)


def test_stale_brokers_are_fenced_one_after_the_other() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.create("a", (1, 2))
    cluster.run(9_000)
    assert not cluster.machine.image.cluster.brokers[1].fenced
    cluster.run(9_000 + 2 * 1_125)
    assert cluster.machine.image.cluster.brokers[1].fenced
    partition = cluster.partition("a")
    assert (partition.leader, partition.isr) == (-1, (2,))
    assert partition.leader_epoch == 2  # from 1 to 2, from 2 to nobody


def test_E14_controllers_register_from_3_7_on() -> None:
    request = m.ControllerRegistrationRequest(controller_id=101, incarnation_id=UUID(int=9))
    old = Cluster(metadata_version="3.6-IV2").request(request)
    assert old.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert old.error_message == "The version of API is not supported."  # the response has no other
    cluster = Cluster()
    assert cluster.request(request).error_code == 0
    assert cluster.machine.image.cluster.controllers[101].incarnation_id == UUID(int=9)


def test_producer_ids_come_in_blocks_that_never_overlap() -> None:
    cluster = Cluster()
    cluster.start(1)
    request = m.AllocateProducerIdsRequest(broker_id=1, broker_epoch=cluster.epoch(1))
    first, second = cluster.request(request), cluster.request(request)
    assert (first.producer_id_start, first.producer_id_len) == (0, 1_000)
    assert second.producer_id_start == 1_000
    stale = cluster.request(m.AllocateProducerIdsRequest(broker_id=1, broker_epoch=0))
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
