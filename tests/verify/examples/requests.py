"""Examples of the rules in `requests.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.protocol import records as r
from minicluster.protocol.error_codes import ErrorCode
from minicluster.verify.rules.requests import (
    a_broker_is_unfenced_when_it_has_caught_up,
    a_rejected_alter_partition_writes_nothing,
    a_stale_broker_epoch_is_rejected,
    alter_partition_elects_no_leader,
    an_accepted_alter_partition_is_current,
    an_accepted_isr_names_current_incarnations,
    brokers_act_as_their_image_has_it,
    brokers_keep_the_replicas_assigned_to_them,
    fetches_with_another_leader_epoch_are_rejected,
    leader_epochs_are_those_of_the_log,
    only_the_leader_ends_a_recovery,
    partition_epochs_are_those_of_the_log,
    responses_leave_after_the_commit,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.examples.partitions import recovering
from tests.verify.handwritten.log import (
    TOPIC,
    LogBuilder,
    change,
    cluster,
    partition,
)
from tests.verify.handwritten.run import (
    EVERYBODY,
    TOPIC_ID,
    RunBuilder,
    WithSnapshot,
    as_json,
    plain_run,
)


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


def _accepted(
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
    return _accepted(epoch=1)


@keeps(an_accepted_isr_names_current_incarnations)
def a7_near() -> RunBuilder:
    """An accepted ISR names broker 2 without an epoch (-1); its next incarnation comes after the
    record."""
    log = cluster().op(change((1, 2)))
    run = _accepted(log=log, epoch=-1)
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


@breaks(partition_epochs_are_those_of_the_log)
def b5_bad() -> RunBuilder:
    """The log has partition epoch 0, and leader 1 applies 1."""
    return plain_run().partition("become_leader", partition_epoch=1, leo=0, **EVERYBODY)


@breaks(partition_epochs_are_those_of_the_log)
def b5_response() -> RunBuilder:
    """The record of an AlterPartition has partition epoch 1, and its response 2."""
    return _accepted(partitionEpoch=2).partition("become_leader", leo=0, **EVERYBODY)


@keeps(partition_epochs_are_those_of_the_log)
def b5_near() -> RunBuilder:
    """The response to an AlterPartition has the partition epoch 1 of its record; leader 1 has
    applied 0."""
    return _accepted().partition("become_leader", leo=0, **EVERYBODY)


def _led_by_2() -> LogBuilder:
    """2 leads orders-0 now, in leader epoch 1 and partition epoch 1."""
    return cluster().op(change(leader=2))


@breaks(leader_epochs_are_those_of_the_log)
def e15_bad() -> RunBuilder:
    """The log has leader epoch 1 at partition epoch 1, and broker 1 applies 0 there."""
    run = RunBuilder(_led_by_2())
    return run.partition("become_follower", broker=1, leader_epoch=0, partition_epoch=1, leo=0)


@breaks(leader_epochs_are_those_of_the_log)
def e15_response() -> RunBuilder:
    """The response to an AlterPartition has leader epoch 1, and the log 0."""
    return _accepted(leaderEpoch=1).partition("become_leader", leo=0, **EVERYBODY)


@keeps(leader_epochs_are_those_of_the_log)
def e15_near() -> RunBuilder:
    """The log has leader epoch 1 at partition epoch 1, and broker 1 applies it."""
    run = RunBuilder(_led_by_2())
    return run.partition("become_follower", broker=1, leader_epoch=1, partition_epoch=1, leo=0)


@breaks(brokers_act_as_their_image_has_it)
def e36_bad() -> RunBuilder:
    """The log has leader 1, and broker 2 becomes leader."""
    return plain_run().partition("become_leader", broker=2, leo=0, **EVERYBODY)


@breaks(brokers_act_as_their_image_has_it)
def e36_goes_on() -> RunBuilder:
    """The image that broker 1 published 5 s ago has leader 2, and 1 still appends records."""
    run = RunBuilder(_led_by_2())
    run.partition("become_leader", leo=0, **EVERYBODY)
    run.publish(1)
    run.seq += 5000
    return run.partition("append", leo=1, offset=0, isr=[1, 2, 3], maximal_isr=[1, 2, 3])


def _shrinks_in_its_image(partition_epoch: int) -> RunBuilder:
    """5 s after leader 1 has published partition epoch 1 it appends at some partition epoch."""
    run = RunBuilder(cluster().op(change((1, 2))))
    run.partition("become_leader", leo=0, **EVERYBODY)
    run.publish(1)
    run.seq += 5000
    return run.partition(
        "append", leo=1, offset=0, partition_epoch=partition_epoch, isr=[1, 2], maximal_isr=[1, 2]
    )


@breaks(brokers_act_as_their_image_has_it)
def e36_partition_epoch() -> RunBuilder:
    """The image that leader 1 published 5 s ago has partition epoch 1, and it acts at 0."""
    return _shrinks_in_its_image(0)


@keeps(brokers_act_as_their_image_has_it)
def e36_near() -> RunBuilder:
    """Broker 1 has not published the image with leader 2, and leads by the one before."""
    run = RunBuilder(_led_by_2())
    run.partition("become_leader", leo=0, **EVERYBODY)
    run.publish(1, run.log.offset - 2).publish(2)
    run.seq += 5000
    return run.partition("append", leo=1, offset=0, isr=[1, 2, 3], maximal_isr=[1, 2, 3])


@keeps(brokers_act_as_their_image_has_it)
def e36_partition_epoch_near() -> RunBuilder:
    """Leader 1 is at partition epoch 2, by a response, and its image is behind at 1."""
    return _shrinks_in_its_image(2)


@breaks(brokers_keep_the_replicas_assigned_to_them)
def e37_bad() -> RunBuilder:
    """Broker 2 deletes its replica of orders-0, which its image assigns to it."""
    return plain_run().publish(2).partition("delete", broker=2)


def _at_end(run: RunBuilder, broker: int) -> RunBuilder:
    """A broker has its replica of orders-0 when the run ends."""
    return run.row(
        "replica_log",
        {
            "broker": broker,
            "incarnation": f"{broker}-1",
            "topic": "orders",
            "topic_id": TOPIC_ID,
            "part": 0,
            "offset": 0,
            "leader_epoch": 0,
            "at": "end",
        },
    )


@breaks(brokers_keep_the_replicas_assigned_to_them)
def e37_kept() -> RunBuilder:
    """orders is deleted; broker 2 has published that 5 s ago, and still has its replica."""
    run = RunBuilder(cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)))
    run.publish(2).partition("hw", 2, part=1).seq += 5000
    return _at_end(run, 2)


@keeps(brokers_keep_the_replicas_assigned_to_them)
def e37_near() -> RunBuilder:
    """orders is deleted; broker 2 deletes its replica, and 3, whose image is older, has its own."""
    run = RunBuilder(cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)))
    before = run.log.batches[-2].last_offset
    run.publish(2).partition("delete", broker=2)
    run.publish(3, before).partition("hw", 3).seq += 5000
    return _at_end(run, 3)


@keeps(brokers_keep_the_replicas_assigned_to_them)
def e37_near_just_removed() -> RunBuilder:
    """Broker 3 still has the replica of a deleted topic a few milliseconds after it has published
    that."""
    run = RunBuilder(cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)))
    run.publish(3, run.log.batches[-2].last_offset).partition("hw", 3).seq += 5000
    return _at_end(run.publish(3), 3)


@keeps(brokers_keep_the_replicas_assigned_to_them)
def e37_near_just_created() -> RunBuilder:
    """Broker 3 has a replica that only an image from a few milliseconds ago assigns to it."""
    run = plain_run()
    run.publish(3, run.log.batches[0].last_offset).partition("hw", 3, part=1).seq += 5000
    return _at_end(run.publish(3), 3)


@keeps(brokers_keep_the_replicas_assigned_to_them)
def e37_near_not_caught_up() -> RunBuilder:
    """Broker 3 still has the replica of a deleted topic: its replicas have applied no image since
    it came back."""
    run = RunBuilder(cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)))
    run.publish(2).partition("delete", broker=2)
    run.publish(3).seq += 5000
    return _at_end(run, 3)


def _fetched(epoch: int, error: int = 0) -> RunBuilder:
    """A Fetch of broker 2 with a current leader epoch; leader 1 is in epoch 0."""
    run = plain_run().partition("become_leader", leo=0, leader_epoch=0, **EVERYBODY)
    topic = {"topicId": TOPIC_ID, "topic": ""}
    requested = {"partition": 0, "currentLeaderEpoch": epoch}
    reported = {"partitionIndex": 0, "errorCode": error}
    return run.rpc(
        "Fetch",
        2,
        dst=1,
        request=as_json({"topics": [{**topic, "partitions": [requested]}]}),
        response=as_json({"responses": [{**topic, "partitions": [reported]}]}),
    )


@breaks(fetches_with_another_leader_epoch_are_rejected)
def f15_bad() -> RunBuilder:
    """The partition is at leader epoch 0, and a Fetch with 1 gets records."""
    return _fetched(1)


@keeps(fetches_with_another_leader_epoch_are_rejected)
def f15_near() -> RunBuilder:
    """The partition is at leader epoch 0; a Fetch with 1 gets an error, and one with 0 records."""
    run = _fetched(1, ErrorCode.UNKNOWN_LEADER_EPOCH)
    run.rows["rpc"] += _fetched(0).rows["rpc"]
    return run
