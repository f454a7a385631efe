"""Examples of the rules in `liveness.py`.

Every run is healed at 0 ms and ends at 1,000 ms; each promise has a bound of 500 ms.
"""

from __future__ import annotations

import json
from typing import Any

from minicluster.protocol import records as r
from minicluster.protocol.schema import Message
from minicluster.protocol.uuids import format_uuid
from minicluster.verify.rules.every import BY_ID
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.log import (
    OTHER_TOPIC,
    TOPIC,
    LogBuilder,
    change,
    cluster,
    partition,
)
from tests.verify.handwritten.run import EVERYBODY, TOPIC_ID, RunBuilder, WithSnapshot, as_json

_BOUND_MS, _SOON_MS, _LATE_MS = 500, 300, 700
_BOUNDS_MS = {f"G{number}": _BOUND_MS for number in range(1, 13)}


def _healed_run(log: LogBuilder, **header: Any) -> RunBuilder:
    """A run of 1,000 ms without a disturbance; its log is committed at once."""
    return _healed(RunBuilder(log), **header)


def _healed(run: RunBuilder, **header: Any) -> RunBuilder:
    timed = {
        "healed_ms": 0,
        "ended_at_ms": 1_000,
        "bounds_ms": _BOUNDS_MS,
        "brokers": [1, 2, 3],
    }
    run.header |= {**timed, **header}
    return run.committed()


def _fenced() -> LogBuilder:
    """Broker 3 is fenced, and out of the ISR."""
    return cluster().fence(3, change((1, 2)))


@breaks(BY_ID["G1"])
def g1_bad() -> RunBuilder:
    """Broker 3 is fenced when all is healed, and at the end of the run."""
    return _healed_run(_fenced())


def _commits_at(run: RunBuilder, at_ms: int, *records: Message) -> RunBuilder:
    """One more operation, committed at a time; the log itself is older."""
    run.log.op(*records)
    run.seq = at_ms - 1
    return run.committed()


@breaks(BY_ID["G1"])
def g1_late() -> RunBuilder:
    """Broker 3 is unfenced 700 ms after all is healed."""
    run = _healed_run(_fenced())
    return _commits_at(run, _LATE_MS, run.log.registration(3, fenced=-1))


@breaks(BY_ID["G1"])
def g1_unknown_broker() -> RunBuilder:
    """Broker 4 never registers."""
    return _healed_run(cluster(), brokers=[1, 2, 3, 4])


@keeps(BY_ID["G1"])
def g1_near() -> RunBuilder:
    """Broker 3 is unfenced 300 ms after all is healed."""
    run = _healed_run(_fenced())
    return _commits_at(run, _SOON_MS, run.log.registration(3, fenced=-1))


@keeps(BY_ID["G1"])
def g1_disturbed() -> RunBuilder:
    """The last disturbance ends at 400 ms, and broker 3 is unfenced at 700 ms."""
    run = _healed_run(_fenced(), healed_ms=400, ended_at_ms=1_400)
    return _commits_at(run, _LATE_MS, run.log.registration(3, fenced=-1))


def _resigned(elected_ms: int) -> RunBuilder:
    """101 is elected and resigns; 102 is elected at some time."""
    run = _healed_run(cluster()).raft_event("elected", 101, leader=101, seq=10)
    run.raft_event("resign", 101, leader=101, seq=20)
    return run.raft_event("elected", 102, leader=102, seq=elected_ms)


@breaks(BY_ID["G2"])
def g2_bad() -> RunBuilder:
    """Controller 101 resigns at 20 ms, and 102 is elected at 700 ms."""
    return _resigned(_LATE_MS)


@keeps(BY_ID["G2"])
def g2_near() -> RunBuilder:
    """Controller 101 resigns at 20 ms, and 102 is elected at 300 ms."""
    return _resigned(_SOON_MS)


def _published(at_ms: int) -> RunBuilder:
    """Broker 2 publishes the last record at some time."""
    run = _healed_run(cluster().op(change((1, 2))).op(change((1, 2, 3))))
    run.publish(2, run.log.offset - 2)
    run.seq = at_ms - 1
    return run.publish(2)


@breaks(BY_ID["G3"])
def g3_bad() -> RunBuilder:
    """Broker 2 publishes the last record 700 ms after it is committed."""
    return _published(_LATE_MS)


