"""Per rule about what the logs of controllers and replicas hold: a bad run and a near miss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from minicluster.protocol import records as r
from minicluster.protocol.uuids import format_uuid
from tests.verify.build import OTHER_TOPIC, TOPIC, LogBuilder, change, cluster
from tests.verify.build_run import TOPIC_ID, RunBuilder
from tests.verify.trace_kit import (
    EVERYBODY,
    WithSnapshot,
    as_json,
    cut_log,
    pending,
    plain_run,
    watermark,
)

Case = Callable[[], RunBuilder]


def _raft(run: RunBuilder, kind: str, node: int = 101, **values: object) -> RunBuilder:
    defaults = {"node": node, "incarnation": f"{node}-1", "kind": kind, "epoch": 1}
    return run.row("raft_event", {**defaults, **values})


def e04_bad() -> RunBuilder:
    run = _raft(plain_run(), "voted", voted_for=102)
    return _raft(run, "voted", voted_for=103, incarnation="101-2")


def e04_near() -> RunBuilder:
    run = _raft(_raft(plain_run(), "voted", voted_for=102), "voted", voted_for=102)
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
    return _raft(_raft(plain_run(), "hw", offset=5), "hw", offset=4)


def e06_near() -> RunBuilder:
    """Another node, and another incarnation of the same one, begin from below."""
    run = _raft(_raft(plain_run(), "hw", offset=4), "hw", offset=5)
    return _raft(_raft(run, "hw", node=102, offset=3), "hw", offset=2, incarnation="101-2")


def _elected(log_end: int) -> RunBuilder:
    run = _raft(_raft(plain_run(), "elected", leader=101), "append", offset=9)
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


def e09_bad() -> RunBuilder:
    return RunBuilder(cut_log(cluster(), keep_from=3))


def e09_near() -> RunBuilder:
    return WithSnapshot(batches=4, kept=3)


def _joins(leo: int, epoch: int = 0) -> RunBuilder:
    """3 is proposed with these records; the epoch began at 6, the high watermark is 5."""
    run = plain_run().partition("become_leader", leo=6, isr=[1, 2], maximal_isr=[1, 2])
    return pending(run, [1, 2, 3], known={2: (9, 0, 5), 3: (leo, epoch, 5)}, hw_new=5)


def f14_bad() -> RunBuilder:
    return _joins(5)


def f14_other_epoch() -> RunBuilder:
    return _joins(9, -1)


def f14_near() -> RunBuilder:
    return _joins(6)


def f14_near_began_again() -> RunBuilder:
    """3 was caught up when it was proposed; its process has begun again before metadata came."""
    run = _joins(6)
    return pending(run, [1, 2, 3], known={2: (9, 0, 5), 3: (0, 0, 5)}, hw_new=5)


def _fetched(epoch: int, error: int = 0) -> RunBuilder:
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
    return _writes(_writes(plain_run(), 1, 0), 2, 0)


def f16_near() -> RunBuilder:
    run = _writes(_writes(plain_run(), 1, 0), 2, 1)
    return run.partition("append", broker=3, leo=1, offset=0)


def _logged(*epochs: int) -> RunBuilder:
    run = plain_run()
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
    """The records of a replica, all seen at once: leader epochs and values."""
    seq = run.seq + 1
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
                "seq": seq,
            },
        )
    return run


def _committed_to(run: RunBuilder, *high_watermarks: int) -> RunBuilder:
    for broker, end in enumerate(high_watermarks, 1):
        run.partition("hw", broker=broker, hw_old=0, hw_new=end, leo=end)
    return run


def f4_bad() -> RunBuilder:
    """KIP-279: a follower stopped after one lookup; both take offset 1 for committed."""
    run = _committed_to(plain_run(), 2, 2)
    return _held(_held(run, 1, (0, "a"), (1, "b")), 2, (0, "a"), (2, "c"))


def f4_same_epoch() -> RunBuilder:
    """One leader wrote two records at one offset; the first was truncated."""
    run = _committed_to(plain_run(), 1, 1)
    return _held(_held(run, 1, (0, "a"), (1, "b")), 2, (0, "a"), (1, "c"), at="truncate")


def f4_stopped() -> RunBuilder:
    """The tail of a broker that stopped was not committed then; it was truncated later."""
    run = _held(_committed_to(plain_run(), 1), 1, (0, "a"), (1, "b"))
    run.partition("truncate", broker=1, leader_epoch=1, partition_epoch=1, leo=1, offset=1)
    run = _committed_to(run, 2, 2)
    return _held(_held(run, 1, (0, "a"), (2, "c")), 2, (0, "a"), (2, "c"))


def f4_near() -> RunBuilder:
    """They diverge above the high watermark of one of them, in epochs of their own."""
    run = _committed_to(plain_run(), 2, 1)
    return _held(_held(run, 1, (0, "a"), (1, "b")), 2, (0, "a"), (2, "c"))


def _in_isr(run: RunBuilder, *second: tuple[int, str]) -> RunBuilder:
    """1 leads with two committed records; 2 is in the ISR, and does not take them for committed."""
    run.partition("become_leader", leo=0, **EVERYBODY)
    run.partition("hw", leo=2, hw_old=0, hw_new=2, **EVERYBODY)
    _held(run, 1, (0, "a"), (0, "b"))
    return _running(run, 2, *second)


def _running(run: RunBuilder, broker: int, *values: tuple[int, str]) -> RunBuilder:
    run.partition("append", broker=broker, leo=len(values))
    for row in _held(run, broker, *values).rows["replica_log"]:
        row["incarnation"] = f"{row['broker']}-1"
    return run


def f2_bad() -> RunBuilder:
    return _in_isr(plain_run(), (0, "a"))


def f2_other() -> RunBuilder:
    """Another record: its own high watermark is below, so that F4 has nothing to compare."""
    return _in_isr(plain_run(), (0, "a"), (2, "c"))


def f2_near() -> RunBuilder:
    """2 has left the ISR; the tail of 3 above the high watermark may be anything."""
    run = _in_isr(RunBuilder(cluster().op(change((1, 3)))), (0, "a"))
    return _running(run, 3, (0, "a"), (0, "b"), (0, "z"))


def f2_near_shut_down() -> RunBuilder:
    """2 had an uncommitted record when it was shut down; it was truncated after its return."""
    run = _running(plain_run(), 2, (0, "a"), (0, "x"))
    before = run.rows["replica_log"]
    _in_isr(run, (0, "a"), (2, "b"))
    for row in before[:2]:
        row["incarnation"] = "2-0"
    for row in before[2:4]:
        row["leader_epoch"] = 2 if row["offset"] else 0
    return run


def _in_directory(broker: int, *, failed_ms: int, online: bool = False) -> RunBuilder:
    """1 leads; the directory with the replica of a broker failed, and the run ends at 60 s."""
    run = _running(RunBuilder(cluster(), ended_at_ms=60_000), broker, (0, "a"))
    row = {"step": 1, "action": "fail_dir", "phase": "start", "targets": f"[{broker}]"}
    run.row("fault", {**row, "seq": failed_ms})
    run.seq = 60_000 - 1
    run.committed()
    for row in run.rows["replica_log"]:
        row |= {"directory": "A", "online": online}
    return run


def d1_bad_disk() -> RunBuilder:
    """The failure was never reported, so that no record shows it."""
    return _in_directory(1, failed_ms=1_000)


def d1_near_disk() -> RunBuilder:
    """A follower's directory; and the leader's was repaired, or failed just now."""
    run = _in_directory(1, failed_ms=1_000, online=True)
    run.rows["replica_log"] += _in_directory(2, failed_ms=1_000).rows["replica_log"]
    return run


def d1_near_just_failed() -> RunBuilder:
    return _in_directory(1, failed_ms=59_000)


def _led_offline(*events: tuple[str, str, str]) -> RunBuilder:
    """A directory of broker 1 fails, and may be repaired; the broker appends as a leader."""
    run = plain_run().partition("become_leader", directory="A", **EVERYBODY)
    for what, phase, directory in events:
        if what == "fail_dir":
            row = {"action": what, "targets": "[1]", "phase": phase, "directory": directory}
            run.row("fault", row)
        else:
            run.partition(what, directory=directory, leo=1, offset=0, **EVERYBODY)
    return run


def d1_leads_offline() -> RunBuilder:
    return _led_offline(("fail_dir", "note", "A"), ("append", "", "A"))


def d1_near_leads_elsewhere() -> RunBuilder:
    """Before the failure, in another directory after it, and once it is repaired."""
    failed = ("append", "", "A"), ("fail_dir", "note", "A"), ("append", "", "B")
    return _led_offline(*failed, ("fail_dir", "stop", "A"), ("append", "", "A"))


def _with_epochs(run: RunBuilder, *held: tuple[int, list[int], str]) -> RunBuilder:
    """Logs of 8 records each, with their leader epochs, before 1 advances its high watermark."""
    for broker, epochs, incarnation in held:
        place = {"broker": broker, "incarnation": f"{broker}-{incarnation}"}
        run.partition("append", leo=8, offset=7, epochs=epochs, leader_epoch=3, **place)
    known = {2: (8, 3, 5), 3: (8, 3, 5)}
    return run.partition("hw", leo=10, hw_old=0, hw_new=8, known=known, leader_epoch=3, **EVERYBODY)


def b2_other_records() -> RunBuilder:
    """3 holds as many records, and the last ones are of an epoch that the leader never had."""
    logs = (1, [0, 0, 3, 5], "1"), (2, [0, 0, 3, 5], "1"), (3, [0, 0, 2, 5], "1")
    return _with_epochs(RunBuilder(cluster()), *logs)


def b2_lost_and_fetched() -> RunBuilder:
    """3 has lost records by a crash, and has fetched since, so that the leader can see it."""
    run = _with_epochs(RunBuilder(cluster()), (3, [0, 0, 3, 5], "1"))
    run.rows["partition_event"].pop()
    run.partition("become_follower", broker=3, incarnation="3-2", leo=5, epochs=[0, 0])
    run.partition("append", broker=3, incarnation="3-2", leo=6, offset=5, epochs=[3, 5])
    return _with_epochs(run, (1, [0, 0, 3, 5], "1"), (2, [0, 0, 3, 5], "1"))


def b2_near_epochs() -> RunBuilder:
    """3 lost its tail by a crash, and follows a later leader: this one sees neither yet."""
    run = _with_epochs(RunBuilder(cluster()), (2, [0, 0, 2, 5], "1"), (3, [0, 0, 3, 5], "1"))
    run.rows["partition_event"].pop()
    run.partition("become_follower", broker=3, incarnation="3-2", leo=5, epochs=[0, 0])
    run.partition("become_follower", broker=2, leo=8, leader_epoch=4)
    return _with_epochs(run, (1, [0, 0, 3, 5], "1"))


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
    return _held(_sent(plain_run(), "a", idempotent=True), 1, (0, "a"), (0, "b"), (0, "a"))


def f11_near() -> RunBuilder:
    """Only a producer without sequence numbers may have its record twice."""
    run = _sent(_sent(plain_run(), "a", idempotent=True), "b", idempotent=False)
    return _held(_held(run, 1, (0, "a"), (0, "b"), (0, "b")), 2, (0, "a"), (0, "b"), (0, "b"))


def f18_bad() -> RunBuilder:
    return watermark([1, 2], old=8, new=7)


def f18_near() -> RunBuilder:
    """A follower's may go back."""
    return watermark([1, 2]).partition("hw", broker=2, hw_old=8, hw_new=7, leo=8)


