"""ZooKeeper's transaction log as rows of tables, line by line: of a run here, or of a real server.

Shapes:  a line is what ``zookeeper/log.jsonl`` has: zxid, ms, session, broker, op, path, version,
         raw, multi.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol.uuids import format_uuid
from minicluster.zookeeper.log.columns import COLUMNS, OPERATIONS
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.notifications import decode_partitions
from minicluster.zookeeper.znodes.partition_state import PartitionState
from minicluster.zookeeper.znodes.topics import ReplicaAssignment, TopicAssignment

NOTIFIED_WITHIN_MS = 70_000
NOTICED_WITHIN_MS = 30_000

Row = tuple[Any, ...]
Named = tuple[str, Row]  # with the name of its table
Line = Mapping[str, Any]


class _Seen(Struct):
    """The state that the log has shown up to now."""

    controller: Any = None  # the session of the newest controller
    controller_zxid: int = -1
    epoch: int = 0
    live: dict[int, int] = field(default_factory=dict)  # broker -> epoch
    changed: dict[int, Line] = field(default_factory=dict)  # when each one came or went last
    noticed: set[int] = field(default_factory=set)  # the controller has acted on that since
    failed: set[int] = field(default_factory=set)  # brokers that have lost a log directory
    topics: dict[str, TopicAssignment] = field(default_factory=dict)
    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    waiting: dict[TopicPartition, Line] = field(default_factory=dict)  # the leader's write


class ZnodeLogReader:
    """One pass over one log.

    Shapes:  members_checked: the release rejects members that are not alive; left_out: topics that
             have no rows, such as those of requests made up.
    """

    def __init__(
        self,
        protocol: InterBrokerProtocol,
        *,
        run: str,
        members_checked: bool = True,
        left_out: Iterable[str] = (),
    ) -> None:
        self._run, self._protocol = run, protocol
        self._members_checked = members_checked and protocol.alter_partition_supported
        self._left_out = frozenset(left_out)
        self._seen = _Seen()
        self._line: Line = {}
        self._pos = -1
        self._rows: list[Named] = []

    def take(self, line: Line) -> list[Named]:
        """The rows of one line.

        Errors:  KeyError, TypeError, ValueError or ProtocolError for what is not a line of a log.
        """
        self._line, self._rows = line, []
        self._pos += 1
        self._operation(line)
        self._overdue(line["ms"])
        match line["op"]:
            case "create" | "set" if "version" in line:  # else its transaction failed
                self._written(line["path"], line)
            case "delete" if "version" in line:
                self._deleted(line["path"])
            case "close_session":
                for path in line.get("deleted", ()):
                    self._deleted(path)
                self._ended(line["session"])
        return self._rows

    def end(self, now_ms: int) -> list[Named]:
        """The log has ended at a time; the rows of what still waits."""
        self._rows = []
        for partition in list(self._seen.waiting):
            self._end_wait(partition, "End", now_ms)
        return self._rows

    def _row(self, table: str, kind: str, **values: Any) -> None:
        line = self._line
        values = {"offset": line["zxid"], "ms": line["ms"], **values}
        values |= {"run": self._run, "pos": self._pos, "kind": kind}
        row = (values.get(name) for name in COLUMNS[table])
        self._rows.append((table, tuple(list(v) if isinstance(v, tuple) else v for v in row)))

    def _operation(self, line: Line) -> None:
        place, count = line.get("multi") or (None, None)
        self._row(
            OPERATIONS,
            str(line["op"]),
            session=str(line["session"]),
            broker=line.get("broker"),
            path=line.get("path"),
            version=line.get("version"),
            ephemeral=bool(line.get("ephemeral", False)),
            data=line.get("raw"),
            multi_place=place,
            multi_count=count,
            error=None if line.get("error") is None else str(line["error"]),
        )

    def _written(self, path: str, line: Line) -> None:
        raw = line.get("raw")
        data = None if raw is None else raw.encode()
        partition = paths.state_of(path)
        if partition is not None:
            if partition.topic not in self._left_out:
                self._state(partition, PartitionState.from_json(data or b""))
            return
        parent, _, name = path.rpartition("/")
        if path == paths.CONTROLLER:
            self._seen.controller = line["session"]
            self._seen.controller_zxid = line["zxid"]
            together = "multi" in line
            self._row("znode_controllers", "Controller", broker=line["broker"], together=together)
        elif path == paths.CONTROLLER_EPOCH and line["op"] == "set":
            self._epoch(int(raw or 0), line)
        elif parent == paths.BROKER_IDS:
            self._broker(int(name), line)
        elif parent == paths.TOPICS:
            if name not in self._left_out:
                self._topic(name, TopicAssignment.decode(data))
        elif parent == paths.LOG_DIR_EVENT_NOTIFICATION:
            self._seen.failed.add(line["broker"])
        elif parent == paths.ISR_CHANGE_NOTIFICATION:
            for notified in decode_partitions(data):
                self._end_wait(notified, "Notified", line["ms"])

    def _deleted(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        partition = paths.state_of(path)
        if partition is not None:
            if self._seen.states.pop(partition, None) is not None:
                topic, part = partition
                self._row("znode_states", "Delete", topic=topic, part=part)
            self._end_wait(partition, "Deleted", self._line["ms"])
        elif parent == paths.BROKER_IDS:
            epoch = self._seen.live.pop(int(name), None)
            self._has_changed(int(name))
            self._row("znode_brokers", "Unregister", broker=int(name), epoch=epoch)
        elif parent == paths.TOPICS:
            gone = self._seen.topics.pop(name, None)
            if gone is None:
                return
            topic_id = _id(gone)
            self._row("znode_topics", "Delete", topic=name, topic_id=topic_id, is_new=False)
            for part in gone.partitions:
                self._row(
                    "znode_assignments", "Delete", topic=name, part=part, topic_id=topic_id
                )  # fmt: skip

    # controllers and brokers

    def _epoch(self, epoch: int, line: Line) -> None:
        before, self._seen.epoch = self._seen.epoch, epoch
        together = self._seen.controller_zxid == line["zxid"]
        broker = line["broker"]
        self._row(
            "znode_controllers", "Epoch", broker=broker, epoch=epoch, p_epoch=before,
            together=together,
        )  # fmt: skip

    def _broker(self, broker: int, line: Line) -> None:
        if line["op"] != "create":
            return
        epoch = line.get("czxid", line["zxid"])
        self._seen.live[broker] = epoch
        self._has_changed(broker)
        self._row("znode_brokers", "Register", broker=broker, epoch=epoch)

    def _has_changed(self, broker: int) -> None:
        self._seen.changed[broker] = self._line
        self._seen.noticed.discard(broker)

    def _is_noticed(self, broker: int) -> bool:
        """The controller has had the time to read that a broker came or went, or acted on it.

        Its watch may be late, and an event of it may be long.
        """
        changed = self._seen.changed.get(broker)
        return (
            changed is None
            or broker in self._seen.noticed
            or changed["zxid"] < self._seen.controller_zxid
            or changed["ms"] + NOTICED_WITHIN_MS <= self._line["ms"]
        )

    def _notice(self, before: PartitionState | None, state: PartitionState) -> None:
        """A decision of the controller shows of which brokers it has read what they are."""
        if before is None or state.leader_epoch <= before.leader_epoch:
            return
        left = {before.leader, *before.isr} - {state.leader, *state.isr}
        self._seen.noticed |= left - self._seen.live.keys()
        self._seen.noticed |= {state.leader} & self._seen.live.keys()

    def _ended(self, session: Any) -> None:
        for partition, line in list(self._seen.waiting.items()):
            if line["session"] == session:  # a broker that is gone notifies of nothing
                self._end_wait(partition, "Session", self._line["ms"])

    # topics and states

    def _topic(self, topic: str, assignment: TopicAssignment) -> None:
        before = self._seen.topics.get(topic)
        self._seen.topics[topic] = assignment
        topic_id = _id(assignment)
        self._row(
            "znode_topics",
            "Write",
            topic=topic,
            topic_id=topic_id,
            p_topic_id=None if before is None else _id(before),
            partitions=len(assignment.partitions),
            is_new=before is None,
        )
        for part, replicas in assignment.partitions.items():
            old = None if before is None else before.partitions.get(part, ReplicaAssignment())
            state = self._seen.states.get(TopicPartition(topic, part))
            self._row(
                "znode_assignments",
                "Write",
                topic=topic,
                part=part,
                topic_id=topic_id,
                replicas=replicas.replicas,
                adding=replicas.adding,
                removing=replicas.removing,
                p_adding=None if old is None else old.adding,
                isr=None if state is None else state.isr,
            )

    def _state(self, partition: TopicPartition, state: PartitionState) -> None:
        seen, line = self._seen, self._line
        before = seen.states.get(partition)
        seen.states[partition] = state
        of_leader = "multi" not in line and not self._protocol.alter_partition_supported
        assignment = seen.topics.get(partition.topic, TopicAssignment())
        replicas = assignment.partitions.get(partition.partition)
        self._row(
            "znode_states",
            "Write",
            broker=line["broker"],
            topic=partition.topic,
            part=partition.partition,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            controller_epoch=state.controller_epoch,
            isr=state.isr,
            rec=state.leader_recovery_state,
            version=line.get("version"),
            p_leader=None if before is None else before.leader,
            p_leader_epoch=None if before is None else before.leader_epoch,
            p_isr=None if before is None else before.isr,
            p_rec=None if before is None else before.leader_recovery_state,
            replicas=None if replicas is None else replicas.replicas,
            live=tuple(sorted(seen.live)),
            # Which replicas a lost directory had, and when it is repaired, no znode tells: the
            # responses to LeaderAndIsr do.
            noticed=tuple(
                broker
                for broker in sorted(seen.live.keys() - seen.failed)
                if self._is_noticed(broker)
            ),
            dead=tuple(
                member
                for member in state.isr
                if member not in seen.live and self._is_noticed(member)
            ),
            epoch=seen.epoch,
            of_controller=line["session"] == seen.controller,
            of_leader=of_leader,
            recovery_supported=self._protocol.leader_recovery_supported,
            members_checked=self._members_checked,
        )
        if line["session"] == seen.controller:
            self._notice(before, state)
        if of_leader:
            self._end_wait(partition, "Replaced", line["ms"])
            seen.waiting[partition] = line

    def _overdue(self, now_ms: int) -> None:
        for partition, line in list(self._seen.waiting.items()):
            if now_ms - line["ms"] > NOTIFIED_WITHIN_MS:
                self._end_wait(partition, "Overdue", now_ms)

    def _end_wait(self, partition: TopicPartition, kind: str, now_ms: int) -> None:
        """A leader's write waits no longer for its notification."""
        line = self._seen.waiting.pop(partition, None)
        if line is not None:
            topic, part = partition
            self._row(
                "znode_notices", kind, offset=line["zxid"], ms=line["ms"], topic=topic, part=part,
                until_ms=now_ms,
            )  # fmt: skip


def _id(assignment: TopicAssignment) -> str | None:
    return None if assignment.topic_id is None else format_uuid(assignment.topic_id)