@keeps(BY_ID["G3"])
def g3_near() -> RunBuilder:
    """Broker 2 publishes within 300 ms; the record that is committed later has no effect on
    images."""
    return _commits_at(_published(_SOON_MS), _LATE_MS, r.NoOpRecord())


def _proposed(ended_ms: int) -> RunBuilder:
    """An ISR change of leader 1 is committed at some time."""
    run = _healed_run(cluster()).partition("isr_pending", isr=[1, 2, 3], maximal_isr=[1, 2, 3])
    run.seq = ended_ms - 1
    return run.partition("isr_commit", partition_epoch=1, isr=[1, 2], maximal_isr=[1, 2], min_isr=1)


@breaks(BY_ID["G4"])
def g4_bad() -> RunBuilder:
    """An ISR change of leader 1 is committed at 700 ms."""
    return _proposed(_LATE_MS)


@keeps(BY_ID["G4"])
def g4_near() -> RunBuilder:
    """An ISR change of leader 1 is committed at 300 ms."""
    return _proposed(_SOON_MS)


def _appended(committed_ms: int, **state: Any) -> RunBuilder:
    """Leader 1 appends 5 records at once, and they are committed at some time."""
    return _appends(_healed_run(cluster()), committed_ms, **state)


def _appends(run: RunBuilder, committed_ms: int, **state: Any) -> RunBuilder:
    leader = {**EVERYBODY, **state}
    run.partition("become_leader", leo=0, hw_new=0, **leader)
    run.partition("append", leo=5, offset=4, **leader)
    run.seq = committed_ms - 1
    return run.partition("hw", leo=5, hw_old=0, hw_new=5, **leader)


@breaks(BY_ID["G5"])
def g5_bad() -> RunBuilder:
    """Leader 1 appends 5 records, and its high watermark reaches them at 700 ms."""
    return _appended(_LATE_MS)


@keeps(BY_ID["G5"])
def g5_near() -> RunBuilder:
    """The high watermark follows at 300 ms; that of orders-1, whose ISR is too small, at 700 ms."""
    run = _appended(_SOON_MS)
    other = _appended(_LATE_MS, part=1, isr=[1])
    run.rows["partition_event"] += other.rows["partition_event"]
    return run


def _deleted_while_leader_is_down(*kinds: str) -> RunBuilder:
    """Broker 1 crashes after some events as the leader; orders is deleted before it is back."""
    leader = {**EVERYBODY, "isr": [1, 2], "leo": 5, "hw_new": 0}
    run = _appended(_SOON_MS, part=1).partition("isr_pending", part=1, **leader)
    run.partition("isr_commit", part=1, **leader)
    for kind in ("become_leader", *kinds):
        run.partition(kind, **leader)
    return _commits_at(run, _BOUND_MS, r.RemoveTopicRecord(topic_id=TOPIC))


@keeps(BY_ID["G4"])
def g4_deleted() -> RunBuilder:
    """Leader 1 crashes with an ISR change in flight, and orders is deleted before it is back."""
    return _deleted_while_leader_is_down("isr_pending")


@keeps(BY_ID["G5"])
def g5_deleted() -> RunBuilder:
    """Leader 1 crashes with records that are not committed, and orders is deleted before it is
    back."""
    return _deleted_while_leader_is_down("append")


@keeps(BY_ID["G5"])
def g5_deleted_before_the_log() -> RunBuilder:
    """The log begins with a snapshot without the topic in which leader 1 commits late."""
    run = _appends(_healed(WithSnapshot(batches=4, kept=4)), _SOON_MS)
    return _appends(run, _LATE_MS, topic_id=format_uuid(OTHER_TOPIC))


@breaks(BY_ID["G6"])
def g6_bad() -> RunBuilder:
    """Replica 3 of an active broker is out of the ISR until the end of the run."""
    return _healed_run(cluster().op(change((1, 2))))


@breaks(BY_ID["G6"])
def g6_late() -> RunBuilder:
    """Replica 3 of an active broker comes into the ISR at 700 ms."""
    return _commits_at(g6_bad(), _LATE_MS, change((1, 2, 3)))


def _lost(run: RunBuilder, sent_ms: int, ended_ms: int | None, process: str = "a") -> RunBuilder:
    """An ISR change of leader 1 that a fault has lost; it ends by its timeout."""
    sent: dict[str, Any] = {
        "sent_ms": sent_ms,
        "completed_ms": ended_ms,
        "src_incarnation": process,
    }
    return run.rpc("AlterPartition", 1, **sent, handled_ms=None, response=None)


