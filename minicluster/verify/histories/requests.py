"""Requests, beside what they met and what they wrote.

========================  ========================================================================
takes                     ``rpc`` rows; committed states, by the offsets that each request wrote;
                          the leader epochs of replicas, from ``partition_event``
keeps                     the requests that wrote each offset (``writers``), the epochs that each
                          replica had (``replica_epochs``); nothing else from request to request
yields                    ``HandledRequest``; ``RequestedChange``, ``RequestedElection``,
                          ``EndedRecovery``, ``Unfencing``, ``TopicRequest``; ``AlterPartition``,
                          ``AcceptedMember``, ``RevertedIsr``; ``FetchedPartition``,
                          ``ListedOffset``
========================  ========================================================================
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from minicluster.protocol import records as r
from minicluster.values import dataclass
from minicluster.verify.evidence.operations import operations_of
from minicluster.verify.histories.cluster import TOPIC_RESOURCE
from minicluster.verify.histories.partitions import RECOVERED, RECOVERING, PartitionStep
from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge

_CREATE_OR_DELETE = ("CreateTopics", "CreatePartitions", "DeleteTopics")
_WITH_EPOCH = ("become_leader", "become_follower", "isr_commit", "hw")
NEW_LEADER_ELECTED, FENCED_LEADER_EPOCH = 108, 74


@dataclass(frozen=True, slots=True, kw_only=True)
class HandledRequest:
    """A request that its receiver handled.

    Shapes:  answered: a response left. error: the name of the top-level one. written: the last
             offset that it wrote. broker_epoch: that it carries; registered_epoch: that was
             registered then; None for requests that carry none.
    Units:   high_watermark: of the receiver as it responded.
    """

    request: int
    api: str
    sender: int
    answered: bool
    error: str | None
    written: int | None
    high_watermark: int | None
    broker_epoch: int | None
    registered_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedChange:
    """A record of a partition that an AlterPartition wrote, whatever became of the response."""

    partition: PartitionStep


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedElection:
    """An unclean election by an ElectLeaders request."""

    partition: PartitionStep
    request: int
    is_preferred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRecovery:
    """A record ends the recovery of a partition.

    Shapes:  leader: before the record. api, sender: of the request that wrote it; None where no
             request of the trace names its offset. leader_waits: the leader never learned
             the outcome of an AlterPartition about it.
    """

    leader: int
    api: str | None
    sender: int | None
    leader_waits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfencing:
    """A request wrote the record that unfences a broker.

    Units:   caught_up_to: the metadata offset that its heartbeat names. registered_at: the offset
             of its registration; an epoch where only a snapshot has it.
    """

    broker: int
    api: str
    sender: int
    caught_up_to: int | None
    registered_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequest:
    """A request that creates or deletes topics or partitions; operations: those of its records."""

    request: int
    sender: int
    operations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartition:
    """One partition of an AlterPartition that got a response.

    Shapes:  error: of the whole request; partition_error: of the partition, None where the response
             leaves it out. records: how many the whole request wrote. committed: the state that its
             record of this partition made, None if it wrote none. new_…: as the response has them.
    """

    request: int
    broker: int
    version: int
    error: str | None
    partition_error: int | None
    leader_epoch: int | None
    partition_epoch: int | None
    broker_epoch: int | None
    registered_epoch: int | None
    records: int
    committed: CommittedPartition | None
    new_leader_epoch: int | None
    new_partition_epoch: int | None

    @property
    def is_rejected(self) -> bool:
        """The request or the partition got an error that means: nothing was changed."""
        if self.error not in (None, "NONE"):
            return True
        if self.partition_error in (None, 0, NEW_LEADER_ELECTED):
            return False
        # Before version 2 there was no NEW_LEADER_ELECTED: a leader whose change took its
        # leadership away got FENCED_LEADER_EPOCH, for a change with a record.
        return not (self.version < 2 and self.partition_error == FENCED_LEADER_EPOCH)

    @property
    def is_accepted(self) -> bool:
        """The partition got no error, or the one that says that the change took the leadership."""
        return self.partition_error in (0, NEW_LEADER_ELECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedMember:
    """A member of an ISR that was accepted, with the broker epoch that the leader named for it.

    Units:   registered_epoch: right before the record; None: it was never registered.
    """

    broker: int
    broker_epoch: int
    registered_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertedIsr:
    """A leader gives up a change of the ISR because of an error; event: its number in the trace."""

    broker: int
    isr: tuple[int, ...]
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPartition:
    """One partition of a Fetch that names a leader epoch, by topic id.

    Shapes:  sender: that fetches. own_epoch: of the replica that handled it. error: None where the
             response leaves the partition out.
    """

    request: int
    sender: int
    leader_epoch: int
    own_epoch: int
    error: int | None


# --- what several of them need --------------------------------------------------------------------


class Writer(NamedTuple):
    """A request that wrote records."""

    request: int
    api: str
    sender: int
    content: str


def writers(run: TracedRun) -> dict[int, list[Writer]]:
    """Context: the requests that wrote the record at each offset of the metadata log."""
    by_offset: dict[int, list[Writer]] = {}
    for row in run.rows("rpc"):
        if row["records_written"]:
            writer = Writer(row["id"], row["api"], row["src"], row["request"])
            for offset in row["records_written"]:
                by_offset.setdefault(offset, []).append(writer)
    return by_offset


class ReplicaEpochs:
    """The leader epochs that each replica had."""

    def __init__(self, run: TracedRun) -> None:
        self._epochs: dict[tuple[str, int, int], tuple[list[int], list[int]]] = {}
        for row in run.rows("partition_event"):
            epoch = row["leader_epoch"]
            if epoch is None or row["kind"] not in _WITH_EPOCH:
                continue
            replica = row["topic_id"], row["part"], row["broker"]
            events, epochs = self._epochs.setdefault(replica, ([], []))
            if not epochs or epochs[-1] != epoch:
                events.append(row["seq"])
                epochs.append(epoch)

    def epoch_at(self, topic_id: str, part: int, broker: int, event: int) -> int | None:
        """The leader epoch of a replica at an event; None before its first."""
        events, epochs = self._epochs.get((topic_id, part, broker), ((), ()))
        place = bisect_right(events, event)
        return epochs[place - 1] if place else None


def replica_epochs(run: TracedRun) -> ReplicaEpochs:
    """Context: the leader epochs of all replicas."""
    return ReplicaEpochs(run)


def body(text: str | None) -> dict[str, Any]:
    """The body of a request or response; an empty one where there is none, or another value."""
    try:
        value = json.loads(text) if text else None
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def each(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The structs of a list within a body."""
    structs = value.get(name)
    return (
        [struct for struct in structs if isinstance(struct, dict)]
        if isinstance(structs, list)
        else []
    )


