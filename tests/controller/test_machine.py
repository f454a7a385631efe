"""The event model: order, commit, responses, claim and renounce."""

from __future__ import annotations

from itertools import repeat
from uuid import UUID

import pytest

from minicluster.controller.decision import Decision
from minicluster.controller.errors import ControllerFault
from minicluster.controller.state.indexes import Indexes
from minicluster.faults import Faults
from minicluster.metadata.errors import ReplayError
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    VersionedRecord,
    ZkMigrationStateRecord,
)
from minicluster.rules import Rules
from tests.controller.kit import Cluster, dir_id, incarnation, nobody


def test_a_fresh_cluster_gets_its_bootstrap_records_in_a_transaction() -> None:
    cluster = Cluster()
    kinds = [type(cluster.log[offset].record) for offset in sorted(cluster.log)]
    assert kinds == [BeginTransactionRecord, FeatureLevelRecord, EndTransactionRecord]
    assert cluster.register(0).broker_epoch == 4


def test_kafka_3_9_also_writes_the_migration_state_so_that_the_first_epoch_is_5() -> None:
    cluster = Cluster(rules=Rules.KAFKA_3_9, metadata_version="3.9-IV0")
    assert isinstance(cluster.log[3].record, ZkMigrationStateRecord)
    assert cluster.register(0).broker_epoch == 5


def test_with_elr_the_cluster_wide_min_isr_is_fixed_so_that_the_first_epoch_is_6() -> None:
    cluster = Cluster(elr=True)
    assert cluster.register(0).broker_epoch == 6


def test_a_response_leaves_when_its_records_are_committed_and_not_before() -> None:
    cluster = Cluster()
    cluster.held = True
    request = m.BrokerRegistrationRequest
    token = cluster.send(
        request(
            broker_id=1,
            cluster_id="test",
            log_dirs=(dir_id(1),),
            features=(
                request.Feature(
                    name="metadata.version", min_supported_version=7, max_supported_version=31
                ),
            ),
        )
    )
    assert token not in cluster.responses
    cluster.commit(cluster.end - 1)
    assert token not in cluster.responses
    cluster.commit()
    response = cluster.responses[token]
    assert response.response.broker_epoch == 4
    assert response.records_written == (4,)
    assert response.high_watermark == 5
    assert response.registered_epoch == -1


def test_a_response_without_records_waits_for_what_is_under_way() -> None:
    cluster = Cluster()
    cluster.start(1)
    cluster.held = True
    first = cluster.send(m.UnregisterBrokerRequest(broker_id=1))
    second = cluster.send(m.ElectLeadersRequest(topic_partitions=None))
    assert not {first, second} & set(cluster.responses)
    cluster.commit()
    assert {first, second} <= set(cluster.responses)


def test_a_refusal_does_not_wait() -> None:
    cluster = Cluster()
    cluster.start(1)
    cluster.held = True
    cluster.send(m.UnregisterBrokerRequest(broker_id=1))
    refused = cluster.send(m.UnregisterBrokerRequest(broker_id=9))
    assert cluster.responses[refused].response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_s26_the_response_leaves_early_and_the_hit_is_counted() -> None:
    cluster = Cluster(faults=Faults.of(["S26"]))
    cluster.start(1)
    hits = len(cluster.hits)
    cluster.held = True
    token = cluster.send(m.UnregisterBrokerRequest(broker_id=1))
    response = cluster.responses[token]
    assert max(response.records_written) >= response.high_watermark
    assert cluster.hits[hits:] == ["S26"]


def test_a_controller_that_is_not_active_refuses_everything_but_empty_requests() -> None:
    cluster = Cluster(active=False)
    heartbeat = cluster.request(m.BrokerHeartbeatRequest(broker_id=1))
    assert heartbeat.error_code == ErrorCode.NOT_CONTROLLER
    created = cluster.request(
        m.CreateTopicsRequest(topics=(m.CreateTopicsRequest.CreatableTopic(name="a"),))
    )
    assert created.topics[0].error_code == ErrorCode.NOT_CONTROLLER
    assert cluster.request(m.AlterPartitionRequest()).error_code == ErrorCode.NONE


