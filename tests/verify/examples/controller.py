"""Examples of the rules in `exchange/controller.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.protocol import records as r
from minicluster.protocol.error_codes import ErrorCode
from minicluster.verify.exchange.controller import (
    a_broker_is_unfenced_when_it_has_caught_up,
    a_preferred_election_is_clean,
    a_rejected_alter_partition_writes_nothing,
    a_stale_broker_epoch_is_rejected,
    alter_partition_elects_no_leader,
    an_accepted_alter_partition_is_current,
    an_accepted_isr_names_current_incarnations,
    only_the_leader_ends_a_recovery,
    responses_leave_after_the_commit,
    the_records_of_a_request_are_one_operation,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.examples.partitions import recovering
from tests.verify.handwritten.log import (
    OTHER_TOPIC,
    TOPIC,
    LogBuilder,
    change,
    cluster,
    partition,
)
from tests.verify.handwritten.run import TOPIC_ID, RunBuilder, WithSnapshot, as_json


def _shrunk() -> RunBuilder:
    """3 left the ISR of orders-0 at the log's last record."""
    return RunBuilder(cluster().op(change((1, 2))))


@breaks(a_rejected_alter_partition_writes_nothing)
def a6_bad() -> RunBuilder:
    """AlterPartition gets INELIGIBLE_REPLICA for its partition, and has written a
    PartitionChange."""
    run = _shrunk()
    return run.alter_partition(
        1, (1, 2), error_code=ErrorCode.INELIGIBLE_REPLICA, written=(run.log.offset - 1,)
    )


@breaks(a_rejected_alter_partition_writes_nothing)
def a6_whole() -> RunBuilder:
    """AlterPartition gets UNKNOWN_SERVER_ERROR as a whole, and has written a record."""
    run = _shrunk()
    return run.alter_partition(1, (1, 2), error="UNKNOWN_SERVER_ERROR", written=(3,))


@breaks(a_rejected_alter_partition_writes_nothing)
def a6_revert() -> RunBuilder:
    """Leader 1 reverts its ISR change on NOT_CONTROLLER, which is not a final rejection."""
    return _shrunk().partition("isr_revert", isr=[1], maximal_isr=[1], error="NOT_CONTROLLER")


@keeps(a_rejected_alter_partition_writes_nothing)
def a6_near() -> RunBuilder:
    """A change that was made gets NEW_LEADER_ELECTED; INELIGIBLE_REPLICA comes without a record,
    and reverts a change."""
    run = _shrunk()
    run.alter_partition(
        1, (1, 2), error_code=ErrorCode.NEW_LEADER_ELECTED, written=(run.log.offset - 1,)
    )
    run.partition("isr_revert", isr=[1], maximal_isr=[1], error="INELIGIBLE_REPLICA")
    return run.alter_partition(1, (1, 2), error_code=ErrorCode.INELIGIBLE_REPLICA)


def accepted(
    *, epoch: int | None = None, log: LogBuilder | None = None, **reported: int
) -> RunBuilder:
    """An accepted shrink to [1, 2].

    Shapes:  epoch: the broker epoch that 2 carries in it, by default the registered one. reported:
             fields of the response that differ from the record.
    """
    run = RunBuilder(cluster().op(change((1, 2))) if log is None else log)
    last = run.log.offset - 1
    epochs = run.log.broker_epochs
    members = [
        {"brokerId": 1, "brokerEpoch": epochs[1]},
        {"brokerId": 2, "brokerEpoch": epochs[2] if epoch is None else epoch},
    ]
    requested = {
        "partitionIndex": 0,
        "leaderEpoch": 0,
        "newIsrWithEpochs": members,
        "partitionEpoch": 0,
    }
    response = {
        "partitionIndex": 0,
        "errorCode": 0,
        "leaderEpoch": 0,
        "partitionEpoch": 1,
        **reported,
    }

    def body(part: Mapping[str, Any]) -> dict[str, Any]:
        return {"topics": [{"topicId": TOPIC_ID, "partitions": [part]}]}

    return run.alter_partition(
        1,
        (1, 2),
        written=(last,),
        request=as_json(body(requested)),
        response=as_json(body(response)),
    )


@breaks(an_accepted_isr_names_current_incarnations)
def a7_bad() -> RunBuilder:
    """An accepted ISR names broker 2 with broker epoch 1, which is not its own."""
    return accepted(epoch=1)


@keeps(an_accepted_isr_names_current_incarnations)
def a7_near() -> RunBuilder:
    """An accepted ISR names broker 2 without an epoch (-1); its next incarnation comes after the
    record."""
    log = cluster().op(change((1, 2)))
    run = accepted(log=log, epoch=-1)
    log.register(2, incarnation=2, before=[change((1,))])
    return run


@breaks(an_accepted_alter_partition_is_current)
def b4_bad() -> RunBuilder:
    """orders-0 is at partition epoch 0, and an AlterPartition with 1 is accepted."""
    run = _shrunk()
    return run.alter_partition(1, (1, 2), partition_epoch=1, written=(run.log.offset - 1,))


