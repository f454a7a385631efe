"""Per rule about replicas and the quorum: a hand-written run that breaks it, and a near miss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from minicluster.log.checkpoint import Snapshot, checkpoint_name, encode_snapshot
from minicluster.metadata.image import MetadataImage, apply_all
from minicluster.metadata.snapshot import image_records
from minicluster.protocol import records as r
from minicluster.protocol.uuids import format_uuid
from tests.verify.build import OTHER_TOPIC, TOPIC, LogBuilder, change, cluster, partition
from tests.verify.build_run import TOPIC_ID, RunBuilder
from tests.verify.cases import recovering

Case = Callable[[], RunBuilder]
Known = tuple[int, int, int]

EVERYBODY = {"isr": [1, 2, 3], "maximal_isr": [1, 2, 3], "min_isr": 2}


def _run(**header: object) -> RunBuilder:
    return RunBuilder(cluster(), **header)


def _moved(to_2: LogBuilder | None = None) -> LogBuilder:
    """2 leads orders-0 now, in leader epoch 1 and partition epoch 1."""
    return (cluster() if to_2 is None else to_2).op(change(leader=2))


# --- A7, B9, and the answers of B5 and E15 --------------------------------------------------------


def _accepted(
    *, epoch: int | None = None, log: LogBuilder | None = None, **told: int
) -> RunBuilder:
    """An accepted shrink to [1, 2] in which 2 carries an epoch."""
    run = RunBuilder(cluster().op(change((1, 2))) if log is None else log)
    last = run.log.offset - 1
    known = run.log.broker_epochs
    members = [
        {"brokerId": 1, "brokerEpoch": known[1]},
        {"brokerId": 2, "brokerEpoch": known[2] if epoch is None else epoch},
    ]
    asked = {
        "partitionIndex": 0,
        "leaderEpoch": 0,
        "newIsrWithEpochs": members,
        "partitionEpoch": 0,
    }
    answer = {"partitionIndex": 0, "errorCode": 0, "leaderEpoch": 0, "partitionEpoch": 1, **told}

    def body(part: dict[str, object]) -> dict[str, object]:
        return {"topics": [{"topicId": TOPIC_ID, "partitions": [part]}]}

    return run.alter_partition(
        1, (1, 2), written=(last,), request=_json(body(asked)), response=_json(body(answer))
    )


def _json(value: object) -> str:
    import json

    return json.dumps(value)


def a7_bad() -> RunBuilder:
    return _accepted(epoch=1)


def a7_near() -> RunBuilder:
    """A leader may know no epoch; the next incarnation comes after the record."""
    log = cluster().op(change((1, 2)))
    run = _accepted(log=log, epoch=-1)
    log.register(2, incarnation=2, before=[change((1,))])
    return run


def b5_bad() -> RunBuilder:
    return _run().partition("become_leader", partition_epoch=1, leo=0, **EVERYBODY)


def b5_answer() -> RunBuilder:
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


# --- B3, B6-B8, B10 -------------------------------------------------------------------------------


def _high(run: RunBuilder) -> RunBuilder:
    """The high watermark of orders-0 is 8."""
    return run.partition(
        "hw", leo=8, hw_old=0, hw_new=8, known={2: (8, 0, 5), 3: (8, 0, 5)}, **EVERYBODY
    )


def b3_bad() -> RunBuilder:
    return _high(_run().committed()).partition("become_follower", broker=2, leo=3)


def b3_near() -> RunBuilder:
    """2 holds everything; after an unclean election it may lose what was committed."""
    run = RunBuilder(recovering())
    _high(run.committed(cluster().offset))
    run.partition("append", broker=2, leo=8).committed()
    return run.partition(
        "become_leader", broker=2, incarnation="2-2", leo=3, leader_epoch=2, partition_epoch=4
    )


def b3_vanished() -> RunBuilder:
    run = _high(_run()).partition("become_follower", broker=2, leo=8)
    return run.partition("become_follower", broker=2, leo=0)


def b3_near_truncated() -> RunBuilder:
    run = _run().committed().partition("become_follower", broker=2, leo=0)
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


def _pending(run: RunBuilder, maximal: list[int], **values: object) -> RunBuilder:
    known = {2: (9, 0, 5), 3: (9, 0, 5)}
    given = {"isr": [1, 2], "maximal_isr": maximal, "known": known, "hw_new": 8, "leo": 9}
    return run.partition("isr_pending", **{**given, **values})


def b7_bad() -> RunBuilder:
    return _pending(_pending(_run(), [1, 2, 3]), [1, 2, 4])


def b7_nobody_refused() -> RunBuilder:
    run = _pending(_run(), [1, 2, 3])
    return run.partition("isr_revert", isr=[1, 2], maximal_isr=[1, 2])


def b7_old_metadata() -> RunBuilder:
    run = _pending(_run(), [1, 2, 3])
    return run.partition("become_leader", isr=[1, 2], maximal_isr=[1, 2], leo=9)


def b7_near() -> RunBuilder:
    """Refused, asked again, and then ended by newer metadata."""
    run = _pending(_run(), [1, 2, 3])
    run.partition("isr_revert", isr=[1, 2], maximal_isr=[1, 2], error="INELIGIBLE_REPLICA")
    _pending(_pending(run, [1, 2, 3]), [1, 2, 3])
    run.partition("become_leader", isr=[1, 2], maximal_isr=[1, 2], leo=9, partition_epoch=1)
    return _pending(run, [1, 2, 3], partition_epoch=1)


def _shrink(third: int, *, hw: int = 5) -> RunBuilder:
    """3, which has 5 records, has left the ISR; 2 holds all nine."""
    run = _run()
    run.partition("isr_pending", leo=9, hw_new=5, **EVERYBODY)
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


def _watermark(isr: list[int], *, old: int = 0, new: int = 8) -> RunBuilder:
    return _run().partition(
        "hw",
        isr=isr,
        maximal_isr=isr,
        min_isr=2,
        leo=8,
        hw_old=old,
        hw_new=new,
        known={2: (8, 0, 5), 3: (8, 0, 5)},
    )


def b10_bad() -> RunBuilder:
    return _watermark([1])


def b10_near() -> RunBuilder:
    return _watermark([1, 2])


# --- E04 to E09 -----------------------------------------------------------------------------------


def _raft(run: RunBuilder, kind: str, node: int = 101, **values: object) -> RunBuilder:
    defaults = {"node": node, "incarnation": f"{node}-1", "kind": kind, "epoch": 1}
    return run.row("raft_event", {**defaults, **values})


def e04_bad() -> RunBuilder:
    run = _raft(_run(), "voted", voted_for=102)
    return _raft(run, "voted", voted_for=103, incarnation="101-2")


def e04_near() -> RunBuilder:
    run = _raft(_raft(_run(), "voted", voted_for=102), "voted", voted_for=102)
    return _raft(_raft(run, "voted", voted_for=103, epoch=2), "voted", node=103, voted_for=103)


class _TwoControllers(RunBuilder):
    """A run in which controller 102 has a log of its own."""

    other: LogBuilder

    def write(self, folder: Path) -> Path:
        super().write(folder)
        self.other.write(folder / "controller-102")
        return folder


def e05_bad() -> RunBuilder:
    run = _TwoControllers(cluster().op(change((1, 2))))
    run.other = cluster().op(change((1, 3)))
    return run


def e05_near() -> RunBuilder:
    """The same offset in another epoch is another record."""
    run = _TwoControllers(cluster().op(change((1, 2))))
    run.other = cluster().lead(102, epoch=2).op(change((1, 3)))
    return run


def e06_bad() -> RunBuilder:
    return _raft(_raft(_run(), "hw", offset=5), "hw", offset=4)


def e06_near() -> RunBuilder:
    """Another node, and another incarnation of the same one, begin from below."""
    run = _raft(_raft(_run(), "hw", offset=4), "hw", offset=5)
    return _raft(_raft(run, "hw", node=102, offset=3), "hw", offset=2, incarnation="101-2")


def _elected(log_end: int) -> RunBuilder:
    run = _raft(_raft(_run(), "elected", leader=101), "append", offset=9)
    _raft(_raft(run, "append", node=102, offset=log_end - 1), "hw", offset=6)
    return _raft(run, "elected", node=102, epoch=2, leader=102)


def e07_bad() -> RunBuilder:
    return _elected(5)


def e07_near() -> RunBuilder:
    return _elected(6)


def _second_epoch(offset: int) -> RunBuilder:
    log = cluster()
    run = RunBuilder(log)
    start = log.offset
    log.lead(101, epoch=2).op(r.NoOpRecord())
    _raft(run, "elected", epoch=2, leader=101)
    return _raft(run, "hw", epoch=2, offset=start + offset)


def e08_bad() -> RunBuilder:
    return _second_epoch(0)


def e08_near() -> RunBuilder:
    return _second_epoch(1)


def _cut(log: LogBuilder, *, keep_from: int) -> LogBuilder:
    log.batches = log.batches[keep_from:]
    return log


def e09_bad() -> RunBuilder:
    return RunBuilder(_cut(cluster(), keep_from=3))


class _WithSnapshot(RunBuilder):
    """A run whose controller has a snapshot of the first batches of its log."""

    def __init__(self, *, batches: int, kept: int = 0, name_epoch: int = 1, lie: bool = False):
        log = cluster().op(change((1, 2)))
        super().__init__(log)
        image = MetadataImage.EMPTY
        for batch in log.batches[:batches]:
            image = apply_all(image, batch.metadata_records, base_offset=batch.base_offset)
        records = [*image_records(image)]
        if lie:
            records.append(r.VersionedRecord(r.TopicRecord(name="x", topic_id=OTHER_TOPIC), 0))
        end = log.batches[batches - 1].next_offset
        self.name = checkpoint_name((end, name_epoch))
        self.snapshot = Snapshot(records=tuple(records), last_contained_log_timestamp=0)
        _cut(log, keep_from=kept)

    def write(self, folder: Path) -> Path:
        super().write(folder)
        content = encode_snapshot(self.snapshot, epoch=1, timestamp_ms=0)
        home = folder / "controller-101" / "__cluster_metadata-0"
        (home / self.name).write_bytes(content)
        return folder


def e09_near() -> RunBuilder:
    return _WithSnapshot(batches=4, kept=3)


# --- E15, E27, E29, E34 to E37 --------------------------------------------------------------------


def e15_bad() -> RunBuilder:
    run = RunBuilder(_moved())
    return run.partition("become_follower", broker=1, leader_epoch=0, partition_epoch=1, leo=0)


def e15_answer() -> RunBuilder:
    return _accepted(leaderEpoch=1).partition("become_leader", leo=0, **EVERYBODY)


def e15_near() -> RunBuilder:
    run = RunBuilder(_moved())
    return run.partition("become_follower", broker=1, leader_epoch=1, partition_epoch=1, leo=0)


def e27_bad() -> RunBuilder:
    return _run().partition("become_follower", broker=2, leo=4)


def e27_near() -> RunBuilder:
    """It comes back with what it had; a replica that was deleted begins anew."""
    run = _run().partition("become_follower", broker=2, leo=0)
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
    said = _json({"electionType": election_type})
    return run.rpc("ElectLeaders", 7, written=(run.log.offset - 1,), request=said)


def c5_bad_request() -> RunBuilder:
    return _unclean(0)


def c5_near_request() -> RunBuilder:
    return _unclean(1)


def e29_bad_request() -> RunBuilder:
    return _two_topics(apart=True)


def e29_near_request() -> RunBuilder:
    return _two_topics(apart=False)


def e34_bad() -> RunBuilder:
    return _WithSnapshot(batches=9, lie=True)


def e34_epoch() -> RunBuilder:
    return _WithSnapshot(batches=9, name_epoch=2)


def e34_near() -> RunBuilder:
    return _WithSnapshot(batches=9)


def _after_snapshot(**values: object) -> RunBuilder:
    run = RunBuilder(cluster().op(change((1, 2)))).committed()
    before = run.log.batches[-2].last_offset
    return run.publish(2, before, manifest="snapshot").publish(2, **values)


def e35_bad() -> RunBuilder:
    return _after_snapshot(image_hash="else")


def e35_near() -> RunBuilder:
    return _after_snapshot()


def e36_bad() -> RunBuilder:
    return _run().partition("become_leader", broker=2, leo=0, **EVERYBODY)


def e36_goes_on() -> RunBuilder:
    """The image says since long that 2 leads; 1 takes records all the same."""
    run = RunBuilder(_moved())
    run.partition("become_leader", leo=0, **EVERYBODY)
    run.publish(1)
    run.seq += 5000
    return run.partition("append", leo=1, offset=0, isr=[1, 2, 3], maximal_isr=[1, 2, 3])


def e36_near() -> RunBuilder:
    """A broker that lives in the past may lead in it."""
    run = RunBuilder(_moved())
    run.partition("become_leader", leo=0, **EVERYBODY)
    run.publish(1, run.log.offset - 2).publish(2)
    run.seq += 5000
    return run.partition("append", leo=1, offset=0, isr=[1, 2, 3], maximal_isr=[1, 2, 3])


def _kept(run: RunBuilder, broker: int) -> RunBuilder:
    run.publish(broker)
    run.seq += 5000
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
    return _run().publish(2).partition("delete", broker=2)


def e37_kept() -> RunBuilder:
    return _kept(RunBuilder(cluster().op(r.RemoveTopicRecord(topic_id=TOPIC))), 2)


def e37_near() -> RunBuilder:
    run = RunBuilder(cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)))
    before = run.log.batches[-2].last_offset
    run.publish(2).partition("delete", broker=2)
    _kept_before = run.publish(3, before)
    _kept_before.seq += 5000
    run.row(
        "replica_log",
        {
            "broker": 3,
            "incarnation": "3-1",
            "topic": "orders",
            "topic_id": TOPIC_ID,
            "part": 0,
            "offset": 0,
            "leader_epoch": 0,
            "at": "end",
        },
    )
    return run


def e41_bad() -> RunBuilder:
    return _run(stale_indexes=[101])


def e41_near() -> RunBuilder:
    return _run(stale_indexes=[])


def e42_bad() -> RunBuilder:
    return _run(crashes=["broker-1: KeyError"])


def e42_near() -> RunBuilder:
    return _run(crashes=[])


# --- F14 to F18 -----------------------------------------------------------------------------------


def _joins(leo: int, epoch: int = 0) -> RunBuilder:
    """3 is proposed with these records; the epoch began at 6, the high watermark is 5."""
    run = _run().partition("become_leader", leo=6, isr=[1, 2], maximal_isr=[1, 2])
    return _pending(run, [1, 2, 3], known={2: (9, 0, 5), 3: (leo, epoch, 5)}, hw_new=5)


def f14_bad() -> RunBuilder:
    return _joins(5)


def f14_other_epoch() -> RunBuilder:
    return _joins(9, -1)


def f14_near() -> RunBuilder:
    return _joins(6)


def _fetched(epoch: int, error: int = 0) -> RunBuilder:
    run = _run().partition("become_leader", leo=0, leader_epoch=0, **EVERYBODY)
    topic = {"topicId": TOPIC_ID, "topic": ""}
    asked = {"partition": 0, "currentLeaderEpoch": epoch}
    told = {"partitionIndex": 0, "errorCode": error}
    return run.rpc(
        "Fetch",
        2,
        dst=1,
        request=_json({"topics": [{**topic, "partitions": [asked]}]}),
        response=_json({"responses": [{**topic, "partitions": [told]}]}),
    )


def f15_bad() -> RunBuilder:
    return _fetched(1)


def f15_near() -> RunBuilder:
    run = _fetched(1, 76)
    run.rows["rpc"] += _fetched(0).rows["rpc"]
    return run


def _writes(run: RunBuilder, broker: int, epoch: int) -> RunBuilder:
    return run.partition(
        "append", broker=broker, leader_epoch=epoch, leo=1, offset=0, isr=[1], maximal_isr=[1]
    )


def f16_bad() -> RunBuilder:
    return _writes(_writes(_run(), 1, 0), 2, 0)


def f16_near() -> RunBuilder:
    run = _writes(_writes(_run(), 1, 0), 2, 1)
    return run.partition("append", broker=3, leo=1, offset=0)


def _logged(*epochs: int) -> RunBuilder:
    run = _run()
    for offset, epoch in enumerate(epochs):
        run.row(
            "replica_log",
            {
                "broker": 1,
                "topic": "orders",
                "topic_id": format_uuid(TOPIC),
                "part": 0,
                "offset": offset,
                "leader_epoch": epoch,
                "at": "end",
                "seq": 7,
            },
        )
    return run


def f17_bad() -> RunBuilder:
    return _logged(0, 2, 1)


def f17_near() -> RunBuilder:
    return _logged(0, 0, 2, 5)


def _held(run: RunBuilder, broker: int, *values: tuple[int, str], at: str = "end") -> RunBuilder:
    """The records of a replica: leader epochs and values."""
    for offset, (epoch, value) in enumerate(values):
        run.row(
            "replica_log",
            {
                "broker": broker,
                "topic": "orders",
                "topic_id": TOPIC_ID,
                "part": 0,
                "offset": offset,
                "leader_epoch": epoch,
                "value_id": value,
                "at": at,
            },
        )
    return run


def _committed_to(run: RunBuilder, *high_watermarks: int) -> RunBuilder:
    for broker, end in enumerate(high_watermarks, 1):
        run.partition("hw", broker=broker, hw_old=0, hw_new=end, leo=end)
    return run


def f4_bad() -> RunBuilder:
    """KIP-279: a follower that did not ask twice; both believe offset 1 to be committed."""
    run = _committed_to(_run(), 2, 2)
    return _held(_held(run, 1, (0, "a"), (1, "b")), 2, (0, "a"), (2, "c"))


def f4_same_epoch() -> RunBuilder:
    """One leader wrote two records to one place; the one was cut off again."""
    run = _committed_to(_run(), 1, 1)
    return _held(_held(run, 1, (0, "a"), (1, "b")), 2, (0, "a"), (1, "c"), at="truncate")


def f4_near() -> RunBuilder:
    """They part above the high watermark of one of them, in epochs of their own."""
    run = _committed_to(_run(), 2, 1)
    return _held(_held(run, 1, (0, "a"), (1, "b")), 2, (0, "a"), (2, "c"))


def _sent(run: RunBuilder, value: str, *, idempotent: bool) -> RunBuilder:
    return run.row(
        "history",
        {
            "op_id": 1,
            "f": "send",
            "type": "ok",
            "topic": "orders",
            "part": 0,
            "value": value,
            "idempotent": idempotent,
        },
    )


def f11_bad() -> RunBuilder:
    return _held(_sent(_run(), "a", idempotent=True), 1, (0, "a"), (0, "b"), (0, "a"))


def f11_near() -> RunBuilder:
    """Whoever sends again without numbers may find it twice; nobody else."""
    run = _sent(_sent(_run(), "a", idempotent=True), "b", idempotent=False)
    return _held(_held(run, 1, (0, "a"), (0, "b"), (0, "b")), 2, (0, "a"), (0, "b"), (0, "b"))


def f18_bad() -> RunBuilder:
    return _watermark([1, 2], old=8, new=7)


def f18_near() -> RunBuilder:
    """A follower's may go back."""
    return _watermark([1, 2]).partition("hw", broker=2, hw_old=8, hw_new=7, leo=8)