# --- requests to the controller -------------------------------------------------------------------


@history(HandledRequest, reads=("rpc",))
def handled_requests(run: TracedRun, judge: Judge) -> None:
    """Each request with what its handling wrote."""
    for row in run.rows("rpc"):
        if row["handle_seq"] is None:
            continue
        written = max(row["records_written"] or (), default=None)
        step = HandledRequest(
            request=row["id"],
            api=row["api"],
            sender=row["src"],
            answered=row["resp_seq"] is not None,
            error=row["error"],
            written=written,
            high_watermark=row["high_watermark"],
            broker_epoch=row["broker_epoch"],
            registered_epoch=row["registered_epoch"],
        )
        judge.take(step, -1 if written is None else written, request=step.request)


@history(RequestedChange, RequestedElection, reads=("rpc",))
def requested_changes(run: TracedRun, judge: Judge) -> None:
    """Records of partitions with the requests that wrote them."""
    for offset, wrote in run.context(writers).items():
        for state in run.timeline.written_at(offset):
            for writer in wrote:
                step: Any = None
                if writer.api == "AlterPartition":
                    step = RequestedChange(partition=state.step)
                elif writer.api == "ElectLeaders" and state.step.is_unclean:
                    kind = body(writer.content).get("electionType")
                    # UNCLEAN is 1, PREFERRED 0; version 0 knows the preferred election only.
                    step = RequestedElection(
                        partition=state.step,
                        request=writer.request,
                        is_preferred=kind is not None and kind != 1,
                    )
                if step is not None:
                    request = writer.request
                    judge.take(step, offset, state.topic, state.partition, request=request)