def test_a_missing_cluster_authorization_is_refused_first() -> None:
    cluster = Cluster(active=False)
    for request in (m.AlterPartitionRequest(), m.BrokerHeartbeatRequest(broker_id=1)):
        response = cluster.request(request, access=nobody())
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_losing_the_leadership_undoes_what_was_not_committed() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    before = cluster.machine.image
    cluster.held = True
    token = cluster.send(m.UnregisterBrokerRequest(broker_id=1))
    waiting = cluster.send(m.ElectLeadersRequest(topic_partitions=None))
    assert cluster.machine.image.cluster.broker(1) is None
    cluster.take(cluster.machine.on_renounce(cluster.now_ms))
    assert cluster.machine.image is before
    assert cluster.machine.state.check_indexes() == ()
    assert cluster.responses[token].response.error_code == ErrorCode.NOT_CONTROLLER
    assert cluster.responses[waiting].response.error_code == ErrorCode.NOT_CONTROLLER
    assert cluster.responses[waiting].records_written == ()  # their outcome is open
    assert not cluster.machine.is_active
    assert cluster.timers == {}


def test_a_standby_follows_the_log_and_takes_over_from_there() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.create("a", [1, 2])
    standby = Cluster(active=False)
    for offset, record in cluster.log.items():
        standby.take(standby.machine.on_records(offset, (record,), offset + 1, 0))
    assert standby.machine.image.digest() == cluster.machine.image.digest()
    standby.end = cluster.end + 1
    standby.take(standby.machine.on_claim(2, standby.end, 0))
    assert standby.end == cluster.end + 1  # nothing to bootstrap
    assert standby.heartbeat(1, current_metadata_offset=-1).error_code == 0
    assert standby.machine.state.check_indexes() == ()


