"""Per rule about replicas and the quorum: a hand-written run that breaks it, and a near miss."""

from __future__ import annotations

from collections.abc import Callable

from minicluster.protocol import records as r
from tests.verify.build import OTHER_TOPIC, TOPIC, LogBuilder, change, cluster, partition
from tests.verify.build_run import TOPIC_ID, RunBuilder
from tests.verify.cases_partitions import recovering
from tests.verify.trace_kit import (
    EVERYBODY,
    WithSnapshot,
    as_json,
    pending,
    plain_run,
    watermark,
)

Case = Callable[[], RunBuilder]


def _moved(to_2: LogBuilder | None = None) -> LogBuilder:
    """2 leads orders-0 now, in leader epoch 1 and partition epoch 1."""
    return (cluster() if to_2 is None else to_2).op(change(leader=2))


def _accepted(
    *, epoch: int | None = None, log: LogBuilder | None = None, **reported: int
) -> RunBuilder:
    """An accepted shrink to [1, 2] in which 2 carries an epoch."""
    run = RunBuilder(cluster().op(change((1, 2))) if log is None else log)
    last = run.log.offset - 1
    known = run.log.broker_epochs
    members = [
        {"brokerId": 1, "brokerEpoch": known[1]},
        {"brokerId": 2, "brokerEpoch": known[2] if epoch is None else epoch},
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

    def body(part: dict[str, object]) -> dict[str, object]:
        return {"topics": [{"topicId": TOPIC_ID, "partitions": [part]}]}

    return run.alter_partition(
        1,
        (1, 2),
        written=(last,),
        request=as_json(body(requested)),
        response=as_json(body(response)),
    )


def a7_bad() -> RunBuilder:
    return _accepted(epoch=1)


def a7_near() -> RunBuilder:
    """A proposal without the member's epoch; its next incarnation comes after the record."""
    log = cluster().op(change((1, 2)))
    run = _accepted(log=log, epoch=-1)
    log.register(2, incarnation=2, before=[change((1,))])
    return run


def b5_bad() -> RunBuilder:
    return plain_run().partition("become_leader", partition_epoch=1, leo=0, **EVERYBODY)


def b5_response() -> RunBuilder:
    return _accepted(partitionEpoch=2).partition("become_leader", leo=0, **EVERYBODY)


def b5_near() -> RunBuilder:
    return _accepted().partition("become_leader", leo=0, **EVERYBODY)


def b9_bad() -> RunBuilder:
    run = RunBuilder(cluster().op(change((2, 3), leader=2)))
    return run.alter_partition(1, (2, 3), written=(run.log.offset - 1,))


def b9_near() -> RunBuilder:
    log = LogBuilder().brokers(1, 2, 3).topic(partition((1, 2)))
    log.op(change(replicas=(3, 2, 1), adding=(3,), removing=(1,)))
    log.op(change((2, 3), leader=3, replicas=(3, 2), adding=(), removing=()))
    run = RunBuilder(log)
    return run.alter_partition(1, (1, 2, 3), partition_epoch=1, written=(log.offset - 1,))


def _high(run: RunBuilder) -> RunBuilder:
    """The high watermark of orders-0 is 8."""
    return run.partition(
        "hw", leo=8, hw_old=0, hw_new=8, known={2: (8, 0, 5), 3: (8, 0, 5)}, **EVERYBODY
    )


def _left_out(kind: str, **values: object) -> RunBuilder:
    """On ZooKeeper, where no log has the partition: 3 is no replica any more; the ISR has it."""
    everybody = {**EVERYBODY, "leo": 8, "known": {2: (8, 0, 5)}, **values}
    return RunBuilder(LogBuilder().brokers(1, 2, 3)).partition(kind, **everybody)


def b2_near_left_out() -> RunBuilder:
    return _left_out("hw", hw_old=0, hw_new=8)


def f8_near_left_out() -> RunBuilder:
    return _left_out("ack", offset=7)


def b3_bad() -> RunBuilder:
    return _high(plain_run().committed()).partition("become_follower", broker=2, leo=3)


def b3_near() -> RunBuilder:
    """2 holds everything; after an unclean election it may lose what was committed."""
    run = RunBuilder(recovering())
    _high(run.committed(cluster().offset))
    run.partition("append", broker=2, leo=8).committed()
    return run.partition(
        "become_leader", broker=2, incarnation="2-2", leo=3, leader_epoch=2, partition_epoch=4
    )


def b3_vanished() -> RunBuilder:
    run = _high(plain_run()).partition("become_follower", broker=2, leo=8)
    return run.partition("become_follower", broker=2, leo=0)


def b3_near_truncated() -> RunBuilder:
    run = plain_run().committed().partition("become_follower", broker=2, leo=0)
    run.partition("append", broker=2, leo=8).partition("truncate", broker=2, leo=4, offset=4)
    _high(run)
    run.partition("append", broker=2, leo=8)
    return run.partition("become_follower", broker=2, leo=8)


def b6_bad() -> RunBuilder:
    run = RunBuilder(_moved())
    run.partition("become_follower", broker=1, leader_epoch=1, partition_epoch=1, leo=0)
    return run.partition("become_leader", broker=1, leo=0, **EVERYBODY)


def b6_two_meanings() -> RunBuilder:
    run = RunBuilder(_moved())
    run.partition("become_follower", broker=1, leader_epoch=0, partition_epoch=1, leo=0)
    return run.partition("become_follower", broker=1, leader_epoch=1, partition_epoch=1, leo=0)


def b6_near() -> RunBuilder:
    """The same again, then the next; another incarnation begins anew."""
    run = RunBuilder(_moved())
    run.partition("become_leader", broker=1, leo=0, **EVERYBODY)
    run.partition("become_leader", broker=1, leo=0, **EVERYBODY)
    run.partition("become_follower", broker=1, leader_epoch=1, partition_epoch=1, leo=0)
    return run.partition("become_leader", broker=1, incarnation="1-2", leo=0, **EVERYBODY)


def b7_bad() -> RunBuilder:
    return pending(pending(plain_run(), [1, 2, 3]), [1, 2, 4])


def b7_nobody_refused() -> RunBuilder:
    run = pending(plain_run(), [1, 2, 3])
    return run.partition("isr_revert", isr=[1, 2], maximal_isr=[1, 2])


def b7_old_metadata() -> RunBuilder:
    run = pending(plain_run(), [1, 2, 3])
    return run.partition("become_leader", isr=[1, 2], maximal_isr=[1, 2], leo=9)


def b7_near() -> RunBuilder:
    """Refused, proposed again, shown again with metadata of before, and ended by newer metadata."""
    run = pending(plain_run(), [1, 2, 3])
    run.partition("isr_revert", isr=[1, 2], maximal_isr=[1, 2], error="INELIGIBLE_REPLICA")
    pending(pending(run, [1, 2, 3]), [1, 2, 3])
    run.partition("become_leader", isr=[1, 2], maximal_isr=[1, 2], leo=9, partition_epoch=1)
    return pending(run, [1, 2, 3], partition_epoch=1)


def _shrink(third: int, *, hw: int = 5, before: int = 5) -> RunBuilder:
    """3, which has 5 records, has left the ISR; 2 holds all nine."""
    run = plain_run()
    known = {2: (9, 0, 5), 3: (before, 0, 5)}
    run.partition("isr_pending", leo=9, hw_new=5, **{**EVERYBODY, "known": known})
    return run.partition(
        "isr_commit",
        isr=[1, 2],
        maximal_isr=[1, 2],
        min_isr=2,
        leo=9,
        hw_old=hw,
        hw_new=hw,
        partition_epoch=1,
        known={2: (9, 0, 5), 3: (third, 0, 5)},
    )


def b8_bad() -> RunBuilder:
    return _shrink(5).partition("append", leo=10, offset=9, partition_epoch=1)


def b8_near() -> RunBuilder:
    return _shrink(5).partition(
        "hw",
        isr=[1, 2],
        maximal_isr=[1, 2],
        min_isr=2,
        leo=9,
        hw_old=5,
        hw_new=9,
        partition_epoch=1,
        known={2: (9, 0, 5), 3: (5, 0, 5)},
    )


def b8_fetched() -> RunBuilder:
    """3 has fetched since it was to leave: it may be caught up in time, and is waited for."""
    return _shrink(5, before=3).partition("append", leo=10, offset=9, partition_epoch=1)


def b10_bad() -> RunBuilder:
    return watermark([1])


def b10_near() -> RunBuilder:
    return watermark([1, 2])


def e15_bad() -> RunBuilder:
    run = RunBuilder(_moved())
    return run.partition("become_follower", broker=1, leader_epoch=0, partition_epoch=1, leo=0)


def e15_response() -> RunBuilder:
    return _accepted(leaderEpoch=1).partition("become_leader", leo=0, **EVERYBODY)


def e15_near() -> RunBuilder:
    run = RunBuilder(_moved())
    return run.partition("become_follower", broker=1, leader_epoch=1, partition_epoch=1, leo=0)


def e27_bad() -> RunBuilder:
    return plain_run().partition("become_follower", broker=2, leo=4)


def e27_near() -> RunBuilder:
    """It comes back with what it had; a replica that was deleted begins anew."""
    run = plain_run().partition("become_follower", broker=2, leo=0)
    run.partition("append", broker=2, leo=4)
    run.partition("become_follower", broker=2, incarnation="2-2", leo=4)
    run.partition("delete", broker=2, incarnation="2-2", leo=4)
    return run.partition("become_follower", broker=2, incarnation="2-2", leo=0)


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


def _unclean(election_type: int) -> RunBuilder:
    run = RunBuilder(recovering())
    printed = as_json({"electionType": election_type})
    return run.rpc("ElectLeaders", 7, written=(run.log.offset - 1,), request=printed)


def c5_bad_request() -> RunBuilder:
    return _unclean(0)


def c5_near_request() -> RunBuilder:
    return _unclean(1)


def e29_bad_request() -> RunBuilder:
    return _two_topics(apart=True)


def e29_near_request() -> RunBuilder:
    return _two_topics(apart=False)


def e34_bad() -> RunBuilder:
    return WithSnapshot(batches=9, lie=True)


def e34_epoch() -> RunBuilder:
    return WithSnapshot(batches=9, name_epoch=2)


def e34_time() -> RunBuilder:
    """Its header has another time than the batch that it ends with."""
    return WithSnapshot(batches=9, late_ms=1)


def e34_near() -> RunBuilder:
    return WithSnapshot(batches=9)


def e38_bad_snapshot() -> RunBuilder:
    """The log begins with a snapshot, which has configs of a topic that it lacks."""
    return WithSnapshot(batches=9, kept=8, configured="payments")


def e38_near_snapshot() -> RunBuilder:
    run = WithSnapshot(batches=9, kept=8, configured="orders")
    run.log.op(r.ConfigRecord(resource_type=2, resource_name="orders", name="a", value="c"))
    return run


def _after_snapshot(**values: object) -> RunBuilder:
    run = RunBuilder(cluster().op(change((1, 2)))).committed()
    before = run.log.batches[-2].last_offset
    return run.publish(2, before, manifest="snapshot").publish(2, **values)


def e35_bad() -> RunBuilder:
    return _after_snapshot(image_hash="else")


def e35_near() -> RunBuilder:
    return _after_snapshot()


def e36_bad() -> RunBuilder:
    return plain_run().partition("become_leader", broker=2, leo=0, **EVERYBODY)


def e36_goes_on() -> RunBuilder:
    """The published image has long had 2 as leader; 1 still appends records."""
    run = RunBuilder(_moved())
    run.partition("become_leader", leo=0, **EVERYBODY)
    run.publish(1)
    run.seq += 5000
    return run.partition("append", leo=1, offset=0, isr=[1, 2, 3], maximal_isr=[1, 2, 3])


def _shrinks_in_its_image(partition_epoch: int) -> RunBuilder:
    run = RunBuilder(cluster().op(change((1, 2))))
    run.partition("become_leader", leo=0, **EVERYBODY)
    run.publish(1)
    run.seq += 5000
    return run.partition(
        "append", leo=1, offset=0, partition_epoch=partition_epoch, isr=[1, 2], maximal_isr=[1, 2]
    )


def e36_partition_epoch() -> RunBuilder:
    """The leader has published a change of its partition, and does not go by it."""
    return _shrinks_in_its_image(0)


def e36_partition_epoch_near() -> RunBuilder:
    """By a response it is ahead of its image."""
    return _shrinks_in_its_image(2)


def e36_near() -> RunBuilder:
    """A broker with an old image may lead by it."""
    run = RunBuilder(_moved())
    run.partition("become_leader", leo=0, **EVERYBODY)
    run.publish(1, run.log.offset - 2).publish(2)
    run.seq += 5000
    return run.partition("append", leo=1, offset=0, isr=[1, 2, 3], maximal_isr=[1, 2, 3])


def _kept(run: RunBuilder, broker: int) -> RunBuilder:
    run.publish(broker).partition("hw", broker, part=1).seq += 5000
    return _at_end(run, broker)


def _at_end(run: RunBuilder, broker: int) -> RunBuilder:
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


def e37_bad() -> RunBuilder:
    return plain_run().publish(2).partition("delete", broker=2)


def e37_kept() -> RunBuilder:
    return _kept(RunBuilder(cluster().op(r.RemoveTopicRecord(topic_id=TOPIC))), 2)


def e37_near() -> RunBuilder:
    run = RunBuilder(cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)))
    before = run.log.batches[-2].last_offset
    run.publish(2).partition("delete", broker=2)
    run.publish(3, before).partition("hw", 3).seq += 5000
    return _at_end(run, 3)


