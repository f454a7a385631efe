"""Per promise about time: a run in which something waits for too long, and one in which it ends.

Every run is healed at 0 ms and ends at 1,000 ms; each promise has a bound of 500 ms.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from minicluster.protocol import records as r
from minicluster.protocol.schema import Message
from minicluster.protocol.uuids import format_uuid
from tests.verify.build import OTHER_TOPIC, TOPIC, LogBuilder, change, cluster, partition
from tests.verify.build_run import TOPIC_ID, RunBuilder
from tests.verify.trace_kit import EVERYBODY, as_json

Case = Callable[[], RunBuilder]

BOUND_MS, SOON_MS, LATE_MS = 500, 300, 700
PROMISES = ("G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12")
SHRUNK = {"isr": [1, 2], "maximal_isr": [1, 2], "min_isr": 1}


def timed(log: LogBuilder, **header: object) -> RunBuilder:
    """A run of 1,000 ms without a disturbance; its log is committed at once."""
    given = {
        "healed_ms": 0,
        "ended_at_ms": 1_000,
        "bounds_ms": dict.fromkeys(PROMISES, BOUND_MS),
        "brokers": [1, 2, 3],
    }
    return RunBuilder(log, **{**given, **header}).committed()


def later(run: RunBuilder, at_ms: int, *records: Message) -> RunBuilder:
    """One more operation, committed at a time; the log itself is older."""
    run.log.op(*records)
    run.seq = at_ms - 1
    return run.committed()


def fenced() -> LogBuilder:
    return cluster().fence(3, change((1, 2)))


def g1_bad() -> RunBuilder:
    return timed(fenced())


def g1_late() -> RunBuilder:
    run = timed(fenced())
    return later(run, LATE_MS, run.log.registration(3, fenced=-1))


def g1_unknown_broker() -> RunBuilder:
    return timed(cluster(), brokers=[1, 2, 3, 4])


def g1_near() -> RunBuilder:
    run = timed(fenced())
    return later(run, SOON_MS, run.log.registration(3, fenced=-1))


def g1_disturbed() -> RunBuilder:
    """It counts from the end of the last disturbance on."""
    run = timed(fenced(), healed_ms=400, ended_at_ms=1_400)
    return later(run, LATE_MS, run.log.registration(3, fenced=-1))


def _raft(run: RunBuilder, at_ms: int, kind: str, node: int) -> RunBuilder:
    row = {"node": node, "incarnation": "a", "kind": kind, "epoch": 1, "leader": node}
    return run.row("raft_event", {**row, "seq": at_ms})


def _resigned(elected_ms: int) -> RunBuilder:
    run = _raft(_raft(timed(cluster()), 10, "elected", 101), 20, "resign", 101)
    return _raft(run, elected_ms, "elected", 102)


def g2_bad() -> RunBuilder:
    return _resigned(LATE_MS)


def g2_near() -> RunBuilder:
    return _resigned(SOON_MS)


def _published(at_ms: int) -> RunBuilder:
    run = timed(cluster().op(change((1, 2))).op(change((1, 2, 3))))
    run.publish(2, run.log.offset - 2)
    run.seq = at_ms - 1
    return run.publish(2)


def g3_bad() -> RunBuilder:
    return _published(LATE_MS)


def g3_near() -> RunBuilder:
    """The image published last is followed by records without an effect on images."""
    return later(_published(SOON_MS), LATE_MS, r.NoOpRecord())


def _proposed(ended_ms: int) -> RunBuilder:
    run = timed(cluster()).partition("isr_pending", isr=[1, 2, 3], maximal_isr=[1, 2, 3])
    run.seq = ended_ms - 1
    return run.partition("isr_commit", partition_epoch=1, **SHRUNK)


def g4_bad() -> RunBuilder:
    return _proposed(LATE_MS)


def g4_near() -> RunBuilder:
    return _proposed(SOON_MS)


def _appended(committed_ms: int, **state: object) -> RunBuilder:
    held = {**EVERYBODY, **state}
    run = timed(cluster()).partition("become_leader", leo=0, hw_new=0, **held)
    run.partition("append", leo=5, offset=4, **held)
    run.seq = committed_ms - 1
    return run.partition("hw", leo=5, hw_old=0, hw_new=5, **held)


def g5_bad() -> RunBuilder:
    return _appended(LATE_MS)


def g5_near() -> RunBuilder:
    """In time; and as long as the ISR is too small nothing is committed."""
    run = _appended(SOON_MS)
    other = _appended(LATE_MS, part=1, isr=[1])
    run.rows["partition_event"] += other.rows["partition_event"]
    return run


def g6_bad() -> RunBuilder:
    return timed(cluster().op(change((1, 2))))


def g6_late() -> RunBuilder:
    return later(g6_bad(), LATE_MS, change((1, 2, 3)))


def g6_near() -> RunBuilder:
    return later(g6_bad(), SOON_MS, change((1, 2, 3)))


def _lost(run: RunBuilder, sent_ms: int, ended_ms: int | None, process: str = "a") -> RunBuilder:
    """An ISR change of leader 1 that a fault has lost; it ends by its timeout."""
    sent = {"sent_ms": sent_ms, "completed_ms": ended_ms, "src_incarnation": process}
    return run.rpc("AlterPartition", 1, **sent, handled_ms=None, response=None)


def g6_near_lost() -> RunBuilder:
    """The leader proposes nothing until the request that a fault has lost times out."""
    return later(_lost(g6_bad(), 0, SOON_MS), LATE_MS, change((1, 2, 3)))


def g6_after_lost() -> RunBuilder:
    """It counts from the timeout on."""
    return _lost(g6_bad(), 0, SOON_MS)


def g6_lost_after_healing() -> RunBuilder:
    """An ISR change that leaves when all is well has to end as the promises have it."""
    return later(_lost(g6_bad(), 10, SOON_MS), LATE_MS, change((1, 2, 3)))


def g6_lost_by_a_former_process() -> RunBuilder:
    """A process that has ended waits for nothing."""
    run = _lost(g6_bad(), 0, SOON_MS)
    run.rpc("Fetch", 1, sent_ms=10, completed_ms=20, src_incarnation="b")
    return later(run, LATE_MS, change((1, 2, 3)))


def g6_fenced() -> RunBuilder:
    """A replica of a fenced broker is in no ISR."""
    return timed(fenced())


def g7_bad() -> RunBuilder:
    return timed(cluster().op(change((1,), leader=-1)))


def g7_recovers() -> RunBuilder:
    recovering = change((3,), leader=3, recovery=1)
    return timed(cluster().op(change((1,))).op(recovering))


def g7_near() -> RunBuilder:
    return later(g7_bad(), SOON_MS, change(leader=1))


def _produced(completed_ms: int | None, api: str = "Produce") -> RunBuilder:
    request = as_json({"timeoutMs": 100, "maxWaitMs": 100})
    return timed(cluster()).rpc(
        api, 7, dst=1, sent_ms=10, handled_ms=20, completed_ms=completed_ms, request=request
    )


def g8_bad() -> RunBuilder:
    return _produced(LATE_MS)


def g8_never() -> RunBuilder:
    return _produced(None, "Fetch")


def g8_near() -> RunBuilder:
    """Its own timeout comes on top of the bound."""
    return _produced(BOUND_MS + 100)


def g8_near_lost_while_healing() -> RunBuilder:
    """Lost in the millisecond in which the last disturbance began and ended."""
    run = timed(cluster(), healed_ms=10)
    run.rpc("Fetch", 7, dst=1, sent_ms=10, request=as_json({"maxWaitMs": 100}))
    return run.rpc("Fetch", 8, dst=1, sent_ms=11, completed_ms=20, request=as_json({}))


def _acknowledged(at_ms: int) -> RunBuilder:
    run = _appended(100)
    run.seq = at_ms - 1
    return run.partition("ack", leo=5, offset=4, hw_new=5, **EVERYBODY)


def g8_late_acknowledgement() -> RunBuilder:
    return _acknowledged(LATE_MS)


def g8_near_acknowledgement() -> RunBuilder:
    return _acknowledged(SOON_MS)


def _timed_out(run: RunBuilder, at_ms: int, offset: int = 4, part: int = 0) -> RunBuilder:
    """The response to a Produce that was appended at once."""
    body = {"index": part, "errorCode": 7, "baseOffset": offset, "logStartOffset": 0}
    topic = {"name": "orders", "partitionResponses": [body]}
    response = json.dumps({"responses": [topic]}, separators=(",", ":"))
    sent = {"dst": 1, "sent_ms": 10, "handled_ms": 20, "handle_seq": 50, "resp_seq": at_ms}
    request = as_json({"timeoutMs": at_ms})
    return run.rpc("Produce", 7, **sent, completed_ms=at_ms, request=request, response=response)


def g8_committed_timeout() -> RunBuilder:
    """Its records are committed long before it times out."""
    return _timed_out(_appended(100), LATE_MS)


def g8_near_timeout() -> RunBuilder:
    """Its records are committed shortly before it times out, or not at all."""
    return _timed_out(_timed_out(_appended(SOON_MS), LATE_MS), LATE_MS + 100, offset=5)


def g8_near_other_partition() -> RunBuilder:
    """A partition whose request waits for another one, which times out uncommitted."""
    return _timed_out(_acknowledged(LATE_MS), LATE_MS + 1, part=1)


def g8_near_two_partitions() -> RunBuilder:
    """A request with two partitions, the later of which is committed shortly before."""
    run, other = _acknowledged(LATE_MS), _appended(LATE_MS - 100, part=1)
    other.seq = LATE_MS - 1
    other.partition("ack", leo=5, offset=4, hw_new=5, part=1, **EVERYBODY)
    run.rows["partition_event"] += other.rows["partition_event"]
    return run


def _moves() -> LogBuilder:
    log = LogBuilder().brokers(1, 2, 3, 4).topic(partition())
    return log.op(change(replicas=(1, 2, 3, 4), adding=(4,), removing=(3,)))


def _moved() -> r.PartitionChangeRecord:
    return change((1, 2, 4), replicas=(1, 2, 4), adding=(), removing=(), leader=1)


def g9_bad() -> RunBuilder:
    return later(timed(_moves()), LATE_MS, _moved())


def g9_near() -> RunBuilder:
    return later(timed(_moves()), SOON_MS, _moved())


def g11_bad() -> RunBuilder:
    return later(later(timed(cluster()), LATE_MS, change((1, 2))), LATE_MS + 50, change((1, 2, 3)))


def g11_near() -> RunBuilder:
    """Before the bound; later only a replica whose broker is fenced, or which is removed."""
    run = later(later(timed(cluster()), SOON_MS, change((1, 2))), SOON_MS + 50, change((1, 2, 3)))
    later(run, LATE_MS, change((1, 2)), run.log.registration(3, fenced=1))
    return later(run, LATE_MS + 50, r.RemoveTopicRecord(topic_id=TOPIC))


def _shutting_down(*faults: tuple[Any, ...]) -> RunBuilder:
    """Broker 3 shuts down at 200 ms; the others come back within 100 ms of a disturbance."""
    bounds = {**dict.fromkeys(PROMISES, BOUND_MS), "G1": 100}
    run = timed(cluster(), healed_ms=None, bounds_ms=bounds)
    for at_ms, action, phase, *targets in ((200, "controlled_shutdown", "start", 3), *faults):
        row = {"action": action, "phase": phase, "targets": as_json(targets)}
        run.row("fault", {**row, "seq": at_ms})
    return run


def g10_bad() -> RunBuilder:
    return _shutting_down()


def g10_late() -> RunBuilder:
    return _shutting_down((200 + LATE_MS, "exit", "note", 3))


def g10_after_disturbance() -> RunBuilder:
    """It counts from when the others must be back."""
    cut = (210, "cut", "start", [1, 2]), (250, "cut", "stop", [1, 2])
    return _shutting_down(*cut, (950, "exit", "note", 3))


def g10_ended_by_a_kill() -> RunBuilder:
    """It is too late when somebody else ends it."""
    return _shutting_down((200 + LATE_MS, "kill", "start", 3))


def g10_near_killed() -> RunBuilder:
    """Somebody else ends it in time; healing what is whole disturbs nobody."""
    return _shutting_down((250, "heal", "stop"), (200 + SOON_MS, "kill", "start", 3))


def g10_near() -> RunBuilder:
    return _shutting_down((200 + SOON_MS, "exit", "note", 3))


def g10_near_disturbed() -> RunBuilder:
    """While another broker is down it may wait; afterwards it ends in time."""
    away = (300, "kill", "start", 2), (600, "restart", "start", 2)
    return _shutting_down(*away, (200 + LATE_MS, "exit", "note", 3))


def _read_by_group(*commits: tuple[int, int], sent_ms: int = 990) -> RunBuilder:
    """A group with one member; 5 records are committed at 100 ms."""
    run = timed(cluster())
    run.partition("hw", seq=100, leo=5, hw_old=0, hw_new=5, **EVERYBODY)
    member = {"client_id": "c", "group_id": "g", "topic": "orders", "part": 0, "broker": 1}
    common = {"rpc": 1, **member}
    run.row("client_record", {**common, "f": "own", "seq": 50, "resp_seq": 50})
    for at_ms, offset in commits:
        row = {**common, "f": "commit", "offset": offset}
        run.row("client_record", {**row, "seq": at_ms, "resp_seq": at_ms})
    return run.rpc("Heartbeat", 7, dst=1, client_id="c", sent_ms=sent_ms, handled_ms=sent_ms)


def g12_bad() -> RunBuilder:
    return _read_by_group((200, 3))


def g12_no_owner() -> RunBuilder:
    """Nobody reads the partition."""
    return _read_by_group()


def g12_late() -> RunBuilder:
    return _read_by_group((LATE_MS, 5))


def g12_near() -> RunBuilder:
    return _read_by_group((SOON_MS, 5))


def _topic_before(run: RunBuilder, reached: int) -> RunBuilder:
    """Another topic had the name, with 10 records, of which the group passed some."""
    other = format_uuid(OTHER_TOPIC)
    run.partition("hw", seq=60, leo=10, hw_old=0, hw_new=10, topic_id=other, broker=2, **EVERYBODY)
    member = {"client_id": "c", "group_id": "g", "topic": "orders", "part": 0, "broker": 1}
    row = {"rpc": 1, "f": "commit", "offset": reached, "topic_id": other, **member}
    run.row("client_record", {**row, "seq": 70, "resp_seq": 70})
    for row in run.rows["client_record"]:
        row["topic_id"] = row["topic_id"] or TOPIC_ID
    return run


def g12_in_new_topic() -> RunBuilder:
    """The records that the group passed of the topic before it do not count for the new one."""
    return _topic_before(_read_by_group((200, 3)), 10)


def g12_near_made_again() -> RunBuilder:
    """The records that it left of the topic before it are gone."""
    return _topic_before(_read_by_group((SOON_MS, 5)), 2)


def g12_near_ended() -> RunBuilder:
    """Another group whose only member has ended did not reach the end."""
    run, ended = _read_by_group((SOON_MS, 5), sent_ms=19_990), _read_by_group(sent_ms=500)
    run.header["ended_at_ms"] = 20_000
    for table in ("client_record", "rpc"):
        row = (
            {"client_id": "d", "group_id": "h"} if table == "client_record" else {"client_id": "d"}
        )
        run.rows[table] += [{**known, **row} for known in ended.rows[table]]
    return run


BAD: dict[str, tuple[Case, ...]] = {
    "G1": (g1_bad, g1_late, g1_unknown_broker),
    "G2": (g2_bad,),
    "G3": (g3_bad,),
    "G4": (g4_bad,),
    "G5": (g5_bad,),
    "G6": (
        g6_bad,
        g6_late,
        g6_after_lost,
        g6_lost_after_healing,
        g6_lost_by_a_former_process,
    ),
    "G7": (g7_bad, g7_recovers),
    "G8": (g8_bad, g8_never, g8_late_acknowledgement, g8_committed_timeout),
    "G9": (g9_bad,),
    "G10": (g10_bad, g10_late, g10_after_disturbance, g10_ended_by_a_kill),
    "G11": (g11_bad,),
    "G12": (g12_bad, g12_no_owner, g12_late, g12_in_new_topic),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "G1": (g1_near, g1_disturbed),
    "G2": (g2_near,),
    "G3": (g3_near,),
    "G4": (g4_near,),
    "G5": (g5_near,),
    "G6": (g6_near, g6_near_lost, g6_fenced),
    "G7": (g7_near,),
    "G8": (
        g8_near,
        g8_near_lost_while_healing,
        g8_near_acknowledgement,
        g8_near_timeout,
        g8_near_other_partition,
        g8_near_two_partitions,
    ),
    "G9": (g9_near,),
    "G10": (g10_near, g10_near_disturbed, g10_near_killed),
    "G11": (g11_near,),
    "G12": (g12_near, g12_near_made_again, g12_near_ended),
}