@history(EndedRecovery, reads=("rpc",))
def ended_recoveries(run: TracedRun, judge: Judge) -> None:
    """Each record that makes a partition RECOVERED, with the request that wrote it."""
    # A controller that resigns rejects what it has appended, and the next one may commit it.
    waiting = {
        (row["src"], _topic_key(topic), partition["partitionIndex"])
        for row in run.rows("rpc")
        if row["api"] == "AlterPartition"
        and (row["resp_seq"] is None or row["error"] == "NOT_CONTROLLER")
        for topic in each(body(row["request"]), "topics")
        for partition in each(topic, "partitions")
    }
    for states in run.timeline.by_offset.values():
        for state in states:
            if not state.step.is_change or state.before.recovery != RECOVERING:
                continue
            if state.step.sets.recovery != RECOVERED:
                continue
            wrote = run.context(writers).get(state.offset, [])
            leader = state.before.leader
            leader_waits = any(
                (leader, topic, state.partition) in waiting
                for topic in (state.topic_id, state.topic)
            )
            senders: list[tuple[str | None, int | None]] = [(by.api, by.sender) for by in wrote]
            for api, sender in senders or [(None, None)]:
                step = EndedRecovery(
                    leader=leader, api=api, sender=sender, leader_waits=leader_waits
                )
                judge.take(step, state.offset, state.topic, state.partition)


@history(Unfencing, reads=("rpc",))
def unfencings(run: TracedRun, judge: Judge) -> None:
    """Each record that unfences a broker, with the request that wrote it."""
    for states in run.timeline.brokers.values():
        for state in states:
            if not state.judged or state.kind not in ("Change", "Unfence"):
                continue
            if not state.was_registered or not state.was_fenced or state.fenced:
                continue
            for writer in run.context(writers).get(state.offset, ()):
                step = Unfencing(
                    broker=state.broker,
                    api=writer.api,
                    sender=writer.sender,
                    caught_up_to=body(writer.content).get("currentMetadataOffset"),
                    registered_at=state.registered_at,
                )
                judge.take(step, state.offset)


@history(TopicRequest, reads=("rpc",))
def topic_requests(run: TracedRun, judge: Judge) -> None:
    """Requests that create or delete topics, with the operations of the records that they wrote."""
    wanted = [
        (row["id"], row["src"], row["records_written"])
        for row in run.rows("rpc")
        if row["api"] in _CREATE_OR_DELETE and row["records_written"]
    ]
    known = dict(_topic_records(run)) if wanted else {}
    for request, sender, offsets in wanted:
        written = [offset for offset in offsets if offset in known]
        if written:
            ends = {known[offset][0] for offset in written}
            step = TopicRequest(request=request, sender=sender, operations=len(ends))
            name = next((known[offset][1] for offset in written if known[offset][1]), "")
            judge.take(step, max(written), name, request=request)


def _topic_records(run: TracedRun) -> Iterator[tuple[int, tuple[int, str]]]:
    """The offsets of records of topics, their partitions and configs: operation's end, topic."""
    if not run.evidence.foldable:
        return
    start = run.evidence.start
    records = () if start is None else tuple(placed.record for placed in start.records)
    names = {
        record.topic_id: record.name for record in records if isinstance(record, r.TopicRecord)
    }
    for operation in operations_of(run.evidence.committed):
        for entry in operation.entries:
            match entry.record:
                case r.TopicRecord() as record:
                    name = names[record.topic_id] = record.name
                case r.PartitionRecord() | r.RemoveTopicRecord() as record:
                    name = names.get(record.topic_id, "")
                case r.ConfigRecord(resource_type=kind, value=value) as record:
                    if kind != TOPIC_RESOURCE or value is None:
                        continue
                    name = record.resource_name
                case _:
                    continue
            if entry.offset >= (0 if start is None else start.end_offset):
                yield entry.offset, (operation.end, name)


# --- AlterPartition -------------------------------------------------------------------------------


@history(AlterPartition, AcceptedMember, reads=("rpc",))
def altered_partitions(run: TracedRun, judge: Judge) -> None:
    """The partitions of each AlterPartition that got a response."""
    for row in run.rows("rpc"):
        if row["api"] != "AlterPartition" or row["resp_seq"] is None:
            continue
        responses: dict[tuple[str | None, int], dict[str, Any]] = {}
        for topic in each(body(row["response"]), "topics"):
            for partition in each(topic, "partitions"):
                key = _topic_key(topic), partition["partitionIndex"]
                responses.setdefault(key, partition)
        for topic in each(body(row["request"]), "topics"):
            for partition in each(topic, "partitions"):
                key = _topic_key(topic), partition["partitionIndex"]
                _altered_partition(run, judge, row, topic, partition, responses.get(key, {}))