def test_a_new_controller_gives_every_unfenced_broker_a_full_session() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.now_ms = 8_999
    cluster.take(cluster.machine.on_renounce(cluster.now_ms))
    cluster.take(cluster.machine.on_claim(2, cluster.end, cluster.now_ms))
    cluster.run(8_999 + 9_000)
    assert not cluster.machine.image.cluster.brokers[1].fenced
    cluster.run(8_999 + 9_000 + 9_000 // 8 * 2)
    assert cluster.machine.image.cluster.brokers[1].fenced
    assert cluster.machine.image.cluster.brokers[2].fenced


def test_E32_what_is_stable_ends_where_an_open_transaction_begins() -> None:
    standby = Cluster(active=False)
    machine = standby.machine
    begin = VersionedRecord(BeginTransactionRecord(name="t"), 0)
    register = VersionedRecord(
        RegisterBrokerRecord(broker_id=1, broker_epoch=1, incarnation_id=incarnation(1)), 1
    )
    abort = VersionedRecord(AbortTransactionRecord(), 0)
    machine.on_records(1500, (begin, register), 1551, 0)
    assert machine.stable_end == 1500
    assert machine.image.cluster.broker(1) is not None
    assert machine.committed_image.cluster.broker(1) is None
    machine.on_records(1600, (abort,), 1601, 0)
    assert machine.image.cluster.broker(1) is None
    machine.on_records(1650, (VersionedRecord(NoOpRecord(), 0),), 1651, 0)
    assert machine.stable_end == 1651


def test_E28_the_record_stream_of_a_small_cluster() -> None:
    """As 4.3 writes it: no migration state; controllers and brokers in the order they come."""
    cluster = Cluster(metadata_version="3.7-IV0")
    for node_id in (101, 102, 103):
        request = m.ControllerRegistrationRequest(controller_id=node_id)
        assert cluster.request(request).error_code == 0
    for broker_id in range(4):
        cluster.register(broker_id)
    for broker_id in range(3):
        cluster.heartbeat(broker_id)
    cluster.create("foo", (0, 1, 2), (1, 2, 0))
    epoch = cluster.epoch(0)
    cluster.request(m.AllocateProducerIdsRequest(broker_id=0, broker_epoch=epoch))
    stream = [(type(r.record).__name__, r.version) for _, r in sorted(cluster.log.items())]
    assert stream == [
        ("BeginTransactionRecord", 0),
        ("FeatureLevelRecord", 0),
        ("EndTransactionRecord", 0),
        *[("RegisterControllerRecord", 0)] * 3,
        *[("RegisterBrokerRecord", 2)] * 4,
        *[("BrokerRegistrationChangeRecord", 0)] * 3,
        ("TopicRecord", 0),
        *[("PartitionRecord", 0)] * 2,
        ("ProducerIdsRecord", 0),
    ]


def test_no_response_leaves_while_a_transaction_is_open() -> None:
    cluster = Cluster()
    cluster.start(1)
    cluster.held = True
    cluster.machine._offsets.before_transaction = (cluster.end, cluster.machine.image)
    token = cluster.send(m.UnregisterBrokerRequest(broker_id=1))
    cluster.commit()
    assert token not in cluster.responses


def test_a_fault_of_the_controller_makes_it_resign() -> None:
    cluster = Cluster()
    cluster.start(1)
    request = m.BrokerRegistrationRequest
    listener = request.Listener(name="X", host="h", port=1, security_protocol=77)
    response = cluster.request(
        request(
            broker_id=2,
            cluster_id="test",
            incarnation_id=incarnation(2),
            log_dirs=(dir_id(2),),
            listeners=(listener,),
        )
    )
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert cluster.resigned and not cluster.machine.is_active


def test_the_no_op_record_is_written_every_half_second() -> None:
    cluster = Cluster()
    records = cluster.records_of(lambda: cluster.run(2_000))
    assert [type(record) for record in records] == [NoOpRecord] * 4


def test_decisions_larger_than_a_batch_are_split_unless_they_are_atomic() -> None:
    """E29: testAppendRecords, testAppendRecordsAtomically."""
    cluster = Cluster()
    cluster.machine._max_records = 2
    records = (VersionedRecord(NoOpRecord(), 0),) * 5
    effects, offsets = cluster.machine._carry_out(Decision(records=records), 0)
    assert [len(effect.records) for effect in effects] == [2, 2, 1]  # type: ignore[attr-defined]
    assert offsets == tuple(range(cluster.end, cluster.end + 5))
    with pytest.raises(ControllerFault, match=r"commit 5 records, but maxRecordsPerBatch is 2"):
        cluster.machine._carry_out(Decision(records=records, atomic=True), 0)


def test_a_decision_of_several_batches_goes_back_to_the_state_between_two() -> None:
    """The quorum commits batches."""
    cluster = Cluster(held=True)
    cluster.commit()
    cluster.machine._max_records = 5
    end = cluster.end
    cluster.machine._carry_out(Decision(records=(VersionedRecord(NoOpRecord(), 0),) * 12), 0)
    cluster.take(cluster.machine.on_committed(end + 5, 0))
    cluster.take(cluster.machine.on_renounce(0))
    assert cluster.machine.next_offset == end + 5


def test_a_fault_while_a_decision_is_applied_leaves_nothing_of_it() -> None:
    cluster = Cluster()
    cluster.start(1, 2, 3)
    end, before = cluster.end, cluster.machine.image
    cluster.topic_ids = repeat(UUID(int=7))  # which cannot be applied twice
    Request = m.CreateTopicsRequest
    topics = [
        Request.CreatableTopic(name=name, num_partitions=8, replication_factor=3)
        for name in ("a", "b", "c")
    ]
    created = cluster.request(Request(topics=tuple(topics)))
    assert {topic.error_code for topic in created.topics} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert cluster.resigned and not cluster.machine.is_active
    assert cluster.end == end and cluster.machine.image.digest() == before.digest()


def test_reads_see_only_what_is_committed() -> None:
    cluster = Cluster()
    cluster.start(1, 2, 3)
    cluster.create("a", [1, 2])
    cluster.held = True
    Request = m.AlterPartitionReassignmentsRequest
    wanted = Request.ReassignablePartition(partition_index=0, replicas=(1, 3))
    cluster.send(Request(topics=(Request.ReassignableTopic(name="a", partitions=(wanted,)),)))
    lists = m.ListPartitionReassignmentsRequest()
    assert cluster.request(lists).topics == ()
    cluster.commit()
    assert cluster.request(lists).topics[0].partitions[0].adding_replicas == (3,)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (BeginTransactionRecord(name="t"), BeginTransactionRecord(name="t"), "never closed"),
        (NoOpRecord(), EndTransactionRecord(), "no open transaction"),
        (NoOpRecord(), AbortTransactionRecord(), "no open transaction"),
    ],
)
def test_a_transaction_in_a_transaction_and_an_end_without_a_begin_are_fatal(
    first: object, second: object, why: str
) -> None:
    """Source: OffsetControlManager.replay."""
    machine = Cluster(active=False).machine
    machine.on_records(1500, (VersionedRecord(first, 0),), 1501, 0)
    with pytest.raises(ReplayError, match=rf"offset 1501: {type(second).__name__}: .*{why}"):
        machine.on_records(1501, (VersionedRecord(second, 0),), 1502, 0)


