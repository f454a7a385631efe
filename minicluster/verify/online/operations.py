"""Online rules that look beyond one partition or one broker: what an operation leaves behind.

Part of ``online.OnlineChecker``, which folds the log and calls these in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from minicluster.metadata.image.directory_id import is_online, is_reserved
from minicluster.protocol import records as r
from minicluster.verify.online.findings import Findings
from minicluster.verify.online.state import BrokerHistory, PartitionHistory, Piece, Step


@dataclass(slots=True)
class OperationRules:
    """A4, A8, D1, D2, D5, E29, E30 and E38, and what they remember."""

    say: Findings
    active: Callable[[int], bool]
    in_transaction: bool = False
    lost: dict[tuple[int, UUID], int] = field(default_factory=dict)  # and where it is recorded
    owners: dict[UUID, int] = field(default_factory=dict)
    # Of the operation in hand.
    new_topics: list[tuple[UUID, str, int]] = field(default_factory=list)
    made_in: dict[UUID, int] = field(default_factory=dict)
    newcomers: list[tuple[int, int]] = field(default_factory=list)
    losses: list[tuple[int, UUID, int]] = field(default_factory=list)
    nameless: list[tuple[str, int]] = field(default_factory=list)

    # --- records ----------------------------------------------------------------------------

    def marker(self, offset: int, kind: str) -> None:
        """A metadata transaction begins, ends or is aborted."""
        self.say.look("E30", 0, None)
        if (kind == "Begin") == self.in_transaction:
            self.say.find("E30", 0, offset=offset)
        self.in_transaction = kind == "Begin"

    def config(self, name: str, offset: int, mv: int, *, alive: bool) -> None:
        """A topic's config is set."""
        self.say.look("E38", 0, mv)
        if not alive:  # Kafka 3.3 writes a topic's configs before the topic
            self.nameless.append((name, offset))

    def partition_made(self, topic_id: UUID, name: str | None, part: int, due: int | None) -> None:
        """A partition is made, where the log says that the number due is another, or the same."""
        self.made_in[topic_id] = self.made_in.get(topic_id, 0) + 1
        if due is not None:
            self.say.look("E18", 0, None)
            if part != due:
                self.say.find("E18", 0, topic=name, part=part, number=due)

    def elected(self, step: Step, brokers: dict[int, BrokerHistory]) -> None:
        """Whoever a change makes the leader is active, in a directory that works."""
        leader = step.sets["leader"]
        if not step.change or leader is None or leader < 0 or leader == step.before["leader"]:
            return
        where: dict[str, Any] = {"topic": step.topic, "part": step.part, "broker": leader}
        isr = step.after["isr"]
        if self.say.promised("A4", step.mv) and not self.active(leader):
            self.say.find("A4", 2, new=isr, **where)
        self.say.look("D2", 0, step.mv)
        directory = step.directory_of(leader)
        known = brokers.get(leader)
        if directory is not None and not is_online(directory, known.log_dirs if known else ()):
            self.say.find("D2", 0, new=isr, **where)

    def fenced(
        self,
        who: int,
        offset: int,
        mv: int,
        partitions: Iterable[PartitionHistory],
    ) -> None:
        """A broker turns from unfenced to fenced, whatever its operation goes on to do."""
        self.say.look("A4", 0, mv)
        for history in partitions:
            step = history.step
            if step is None or not step.state or who not in step.after["isr"] or step.keep:
                continue
            if who not in history.fenced_inside and self.say.promised("A4", step.mv):
                history.fenced_inside.add(who)
                isr = step.after["isr"]
                self.say.find(
                    "A4", 1, offset=offset, topic=step.topic, part=step.part, broker=who, new=isr
                )

    def registered(
        self,
        who: int,
        record: r.RegisterBrokerRecord,
        before: Iterable[UUID],
        offset: int,
        *,
        judged: bool,
    ) -> None:
        """A registration: whose directories they are, and which are gone."""
        if not record.log_dirs:
            return
        self._lose(who, before, record.log_dirs, offset)
        for directory in record.log_dirs:
            owner = self.owners.get(directory, who)
            if judged and owner != who:
                self.say.find("D5", 1, broker=who, number=owner)
            self.owners[directory] = who
            self.lost.pop((who, directory), None)

    def unregistered(self, who: int, log_dirs: Iterable[UUID]) -> None:
        """A broker is gone; its directories belong to nobody."""
        for directory in log_dirs:
            self.owners.pop(directory, None)

    def changed(self, who: int, before: Iterable[UUID], after: Iterable[UUID], offset: int) -> None:
        """A broker's registration names other directories now."""
        self._lose(who, before, after, offset)

    def _lose(self, who: int, before: Iterable[UUID], after: Iterable[UUID], offset: int) -> None:
        remaining = {*after}
        for directory in dict.fromkeys(before):
            if directory not in remaining:
                self.lost[who, directory] = offset
                self.losses.append((who, directory, offset))
                if self.owners.get(directory) == who:
                    del self.owners[directory]

    # --- the end of an operation ------------------------------------------------------------

    def end(self, pieces: Iterable[Piece], new_pieces: Iterable[Piece]) -> None:
        """Judge what an operation leaves behind, and forget it."""
        for topic_id, name, at in self.new_topics:
            self.say.look("E29", 0, None)
            if not self.made_in.get(topic_id):
                self.say.find("E29", 0, offset=at, topic=name)
        made = {name for _, name, _ in self.new_topics}
        for name, at in self.nameless:
            if name not in made:
                self.say.find("E38", 0, offset=at, topic=name)
        for piece in new_pieces:
            self._members_in_lost_directories(piece)
        if self.newcomers or self.losses:
            every = list(pieces)
            for who, at in self.newcomers:
                self._still_in(who, at, every)
            for who, directory, at in self.losses:
                self._lost_under(who, directory, at, every)
        self.new_topics, self.made_in, self.newcomers, self.losses = [], {}, [], []
        self.nameless = []

    def _still_in(self, who: int, at: int, pieces: list[Piece]) -> None:
        for piece in pieces:
            step = piece.step
            if who not in step.after["isr"] or step.keep or who in piece.newcomers:
                continue
            if self.say.promised("A8", step.mv):
                piece.newcomers.add(who)
                where: dict[str, Any] = {"topic": step.topic, "part": step.part, "broker": who}
                self.say.find("A8", 1, offset=at, new=step.after["isr"], **where)

    def _members_in_lost_directories(self, piece: Piece) -> None:
        step = piece.step
        for member in step.after["isr"]:
            directory = step.directory_of(member)
            if directory is None or is_reserved(directory):
                continue
            lost_at = self.lost.get((member, directory))
            if lost_at is not None and step.since[member] > lost_at:
                self.say.not_promised["D1"] += 1
                continue
            self.say.look("D1", 0, step.mv)
            if lost_at is not None and not step.keep:
                self._in_lost_directory(piece, member, step.offset)

    def _lost_under(self, who: int, directory: UUID, at: int, pieces: list[Piece]) -> None:
        for piece in pieces:
            step = piece.step
            if who not in step.after["isr"] or step.keep or who in piece.lost_directory:
                continue
            if step.directory_of(who) == directory:
                self._in_lost_directory(piece, who, at)

    def _in_lost_directory(self, piece: Piece, member: int, at: int) -> None:
        step = piece.step
        piece.lost_directory.add(member)
        where: dict[str, Any] = {"topic": step.topic, "part": step.part, "broker": member}
        self.say.find("D1", 0, offset=at, new=step.after["isr"], **where)