def e37_near_just_removed() -> RunBuilder:
    """The image without the topic is a few milliseconds old when the run ends."""
    run = RunBuilder(cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)))
    run.publish(3, run.log.batches[-2].last_offset).partition("hw", 3).seq += 5000
    return _at_end(run.publish(3), 3)


def e37_near_just_created() -> RunBuilder:
    """The image with the topic is a few milliseconds old when the run ends."""
    run = plain_run()
    run.publish(3, run.log.batches[0].last_offset).partition("hw", 3, part=1).seq += 5000
    return _at_end(run.publish(3), 3)


def e37_near_not_caught_up() -> RunBuilder:
    """The replicas of the broker have not taken up an image since it came back."""
    run = RunBuilder(cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)))
    run.publish(2).partition("delete", broker=2)
    run.publish(3).seq += 5000
    return _at_end(run, 3)


BAD: dict[str, tuple[Case, ...]] = {
    "A7": (a7_bad,),
    "B3": (b3_bad, b3_vanished),
    "B5": (b5_bad, b5_response),
    "B6": (b6_bad, b6_two_meanings),
    "B7": (b7_bad, b7_nobody_refused, b7_old_metadata),
    "B8": (b8_bad,),
    "B9": (b9_bad,),
    "B10": (b10_bad,),
    "E15": (e15_bad, e15_response),
    "E27": (e27_bad,),
    "E34": (e34_bad, e34_epoch, e34_time),
    "E35": (e35_bad,),
    "E36": (e36_bad, e36_goes_on, e36_partition_epoch),
    "E37": (e37_bad, e37_kept),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "A7": (a7_near,),
    "B3": (b3_near, b3_near_truncated),
    "B5": (b5_near,),
    "B6": (b6_near,),
    "B7": (b7_near,),
    "B8": (b8_near, b8_fetched),
    "B9": (b9_near,),
    "B10": (b10_near,),
    "E15": (e15_near,),
    "E27": (e27_near,),
    "E34": (e34_near,),
    "E35": (e35_near,),
    "E36": (e36_near, e36_partition_epoch_near),
    "E37": (e37_near, e37_near_just_removed, e37_near_just_created, e37_near_not_caught_up),
}
# The part of a log rule that only a trace shows.
REQUESTS_BAD: dict[str, tuple[Case, ...]] = {
    "C5": (c5_bad_request,),
    "E29": (e29_bad_request,),
    "E38": (e38_bad_snapshot,),
}
REQUESTS_NEAR: dict[str, tuple[Case, ...]] = {
    "C5": (c5_near_request,),
    "E29": (e29_near_request,),
    "E38": (e38_near_snapshot,),
}
