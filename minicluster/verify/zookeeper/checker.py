"""Judges ZooKeeper's transaction log, line by line: of a run here, or of a real ZooKeeper.

Shapes:  a line is what ``zookeeper/log.jsonl`` has: zxid, ms, session, broker, op, path, version,
         raw, multi. A finding's offset is the zxid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.metadata.image.partition import NO_LEADER
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol.partition_state import PartitionState
from minicluster.verify.rules.model import Finding
from minicluster.verify.zookeeper.rules import ZNODE_RULES
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.notifications import decode_partitions
from minicluster.zookeeper.znodes.topics import ReplicaAssignment, TopicAssignment

NOTIFIED_WITHIN_MS = 70_000


@dataclass(slots=True)
class _Seen:
    """The state that the log has shown up to now."""

    controller: Any = None  # the session of the newest controller
    epoch: int = 0
    epoch_in_hand: int | None = None  # set in the same transaction as /controller
    live: set[int] = field(default_factory=set)
    brokers: dict[Any, int] = field(default_factory=dict)  # by session
    topics: dict[str, TopicAssignment] = field(default_factory=dict)
    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    waiting: dict[TopicPartition, tuple[int, int, Any]] = field(default_factory=dict)


class ZnodeChecker:
    """All rules over one log.

    Shapes:  left_out: topics that are not judged, such as those of requests made up.
    """

    def __init__(
        self,
        protocol: InterBrokerProtocol,
        *,
        run: str = "online",
        members_checked: bool = True,
        left_out: Iterable[str] = (),
    ) -> None:
        self.findings: list[Finding] = []
        self.looked_at = dict.fromkeys(ZNODE_RULES, 0)
        self._run, self._protocol = run, protocol
        self._members_checked = members_checked and protocol.alter_partition_supported
        self._left_out = frozenset(left_out)
        self._seen = _Seen()
        self._line: Mapping[str, Any] = {}
        self._creates_controller = False

    def on_line(self, line: Mapping[str, Any]) -> list[Finding]:
        """Judge one line; returns what is new."""
        before = len(self.findings)
        self._line = line
        self._overdue(line["ms"])
        match line["op"]:
            case "create" | "set" if "path" in line:
                self._written(line["path"], line)
            case "delete":
                self._deleted(line["path"])
            case "close_session":
                for path in line.get("deleted", ()):
                    self._deleted(path)
                self._ended(line["session"])
        return self.findings[before:]

    def end(self, now_ms: int) -> list[Finding]:
        """The log has ended at a time; returns what is new."""
        before = len(self.findings)
        self._overdue(now_ms)
        return self.findings[before:]

    def _written(self, path: str, line: Mapping[str, Any]) -> None:
        raw = line.get("raw")
        data = None if raw is None else raw.encode()
        partition = paths.state_of(path)
        if partition is not None:
            if partition.topic not in self._left_out:
                self._state(partition, PartitionState.from_json(data or b""))
            return
        parent, _, name = path.rpartition("/")
        if path == paths.CONTROLLER:
            self._controller(line)
        elif path == paths.CONTROLLER_EPOCH:
            self._epoch(int(raw or 0), line)
        elif parent == paths.BROKER_IDS:
            self._seen.live.add(int(name))
        elif parent == paths.TOPICS:
            self._topic(name, TopicAssignment.decode(data))
        elif parent == paths.ISR_CHANGE_NOTIFICATION:
            for notified in decode_partitions(data):
                self._seen.waiting.pop(notified, None)

    def _deleted(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        partition = paths.state_of(path)
        if partition is not None:
            self._seen.states.pop(partition, None)
            self._seen.waiting.pop(partition, None)
        elif parent == paths.BROKER_IDS:
            self._seen.live.discard(int(name))
        elif parent == paths.TOPICS:
            self._seen.topics.pop(name, None)

    # controllers

    def _controller(self, line: Mapping[str, Any]) -> None:
        self._seen.controller = line["session"]
        self._creates_controller = "multi" in line
        if "multi" not in line:
            self._look("K1")
            self._find("K1", message="/controller was created without an epoch")

    def _epoch(self, epoch: int, line: Mapping[str, Any]) -> None:
        if line["op"] == "create":
            return
        self._look("K1")
        if not self._creates_controller or epoch != self._seen.epoch + 1:
            self._find("K1", message=f"epoch {epoch} after {self._seen.epoch}")
        self._seen.epoch = epoch
        self._creates_controller = False

    def _ended(self, session: Any) -> None:
        waiting = self._seen.waiting
        for partition in [p for p, (_, _, of) in waiting.items() if of == session]:
            del waiting[partition]  # a broker that is gone notifies of nothing

    # topics

    def _topic(self, topic: str, assignment: TopicAssignment) -> None:
        before = self._seen.topics.get(topic)
        self._seen.topics[topic] = assignment
        if before is None or topic in self._left_out:
            return
        self._look("K9")
        if before.topic_id is not None and assignment.topic_id != before.topic_id:
            self._find("K9", topic=topic, message="the topic has another id")
        for number, replicas in assignment.partitions.items():
            old = before.partitions.get(number, ReplicaAssignment())
            state = self._seen.states.get(TopicPartition(topic, number))
            if old.adding and not replicas.is_being_reassigned and state is not None:
                added = [one for one in old.adding if one in replicas.replicas]
                self._look("K12")
                if any(one not in state.isr for one in added):
                    self._find("K12", topic, number, f"ISR {list(state.isr)} lacks some of {added}")

    # states

    def _state(self, partition: TopicPartition, state: PartitionState) -> None:
        seen, line = self._seen, self._line
        before = seen.states.get(partition)
        seen.states[partition] = state
        own = self._is_of_leader(state)
        self._look("K2")
        if not own and (line["session"] != seen.controller or state.controller_epoch != seen.epoch):
            why = f"written in epoch {state.controller_epoch}, the controller's is {seen.epoch}"
            self._find("K2", *partition, why)
        self._members(partition, state)
        if before is not None:
            self._step(partition, before, state)
        if own:
            seen.waiting[partition] = (line["ms"], line["zxid"], line["session"])

    def _is_of_leader(self, state: PartitionState) -> bool:
        """Below IBP 2.7-IV2 leaders write single, as nobody else does."""
        single = "multi" not in self._line
        return single and not self._protocol.alter_partition_supported

    def _members(self, partition: TopicPartition, state: PartitionState) -> None:
        assignment = self._seen.topics.get(partition.topic)
        replicas: tuple[int, ...] = state.isr
        if assignment is not None and partition.partition in assignment.partitions:
            replicas = assignment.partitions[partition.partition].replicas
        self._look("K5")
        strange = [one for one in state.isr if one not in replicas]
        if not state.isr or len(set(state.isr)) < len(state.isr) or strange:
            self._find("K5", *partition, f"ISR {list(state.isr)} of {list(replicas)}")
        self._look("K6")
        if state.leader != NO_LEADER and state.leader not in state.isr:
            self._find("K6", *partition, f"leader {state.leader}, ISR {list(state.isr)}")

    def _step(
        self, partition: TopicPartition, before: PartitionState, state: PartitionState
    ) -> None:
        same_epoch = state.leader_epoch == before.leader_epoch
        self._look("K3")
        if not same_epoch and state.leader_epoch != before.leader_epoch + 1:
            self._find("K3", *partition, f"{before.leader_epoch} to {state.leader_epoch}")
        self._look("K4")
        if same_epoch and state.leader != before.leader:
            self._find("K4", *partition, f"leader {before.leader} to {state.leader}")
        unclean = state.leader != NO_LEADER and state.leader not in before.isr
        gained = [one for one in state.isr if one not in before.isr]
        if unclean:
            self._unclean(partition, before, state)
        else:
            self._clean(partition, before, state, gained)
        if gained and not same_epoch and not unclean:
            self._look("K10")
            self._find("K10", *partition, f"ISR {list(before.isr)} to {list(state.isr)}")
        if gained and same_epoch and self._members_checked:
            self._look("K11")
            dead = [one for one in gained if one not in self._seen.live]
            if dead:
                self._find("K11", *partition, f"{dead} joined, and is not alive")

    def _unclean(
        self, partition: TopicPartition, before: PartitionState, state: PartitionState
    ) -> None:
        self._look("K7")
        alive = [one for one in before.isr if one in self._seen.live]
        if alive or state.isr != (state.leader,):
            self._find("K7", *partition, f"leader {state.leader} with {alive} of the ISR alive")
        self._look("K8")
        if self._protocol.leader_recovery_supported and not state.leader_recovery_state:
            self._find("K8", *partition, "an unclean leader is not recovering")

    def _clean(
        self,
        partition: TopicPartition,
        before: PartitionState,
        state: PartitionState,
        gained: list[int],
    ) -> None:
        changed = state.leader_recovery_state != before.leader_recovery_state
        if changed or before.leader_recovery_state:
            self._look("K8")
            cleared_by_leader = state.leader_epoch == before.leader_epoch
            if changed and (state.leader_recovery_state or not cleared_by_leader):
                self._find("K8", *partition, "the recovery state changed without its leader")

    def _overdue(self, now_ms: int) -> None:
        for partition, (ms, zxid, _) in list(self._seen.waiting.items()):
            if now_ms - ms > NOTIFIED_WITHIN_MS:
                del self._seen.waiting[partition]
                self._look("K13")
                self._find("K13", *partition, f"the write of zxid {zxid} was never notified of")

    def _look(self, rule: str) -> None:
        self.looked_at[rule] += 1

    def _find(self, rule: str, topic: str = "", partition: int = -1, message: str = "") -> None:
        self.findings.append(
            Finding(
                run=self._run,
                offset=self._line.get("zxid", -1),
                rule=rule,
                topic=topic,
                partition=partition,
                message=f"{ZNODE_RULES[rule].title}: {message}",
            )
        )