@breaks(an_accepted_alter_partition_is_current)
def b4_leader_epoch() -> RunBuilder:
    """orders-0 is at leader epoch 0, and an AlterPartition with 1 is accepted."""
    run = _shrunk()
    return run.alter_partition(1, (1, 2), leader_epoch=1, written=(run.log.offset - 1,))


@breaks(an_accepted_alter_partition_is_current)
def b4_other_leader() -> RunBuilder:
    """Broker 1 leads, and an AlterPartition of broker 2 is accepted."""
    run = _shrunk()
    return run.alter_partition(2, (1, 2), written=(run.log.offset - 1,))


@breaks(an_accepted_alter_partition_is_current)
def b4_broker_epoch() -> RunBuilder:
    """An AlterPartition of broker 1 is accepted with another broker epoch than the registered
    one."""
    run = _shrunk()
    return run.alter_partition(1, (1, 2), registered_epoch=99, written=(run.log.offset - 1,))


@keeps(an_accepted_alter_partition_is_current)
def b4_near() -> RunBuilder:
    """A shrink with partition epoch 0 is accepted, and then an expansion with 1."""
    run = RunBuilder(cluster().op(change((1, 2))).op(change((1, 2, 3))))
    run.alter_partition(1, (1, 2), written=(run.log.offset - 2,))
    return run.alter_partition(1, (1, 2, 3), partition_epoch=1, written=(run.log.offset - 1,))


@keeps(an_accepted_alter_partition_is_current, alter_partition_elects_no_leader)
def b4_near_snapshot() -> RunBuilder:
    """A shrink is accepted, a snapshot takes its record from the log, and then an expansion."""
    batches = len(cluster().op(change((1, 2))).batches)
    run = WithSnapshot(batches=batches, kept=batches)
    run.log.op(change((1, 2, 3)))
    run.alter_partition(1, (1, 2), written=(run.log.offset - 2,))
    return run.alter_partition(1, (1, 2, 3), partition_epoch=1, written=(run.log.offset - 1,))


@breaks(alter_partition_elects_no_leader)
def b9_bad() -> RunBuilder:
    """An accepted AlterPartition writes ISR [2, 3] and leader 2."""
    run = RunBuilder(cluster().op(change((2, 3), leader=2)))
    return run.alter_partition(1, (2, 3), written=(run.log.offset - 1,))


@keeps(alter_partition_elects_no_leader)
def b9_near() -> RunBuilder:
    """An accepted AlterPartition completes a reassignment to [3, 2], whose record names leader
    3."""
    log = LogBuilder().brokers(1, 2, 3).topic(partition((1, 2)))
    log.op(change(replicas=(3, 2, 1), adding=(3,), removing=(1,)))
    log.op(change((2, 3), leader=3, replicas=(3, 2), adding=(), removing=()))
    run = RunBuilder(log)
    return run.alter_partition(1, (1, 2, 3), partition_epoch=1, written=(log.offset - 1,))


def _recovered() -> RunBuilder:
    """orders-0, RECOVERING under leader 2, becomes RECOVERED by the log's last record."""
    return RunBuilder(recovering().op(change(recovery=0)))


@breaks(only_the_leader_ends_a_recovery)
def c6_bad() -> RunBuilder:
    """A heartbeat of leader 2 writes the record that makes orders-0 RECOVERED."""
    run = _recovered()
    return run.rpc("BrokerHeartbeat", 2, written=(run.log.offset - 1,))


@breaks(only_the_leader_ends_a_recovery)
def c6_nobody() -> RunBuilder:
    """orders-0 becomes RECOVERED, and no request has written that."""
    return _recovered()


@keeps(only_the_leader_ends_a_recovery)
def c6_near() -> RunBuilder:
    """The AlterPartition of leader 2 makes orders-0 RECOVERED."""
    run = _recovered()
    return run.alter_partition(
        2, (2,), leader_epoch=2, partition_epoch=4, written=(run.log.offset - 1,)
    )


@keeps(only_the_leader_ends_a_recovery)
def c6_near_without_response() -> RunBuilder:
    """orders-0 becomes RECOVERED; the response to the leader's AlterPartition was lost with the
    controller."""
    return _recovered().alter_partition(2, (2,), resp_seq=None, response=None)


@keeps(only_the_leader_ends_a_recovery)
def c6_near_rejected_by_a_leader_that_resigned() -> RunBuilder:
    """orders-0 becomes RECOVERED; the controller that had appended the record resigned before it
    was committed, and rejected the leader's AlterPartition."""
    return _recovered().alter_partition(2, (2,), error="NOT_CONTROLLER")


@breaks(only_the_leader_ends_a_recovery)
def c6_rejected_about_another_partition() -> RunBuilder:
    """orders-0 becomes RECOVERED; what a controller rejected as it resigned was about orders-1."""
    other = {"partitionIndex": 1, "partitionEpoch": 0}
    request = as_json({"brokerId": 2, "topics": [{"topicId": TOPIC_ID, "partitions": [other]}]})
    return _recovered().alter_partition(2, (2,), error="NOT_CONTROLLER", request=request)


