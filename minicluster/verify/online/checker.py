"""The log-only rules in Python, over committed batches, as they commit.

A second implementation, on purpose: it folds and judges by hand what ``rules`` says in SQL, under
the same rule ids and with the same findings, so that each checks the other. It loads neither Spark
nor Arrow, and stops a bad run at its first bad record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from minicluster.log.batch import RecordBatch
from minicluster.metadata.image.directory_id import is_online
from minicluster.protocol import records as r
from minicluster.protocol.schema import Message
from minicluster.rules import Rules
from minicluster.verify.evidence.operations import Operation, OperationDivider
from minicluster.verify.online.batches import BatchRules
from minicluster.verify.online.findings import Findings
from minicluster.verify.online.operations import OperationRules
from minicluster.verify.online.partition import CHECKS
from minicluster.verify.online.state import (
    TOPIC_RESOURCE,
    BrokerHistory,
    MinIsr,
    PartitionHistory,
    Piece,
    State,
    Step,
    TopicHistory,
)
from minicluster.verify.rules.log.partitions import FIELDS
from minicluster.verify.rules.model import WITHOUT_RECORD, Finding
from minicluster.verify.rules.promises import promises_of

if TYPE_CHECKING:
    from minicluster.verify.evidence.run import Run


class OnlineChecker:
    """Judges a committed log batch by batch.

    Shapes:  ``commit`` gives the new findings; ``looked_at`` and ``findings`` add up.
             rules: those that the cluster plays by, None where they are not recorded.
    """

    def __init__(
        self,
        run: str = "online",
        *,
        node: int = -1,
        begins_well: bool = True,
        rules: Rules | None = None,
    ) -> None:
        self.run = run
        self.findings: list[Finding] = []
        self._say = Findings(run, promises_of(rules))
        self.looked_at, self.not_promised = self._say.looked_at, self._say.not_promised
        self._operations = OperationDivider()
        self._batches = BatchRules(self._say, node, begins_well)
        self._more = OperationRules(self._say, self._active)
        self._skip_to = 0
        self._mv: int | None = None  # none: the log has no FeatureLevelRecord yet
        self._elr = False
        self._min_isr = MinIsr()
        self._topics: dict[UUID, TopicHistory] = {}
        self._names: dict[str, str] = {}  # name -> kind of its last record
        self._live: dict[str, UUID] = {}
        self._partitions: dict[tuple[UUID, int], PartitionHistory] = {}
        self._brokers: dict[int, BrokerHistory] = {}
        self._pieces: dict[tuple[UUID, int], Piece] = {}
        # Of the operation in hand: the last step of each partition, unclean elections, and where
        # each broker's last record stands.
        self._touched: dict[tuple[UUID, int], Step] = {}
        self._unclean: list[tuple[Step, tuple[int, ...]]] = []  # with who was active then
        self._told: dict[int, int] = {}
        self._judged, self._clean_from = True, 0

    # --- what goes in -----------------------------------------------------------------------

    def load(self, records: Iterable[r.VersionedRecord], end_offset: int) -> list[Finding]:
        """Begin from a snapshot that ends (exclusive) at an offset."""
        self._skip_to = end_offset
        self._judged, self._say.offset = False, end_offset - 1
        loaded = tuple(records)
        for versioned in loaded:
            if isinstance(versioned.record, r.FeatureLevelRecord | r.ConfigRecord):
                self._take(versioned.record)
        for versioned in loaded:
            self._take(versioned.record)
        self._end_of_operation()
        self._judged = True
        return self._flush()

    def commit(self, batch: RecordBatch) -> list[Finding]:
        """Judge one committed batch; give what is newly found."""
        self._batches.batch(batch)
        operation = self._operations.on_batch(batch)
        if operation is not None:
            self._operation(operation)
        for offset, kind in self._operations.markers:
            if offset >= self._skip_to:
                self._more.marker(offset, kind)
        self._operations.markers.clear()
        return self._flush()

    def _flush(self) -> list[Finding]:
        new = self._say.take_new()
        self.findings += new
        return new

    def _operation(self, operation: Operation) -> None:
        for entry in operation.entries:
            if entry.offset >= self._skip_to:
                self._say.offset = entry.offset
                self._clean_from = entry.unseen_from if self._mv is None else entry.clean_from
                self._take(entry.record)
        self._end_of_operation()

    def _take(self, record: Message) -> None:
        match record:
            case r.PartitionChangeRecord():
                self._change(record)
            case r.PartitionRecord():
                self._partition(record)
            case r.TopicRecord():
                self._topic(record)
            case r.RemoveTopicRecord():
                self._remove_topic(record)
            case r.ClearElrRecord():
                self._clear_elr(record)
            case r.FeatureLevelRecord():
                self._feature(record)
            case r.ConfigRecord():
                self._config(record)
            case r.RegisterBrokerRecord():
                self._register(record)
            case _:
                self._broker_record(record)

    # --- settings ---------------------------------------------------------------------------

    @property
    def _level(self) -> int:
        return WITHOUT_RECORD if self._mv is None else self._mv

    def _feature(self, record: r.FeatureLevelRecord) -> None:
        if record.name == "metadata.version":
            self._mv = record.feature_level
        elif record.name == "eligible.leader.replicas.version":
            self._elr = record.feature_level > 0

    def _config(self, record: r.ConfigRecord) -> None:
        if self._judged and record.resource_type == TOPIC_RESOURCE and record.value is not None:
            name = record.resource_name
            self._more.config(name, self._say.offset, self._level, alive=name in self._live)
        self._min_isr.set(record)

    # --- topics and partitions --------------------------------------------------------------

    def _topic(self, record: r.TopicRecord) -> None:
        topic = self._topics.setdefault(record.topic_id, TopicHistory())
        if self._judged:
            self._say.look("E25", 0, self._level)
            if topic.topics:
                self._say.find("E25", 0, topic=record.name)
            elif topic.partitions:
                self._say.find("E25", 1, topic=record.name)
            if self._names.get(record.name) == "Topic":
                self._say.find("E25", 2, topic=record.name)
            self._more.new_topics.append((record.topic_id, record.name, self._say.offset))
        topic.name, topic.kind = record.name, "Topic"
        topic.topics += 1
        self._names[record.name] = "Topic"
        self._live[record.name] = record.topic_id

    def _owner(self, topic_id: UUID, part: int | None) -> TopicHistory:
        """The topic that a partition or a removal names, judged by E26."""
        topic = self._topics.setdefault(topic_id, TopicHistory())
        if self._judged:
            self._say.look("E26", 0, self._level)
            if topic.kind != "Topic":
                self._say.find("E26", 0, topic=topic.name, part=part)
        return topic

    def _remove_topic(self, record: r.RemoveTopicRecord) -> None:
        topic = self._owner(record.topic_id, None)
        for part in topic.parts:
            self._step("RemoveTopic", record.topic_id, part, {})
        topic.parts = {}
        topic.kind = "RemoveTopic"
        if topic.name is not None:
            self._names[topic.name] = "RemoveTopic"
            if self._live.get(topic.name) == record.topic_id:
                del self._live[topic.name]
                self._min_isr.forget(topic)

    def _partition(self, record: r.PartitionRecord) -> None:
        topic = self._owner(record.topic_id, record.partition_id)
        due = topic.partitions if self._judged else None
        self._more.partition_made(record.topic_id, topic.name, record.partition_id, due)
        topic.partitions += 1
        topic.parts[record.partition_id] = len(record.replicas)
        sets: State = {
            "isr": record.isr,
            "leader": record.leader,
            "replicas": record.replicas,
            "adding": record.adding_replicas,
            "removing": record.removing_replicas,
            "elr": record.eligible_leader_replicas or (),
            "last_elr": record.last_known_elr or (),
            "rec": record.leader_recovery_state,
            "directories": record.directories,
        }
        epochs = {"leader_epoch": record.leader_epoch, "partition_epoch": record.partition_epoch}
        self._step("Partition", record.topic_id, record.partition_id, sets, **epochs)

    def _change(self, record: r.PartitionChangeRecord) -> None:
        topic = self._topics.setdefault(record.topic_id, TopicHistory())
        if record.replicas is not None and record.partition_id in topic.parts:
            topic.parts[record.partition_id] = len(record.replicas)
        recovery = record.leader_recovery_state
        sets: State = {
            "isr": record.isr,
            "leader": None if record.leader == -2 else record.leader,
            "replicas": record.replicas,
            "adding": record.adding_replicas,
            "removing": record.removing_replicas,
            "elr": record.eligible_leader_replicas,
            "last_elr": record.last_known_elr,
            "rec": None if recovery == -1 else recovery,
            "directories": record.directories,
        }
        self._step("Change", record.topic_id, record.partition_id, sets)

    def _clear_elr(self, record: r.ClearElrRecord) -> None:
        if not record.topic_name:
            cleared = [topic_id for topic_id, topic in self._topics.items() if topic.parts]
        elif record.topic_name in self._live:
            cleared = [self._live[record.topic_name]]
        else:
            cleared = []
        for topic_id in cleared:
            for part in self._topics[topic_id].parts:
                state = self._partitions[topic_id, part].state
                if state["elr"] or state["last_elr"]:
                    self._step("ClearElr", topic_id, part, {"elr": (), "last_elr": ()})

    def _step(
        self, kind: str, topic_id: UUID, part: int, sets: State, **epochs: int | None
    ) -> None:
        topic = self._topics[topic_id]
        history = self._partitions.setdefault((topic_id, part), PartitionHistory())
        sets = {name: sets.get(name) for name in FIELDS}
        before = history.state
        after = {n: before[n] if value is None else value for n, value in sets.items()}
        if sets["isr"] is not None:
            ends = sets["adding"] == () or sets["removing"] == ()
            history.may_keep = not self._elr or not self._judged or ends
        elif sets["leader"] == -1 and not self._elr:
            history.may_keep = True  # ELR was turned off after the ISR had come down to one
        if sets["isr"] is not None:
            since, here = history.since, self._say.offset
            already = before["isr"] or ()
            history.since = {m: since.get(m, here) if m in already else here for m in after["isr"]}
        step = Step(
            kind=kind,
            judged=self._judged,
            offset=self._say.offset,
            topic=topic.name,
            part=part,
            mv=self._level,
            elr_on=self._elr,
            min_isr=self._min_isr.of(topic),
            sets=sets,
            before=before,
            after=after,
            alive_before=history.alive,
            may_keep=history.may_keep is not False,
            since=history.since,
            **epochs,
        )
        history.state, history.step = after, step
        if kind in ("Partition", "RemoveTopic"):
            history.alive = kind == "Partition"
        history.fenced_inside.clear()
        self._touched[topic_id, part] = step
        if step.unclean:
            candidates = dict.fromkeys((*step.before["isr"], *(step.before["elr"] or ())))
            self._unclean.append((step, tuple(m for m in candidates if self._active(m))))
        self._judge_step(step)

    def _judge_step(self, step: Step) -> None:
        for check in CHECKS:
            looks = check.when(step) and self._say.look(check.rule, check.index, step.mv)
            if looks and check.bad(step):
                says = check.says(step)
                self._say.find(check.rule, check.index, topic=step.topic, part=step.part, **says)
        self._more.elected(step, self._brokers)
        if not (step.judged and step.state and step.kind != "ClearElr"):
            return
        where: dict[str, Any] = {"topic": step.topic, "part": step.part}
        for member in step.added:
            if self._say.look("A3", 0, step.mv) and not self._active(member) and not step.keep:
                isrs = {"old": step.before["isr"], "new": step.after["isr"]}
                self._say.find("A3", 0, broker=member, **isrs, **where)
        if step.kind == "Partition" and step.alive_before is None:
            for replica in step.after["replicas"]:
                looks = self._say.look("E17", 1, step.mv)
                if looks and self._active(replica) != (replica in step.after["isr"]):
                    self._say.find("E17", 1, broker=replica, new=step.after["isr"], **where)

    def _active(self, broker: int) -> bool:
        known = self._brokers.get(broker)
        return known is not None and known.active

    # --- brokers ----------------------------------------------------------------------------

    def _register(self, record: r.RegisterBrokerRecord) -> None:
        broker = self._brokers.setdefault(record.broker_id, BrokerHistory())
        epoch, who = record.broker_epoch, record.broker_id
        again = broker.registered and broker.incarnation == record.incarnation_id
        if self._judged and again:
            self._say.look("E22", 0, self._level)
            standing = (epoch, record.fenced, record.in_controlled_shutdown)
            if standing != (broker.epoch, broker.fenced, broker.in_controlled_shutdown):
                self._say.find("E22", 0, broker=who, number=epoch)
        elif self._judged:
            self._say.look("E20", 0, self._level)
            if not self._clean_from <= epoch <= self._say.offset:
                self._say.find("E20", 0, broker=who, number=epoch)
            if broker.highest_epoch is not None and epoch <= broker.highest_epoch:
                self._say.find("E20", 1, broker=who, number=epoch)
        if self._judged and broker.incarnation not in (None, record.incarnation_id):
            self._say.look("A8", 0, self._level)
            self._more.newcomers.append((who, self._say.offset))
        self._more.registered(who, record, broker.log_dirs, self._say.offset, judged=self._judged)
        highest = broker.highest_epoch
        broker.highest_epoch = epoch if highest is None else max(highest, epoch)
        broker.registered, broker.epoch = True, epoch
        broker.incarnation = record.incarnation_id
        broker.fenced = record.fenced
        broker.in_controlled_shutdown = record.in_controlled_shutdown
        broker.log_dirs = record.log_dirs
        self._told[who] = self._say.offset

    def _broker_record(self, record: Message) -> None:
        """Fencing, unfencing, changes and the end of a registration."""
        fenced: bool | None = None
        match record:
            case r.FenceBrokerRecord():
                who, epoch, fenced = record.id, record.epoch, True
            case r.UnfenceBrokerRecord():
                who, epoch, fenced = record.id, record.epoch, False
            case r.BrokerRegistrationChangeRecord():
                who, epoch = record.broker_id, record.broker_epoch
                fenced = None if record.fenced == 0 else record.fenced > 0
            case r.UnregisterBrokerRecord():
                who, epoch = record.broker_id, record.broker_epoch
            case _:
                return
        broker = self._brokers.setdefault(who, BrokerHistory())
        if self._judged:
            self._judge_broker(broker, who, epoch, fenced)
            turns = bool(fenced) and broker.registered and not broker.fenced
            if turns and not isinstance(record, r.UnregisterBrokerRecord):
                self._more.fenced(who, self._say.offset, self._level, self._partitions.values())
        if fenced is not None:
            broker.fenced = fenced
        if isinstance(record, r.UnregisterBrokerRecord):
            broker.registered = False
            self._more.unregistered(who, broker.log_dirs)
        elif isinstance(record, r.BrokerRegistrationChangeRecord):
            if record.in_controlled_shutdown:
                broker.in_controlled_shutdown = record.in_controlled_shutdown > 0
            if record.log_dirs:
                self._more.changed(who, broker.log_dirs, record.log_dirs, self._say.offset)
            broker.log_dirs = record.log_dirs or broker.log_dirs
        self._told[who] = self._say.offset

    def _judge_broker(
        self, broker: BrokerHistory, who: int, epoch: int, fenced: bool | None
    ) -> None:
        self._say.look("E23", 0, self._level)
        if not broker.registered:
            self._say.find("E23", 0, broker=who)
            return
        self._say.look("D4", 0, self._level)
        if epoch != broker.epoch:
            self._say.find("D4", 0, broker=who, number=epoch)
        if fenced is not None:
            self._say.look("E21", 0, self._level)
            if not fenced and not broker.fenced:
                self._say.find("E21", 0, broker=who)

    # --- at the end of an operation ---------------------------------------------------------

    def _end_of_operation(self) -> None:
        new = []
        for key, step in self._touched.items():
            self._pieces.pop(key, None)
            if step.state:
                self._pieces[key] = self._new_piece(step)
                new.append(self._pieces[key])
        self._more.end(self._pieces.values(), new)
        for step, candidates in self._unclean:
            self._judge_unclean(step, candidates)
        for who, offset in self._told.items():
            if not self._active(who):
                self._inactive_now(who, offset)
        self._touched, self._unclean, self._told = {}, [], {}

    def _new_piece(self, step: Step) -> Piece:
        piece = Piece(step=step)
        isr = step.after["isr"]
        if step.after["rec"] == 1 and self._say.look("C1", 0, step.mv):
            allowed = step.elr_on and step.after["leader"] == -1
            if len(isr) > 1 or (not isr and not allowed):
                where: dict[str, Any] = {"topic": step.topic, "part": step.part}
                self._say.find("C1", 0, offset=step.offset, new=isr, **where)
        for member in isr:
            if self._say.look("A1", 0, step.mv) and not self._active(member):
                self._member_inactive(piece, member, step.offset)
        leader = step.after["leader"]
        if leader >= 0 and self._say.look("A2", 0, step.mv) and not self._active(leader):
            self._leader_inactive(piece, step.offset)
        return piece

    def _member_inactive(self, piece: Piece, member: int, offset: int) -> None:
        step = piece.step
        if member not in piece.inactive and not step.keep and self._say.promised("A1", step.mv):
            where: dict[str, Any] = {"topic": step.topic, "part": step.part}
            self._say.find("A1", 0, offset=offset, broker=member, new=step.after["isr"], **where)
        piece.inactive.add(member)

    def _leader_inactive(self, piece: Piece, offset: int) -> None:
        step = piece.step
        if not piece.leader_inactive and self._say.promised("A2", step.mv):
            where: dict[str, Any] = {"topic": step.topic, "part": step.part}
            leader, isr = step.after["leader"], step.after["isr"]
            self._say.find("A2", 0, offset=offset, broker=leader, new=isr, **where)
        piece.leader_inactive = True

    def _inactive_now(self, who: int, offset: int) -> None:
        """A broker ends the operation inactive: whoever still counts on it is judged."""
        for key, piece in self._pieces.items():
            if key not in self._touched:
                if who in piece.step.after["isr"]:
                    self._member_inactive(piece, who, offset)
                if who == piece.step.after["leader"] >= 0:
                    self._leader_inactive(piece, offset)

    def _judge_unclean(self, step: Step, candidates: tuple[int, ...]) -> None:
        if not self._say.promised("C5", step.mv):
            return
        replicas = list(step.after["replicas"])
        for member in candidates:
            if member not in replicas or not self._active(member):
                continue
            directory, log_dirs = step.directory_of(member), self._brokers[member].log_dirs
            if directory is not None and not is_online(directory, log_dirs):
                continue
            where: dict[str, Any] = {"topic": step.topic, "part": step.part}
            self._say.find(
                "C5", 1, offset=step.offset, broker=member, old=step.before["isr"], **where
            )


def check_run(run: Run) -> OnlineChecker:
    """Judge a run's committed log in one go, from its snapshot if it begins with one."""
    node = run.nodes[0] if len(run.nodes) == 1 else None
    checker = OnlineChecker(
        run.name,
        node=-1 if node is None else node.node,
        begins_well=node is None or node.begins_well,
        rules=run.rules,
    )
    if run.start is not None:
        checker.load(run.start.records, run.start.end_offset)
    for batch in run.committed:
        checker.commit(batch)
    return checker
