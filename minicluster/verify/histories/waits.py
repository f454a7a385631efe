"""What is waited for after the last disturbance of a run, and for how long.

========================  ========================================================================
takes                     the moments and bounds of ``run.json``, the timeline, ``raft_event``,
                          ``fault``, ``publish``, ``partition_event``, ``rpc``, ``client_record``
keeps                     ``LongestWaits``: by promise and subject the longest stretch of time
yields                    ``Wait``, one for each promise and subject that had a case
========================  ========================================================================

Only runs in virtual time have bounds, those that the timeouts of their cluster give, and only where
every disturbance has ended, or for controlled shutdowns in their middle. A run that ends before a
bound is over decides nothing about it.

waits_in_the_log      brokers and partitions, as the committed log itself shows them
waits_of_leaders      ISR changes, records to be committed, acknowledgements
waits_of_groups       groups that read
controlled_shutdowns  brokers that shut down
here                  leaders of the quorum, publications, requests
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import chain

from minicluster.protocol.uuids import METADATA_TOPIC_ID, format_uuid
from minicluster.trace import CLIENT_ROWS_MAX
from minicluster.verify.histories.commits import commits
from minicluster.verify.histories.controlled_shutdowns import shutdowns
from minicluster.verify.histories.longest_waits import (
    Awaited,
    LongestWaits,
    Subject,
    Times,
    Wait,
)
from minicluster.verify.histories.traced_run import TracedRun, history
from minicluster.verify.histories.waits_in_the_log import WaitsInTheLog
from minicluster.verify.histories.waits_of_groups import note_waits_of_groups
from minicluster.verify.histories.waits_of_leaders import note_waits_of_leaders
from minicluster.verify.judging import Judge

ISR_CHANGES = ("AlterPartition", "AlterIsr")
_OF_THE_QUORUM = f'"topicId":"{format_uuid(METADATA_TOPIC_ID)}"'
_TIMEOUTS = {"Produce": "timeoutMs", "Fetch": "maxWaitMs", "DeleteRecords": "timeoutMs"}
_ENDS_PROCESS = ("kill", "bounce", "restart", "wipe", "controlled_shutdown")
_TABLES = ("raft_event", "fault", "publish", "partition_event", "rpc", "client_record")


@history(Wait, reads=_TABLES)
def waits_of_the_run(run: TracedRun, judge: Judge) -> None:
    """The longest wait of each promise and subject, with what was committed when it began."""
    header = run.header
    ended_ms, healed_ms, bounds = header.ended_at_ms, header.healed_ms, header.bounds_ms
    if ended_ms is None:
        return
    _shutdowns(run, judge, ended_ms)
    if healed_ms is None:
        _unjudged(judge, bounds, list(Awaited), "a disturbance lasts until the end of the run")
        return
    times = Times(
        healed_ms=healed_ms,
        lost_requests_ended_ms=lost_requests_ended_ms(run, healed_ms, ended_ms),
        ended_ms=ended_ms,
        bounds=bounds,
    )
    early = [awaited for awaited in Awaited if not times.is_over(awaited)]
    _unjudged(judge, bounds, early, "the run ends before the bound is over")
    if len(early) == len(Awaited):
        return
    waits = LongestWaits(times)
    WaitsInTheLog(run, waits).play()
    _leaders_of_the_quorum(run, waits)
    _publications(run, waits)
    note_waits_of_leaders(run, waits)
    _requests(run, waits)
    if len(run.rows("client_record")) >= CLIENT_ROWS_MAX:
        why = f"a run shows {CLIENT_ROWS_MAX:,} rows of its clients and no more"
        _unjudged(judge, bounds, [Awaited.AT_THE_END], why)
    elif times.is_over(Awaited.AT_THE_END):
        note_waits_of_groups(run, waits)
    waits.end_all()
    _give(run, waits, judge)


def _unjudged(
    judge: Judge, bounds: Mapping[str, int], promises: Sequence[Awaited], why: str
) -> None:
    """Say why nothing can be said; a run without bounds, on the real clock, promises nothing."""
    for awaited in promises:
        if awaited in bounds and awaited is not Awaited.SHUT_DOWN:
            judge.take(Wait(awaited=awaited, unjudged=why))


def _give(run: TracedRun, waits: LongestWaits, judge: Judge) -> None:
    committed = run.context(commits)
    for key, waited_ms in waits.longest.items():
        awaited, subject = key
        since_ms = waits.since_ms.get(key)
        offset = None if since_ms is None else committed.last_at(since_ms)
        wait = Wait(
            awaited=awaited,
            node=subject.node,
            waited_ms=waited_ms,
            bound_ms=waits.times.bounds[awaited],
        )
        topic, number = subject.topic or "", subject.partition
        judge.take(wait, -1 if offset is None else offset, topic, -1 if number is None else number)


def _shutdowns(run: TracedRun, judge: Judge, ended_ms: int) -> None:
    header = run.header
    if Awaited.SHUT_DOWN not in header.bounds_ms:
        return
    bound_ms = header.bounds_ms[Awaited.SHUT_DOWN]
    alive_ms = header.bounds_ms.get(Awaited.UNFENCED, 0)
    for broker, waited_ms in shutdowns(run.rows("fault"), header.brokers, alive_ms, ended_ms):
        awaited = Awaited.SHUT_DOWN
        judge.take(Wait(awaited=awaited, node=broker, waited_ms=waited_ms, bound_ms=bound_ms))


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


def _leaders_of_the_quorum(run: TracedRun, waits: LongestWaits) -> None:
    """A controller leads. Its process may end without an event of its own."""
    subject = Subject()
    waits.case(Awaited.ELECTED, subject)
    leader: int | None = None
    events = ((row["seq"], 0, row) for row in run.rows("raft_event"))
    ended = (
        (row["seq"], 1, row)
        for row in run.rows("fault")
        if row["phase"] == "start" and row["action"] in _ENDS_PROCESS
    )
    waits.begin(Awaited.ELECTED, subject, 0)
    for _, is_end, row in merge(events, ended, key=lambda event: event[:2]):
        if is_end:
            if leader in json.loads(row["targets"] or "[]"):
                leader = None
        elif row["kind"] == "elected":
            leader = row["node"]
        elif row["kind"] == "resign" and row["node"] == leader:
            leader = None
        else:
            continue
        waits.set(Awaited.ELECTED, subject, leader is None, row["vt"])


def _publications(run: TracedRun, waits: LongestWaits) -> None:
    """Each node publishes what is committed. A controller publishes no record without effect."""
    committed, changes = run.context(commits), _changes(run)
    latest: dict[int, int] = {}

    def waited(node: int, until_ms: int) -> None:
        place = bisect_right(changes, latest[node])
        since_ms = committed.at_ms(changes[place]) if place < len(changes) else None
        waits.stretch(Awaited.PUBLISHED, Subject(node=node), since_ms, until_ms)

    for row in run.rows("publish"):
        if row["node"] in latest:
            waited(row["node"], row["vt"])
        latest[row["node"]] = row["offset"]
    for node in latest:
        waited(node, waits.times.ended_ms)


def _changes(run: TracedRun) -> list[int]:
    """The last offsets of the operations that change an image, in order."""
    timeline = run.timeline
    ends = {topic.operation for topic in timeline.topics} | timeline.configured
    ends |= {state.operation for states in timeline.by_offset.values() for state in states}
    ends |= {state.operation for states in timeline.brokers.values() for state in states}
    return sorted(end for end in ends if end > run.first_image)


def _requests(run: TracedRun, waits: LongestWaits) -> None:
    """A request that may be parked gets its response by its own timeout."""
    times, awaited = waits.times, Awaited.COMPLETED
    for row in run.rows("rpc"):
        field, sent_ms = _TIMEOUTS.get(row["api"]), row["sent_ms"]
        if field is None or sent_ms is None or row["connection"] is not None:
            continue
        if sent_ms <= times.healed_ms:  # a disturbance of that millisecond may have lost it
            continue
        if row["answer"] is not None:  # what its client got is not its node's to give
            continue
        subject = Subject(node=row["dst"])
        waits.case(awaited, subject)
        until_ms = times.ended_ms if row["completed_ms"] is None else row["completed_ms"]
        if until_ms - sent_ms > times.bounds.get(awaited, 0):
            timeout_ms = json.loads(row["request"]).get(field, 0)
            waits.stretch(awaited, subject, sent_ms + timeout_ms, until_ms)