@breaks(BY_ID["G6"])
def g6_after_lost() -> RunBuilder:
    """A fault lost the leader's ISR change, which times out at 300 ms; replica 3 stays out of the
    ISR."""
    return _lost(g6_bad(), 0, _SOON_MS)


@breaks(BY_ID["G6"])
def g6_lost_after_healing() -> RunBuilder:
    """The leader's ISR change is lost after all is healed, and replica 3 comes into the ISR at 700
    ms."""
    return _commits_at(_lost(g6_bad(), 10, _SOON_MS), _LATE_MS, change((1, 2, 3)))


@breaks(BY_ID["G6"])
def g6_lost_by_a_former_process() -> RunBuilder:
    """The leader that waited for a lost ISR change is replaced by another process; replica 3 comes
    in at 700 ms."""
    run = _lost(g6_bad(), 0, _SOON_MS)
    run.rpc("Fetch", 1, sent_ms=10, completed_ms=20, src_incarnation="b")
    return _commits_at(run, _LATE_MS, change((1, 2, 3)))


@keeps(BY_ID["G6"])
def g6_near() -> RunBuilder:
    """Replica 3 of an active broker comes into the ISR at 300 ms."""
    return _commits_at(g6_bad(), _SOON_MS, change((1, 2, 3)))


@keeps(BY_ID["G6"])
def g6_near_lost() -> RunBuilder:
    """A fault lost the leader's ISR change, which times out at 300 ms; replica 3 comes into the ISR
    at 700 ms."""
    return _commits_at(_lost(g6_bad(), 0, _SOON_MS), _LATE_MS, change((1, 2, 3)))


@keeps(BY_ID["G6"])
def g6_fenced() -> RunBuilder:
    """Replica 3 is out of the ISR, and its broker is fenced."""
    return _healed_run(_fenced())


def _throttle(log: LogBuilder, side: str, replicas: str, *rates: str) -> LogBuilder:
    """Throttle these replicas of orders, on one side, and give these brokers its rate."""
    resources = [
        (2, "orders", "replicas", replicas),
        *((4, broker, "rate", "1") for broker in rates),
    ]
    for kind, name, config, value in resources:
        record = r.ConfigRecord(
            resource_type=kind,
            resource_name=name,
            name=f"{side}.replication.throttled.{config}",
            value=value,
        )
        log.op(record)
    return log


def _throttled(side: str, replicas: str, *rates: str) -> RunBuilder:
    """Replica 3 is out of the ISR until the end of the run, under a throttle."""
    return _healed_run(_throttle(cluster().op(change((1, 2))), side, replicas, *rates))


@keeps(BY_ID["G6"])
def g6_near_throttled_by_its_leader() -> RunBuilder:
    """Leader 1 throttles all replicas of orders; replica 3 is out of the ISR."""
    return _throttled("leader", "*", "")


@keeps(BY_ID["G6"])
def g6_near_throttled_follower() -> RunBuilder:
    """Broker 3 throttles its replica of orders-0, which is out of the ISR."""
    return _throttled("follower", "1:2,0:3", "3")


@breaks(BY_ID["G6"])
def g6_other_replica_throttled() -> RunBuilder:
    """Broker 2 throttles its replica of orders-0; replica 3 is out of the ISR."""
    return _throttled("follower", "0:2,1:3", "2", "3")


@breaks(BY_ID["G6"])
def g6_throttle_without_rate() -> RunBuilder:
    """All replicas of orders are throttled, and only broker 2 has a rate."""
    return _throttled("leader", "*", "2")


@breaks(BY_ID["G6"])
def g6_throttle_taken_away() -> RunBuilder:
    """A throttle held replica 3 back, and is taken away at once."""
    log = _throttle(cluster().op(change((1, 2))), "leader", "*", "1")
    return _healed_run(_throttle(log, "leader", ""))


@breaks(BY_ID["G7"])
def g7_bad() -> RunBuilder:
    """orders-0 has no leader, and broker 1 of ISR [1] is active."""
    return _healed_run(cluster().op(change((1,), leader=-1)))


@breaks(BY_ID["G7"])
def g7_recovers() -> RunBuilder:
    """orders-0 is RECOVERING until the end of the run."""
    recovering = change((3,), leader=3, recovery=1)
    return _healed_run(cluster().op(change((1,))).op(recovering))


