"""ZooKeeper's transaction log: controllers, the states of partitions, topics, notifications.

========================  ========================================================================
takes                     the operations of the log, as ``ZnodeLogReader`` makes rows of them
keeps                     what the reader does: live brokers, topics, states, and the writes of
                          leaders that wait for their notification; bounded by the znodes
yields                    ``ControllerCreated``, ``ControllerEpoch``, ``StateWrite``,
                          ``TopicWrite``, ``AssignmentWrite``, ``Notification``
========================  ========================================================================

Offsets are zxids. The rows are what people query; a step is a row by the names of what it means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.values import dataclass
from minicluster.verify.histories.partitions import NO_LEADER
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge
from minicluster.verify.model import Finding
from minicluster.zookeeper.log.columns import COLUMNS
from minicluster.zookeeper.log.reader import Line, Named, ZnodeLogReader

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerCreated:
    """/controller is created; with_epoch: in one transaction with the controller epoch."""

    broker: int
    with_epoch: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerEpoch:
    """/controller_epoch is set; with_controller: in one transaction with /controller."""

    epoch: int
    before: int
    with_controller: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ZnodeState:
    """The state znode of a partition."""

    leader: int
    leader_epoch: int
    isr: Ids
    recovery: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWrite:
    """The state znode of a partition is written.

    Shapes:  by_leader: alone, below IBP 2.7-IV2; by_controller: by the session of the newest
             controller, which has the epoch newest_epoch. replicas: of the topic's znode, None
             where it has none. live: the brokers that are registered; noticed: those of them that
             the controller must have read, and that have lost no log directory; dead: members that
             are not registered, as it must have read. members_checked: its release rejects members
             that are not alive.
    """

    after: ZnodeState
    controller_epoch: int
    newest_epoch: int
    by_controller: bool
    by_leader: bool
    replicas: Ids | None
    live: Ids
    noticed: Ids
    dead: Ids
    recovery_supported: bool
    members_checked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A state znode that exists is written again."""

    write: StateWrite
    before: ZnodeState

    @property
    def after(self) -> ZnodeState:
        """The state that is written."""
        return self.write.after

    @property
    def keeps_epoch(self) -> bool:
        """The leader epoch stays, as in a write for the leader."""
        return self.after.leader_epoch == self.before.leader_epoch

    @property
    def gained(self) -> Ids:
        """The replicas that enter the ISR."""
        return tuple(member for member in self.after.isr if member not in self.before.isr)

    @property
    def is_unclean(self) -> bool:
        """It has a leader from outside the ISR."""
        return self.after.leader != NO_LEADER and self.after.leader not in self.before.isr


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicWrite:
    """The znode of a topic is written; id_before: None where it had no id."""

    topic: str
    is_new: bool
    topic_id: str | None
    id_before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentWrite:
    """The assignment of a partition, in a write of its topic; isr: None without a state znode."""

    replicas: Ids
    adding: Ids
    removing: Ids
    adding_before: Ids
    isr: Ids | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """The wait of a leader's write for its notification has ended; zxid: of the write."""

    zxid: int
    waited_ms: int


STEPS = (
    *(ControllerCreated, ControllerEpoch, StateWrite, StateChange),
    *(TopicWrite, AssignmentWrite, Notification),
)


class ZnodeLog:
    """A log of ZooKeeper, line by line as it grows, for the judge.

    Shapes:  members_checked and left_out as ``ZnodeLogReader`` has them.
    """

    def __init__(
        self,
        judge: Judge,
        protocol: InterBrokerProtocol,
        *,
        members_checked: bool = True,
        left_out: Iterable[str] = (),
    ) -> None:
        self._judge = judge
        self._reader = ZnodeLogReader(
            protocol, run=judge.run, members_checked=members_checked, left_out=left_out
        )

    def on_line(self, line: Line) -> list[Finding]:
        """Judge one line; returns what is new.

        Errors:  as ``ZnodeLogReader.take``.
        """
        return self._take(self._reader.take(line))

    def end(self, now_ms: int) -> list[Finding]:
        """The log has ended at a time; returns what is new."""
        return self._take(self._reader.end(now_ms))

    def _take(self, rows: Iterable[Named]) -> list[Finding]:
        for table, row in rows:
            _judge_row(self._judge, table, row)
        return self._judge.take_new()


@history(*STEPS, reads=())
def znodes(run: TracedRun, judge: Judge) -> None:
    """The whole log of a run on ZooKeeper."""
    for table, row in run.evidence.znodes:
        _judge_row(judge, table, row)


def _judge_row(judge: Judge, table: str, row: tuple[Any, ...]) -> None:
    steps_of = _STEPS_OF.get(table)
    if steps_of is None:  # for people alone
        return
    values = dict(zip(COLUMNS[table], row, strict=True))
    topic, partition = values.get("topic", ""), values.get("part", -1)
    for step in steps_of(values):
        judge.take(step, values["offset"], topic, partition)


def _of_controller(row: Row) -> Iterable[object]:
    if row["kind"] == "Controller":
        yield ControllerCreated(broker=row["broker"], with_epoch=row["together"])
    else:
        yield ControllerEpoch(
            epoch=row["epoch"], before=row["p_epoch"], with_controller=row["together"]
        )


def _of_state(row: Row) -> Iterable[object]:
    if row["kind"] != "Write":
        return
    after = ZnodeState(
        leader=row["leader"],
        leader_epoch=row["leader_epoch"],
        isr=tuple(row["isr"]),
        recovery=row["rec"],
    )
    write = StateWrite(
        after=after,
        controller_epoch=row["controller_epoch"],
        newest_epoch=row["epoch"],
        by_controller=row["of_controller"],
        by_leader=row["of_leader"],
        replicas=_ids(row["replicas"]),
        live=tuple(row["live"]),
        noticed=tuple(row["noticed"]),
        dead=tuple(row["dead"]),
        recovery_supported=row["recovery_supported"],
        members_checked=row["members_checked"],
    )
    yield write
    if row["p_isr"] is not None:
        before = ZnodeState(
            leader=row["p_leader"],
            leader_epoch=row["p_leader_epoch"],
            isr=tuple(row["p_isr"]),
            recovery=row["p_rec"],
        )
        yield StateChange(write=write, before=before)


def _of_topic(row: Row) -> Iterable[object]:
    if row["kind"] == "Write":
        yield TopicWrite(
            topic=row["topic"],
            is_new=row["is_new"],
            topic_id=row["topic_id"],
            id_before=row["p_topic_id"],
        )


def _of_assignment(row: Row) -> Iterable[object]:
    if row["kind"] == "Write":
        yield AssignmentWrite(
            replicas=tuple(row["replicas"]),
            adding=tuple(row["adding"]),
            removing=tuple(row["removing"]),
            adding_before=tuple(row["p_adding"] or ()),
            isr=_ids(row["isr"]),
        )


def _of_notice(row: Row) -> Iterable[object]:
    yield Notification(zxid=row["offset"], waited_ms=row["until_ms"] - row["ms"])


_STEPS_OF: Mapping[str, Callable[[Row], Iterable[object]]] = {
    "znode_controllers": _of_controller,
    "znode_states": _of_state,
    "znode_topics": _of_topic,
    "znode_assignments": _of_assignment,
    "znode_notices": _of_notice,
}


def _ids(numbers: Any) -> Ids | None:
    return None if numbers is None else tuple(numbers)
