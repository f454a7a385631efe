"""The time for which each promise was waited for, once all disturbances had ended.

A fold over the events of one run: what holds later than promised is a stretch of time, from its
beginning, or from the end of the last disturbance, to the event that ends it. Each promise and key
has one row, of the longest, with the last offset that was committed when it began. A run that ends
before a bound is over decides nothing about it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from minicluster.verify.rules.time.acknowledgements import TIMED_OUT, Acknowledgements, timed_out
from minicluster.verify.rules.time.groups import progress_of_groups
from minicluster.verify.rules.time.settled_log import SettledLog
from minicluster.verify.rules.time.shutdowns import shutdowns
from minicluster.verify.rules.time.waits import Committed, Key, Times, Waits, settled_ms

Read = Callable[[str], list[Mapping[str, Any]]]
COLUMNS = ("run", "promise", "topic", "part", "node", "offset", "waited_ms", "bound_ms")
TABLES = ("client_record", "fault", "partition_event", "publish", "raft_event", "rpc")
_TIMEOUTS = {"Produce": "timeoutMs", "Fetch": "maxWaitMs", "DeleteRecords": "timeoutMs"}
_ENDS_PROCESS = ("kill", "bounce", "restart", "wipe", "controlled_shutdown")
_ENDS_PENDING = ("isr_commit", "isr_revert", "become_leader", "become_follower", "stop", "delete")


def waits_of(read: Read) -> Iterable[Mapping[str, Any]]:
    """The rows of the view, of the one run that the tables are of."""
    timing = next(iter(read("timing")), None)
    if timing is None or timing["ended_ms"] is None:
        return
    bounds = json.loads(timing["bounds"] or "{}")
    row = {"run": timing["run"], "topic": None, "part": None, "node": None, "offset": None}
    if "G10" in bounds:
        alive_ms, faults = bounds.get("G1", 0), read("fault")
        for broker, took_ms in shutdowns(
            faults, timing["brokers"] or (), alive_ms, timing["ended_ms"]
        ):
            waited = {"waited_ms": took_ms, "bound_ms": bounds["G10"]}
            yield row | {"promise": "G10", "node": broker} | waited
    if timing["healed_ms"] is None:
        return
    healed_ms, ended_ms = timing["healed_ms"], timing["ended_ms"]
    settled = settled_ms(read("rpc"), healed_ms, ended_ms)
    times = Times(healed_ms=healed_ms, settled_ms=settled, ended_ms=ended_ms, bounds=bounds)
    if not any(map(times.is_over, bounds)):
        return
    waits, committed = Waits(times), Committed(read("raft_event"))
    facts = (read("brokers"), read("partitions"))
    # Where the log begins with a snapshot, nothing shows since when its content holds.
    first = max((row["first_image"] or 0 for row in read("publish")), default=0)
    SettledLog(waits, timing["brokers"] or (), committed, is_whole=not first).play(*facts)
    changes = sorted(
        {row["op"] for rows in (*facts, read("topics")) for row in rows if row["op"] > first}
    )
    _leaders_of_the_quorum(waits, read("raft_event"), read("fault"))
    _publications(waits, read("publish"), changes, committed)
    _replicas(waits, [*read("partition_event"), *timed_out(read("rpc"))])
    _responses(waits, read("rpc"))
    if times.is_over("G12"):
        progress_of_groups(waits, read("client_record"), read("partition_event"), read("rpc"))
    waits.end_all()
    for (promise, (topic, part, node)), waited_ms in waits.longest.items():
        since_ms = waits.since_ms.get((promise, (topic, part, node)))
        offset = None if since_ms is None else committed.last_at(since_ms)
        place = {"promise": promise, "topic": topic, "part": part, "node": node, "offset": offset}
        yield row | place | {"waited_ms": waited_ms, "bound_ms": bounds[promise]}


def _leaders_of_the_quorum(
    waits: Waits, events: Iterable[Mapping[str, Any]], faults: Iterable[Mapping[str, Any]]
) -> None:
    """G2: a controller leads. Its process may end without an event of its own."""
    key: Key = (None, None, None)
    waits.case("G2", key)
    leader: int | None = None
    ended = [row for row in faults if row["phase"] == "start" and row["action"] in _ENDS_PROCESS]
    waits.begin("G2", key, 0)
    for row in sorted([*events, *ended], key=lambda row: row["seq"]):
        if "targets" in row:
            if leader in json.loads(row["targets"] or "[]"):
                leader = None
        elif row["kind"] == "elected":
            leader = row["node"]
        elif row["kind"] == "resign" and row["node"] == leader:
            leader = None
        else:
            continue
        waits.set("G2", key, leader is None, row["vt"])


def _publications(
    waits: Waits,
    rows: Iterable[Mapping[str, Any]],
    changes: Sequence[int],
    committed: Committed,
) -> None:
    """G3: each node publishes what is committed. A controller publishes no record without effect.

    Shapes:  changes: the last offsets of operations that change an image, in order.
    """
    latest: dict[int, int] = {}

    def waited(node: int, until_ms: int) -> None:
        place = bisect_right(changes, latest[node])
        since_ms = committed.at_ms(changes[place]) if place < len(changes) else None
        waits.stretch("G3", (None, None, node), since_ms, until_ms)

    for row in sorted(rows, key=lambda row: row["seq"]):
        if row["node"] in latest:
            waited(row["node"], row["vt"])
        latest[row["node"]] = row["offset"]
    for node in latest:
        waited(node, waits.times.ended_ms)


class _Replica:
    """The log of a partition's leader, and what of it waits for the high watermark."""

    def __init__(self, key: Key, epoch: int = -1, incarnation: str | None = None) -> None:
        self.key, self.epoch, self.incarnation = key, epoch, incarnation
        self.high_watermark = 0
        self.since_seq = -1  # the event by which it became the leader
        self.uncommitted: deque[tuple[int, int]] = deque()  # log end, time
        self.advanced: deque[tuple[int, int]] = deque(maxlen=4096)  # high watermark, time

    def passed_ms(self, offset: int) -> int | None:
        """When the high watermark passed an offset, None where it has not or nothing shows it."""
        return next((since_ms for end, since_ms in self.advanced if end > offset), None)