@keeps(BY_ID["G7"])
def g7_near() -> RunBuilder:
    """orders-0, whose ISR member is active, gets a leader at 300 ms."""
    return _commits_at(g7_bad(), _SOON_MS, change(leader=1))


@keeps(BY_ID["G7"])
def g7_near_after_lost_fetch() -> RunBuilder:
    """A fault lost the Fetch of follower 1, which times out at 300 ms; orders-0 recovers at 700
    ms."""
    lost: dict[str, Any] = {"sent_ms": 0, "completed_ms": _SOON_MS, "src_incarnation": "a"}
    run = g7_recovers().rpc("Fetch", 1, dst=3, **lost, handled_ms=None, response=None)
    return _commits_at(run, _LATE_MS, change((1, 3), recovery=0))


def _produced(completed_ms: int | None, api: str = "Produce") -> RunBuilder:
    """A request that may wait for 100 ms is sent at 10 ms, and gets a response at some time."""
    request = as_json({"timeoutMs": 100, "maxWaitMs": 100})
    return _healed_run(cluster()).rpc(
        api, 7, dst=1, sent_ms=10, handled_ms=20, completed_ms=completed_ms, request=request
    )


@breaks(BY_ID["G8"])
def g8_bad() -> RunBuilder:
    """A Produce with timeout 100 ms gets its response after 690 ms."""
    return _produced(_LATE_MS)


@breaks(BY_ID["G8"])
def g8_never() -> RunBuilder:
    """A Fetch with maximal wait 100 ms gets no response."""
    return _produced(None, "Fetch")


def _acknowledged(at_ms: int) -> RunBuilder:
    """Records that are committed at 100 ms are acknowledged at some time."""
    run = _appended(100)
    run.seq = at_ms - 1
    return run.partition("ack", leo=5, offset=4, hw_new=5, **EVERYBODY)


@breaks(BY_ID["G8"])
def g8_late_acknowledgement() -> RunBuilder:
    """The records of a Produce are committed at 100 ms, and acknowledged at 700 ms."""
    return _acknowledged(_LATE_MS)


def _timed_out(run: RunBuilder, at_ms: int, offset: int = 4, part: int = 0) -> RunBuilder:
    """The response to a Produce that was appended at once."""
    body = {"index": part, "errorCode": 7, "baseOffset": offset, "logStartOffset": 0}
    topic = {"name": "orders", "partitionResponses": [body]}
    response = json.dumps({"responses": [topic]}, separators=(",", ":"))
    sent: dict[str, Any] = {
        "dst": 1,
        "sent_ms": 10,
        "handled_ms": 20,
        "handle_seq": 50,
        "resp_seq": at_ms,
    }
    request = as_json({"timeoutMs": at_ms})
    return run.rpc("Produce", 7, **sent, completed_ms=at_ms, request=request, response=response)


@breaks(BY_ID["G8"])
def g8_committed_timeout() -> RunBuilder:
    """The records of a Produce are committed at 100 ms, and it times out at 700 ms."""
    return _timed_out(_appended(100), _LATE_MS)


@keeps(BY_ID["G8"])
def g8_near() -> RunBuilder:
    """A Produce with timeout 100 ms gets its response after 590 ms, 500 of which are the bound."""
    return _produced(_BOUND_MS + 100)


@keeps(BY_ID["G8"])
def g8_near_lost_while_healing() -> RunBuilder:
    """A Fetch is lost in the millisecond in which the last disturbance began and ended."""
    run = _healed_run(cluster(), healed_ms=10)
    run.rpc("Fetch", 7, dst=1, sent_ms=10, request=as_json({"maxWaitMs": 100}))
    return run.rpc("Fetch", 8, dst=1, sent_ms=11, completed_ms=20, request=as_json({}))


@keeps(BY_ID["G8"])
def g8_near_acknowledgement() -> RunBuilder:
    """The records of a Produce are committed at 100 ms, and acknowledged at 300 ms."""
    return _acknowledged(_SOON_MS)


@keeps(BY_ID["G8"])
def g8_near_timeout() -> RunBuilder:
    """One Produce times out soon after its records are committed, and one without that they are."""
    return _timed_out(_timed_out(_appended(_SOON_MS), _LATE_MS), _LATE_MS + 100, offset=5)


