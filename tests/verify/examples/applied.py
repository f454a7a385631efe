"""Examples of the rules in `partition/applied.py`."""

from __future__ import annotations

from minicluster.protocol import records as r
from minicluster.verify.partition.applied import (
    brokers_act_as_their_image_has_it,
    brokers_keep_the_replicas_assigned_to_them,
    leader_epochs_are_those_of_the_log,
    partition_epochs_are_those_of_the_log,
)
from tests.verify.examples.controller import accepted
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.log import TOPIC, LogBuilder, change, cluster
from tests.verify.handwritten.run import EVERYBODY, TOPIC_ID, RunBuilder, plain_run


@breaks(partition_epochs_are_those_of_the_log)
def b5_bad() -> RunBuilder:
    """The log has partition epoch 0, and leader 1 applies 1."""
    return plain_run().partition("become_leader", partition_epoch=1, leo=0, **EVERYBODY)


@breaks(partition_epochs_are_those_of_the_log)
def b5_response() -> RunBuilder:
    """The record of an AlterPartition has partition epoch 1, and its response 2."""
    return accepted(partitionEpoch=2).partition("become_leader", leo=0, **EVERYBODY)


@keeps(partition_epochs_are_those_of_the_log)
def b5_near() -> RunBuilder:
    """The response to an AlterPartition has the partition epoch 1 of its record; leader 1 has
    applied 0."""
    return accepted().partition("become_leader", leo=0, **EVERYBODY)


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
    return accepted(leaderEpoch=1).partition("become_leader", leo=0, **EVERYBODY)


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
