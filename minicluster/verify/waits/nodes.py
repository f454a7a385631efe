"""What is waited for at nodes: a leader of the quorum (G2), images (G3), responses (G8), the end of
a controlled shutdown (G10).

subject   the quorum; a node and its images; a request; the brokers that shut down
keeps     who leads; by node its last image; the disturbances that last
"""

from __future__ import annotations

import json
from heapq import merge
from operator import itemgetter
from typing import Any

from minicluster.trace import EXIT
from minicluster.verify.histories.commits import commits
from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.waits.liveness import Awaited
from minicluster.verify.waits.longest import Rising, Subject, Waits

_TIMEOUTS = {"Produce": "timeoutMs", "Fetch": "maxWaitMs", "DeleteRecords": "timeoutMs"}
_ENDS_PROCESS = ("kill", "bounce", "wipe", "controlled_shutdown")
_MOMENTS = ("resign", "snapshot", "compact", "restart")  # these last no time of their own
_OWN = ("fail_dir", "mutate")  # of one broker's disk, and planted: nothing waits for their end


def leaders_of_the_quorum(run: TracedRun, waits: Waits) -> None:
    """A controller leads. Its process may end without an event of its own."""
    leader: int | None = None
    waits.begin(Awaited.ELECTED, Subject(), 0)
    events = ((row["seq"], False, row) for row in run.rows("raft_event"))
    faults = ((row["seq"], True, row) for row in run.rows("fault") if row["phase"] == "start")
    for _, is_fault, row in merge(events, faults, key=itemgetter(0, 1)):
        if is_fault:
            ends = row["action"] == "restart" or row["action"] in _ENDS_PROCESS
            if not ends or leader not in json.loads(row["targets"] or "[]"):
                continue
            leader = None
        elif row["kind"] == "elected":
            leader = row["node"]
        elif row["kind"] == "resign" and row["node"] == leader:
            leader = None
        else:
            continue
        waits.set(Awaited.ELECTED, Subject(), leader is None, row["vt"])


def publications(run: TracedRun, waits: Waits) -> None:
    """Each node publishes what is committed. A controller publishes no record without effect."""
    changes, latest = _changes(run), dict[int, int]()
    for row in run.rows("publish"):
        node = row["node"]
        if node in latest:
            since_ms = changes.beyond_ms(latest[node])
            waits.stretch(Awaited.PUBLISHED, Subject(node=node), since_ms, row["vt"])
        latest[node] = row["offset"]
    for node, offset in latest.items():
        since_ms = changes.beyond_ms(offset)
        waits.stretch(Awaited.PUBLISHED, Subject(node=node), since_ms, waits.ended_ms)


def _changes(run: TracedRun) -> Rising:
    """The ends of the operations that change an image, as they were committed."""
    timeline, committed, changes = run.timeline, run.context(commits), Rising(run.first_image)
    ends = {topic.operation for topic in timeline.topics} | timeline.configured
    ends |= {state.operation for states in timeline.by_offset.values() for state in states}
    ends |= {state.operation for states in timeline.brokers.values() for state in states}
    for end in sorted(ends):
        at_ms = committed.at_ms(end)
        if at_ms is not None:
            changes.add(end, at_ms)
    return changes


def requests(run: TracedRun, waits: Waits) -> None:
    """A request that may be parked gets its response by its own timeout."""
    awaited = Awaited.COMPLETED
    if not waits.judges(awaited):
        return
    for row in run.rows("rpc"):
        field, sent_ms = _TIMEOUTS.get(row["api"]), row["sent_ms"]
        if field is None or sent_ms is None or row["connection"] is not None:
            continue
        # A disturbance of that millisecond may have lost it.
        if sent_ms <= waits.from_ms[awaited]:
            continue
        if row["answer"] is not None:  # what its client got is not its node's to give
            continue
        subject = Subject(node=row["dst"])
        waits.case(awaited, subject)
        until_ms = waits.ended_ms if row["completed_ms"] is None else row["completed_ms"]
        if until_ms - sent_ms > waits.bounds_ms[awaited]:
            timeout_ms = json.loads(row["request"]).get(field, 0)
            waits.stretch(awaited, subject, sent_ms + timeout_ms, until_ms)


def shutdowns(run: TracedRun, waits: Waits) -> None:
    """A broker that shuts down ends, while no other node is disturbed.

    Other than the rest it counts in the middle of a run, since a broker that is down is itself a
    disturbance. It counts from the shutdown on, or from when the others must be back after what
    disturbed them last; what disturbs them meanwhile restarts the wait, and what disturbs the
    broker itself ends it.
    """
    brokers, waiting = set(run.header.brokers), dict[int, int]()
    lasting: set[tuple[str, str]] = set()
    alive_ms = ready_ms = waits.bounds_ms.get(Awaited.UNFENCED, 0)

    def ended(broker: int, at_ms: int) -> None:
        since_ms = max(waiting.pop(broker), ready_ms)
        if not lasting and at_ms >= since_ms:
            waits.note(Awaited.SHUT_DOWN, Subject(node=broker), at_ms - since_ms)

    for row in run.rows("fault"):
        action, phase, at_ms = row["action"], row["phase"], row["vt"]
        targets = json.loads(row["targets"] or "[]")
        if action == EXIT:
            for node in [node for node in waiting if node in targets]:
                ended(node, at_ms)
                lasting.add(("down", json.dumps(node)))
            continue
        if phase not in ("start", "stop") or action in _OWN or not targets:
            continue
        if action == "controlled_shutdown" and brokers.issuperset(targets):
            waiting |= dict.fromkeys(targets, at_ms)
            continue
        for node in [node for node in waiting if node in targets]:
            ended(node, at_ms)
        ready_ms = at_ms + alive_ms
        for target in targets:
            _disturb(lasting, action, phase, target)
    for broker in list(waiting):
        ended(broker, waits.ended_ms)


def _disturb(lasting: set[tuple[str, str]], action: str, phase: str, target: Any) -> None:
    """Begin or end what disturbs a node, or a link: whatever ends on a link ends all of it."""
    kind = "link" if isinstance(target, list) else action
    key = json.dumps([target[0], target[-1]] if kind == "link" and target else target)
    if action == "restart":
        lasting.discard(("down", key))
    elif action == "fail_over" or action in _ENDS_PROCESS:
        lasting.add(("down", key))
    elif phase == "stop":
        lasting.discard(("pause" if action == "resume" else kind, key))
    elif action not in _MOMENTS:
        lasting.add((kind, key))