@keeps(BY_ID["G8"])
def g8_near_other_partition() -> RunBuilder:
    """orders-0 is committed early and acknowledged late: its request waited for orders-1, which
    timed out."""
    return _timed_out(_acknowledged(_LATE_MS), _LATE_MS + 1, part=1)


@keeps(BY_ID["G8"])
def g8_near_two_partitions() -> RunBuilder:
    """orders-0 is committed early and acknowledged late: orders-1 of the same request was committed
    just before."""
    run, other = _acknowledged(_LATE_MS), _appended(_LATE_MS - 100, part=1)
    other.seq = _LATE_MS - 1
    other.partition("ack", leo=5, offset=4, hw_new=5, part=1, **EVERYBODY)
    run.rows["partition_event"] += other.rows["partition_event"]
    return run


def _moved(at_ms: int) -> RunBuilder:
    """A reassignment to [1, 2, 4] completes at some time; all its brokers are active."""
    log = LogBuilder().brokers(1, 2, 3, 4).topic(partition())
    run = _healed_run(log.op(change(replicas=(1, 2, 3, 4), adding=(4,), removing=(3,))))
    completed = change((1, 2, 4), replicas=(1, 2, 4), adding=(), removing=(), leader=1)
    return _commits_at(run, at_ms, completed)


@breaks(BY_ID["G9"])
def g9_bad() -> RunBuilder:
    """A reassignment to [1, 2, 4] completes at 700 ms, and all its brokers are active."""
    return _moved(_LATE_MS)


@keeps(BY_ID["G9"])
def g9_near() -> RunBuilder:
    """A reassignment to [1, 2, 4] completes at 300 ms."""
    return _moved(_SOON_MS)


@keeps(BY_ID["G9"])
def g9_near_throttled() -> RunBuilder:
    """A reassignment to [1, 2, 4] does not complete: broker 4 is held back by a throttle."""
    log = LogBuilder().brokers(1, 2, 3, 4).topic(partition())
    _throttle(log, "follower", "0:4", "4")
    return _healed_run(log.op(change(replicas=(1, 2, 3, 4), adding=(4,), removing=(3,))))


def _shutting_down(*faults: tuple[Any, ...]) -> RunBuilder:
    """Broker 3 shuts down at 200 ms; the others come back within 100 ms of a disturbance."""
    run = _healed_run(cluster(), healed_ms=None, bounds_ms={**_BOUNDS_MS, "G1": 100})
    for at_ms, action, phase, *targets in ((200, "controlled_shutdown", "start", 3), *faults):
        row = {"action": action, "phase": phase, "targets": as_json(targets)}
        run.row("fault", {**row, "seq": at_ms})
    return run


@breaks(BY_ID["G10"])
def g10_bad() -> RunBuilder:
    """Broker 3 begins a controlled shutdown at 200 ms, and still runs at the end."""
    return _shutting_down()


@breaks(BY_ID["G10"])
def g10_late() -> RunBuilder:
    """Broker 3 begins a controlled shutdown at 200 ms, and ends at 900 ms."""
    return _shutting_down((200 + _LATE_MS, "exit", "note", 3))


@breaks(BY_ID["G10"])
def g10_after_disturbance() -> RunBuilder:
    """Two brokers are cut off until 250 ms; broker 3, which shuts down, ends at 950 ms."""
    disturbance = (210, "cut", "start", [1, 2]), (250, "cut", "stop", [1, 2])
    return _shutting_down(*disturbance, (950, "exit", "note", 3))


@breaks(BY_ID["G10"])
def g10_ended_by_a_kill() -> RunBuilder:
    """Broker 3 begins a controlled shutdown at 200 ms, and is killed at 900 ms."""
    return _shutting_down((200 + _LATE_MS, "kill", "start", 3))


@keeps(BY_ID["G10"])
def g10_near() -> RunBuilder:
    """Broker 3 begins a controlled shutdown at 200 ms, and ends at 500 ms."""
    return _shutting_down((200 + _SOON_MS, "exit", "note", 3))


@keeps(BY_ID["G10"])
def g10_near_disturbed() -> RunBuilder:
    """Broker 2 is down from 300 to 600 ms, and broker 3 ends its controlled shutdown at 900 ms."""
    away = (300, "kill", "start", 2), (600, "restart", "start", 2)
    return _shutting_down(*away, (200 + _LATE_MS, "exit", "note", 3))