def test_a_list_of_reassignments_has_the_committed_ones_in_their_newest_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Source: ReplicationControlManager.listPartitionReassignments."""
    cluster = Cluster()
    cluster.start(1, 2, 3)
    for name in ("done", "cancelled", "deleted", "grown", "quiet"):
        cluster.create(name, [1, 2], [2, 1])
        assert reassign(cluster, name, (1, 3)) == 0
    cluster.create("new", [1, 2])
    assert len(cluster.request(m.ListPartitionReassignmentsRequest()).topics) == 5
    cluster.held = True
    monkeypatch.setattr(Indexes, "of", None)  # no request may build an index anew
    left = ["cancelled", "deleted", "done", "grown", "quiet"]
    for act, gone in (
        (lambda: cluster.send(proposal(cluster, "done", (1, 2, 3))), "done"),
        (lambda: reassign(cluster, "cancelled", None), "cancelled"),
        (
            lambda: cluster.send(
                m.DeleteTopicsRequest(
                    topics=(
                        m.DeleteTopicsRequest.DeleteTopicState(
                            name=None, topic_id=cluster.topic_id("deleted")
                        ),
                    )
                )
            ),
            "deleted",
        ),
        (lambda: reassign(cluster, "grown", (2, 3), index=1), None),
        (lambda: reassign(cluster, "new", (1, 3)), None),
    ):
        end = cluster.end
        act()
        assert cluster.end > end
        left = [name for name in left if name != gone]
        listed = cluster.request(m.ListPartitionReassignmentsRequest()).topics
        assert [(t.name, [p.partition_index for p in t.partitions]) for t in listed] == [
            (name, [0]) for name in left
        ]
    Named = m.ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    one = m.ListPartitionReassignmentsRequest(topics=(Named(name="new", partition_indexes=(0,)),))
    assert cluster.request(one).topics[0].partitions[0].adding_replicas == (3,)  # by its name
    cluster.commit()
    after = cluster.request(m.ListPartitionReassignmentsRequest())
    assert [(t.name, len(t.partitions)) for t in after.topics] == [
        ("grown", 2), ("new", 1), ("quiet", 1),
    ]  # fmt: skip


def reassign(
    cluster: Cluster, name: str, replicas: tuple[int, ...] | None, index: int = 0
) -> int | None:
    """Start or cancel a reassignment; the partition's error if the response has left."""
    Request = m.AlterPartitionReassignmentsRequest
    part = Request.ReassignablePartition(partition_index=index, replicas=replicas)
    topic = Request.ReassignableTopic(name=name, partitions=(part,))
    response = cluster.responses.get(cluster.send(Request(topics=(topic,))))
    return (
        None if response is None else int(response.response.responses[0].partitions[0].error_code)
    )


def proposal(cluster: Cluster, name: str, isr: tuple[int, ...]) -> m.AlterPartitionRequest:
    """The AlterPartition request of a partition's leader for an ISR."""
    Request, state = m.AlterPartitionRequest, cluster.partition(name)
    part = Request.PartitionData(
        partition_index=0,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr_with_epochs=tuple(Request.BrokerState(broker_id=b) for b in isr),
    )
    topic = Request.TopicData(topic_id=cluster.topic_id(name), partitions=(part,))
    epoch = cluster.epoch(state.leader)
    return Request(broker_id=state.leader, broker_epoch=epoch, topics=(topic,))


def test_the_registration_precedes_every_other_record_of_a_broker() -> None:
    cluster = Cluster()
    records = cluster.records_of(lambda: cluster.start(1))
    assert isinstance(records[0], RegisterBrokerRecord)
    assert records[1].fenced == -1


def test_a_request_that_no_controller_decides_is_an_unsupported_version() -> None:
    cluster = Cluster()
    response = cluster.request(m.HeartbeatRequest(group_id="g", member_id="m"))
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_batch_that_the_quorum_refuses_fails_its_request_alone_and_makes_the_node_resign() -> (
    None
):
    """NOT_CONTROLLER would make the sender try again, at the next controller."""
    cluster = Cluster()
    cluster.start(0)
    cluster.held = True
    make = m.CreateTopicsRequest.CreatableTopic
    tokens, ends = [], []
    for name in ("first", "large"):
        topic = make(name=name, num_partitions=1, replication_factor=1)
        ends.append(cluster.end)
        tokens.append(cluster.send(m.CreateTopicsRequest(topics=(topic,))))
    cluster.take(cluster.machine.on_append_rejected(ends[1], "8 MiB", cluster.now_ms))
    codes = [cluster.responses[token].response.topics[0].error_code for token in tokens]
    assert codes == [ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR]
    assert cluster.resigned and not cluster.machine.is_active
    assert cluster.machine.on_append_rejected(ends[1], "again", cluster.now_ms) == []
