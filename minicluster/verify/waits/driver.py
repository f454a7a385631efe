"""The driver of what waits: from when on each promise counts, which folds note it, when it is said.

A lost ISR change or Fetch of a broker holds the next one back until it times out: the promises that
rest on those count from the end of the ones that were on their way when the run was healed.
"""

from __future__ import annotations

from itertools import chain

from minicluster.protocol.uuids import METADATA_TOPIC_ID, format_uuid
from minicluster.trace import CLIENT_ROWS_MAX
from minicluster.verify.histories.commits import commits
from minicluster.verify.histories.traced_run import History, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.waits import groups, leaders, log, nodes
from minicluster.verify.waits.liveness import RULES, TABLE, Awaited
from minicluster.verify.waits.longest import Waits

ISR_CHANGES = ("AlterPartition", "AlterIsr")
_OF_THE_QUORUM = f'"topicId":"{format_uuid(METADATA_TOPIC_ID)}"'
_FOLDS = (
    log.log,
    nodes.leaders_of_the_quorum,
    nodes.publications,
    nodes.requests,
    leaders.leaders,
    groups.groups,
)


def judge_waits(run: TracedRun, judge: Judge) -> None:
    """The longest wait of each promise and subject, with what was committed when it began."""
    if run.header.ended_at_ms is not None:
        waits = waits_of(run, run.header.ended_at_ms)
        for rule in RULES:
            judge.hear(rule(waits, run.context(commits)))


def waits_of(run: TracedRun, ended_ms: int) -> Waits:
    """What waited in a run; one without bounds, on the real clock, promises nothing."""
    healed_ms, bounds_ms = run.header.healed_ms, run.header.bounds_ms
    lost_ms = None if healed_ms is None else lost_requests_ended_ms(run, healed_ms, ended_ms)
    from_ms, unjudged = dict[str, int](), dict[str, str]()
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
        elif promise is Awaited.AT_THE_END and len(run.rows("client_record")) >= CLIENT_ROWS_MAX:
            unjudged[promise] = f"a run shows {CLIENT_ROWS_MAX:,} rows of its clients and no more"
    waits = Waits(bounds_ms, from_ms, ended_ms, unjudged)
    nodes.shutdowns(run, waits)
    if any(waits.judges(promise) for promise in from_ms):
        for fold in _FOLDS:
            fold(run, waits)
        waits.end_all()
    return waits


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