@keeps(BY_ID["G10"])
def g10_near_killed() -> RunBuilder:
    """Broker 3 shuts down and is killed in time; healing what is whole disturbs nobody."""
    return _shutting_down((250, "heal", "stop"), (200 + _SOON_MS, "kill", "start", 3))


@breaks(BY_ID["G11"])
def g11_bad() -> RunBuilder:
    """Replica 3 of an active broker leaves the ISR at 700 ms."""
    run = _commits_at(_healed_run(cluster()), _LATE_MS, change((1, 2)))
    return _commits_at(run, _LATE_MS + 50, change((1, 2, 3)))


@keeps(BY_ID["G11"])
def g11_near() -> RunBuilder:
    """Replica 3 leaves the ISR at 300 ms; later only as its broker is fenced, and as the topic is
    deleted."""
    run = _commits_at(_healed_run(cluster()), _SOON_MS, change((1, 2)))
    _commits_at(run, _SOON_MS + 50, change((1, 2, 3)))
    _commits_at(run, _LATE_MS, change((1, 2)), run.log.registration(3, fenced=1))
    return _commits_at(run, _LATE_MS + 50, r.RemoveTopicRecord(topic_id=TOPIC))


def _read_by_group(*commits: tuple[int, int], sent_ms: int = 990) -> RunBuilder:
    """A group with one member; 5 records are committed at 100 ms."""
    run = _healed_run(cluster())
    run.partition("hw", seq=100, leo=5, hw_old=0, hw_new=5, **EVERYBODY)
    member = {"client_id": "c", "group_id": "g", "topic": "orders", "part": 0, "broker": 1}
    common = {"rpc": 1, "topic_id": TOPIC_ID, **member}
    run.row("client_record", {**common, "f": "own", "seq": 50, "resp_seq": 50})
    for at_ms, offset in commits:
        row = {**common, "f": "commit", "offset": offset}
        run.row("client_record", {**row, "seq": at_ms, "resp_seq": at_ms})
    return run.rpc("Heartbeat", 7, dst=1, client_id="c", sent_ms=sent_ms, handled_ms=sent_ms)


@breaks(BY_ID["G12"])
def g12_bad() -> RunBuilder:
    """5 records are committed, and the group, whose member lives, has committed 3."""
    return _read_by_group((200, 3))


@breaks(BY_ID["G12"])
def g12_no_owner() -> RunBuilder:
    """5 records are committed, and no member of the group commits anything."""
    return _read_by_group()


@breaks(BY_ID["G12"])
def g12_late() -> RunBuilder:
    """5 records are committed, and the group commits 5 at 700 ms."""
    return _read_by_group((_LATE_MS, 5))


def _topic_before(run: RunBuilder, reached: int) -> RunBuilder:
    """Another topic had the name, with 10 records, of which the group passed some."""
    other = format_uuid(OTHER_TOPIC)
    run.partition("hw", seq=60, leo=10, hw_old=0, hw_new=10, topic_id=other, broker=2, **EVERYBODY)
    member = {"client_id": "c", "group_id": "g", "topic": "orders", "part": 0, "broker": 1}
    row = {"rpc": 1, "f": "commit", "offset": reached, "topic_id": other, **member}
    run.row("client_record", {**row, "seq": 70, "resp_seq": 70})
    return run


@breaks(BY_ID["G12"])
def g12_in_new_topic() -> RunBuilder:
    """The group is at 3 of 5 records; it had passed 10 of the topic before of that name."""
    return _topic_before(_read_by_group((200, 3)), 10)


@keeps(BY_ID["G12"])
def g12_near() -> RunBuilder:
    """5 records are committed, and the group commits 5 at 300 ms."""
    return _read_by_group((_SOON_MS, 5))


@keeps(BY_ID["G12"])
def g12_near_made_again() -> RunBuilder:
    """The group commits all 5 records; those that it left of the topic before of that name are
    gone."""
    return _topic_before(_read_by_group((_SOON_MS, 5)), 2)


@keeps(BY_ID["G12"])
def g12_near_ended() -> RunBuilder:
    """The group commits all 5 records; another one, whose only member has ended, does not."""
    run, ended = _read_by_group((_SOON_MS, 5), sent_ms=19_990), _read_by_group(sent_ms=500)
    run.header["ended_at_ms"] = 20_000
    names = {"client_record": {"client_id": "d", "group_id": "h"}, "rpc": {"client_id": "d"}}
    for table, other in names.items():
        run.rows[table] += [{**row, **other} for row in ended.rows[table]]
    return run
