"""Conformance group A: AlterPartition. Its refusals in their order: ``test_refusal_order``."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.faults import Faults
from minicluster.metadata.image.partition import RECOVERED, RECOVERING
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import PartitionChangeRecord
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.rules import Rules
from tests.controller.kit import Cluster

Request = m.AlterPartitionRequest
Part = m.AlterPartitionResponse.PartitionData


def started(*replicas: int, brokers: int = 5, **options: Any) -> Cluster:
    """Brokers 0 to n-1 and the topic foo with these replicas."""
    cluster = Cluster(**options)
    cluster.start(*range(brokers))
    assert cluster.create("foo", replicas).error_code == 0
    return cluster


def outcome_of(response: m.AlterPartitionResponse) -> Part:
    assert response.error_code == 0
    return response.topics[0].partitions[0]


def refused(cluster: Cluster, isr: tuple[int, ...], **fields: Any) -> ErrorCode:
    """The error of a proposal that must write nothing."""
    responses: list[Part] = []
    records = cluster.records_of(
        lambda: responses.append(outcome_of(cluster.alter("foo", isr, **fields)))
    )
    assert records == []
    code = responses[0].error_code
    assert responses[0] == Part(partition_index=0, error_code=code)
    return ErrorCode(code)


def test_A01_A02_the_isr_shrinks_and_grows_without_a_new_leader_epoch() -> None:
    cluster = started(0, 1, 2)
    first = cluster.propose("foo", (0, 1))
    assert (first.leader_id, first.isr, first.leader_epoch, first.partition_epoch) == (
        0,
        (0, 1),
        0,
        1,
    )
    stored = cluster.partition("foo")
    assert (stored.leader, stored.isr, stored.leader_epoch, stored.partition_epoch) == (
        first.leader_id,
        first.isr,
        first.leader_epoch,
        first.partition_epoch,
    )
    second = cluster.propose("foo", (0, 1, 2))
    assert (second.isr, second.leader_epoch, second.partition_epoch) == ((0, 1, 2), 0, 2)


@pytest.mark.parametrize(
    ("isr", "fields", "error"),
    [
        pytest.param((0, 1), {"broker_id": 1}, ErrorCode.INVALID_REQUEST, id="A03"),
        pytest.param((0, 1), {"leader_epoch": 500}, ErrorCode.NOT_CONTROLLER, id="A05"),
        pytest.param((0, 1), {"partition_epoch": 500}, ErrorCode.NOT_CONTROLLER, id="A06"),
        pytest.param((0, 1, 3), {}, ErrorCode.INVALID_REQUEST, id="A07"),
        pytest.param((1, 2), {}, ErrorCode.INVALID_REQUEST, id="A08"),
        pytest.param(
            (0, 1), {"leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST, id="A09"
        ),
        pytest.param(
            (0,), {"leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST, id="A10"
        ),
        pytest.param((), {}, ErrorCode.INVALID_REQUEST, id="A29"),
        pytest.param((0, 0, 1), {}, ErrorCode.INVALID_REQUEST, id="A30"),
        pytest.param((0, -1), {}, ErrorCode.INVALID_REQUEST, id="negative"),
    ],
)
def test_what_is_refused(isr: tuple[int, ...], fields: dict[str, Any], error: ErrorCode) -> None:
    assert refused(started(0, 1, 2), isr, **fields) == error


def test_A04_a_stale_broker_epoch_refuses_the_whole_request() -> None:
    cluster = started(0, 1, 2)
    response = cluster.alter("foo", (0, 1), broker_epoch=cluster.epoch(0) - 1)
    assert response == m.AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    unknown = cluster.alter("foo", (0, 1), broker_id=77, broker_epoch=0)
    assert unknown.error_code == ErrorCode.STALE_BROKER_EPOCH


def fenced_3() -> Cluster:
    cluster = started(1, 2, 3, 4)
    cluster.fence(3)
    return cluster


def test_A13_fencing_takes_a_follower_out_of_the_isr() -> None:
    partition = fenced_3().partition("foo")
    assert (partition.isr, partition.leader) == ((1, 2, 4), 1)
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 1)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        pytest.param(3, ErrorCode.INELIGIBLE_REPLICA, id="A14-v3"),
        pytest.param(2, ErrorCode.INELIGIBLE_REPLICA, id="A14-v2"),
        pytest.param(1, ErrorCode.OPERATION_NOT_ATTEMPTED, id="A15-v1"),
        pytest.param(0, ErrorCode.OPERATION_NOT_ATTEMPTED, id="A15-v0"),
    ],
)
def test_a_fenced_replica_stays_out_of_the_isr(version: int, error: ErrorCode) -> None:
    assert refused(fenced_3(), (1, 2, 3, 4), version=version) == error


def test_A16_once_unfenced_it_may_come_back() -> None:
    cluster = fenced_3()
    cluster.heartbeat(3)
    response = cluster.propose("foo", (1, 2, 3, 4))
    assert (response.leader_id, response.leader_epoch, response.isr) == (1, 0, (1, 2, 3, 4))
    assert (response.partition_epoch, response.leader_recovery_state) == (2, RECOVERED)


@pytest.mark.parametrize("version", [3, 2])
def test_A17_A18_only_v3_distinguishes_an_old_incarnation(version: int) -> None:
    cluster = started(1, 2, 3, 4)
    cluster.propose("foo", (1, 2, 3))
    old_epoch = cluster.epoch(4)
    cluster.now_ms += 10_000
    assert cluster.register(4, number=1).error_code == 0
    cluster.heartbeat(4)
    proposal = {"version": version, "member_epochs": {4: old_epoch}}
    if version == 3:
        assert refused(cluster, (1, 2, 3, 4), **proposal) == ErrorCode.INELIGIBLE_REPLICA
    else:
        assert cluster.propose("foo", (1, 2, 3, 4), **proposal).isr == (1, 2, 3, 4)


@pytest.mark.parametrize("version", [3, 1])
def test_A19_a_replica_that_shuts_down_is_refused_though_it_is_in_the_isr(version: int) -> None:
    cluster = started(1, 2, 3, 4)
    cluster.create("bar", (3, 1))  # so that broker 3 has something to hand over
    cluster.heartbeat(3, want_shut_down=True)
    cluster.put("foo", isr=(1, 2, 3, 4))
    error = ErrorCode.INELIGIBLE_REPLICA if version > 1 else ErrorCode.OPERATION_NOT_ATTEMPTED
    assert refused(cluster, (1, 2, 3, 4), version=version) == error


def reassign(cluster: Cluster, replicas: tuple[int, ...] | None, index: int = 0) -> int:
    Kind = m.AlterPartitionReassignmentsRequest
    wanted = Kind.ReassignablePartition(partition_index=index, replicas=replicas)
    topic = Kind.ReassignableTopic(name="foo", partitions=(wanted,))
    return int(cluster.request(Kind(topics=(topic,))).responses[0].partitions[0].error_code)


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.NEW_LEADER_ELECTED), (1, ErrorCode.FENCED_LEADER_EPOCH)],
    ids=["A20-v3", "A20-v1"],
)
def test_A20_the_last_isr_of_a_removed_leader_is_written_and_refused(
    version: int, error: ErrorCode
) -> None:
    cluster = started(3, 2, 1)
    assert reassign(cluster, (0, 2, 1)) == 0
    moving = cluster.partition("foo")
    assert (moving.replicas, moving.adding_replicas) == ((0, 2, 1, 3), (0,))
    assert (moving.removing_replicas, moving.leader) == ((3,), 3)
    responses: list[Part] = []
    records = cluster.records_of(
        lambda: responses.append(outcome_of(cluster.alter("foo", (3, 0, 2, 1), version=version)))
    )
    assert responses[0].error_code == error
    assert len(records) == 1 and isinstance(records[0], PartitionChangeRecord)
    assert not cluster.partition("foo").is_reassigning
    assert cluster.partition("foo").leader == 0


def test_A21_a_proposal_that_does_not_complete_is_just_accepted() -> None:
    cluster = started(4, 2, 3)
    assert reassign(cluster, (1, 2, 3, 4, 0)) == 0
    cluster.fence(3)
    response = cluster.propose("foo", (4, 1, 2, 0))
    assert (response.leader_id, response.leader_epoch, response.isr) == (4, 0, (4, 1, 2, 0))


def test_A22_partitions_of_one_request_succeed_each_by_itself() -> None:
    cluster = Cluster()
    cluster.start(2, 3, 4)
    for broker_id in (0, 1):
        cluster.register(broker_id)
    cluster.create("foo", (1, 2, 3), (2, 3, 4), (0, 2, 1))
    for broker_id in (0, 1):
        cluster.heartbeat(broker_id)
    Member = Request.BrokerState
    parts = tuple(
        Request.PartitionData(
            partition_index=index,
            new_isr_with_epochs=tuple(
                Member(broker_id=b, broker_epoch=cluster.epoch(b)) for b in isr
            ),
        )
        for index, isr in ((0, (1, 2, 3)), (2, (0, 2, 1)))
    )
    topic = Request.TopicData(topic_id=cluster.topic_id("foo"), partitions=parts)
    response = cluster.request(
        Request(broker_id=2, broker_epoch=cluster.epoch(2), topics=(topic,)), 3
    )
    responses = response.topics[0].partitions
    assert [(a.error_code, a.leader_id, a.partition_epoch, a.isr) for a in responses] == [
        (0, 2, 1, (1, 2, 3)),
        (0, 2, 1, (0, 2, 1)),
    ]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"leader_epoch": 2, "partition_epoch": 9}, "NOT_CONTROLLER", id="A24"),
        pytest.param({"leader_epoch": 2}, "FENCED_LEADER_EPOCH", id="A25"),
        pytest.param({"broker_id": 1, "partition_epoch": 6}, "INVALID_REQUEST", id="A26"),
        pytest.param({"partition_epoch": 6}, "INVALID_UPDATE_VERSION", id="A27"),
    ],
)
def test_the_order_of_epochs_and_leader(fields: dict[str, int], error: str) -> None:
    cluster = started(0, 1, 2)
    cluster.put("foo", leader_epoch=3, partition_epoch=7)
    assert refused(cluster, (0, 1, 2), **fields) == ErrorCode[error]


def test_A28_what_is_so_already_is_accepted_and_writes_nothing() -> None:
    cluster = started(0, 1, 2)
    cluster.put("foo", leader_epoch=3, partition_epoch=7, isr=(0, 1))
    responses: list[Part] = []
    assert cluster.records_of(lambda: responses.append(cluster.propose("foo", (0, 1)))) == []
    assert (responses[0].error_code, responses[0].partition_epoch) == (0, 7)


def recovering() -> Cluster:
    cluster = started(0, 1)
    cluster.put(
        "foo",
        isr=(0,),
        leader_epoch=3,
        partition_epoch=7,
        leader_recovery_state=RECOVERING,
    )
    return cluster


def test_A31_a_recovered_leader_reports_it_and_grows_its_isr_in_one_request() -> None:
    cluster = recovering()
    records = cluster.records_of(lambda: cluster.propose("foo", (0, 1)))
    assert records == [
        PartitionChangeRecord(
            partition_id=0,
            topic_id=cluster.topic_id("foo"),
            isr=(0, 1),
            leader_recovery_state=RECOVERED,
        )
    ]
    partition = cluster.partition("foo")
    assert (partition.leader_epoch, partition.partition_epoch) == (3, 8)


def test_A32_a_leader_that_goes_on_recovering_changes_nothing() -> None:
    cluster = recovering()
    state = {"leader_recovery_state": RECOVERING}
    assert cluster.records_of(lambda: cluster.propose("foo", (0,), **state)) == []
    assert cluster.partition("foo").partition_epoch == 7


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.UNKNOWN_TOPIC_ID), (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
)
def test_every_partition_of_an_unknown_topic_is_refused(version: int, error: ErrorCode) -> None:
    cluster = started(0, 1)
    parts = tuple(Request.PartitionData(partition_index=index) for index in (0, 5))
    topic = Request.TopicData(topic_id=ZERO_UUID, topic_name="nowhere", partitions=parts)
    request = Request(broker_id=0, broker_epoch=cluster.epoch(0), topics=(topic,))
    response = cluster.request(request, version)
    assert [p.error_code for p in response.topics[0].partitions] == [error, error]


def test_the_same_partition_twice_is_judged_twice_by_the_state_before() -> None:
    cluster = started(0, 1, 2)
    part = Request.PartitionData(
        partition_index=0, new_isr_with_epochs=(Request.BrokerState(broker_id=0),)
    )
    topic = Request.TopicData(topic_id=cluster.topic_id("foo"), partitions=(part, part))
    request = Request(broker_id=0, broker_epoch=cluster.epoch(0), topics=(topic,))
    response = cluster.request(request, 3)
    assert [p.partition_epoch for p in response.topics[0].partitions] == [1, 1]
    assert cluster.partition("foo").partition_epoch == 2


def test_below_3_6_a_shrink_of_the_leader_itself_is_no_new_leader() -> None:
    cluster = started(0, 1, 2, metadata_version="3.5-IV2")
    response = cluster.propose("foo", (0, 1))
    assert (response.leader_id, response.leader_epoch, response.partition_epoch) == (0, 1, 1)


def test_z01_without_the_check_a_fenced_replica_enters_and_the_hit_is_counted() -> None:
    cluster = started(1, 2, 3, faults=Faults.of(["Z01"]))
    cluster.fence(3)
    assert cluster.hits == []
    assert cluster.propose("foo", (1, 2, 3)).isr == (1, 2, 3)
    assert cluster.hits == ["Z01"]


def test_s09_a_recovering_partition_grows_and_stays_recovering() -> None:
    cluster = started(0, 1, faults=Faults.of(["S09"]))
    cluster.put("foo", isr=(0,), leader_recovery_state=RECOVERING)
    cluster.propose("foo", (0, 1))
    partition = cluster.partition("foo")
    assert (partition.isr, partition.is_recovering) == ((0, 1), True)
    assert cluster.hits == ["S09"]


def test_3_9_takes_the_same_proposals() -> None:
    cluster = started(0, 1, 2, rules=Rules.KAFKA_3_9, metadata_version="3.9-IV0")
    assert cluster.propose("foo", (0, 1), version=0).partition_epoch == 1