def _listed(
    offset: int,
    *,
    error: int = 0,
    replica: int = -1,
    timestamp: int = -1,
    began_before: int | None = None,
) -> RunBuilder:
    """A ListOffsets about orders-0; leader 1, whose epoch 0 began at 6, responds.

    Shapes:  began_before: where that epoch of an earlier topic of the name began.
    """
    run = plain_run()
    if began_before is not None:
        before = {"topic_id": format_uuid(OTHER_TOPIC), "leader_epoch": 0, **EVERYBODY}
        run.partition("become_leader", leo=began_before, **before)
        run.partition("delete", leo=began_before, topic_id=format_uuid(OTHER_TOPIC))
    run.partition("become_leader", leo=6, leader_epoch=0, **EVERYBODY)
    run.partition("become_leader", leo=9, leader_epoch=0, **EVERYBODY)
    requested = {"partitionIndex": 0, "timestamp": timestamp}
    reported = {"partitionIndex": 0, "errorCode": error, "offset": offset, "leaderEpoch": 0}
    return run.rpc(
        "ListOffsets",
        2,
        dst=1,
        request=as_json(
            {"replicaId": replica, "topics": [{"name": "orders", "partitions": [requested]}]}
        ),
        response=as_json({"topics": [{"name": "orders", "partitions": [reported]}]}),
    )