def _listed(offset: int, *, error: int = 0, replica: int = -1, timestamp: int = -1) -> RunBuilder:
    """Leader 1, whose epoch 0 began at 6, tells somebody where orders-0 ends."""
    run = _run().partition("become_leader", leo=6, leader_epoch=0, **EVERYBODY)
    run.partition("become_leader", leo=9, leader_epoch=0, **EVERYBODY)
    asked = {"partitionIndex": 0, "timestamp": timestamp}
    told = {"partitionIndex": 0, "errorCode": error, "offset": offset, "leaderEpoch": 0}
    return run.rpc(
        "ListOffsets",
        2,
        dst=1,
        request=_json(
            {"replicaId": replica, "topics": [{"name": "orders", "partitions": [asked]}]}
        ),
        response=_json({"topics": [{"name": "orders", "partitions": [told]}]}),
    )


def f18_listed_early() -> RunBuilder:
    return _listed(5)


def f18_listed() -> RunBuilder:
    """At the start; and below it for a replica, for the earliest offset, or as a refusal."""
    run = _listed(6)
    for other in (_listed(5, replica=2), _listed(0, timestamp=-2), _listed(-1, error=78)):
        run.rows["rpc"] += other.rows["rpc"]
    return run


BAD: dict[str, tuple[Case, ...]] = {
    "A7": (a7_bad,),
    "B3": (b3_bad, b3_vanished),
    "B5": (b5_bad, b5_answer),
    "B6": (b6_bad, b6_two_meanings),
    "B7": (b7_bad, b7_nobody_refused, b7_old_metadata),
    "B8": (b8_bad,),
    "B9": (b9_bad,),
    "B10": (b10_bad,),
    "E04": (e04_bad,),
    "E05": (e05_bad,),
    "E06": (e06_bad,),
    "E07": (e07_bad,),
    "E08": (e08_bad,),
    "E09": (e09_bad,),
    "E15": (e15_bad, e15_answer),
    "E27": (e27_bad,),
    "E34": (e34_bad, e34_epoch),
    "E35": (e35_bad,),
    "E36": (e36_bad, e36_goes_on),
    "E37": (e37_bad, e37_kept),
    "E41": (e41_bad,),
    "E42": (e42_bad,),
    "F4": (f4_bad, f4_same_epoch),
    "F11": (f11_bad,),
    "F14": (f14_bad, f14_other_epoch),
    "F15": (f15_bad,),
    "F16": (f16_bad,),
    "F17": (f17_bad,),
    "F18": (f18_bad, f18_listed_early),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "A7": (a7_near,),
    "B3": (b3_near, b3_near_truncated),
    "B5": (b5_near,),
    "B6": (b6_near,),
    "B7": (b7_near,),
    "B8": (b8_near,),
    "B9": (b9_near,),
    "B10": (b10_near,),
    "E04": (e04_near,),
    "E05": (e05_near,),
    "E06": (e06_near,),
    "E07": (e07_near,),
    "E08": (e08_near,),
    "E09": (e09_near,),
    "E15": (e15_near,),
    "E27": (e27_near,),
    "E34": (e34_near,),
    "E35": (e35_near,),
    "E36": (e36_near,),
    "E37": (e37_near,),
    "E41": (e41_near,),
    "E42": (e42_near,),
    "F14": (f14_near,),
    "F4": (f4_near,),
    "F11": (f11_near,),
    "F15": (f15_near,),
    "F16": (f16_near,),
    "F17": (f17_near,),
    "F18": (f18_near, f18_listed),
}
# The part of a log rule that only a trace shows.
REQUESTS_BAD: dict[str, tuple[Case, ...]] = {"C5": (c5_bad_request,), "E29": (e29_bad_request,)}
REQUESTS_NEAR: dict[str, tuple[Case, ...]] = {
    "C5": (c5_near_request,),
    "E29": (e29_near_request,),
}
