"""The driver of what waits: from when on each promise counts, which folds note it, when it is said.

A lost ISR change or Fetch of a broker holds the next one back until it times out: the promises that
rest on those count from the end of the ones that were on their way when the run was healed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import merge
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from minicluster.protocol.uuids import METADATA_TOPIC_ID, format_uuid
from minicluster.trace import CLIENT_ROWS_MAX
from minicluster.verify.histories.commits import commits
from minicluster.verify.histories.partitions import REMOVE_TOPIC
from minicluster.verify.histories.traced_run import History, Row, Rows, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.partition.driver import ended_partitions
from minicluster.verify.waits.groups import Clients, WaitingGroups
from minicluster.verify.waits.leaders import LedPartitions, TimedOut, timed_out_in
from minicluster.verify.waits.liveness import RULES, TABLE, Awaited
from minicluster.verify.waits.log import State, WaitsInTheLog
from minicluster.verify.waits.longest import Rising, Subject, Waits
from minicluster.verify.waits.nodes import NodeImages, QuorumLeader, Shutdowns, on_request

ISR_CHANGES = ("AlterPartition", "AlterIsr")
_OF_THE_QUORUM = f'"topicId":"{format_uuid(METADATA_TOPIC_ID)}"'
_BEFORE_THE_LOG = -1
_IN_ORDER = itemgetter(0, 1)


def judge_waits(run: TracedRun, judge: Judge) -> None:
    """The longest wait of each promise and subject, with what was committed when it began."""
    if run.header.ended_at_ms is not None:
        waits = waits_of(run, run.header.ended_at_ms)
        for rule in RULES:
            judge.hear(rule(waits, run.context(commits)))


def waits_of(run: TracedRun, ended_ms: int) -> Waits:
    """The waits of a run; one without bounds, on the real clock, promises nothing."""
    healed_ms, bounds_ms = run.header.healed_ms, run.header.bounds_ms
    lost_ms = None if healed_ms is None else lost_requests_ended_ms(run, healed_ms, ended_ms)
    from_ms, unjudged = dict[str, int](), dict[str, str]()
    responses = run.rows("client_record")
    for line in TABLE:
        promise, begins_ms = line.awaited, lost_ms if line.by_lost_requests else healed_ms
        if promise not in bounds_ms or promise is Awaited.SHUT_DOWN:
            continue
        if begins_ms is None:
            unjudged[promise] = "a disturbance lasts until the end of the run"
            continue
        from_ms[promise] = begins_ms
        if ended_ms - begins_ms <= bounds_ms[promise]:
            unjudged[promise] = "the run ends before the bound is over"
        elif promise is Awaited.AT_THE_END and len(responses) >= CLIENT_ROWS_MAX:
            unjudged[promise] = f"a run shows {CLIENT_ROWS_MAX:,} rows of its clients and no more"
    waits = Waits(bounds_ms, from_ms, ended_ms, unjudged)
    shutdowns = Shutdowns(waits, run.header.brokers)
    faults = [dict(row) for row in run.rows("fault")]
    for row in faults:
        shutdowns.on_fault(row)
    shutdowns.at_end()
    if any(waits.judges(promise) for promise in from_ms):
        _fold_log(run, waits)
        _fold_nodes(run, waits, faults)
        _fold_requests(run, waits, responses)
        waits.end_all()
    return waits


def _fold_log(run: TracedRun, waits: Waits) -> None:
    """Go through the committed log."""
    committed, timeline, at_ms = run.context(commits), run.timeline, 0
    # Where the log begins with a snapshot, nothing shows since when its content holds.
    for broker in () if run.first_image else run.header.brokers:
        waits.begin(Awaited.UNFENCED, Subject(node=broker), at_ms)
    states: list[State] = [*timeline.throttles]
    for of_broker in timeline.brokers.values():
        states += of_broker
    for of_record in timeline.by_offset.values():
        states += of_record
    states.sort(key=lambda state: state.position)
    fold = WaitsInTheLog(waits)
    for operation, together in groupby(states, key=lambda state: state.operation):
        at_ms = committed.at_ms(operation) or at_ms
        fold.on_operation(list(together), at_ms)


def _fold_nodes(run: TracedRun, waits: Waits, faults: Sequence[Row]) -> None:
    """Give the quorum its events, and each node its images."""
    leader, images = QuorumLeader(waits), NodeImages(waits, _changes(run))
    events = ((row["seq"], 0, leader.on_event, row) for row in run.rows("raft_event"))
    begun = ((row["seq"], 1, leader.on_fault, row) for row in faults if row["phase"] == "start")
    for _, _, take, row in merge(events, begun, key=_IN_ORDER):
        take(row)
    for row in run.rows("publish"):
        images.on_publish(row)
    images.at_end()


def _changes(run: TracedRun) -> Rising:
    timeline, committed, changes = run.timeline, run.context(commits), Rising(run.first_image)
    ends = {topic.operation for topic in timeline.topics} | timeline.configured
    ends |= {state.operation for states in timeline.by_offset.values() for state in states}
    ends |= {state.operation for states in timeline.brokers.values() for state in states}
    for end in sorted(ends):
        at_ms = committed.at_ms(end)
        if at_ms is not None:
            changes.add(end, at_ms)
    return changes


def _fold_requests(run: TracedRun, waits: Waits, rows: Rows) -> None:
    """Give requests their waits, then partitions and groups their events with what requests tell.

    Of one event a partition's comes before what timed out of it, and a response to a group first.
    """
    clients, timed_out = Clients(app.node for app in run.header.apps), list[TimedOut]()
    for row in run.rows("rpc"):
        on_request(row, waits)
        clients.on_request(row)
        timed_out += timed_out_in(row)
    responses = sorted(
        ((row["resp_seq"] or row["seq"], 0, row) for row in rows),
        key=_IN_ORDER,
    )
    members = clients.groups_of(row for _, _, row in responses)
    partitions = LedPartitions(waits, _deleted(run))
    groups = WaitingGroups(waits, members, clients.living(members, waits.ended_ms))

    def on_event(row: Row) -> None:
        partitions.on_event(row)
        groups.on_event(row)

    events = ((row["seq"], 1, row) for row in run.rows("partition_event"))
    late = ((one.seq, 2, one) for one in sorted(timed_out))
    take: Sequence[Callable[[Any], None]] = groups.on_client, on_event, partitions.on_timed_out
    for _, kind, what in merge(responses, events, late, key=_IN_ORDER):
        take[kind](what)
    partitions.at_end()
    groups.at_end()


def _deleted(run: TracedRun) -> dict[str, int]:
    """By topic id the event that committed its deletion; nothing shows those before the log."""
    committed, deleted = run.context(commits), dict[str, int]()
    if run.evidence.start is not None:
        known = {topic.topic_id for topic in run.timeline.topics}
        traced = {topic_id for topic_id, _ in run.context(ended_partitions).by_place}
        deleted = dict.fromkeys(traced - known, _BEFORE_THE_LOG)
    for topic in run.timeline.topics:
        seq = committed.seq_of(topic.offset) if topic.kind == REMOVE_TOPIC else None
        if seq is not None:
            deleted[topic.topic_id] = seq
    return deleted


def lost_requests_ended_ms(run: TracedRun, healed_ms: int, ended_ms: int) -> int:
    """When the ISR changes and Fetches of brokers have ended that were on their way at a moment.

    The next process of a broker ends the waits of the last one.
    """
    open_ms: dict[int, dict[int | None, int]] = {}  # by broker: of ISR changes, and by leader
    processes: dict[int, str | None] = {}
    for row in run.rows("rpc", by="send_seq"):
        broker, sent_ms, process = row["src"], row["sent_ms"], row["src_incarnation"]
        if row["connection"] is not None or sent_ms is None or broker < 0:  # of a client
            continue
        of_broker = open_ms.setdefault(broker, {})
        if processes.setdefault(broker, process) != process:
            processes[broker] = process
            for waits_for in of_broker:
                of_broker[waits_for] = min(of_broker[waits_for], sent_ms)
        completed_ms = ended_ms if row["completed_ms"] is None else row["completed_ms"]
        if sent_ms > healed_ms:
            continue
        if row["api"] in ISR_CHANGES:
            of_broker[None] = completed_ms
        # The quorum's own Fetches end by controller.quorum.request.timeout.ms, within its bound.
        elif row["api"] == "Fetch" and _OF_THE_QUORUM not in (row["request"] or ""):
            of_broker[row["dst"]] = completed_ms
    return max(chain((healed_ms,), *(each.values() for each in open_ms.values())))


HISTORY = History(
    yields=(),
    reads=("raft_event", "fault", "publish", "partition_event", "rpc", "client_record"),
    fold=judge_waits,
    rules=RULES,
)