def _replicas(waits: Waits, rows: Iterable[Mapping[str, Any]]) -> None:
    """G4: ISR changes end; G5: what leaders append is committed; G8: and then acknowledged."""
    leaders: dict[tuple[str, int], _Replica] = {}
    acknowledgements = Acknowledgements(waits)
    for row in sorted(rows, key=lambda row: row["seq"]):
        kind, at_ms, broker = row["kind"], row["vt"], row["broker"]
        key: Key = (row["topic"], row["part"], broker)
        if kind == TIMED_OUT:
            led = [one for one in leaders.values() if one.key == key]
            leads = led and row["handle_seq"] > led[-1].since_seq
            passed_ms = led[-1].passed_ms(row["offset"]) if leads else None
            acknowledgements.time_out(key, passed_ms, at_ms)
            continue
        acknowledgements.until(broker, at_ms)
        if kind == "isr_pending":
            waits.begin("G4", key, at_ms)
        elif kind in _ENDS_PENDING:
            waits.end("G4", key, at_ms)
        place, epoch = (row["topic_id"], row["part"]), row["leader_epoch"]
        leader = leaders.setdefault(place, _Replica(key))
        is_another = (epoch, row["incarnation"]) != (leader.epoch, leader.incarnation)
        if kind == "become_leader" and is_another and (epoch or 0) >= leader.epoch:
            waits.drop("G5", leader.key)
            leaders[place] = leader = _Replica(key, epoch, row["incarnation"])
            leader.high_watermark, leader.since_seq = row["hw_new"] or 0, row["seq"]
        if row["incarnation"] != leader.incarnation or epoch != leader.epoch:
            continue
        if kind in ("stop", "delete", "become_follower"):
            leader.uncommitted.clear()
            waits.drop("G5", key)
        elif row["maximal_isr"] is not None:
            _on_leader(waits, leader, row)
            if kind == "ack":
                acknowledgements.add(key, leader.passed_ms(row["offset"]), at_ms)
    acknowledgements.end()


def _on_leader(waits: Waits, leader: _Replica, row: Mapping[str, Any]) -> None:
    at_ms, log_end, key = row["vt"], row["leo"], leader.key
    if len(row["isr"] or ()) < (row["min_isr"] or 1):  # KIP-966: the high watermark waits as well
        leader.uncommitted.clear()
        waits.drop("G5", key)
        return
    if row["hw_new"] is not None and row["hw_new"] > leader.high_watermark:
        leader.high_watermark = row["hw_new"]
        leader.advanced.append((row["hw_new"], at_ms))
        while leader.uncommitted and leader.uncommitted[0][0] <= row["hw_new"]:
            leader.uncommitted.popleft()
    if (
        log_end is not None
        and log_end > leader.high_watermark
        and (not leader.uncommitted or leader.uncommitted[-1][0] < log_end)
    ):
        leader.uncommitted.append((log_end, at_ms))
    waits.end("G5", key, at_ms)
    if leader.uncommitted:
        waits.begin("G5", key, leader.uncommitted[0][1])


def _responses(waits: Waits, rows: Iterable[Mapping[str, Any]]) -> None:
    """G8: a request that may be parked gets its response by its own timeout."""
    ended_ms, healed_ms = waits.times.ended_ms, waits.times.healed_ms
    for row in rows:
        field, sent_ms = _TIMEOUTS.get(row["api"]), row["sent_ms"]
        if field is None or sent_ms is None or sent_ms < healed_ms or row["connection"] is not None:
            continue
        key: Key = (None, None, row["dst"])
        waits.case("G8", key)
        until_ms = ended_ms if row["completed_ms"] is None else row["completed_ms"]
        if until_ms - sent_ms > waits.times.bounds.get("G8", 0):
            timeout_ms = json.loads(row["request"]).get(field, 0)
            waits.stretch("G8", key, sent_ms + timeout_ms, until_ms)