def _elected(log: LogBuilder) -> RunBuilder:
    """The last record of a log is of a request for preferred leaders (ElectionType 0)."""
    request = as_json({"electionType": 0})
    return RunBuilder(log).rpc("ElectLeaders", 7, written=(log.offset - 1,), request=request)


@breaks(a_preferred_election_is_clean)
def c7_bad() -> RunBuilder:
    """ElectLeaders asks for preferred leaders, and broker 2 is elected from outside the ISR."""
    return _elected(recovering())


@keeps(a_preferred_election_is_clean)
def c7_near() -> RunBuilder:
    """ElectLeaders asks for preferred leaders, and broker 2 is elected from the ISR."""
    return _elected(cluster().op(change(leader=2)))


@breaks(a_stale_broker_epoch_is_rejected)
def d3_bad() -> RunBuilder:
    """Broker 1 has epoch 5, and its heartbeat with epoch 1 gets NONE."""
    run = RunBuilder(cluster())
    return run.rpc("BrokerHeartbeat", 1, broker_epoch=1, registered_epoch=5)


@breaks(a_stale_broker_epoch_is_rejected)
def d3_written() -> RunBuilder:
    """Broker 1 has epoch 5; its AlterPartition with 1 gets STALE_BROKER_EPOCH, and has written a
    record."""
    run = RunBuilder(cluster())
    return run.rpc(
        "AlterPartition",
        1,
        broker_epoch=1,
        registered_epoch=5,
        error="STALE_BROKER_EPOCH",
        written=(3,),
    )


@keeps(a_stale_broker_epoch_is_rejected)
def d3_near() -> RunBuilder:
    """Broker 1 has epoch 5; a heartbeat with 1 gets STALE_BROKER_EPOCH, and one with 5 NONE."""
    run = RunBuilder(cluster())
    run.rpc("BrokerHeartbeat", 1, broker_epoch=1, registered_epoch=5, error="STALE_BROKER_EPOCH")
    return run.rpc("BrokerHeartbeat", 1, broker_epoch=5, registered_epoch=5)


def _unfenced(broker: int, metadata_offset: int) -> RunBuilder:
    """Broker 1 registers at offset 2; a heartbeat of a broker has the record that unfences it."""
    log = LogBuilder().register(1).unfence(1)
    request = as_json({"currentMetadataOffset": metadata_offset})
    written = (log.offset - 1,)
    return RunBuilder(log).rpc("BrokerHeartbeat", broker, written=written, request=request)


@breaks(a_broker_is_unfenced_when_it_has_caught_up)
def e24_bad() -> RunBuilder:
    """Broker 1 registered at offset 2, and a heartbeat with metadata offset 1 unfences it."""
    return _unfenced(1, 1)


@breaks(a_broker_is_unfenced_when_it_has_caught_up)
def e24_other() -> RunBuilder:
    """A heartbeat of broker 2 unfences broker 1."""
    return _unfenced(2, 3)


@keeps(a_broker_is_unfenced_when_it_has_caught_up)
def e24_near() -> RunBuilder:
    """Broker 1 registered at offset 2, and a heartbeat with metadata offset 2 unfences it."""
    return _unfenced(1, 2)


@breaks(responses_leave_after_the_commit)
def e40_bad() -> RunBuilder:
    """CreateTopics gets NONE while its record is not below the high watermark."""
    run = _shrunk()
    last = run.log.offset - 1
    return run.rpc("CreateTopics", 7, written=(last,), high_watermark=last)


@keeps(responses_leave_after_the_commit)
def e40_near() -> RunBuilder:
    """CreateTopics gets NOT_CONTROLLER before its record is committed, and NONE after it."""
    run = _shrunk()
    last = run.log.offset - 1
    run.rpc("CreateTopics", 7, written=(last,), high_watermark=last, error="NOT_CONTROLLER")
    return run.rpc("CreateTopics", 7, written=(last,), high_watermark=last + 1)


def _two_topics(*, apart: bool) -> RunBuilder:
    """One CreateTopics request with two topics, in one operation or in two."""
    log = LogBuilder().brokers(1)
    first = (r.TopicRecord(name="orders", topic_id=TOPIC), partition((1,)))
    second = (
        r.TopicRecord(name="other", topic_id=OTHER_TOPIC),
        partition((1,), topic_id=OTHER_TOPIC),
    )
    start = log.offset
    if apart:
        log.op(*first).op(*second)
    else:
        log.op(*first, *second)
    written = tuple(range(start, start + 4))
    return RunBuilder(log).rpc("CreateTopics", 7, written=written)


@breaks(the_records_of_a_request_are_one_operation)
def e44_bad() -> RunBuilder:
    """One CreateTopics request writes its two topics in two operations."""
    return _two_topics(apart=True)


@keeps(the_records_of_a_request_are_one_operation)
def e44_near() -> RunBuilder:
    """One CreateTopics request writes its two topics in one operation."""
    return _two_topics(apart=False)