def _topic_key(topic: dict[str, Any]) -> str | None:
    """Requests name topics by id from version 2 on, by name before."""
    topic_id = topic.get("topicId")
    return topic.get("topicName") if topic_id is None else topic_id


def _altered_partition(
    run: TracedRun,
    judge: Judge,
    row: Row,
    topic: dict[str, Any],
    partition: dict[str, Any],
    response: dict[str, Any],
) -> None:
    number, written = partition["partitionIndex"], row["records_written"] or ()
    topic_id, name = topic.get("topicId"), topic.get("topicName")
    written_states: list[CommittedPartition | None] = [
        state
        for offset in written
        for state in run.timeline.written_at(offset)
        if state.partition == number and (state.topic_id == topic_id or state.topic == name)
    ]
    for state in written_states or [None]:
        step = AlterPartition(
            request=row["id"],
            broker=row["src"],
            version=row["version"],
            error=row["error"],
            partition_error=response.get("errorCode"),
            leader_epoch=partition.get("leaderEpoch"),
            partition_epoch=partition.get("partitionEpoch"),
            broker_epoch=row["broker_epoch"],
            registered_epoch=row["registered_epoch"],
            records=len(written),
            committed=state,
            new_leader_epoch=response.get("leaderEpoch"),
            new_partition_epoch=response.get("partitionEpoch"),
        )
        if state is None:
            offset = max(written, default=-1)
            judge.take(step, offset, name or "", number, request=step.request)
            continue
        judge.take(step, state.offset, state.topic, number, request=step.request)
        if not step.is_accepted:
            continue
        for member in each(partition, "newIsrWithEpochs"):
            if member.get("brokerEpoch") is not None:
                before = run.timeline.broker_at(member["brokerId"], state.offset - 1)
                accepted = AcceptedMember(
                    broker=member["brokerId"],
                    broker_epoch=member["brokerEpoch"],
                    registered_epoch=None if before is None else before.epoch,
                )
                judge.take(accepted, state.offset, state.topic, number, request=step.request)


@history(RevertedIsr, reads=("partition_event",))
def reverted_isrs(run: TracedRun, judge: Judge) -> None:
    """Leaders that give up a change of the ISR for an error."""
    for row in run.rows("partition_event"):
        if row["kind"] == "isr_revert" and row["error"] is not None:
            step = RevertedIsr(
                broker=row["broker"],
                isr=tuple(row["isr"] or ()),
                error=row["error"],
            )
            judge.take(step, -1, row["topic"], row["part"], row["seq"])


# --- requests to brokers --------------------------------------------------------------------------


@history(FetchedPartition, reads=("rpc", "partition_event"))
def fetched_partitions(run: TracedRun, judge: Judge) -> None:
    """The partitions of each Fetch beside the leader epoch of the replica that handled it.

    A Fetch that names topics (below version 13) is left out.
    """
    epochs = run.context(replica_epochs)
    for row in run.rows("rpc"):
        if row["api"] != "Fetch" or row["resp_seq"] is None or row["handle_seq"] is None:
            continue
        requested = each(body(row["request"]), "topics")
        if not requested:  # a session continues as it was
            continue
        errors: dict[tuple[str | None, int | None], int | None] = {}
        for topic in each(body(row["response"]), "responses"):
            for partition in each(topic, "partitions"):
                key = topic.get("topicId"), partition.get("partitionIndex")
                errors.setdefault(key, partition.get("errorCode"))
        for topic in requested:
            topic_id = topic.get("topicId")
            if topic_id is None:
                continue
            for partition in each(topic, "partitions"):
                number, epoch = partition.get("partition"), partition.get("currentLeaderEpoch")
                if number is None or epoch is None or epoch < 0:
                    continue
                own = epochs.epoch_at(topic_id, number, row["dst"], row["handle_seq"])
                if own is not None:
                    step = FetchedPartition(
                        request=row["id"],
                        sender=row["src"],
                        leader_epoch=epoch,
                        own_epoch=own,
                        error=errors.get((topic_id, number)),
                    )
                    judge.take(step, -1, "", number, request=step.request)