def f18_listed_early() -> RunBuilder:
    return _listed(5)


def f18_listed_in_new_topic() -> RunBuilder:
    """The epoch of the topic that had the name before began earlier."""
    return _listed(5, began_before=0)


def f18_listed_made_again() -> RunBuilder:
    return _listed(6, began_before=9)


def f18_listed() -> RunBuilder:
    """At the start; and below it for a replica, for the earliest offset, or as a refusal."""
    run = _listed(6)
    for other in (_listed(5, replica=2), _listed(0, timestamp=-2), _listed(-1, error=78)):
        run.rows["rpc"] += other.rows["rpc"]
    return run


BAD: dict[str, tuple[Case, ...]] = {
    "E04": (e04_bad,),
    "E05": (e05_bad,),
    "E06": (e06_bad,),
    "E07": (e07_bad,),
    "E08": (e08_bad,),
    "E09": (e09_bad,),
    "F2": (f2_bad, f2_other),
    "F4": (f4_bad, f4_same_epoch),
    "F11": (f11_bad,),
    "F14": (f14_bad, f14_other_epoch),
    "F15": (f15_bad,),
    "F16": (f16_bad,),
    "F17": (f17_bad,),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "E04": (e04_near,),
    "E05": (e05_near,),
    "E06": (e06_near,),
    "E07": (e07_near,),
    "E08": (e08_near,),
    "E09": (e09_near,),
    "F14": (f14_near, f14_near_began_again),
    "F2": (f2_near, f2_near_shut_down),
    "F4": (f4_near, f4_stopped),
    "F11": (f11_near,),
    "F15": (f15_near,),
    "F16": (f16_near,),
    "F17": (f17_near,),
}
