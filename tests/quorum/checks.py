"""Invariants of a quorum, checked at every event.

Invariants E01-E08 and E43 by name; ``RaftEventSimulationTest`` checks the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minicluster.effects import Effect, Respond
from minicluster.log.batch import RecordBatch
from minicluster.log.control import control_records
from minicluster.protocol.records import VotersRecord
from minicluster.quorum.effects import Appended, Commit, HighWatermarkChanged, Persist, Voted
from minicluster.quorum.state.raft_log import RaftLog
from minicluster.quorum.state.voter_set_history import decode_snapshot_control
from minicluster.quorum.state.voters import VoterSet


class Violated(AssertionError):
    """An invariant does not hold."""


@dataclass
class Checks:
    """All that has been seen of one quorum."""

    votes: dict[tuple[int, int], int] = field(default_factory=dict)
    leaders: dict[int, int] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    written: dict[tuple[int, int], object] = field(default_factory=dict)
    committed: list[tuple[int, object]] = field(default_factory=list)
    marks: dict[tuple[int, int], int] = field(default_factory=dict)
    looked_at: int = 0
    elections: int = 0

    def on_effect(self, network: object, member: object, effect: Effect) -> None:
        """Judge one effect of one node."""
        self.looked_at += 1
        if isinstance(effect, Persist):
            self._on_persist(network, member, effect)
        elif isinstance(effect, Voted):
            self._on_vote(member, effect)
        elif isinstance(effect, Appended):
            self._on_append(member, effect.batch)
        elif isinstance(effect, Commit):
            self._on_commit(member, effect)
        elif isinstance(effect, HighWatermarkChanged):
            self._on_high_watermark(network, member, effect.high_watermark)
        elif isinstance(effect, Respond):
            return

    def forget(self, node_id: int) -> None:
        """A node has lost its disk: what it promised is lost with it."""
        self.epochs.pop(node_id, None)
        for key in [key for key in self.votes if key[0] == node_id]:
            del self.votes[key]

    # E02 (per node), E03; E04 below
    def _on_persist(self, network, member, effect) -> None:  # type: ignore[no-untyped-def]
        state = effect.state
        epoch = state.leader_epoch
        if epoch < self.epochs.get(member.id, 0):
            raise Violated(f"node {member.id}: epoch {epoch} after {self.epochs[member.id]}")
        self.epochs[member.id] = epoch
        if state.leader_id >= 0:
            leader = self.leaders.setdefault(epoch, state.leader_id)
            if leader != state.leader_id:
                raise Violated(f"E03: epoch {epoch} is led by {leader} and {state.leader_id}")
            if state.leader_id == member.id and member.machine.is_leader:
                self.elections += 1
                self._on_elected(member, epoch)

    def _on_vote(self, member, effect: Voted) -> None:  # type: ignore[no-untyped-def]
        voted = self.votes.setdefault((member.id, effect.epoch), effect.candidate_id)
        if voted != effect.candidate_id:
            raise Violated(f"E04: {member.id} in {effect.epoch}: {voted}, {effect.candidate_id}")

    # E07
    def _on_elected(self, member, epoch: int) -> None:  # type: ignore[no-untyped-def]
        log = member.log
        if not self.committed:
            return
        last = len(self.committed) - 1
        if log.end_offset <= last:
            raise Violated(f"E07: leader {member.id} of {epoch} ends at {log.end_offset}")
        for batch in log.read(max(log.start_offset, last - 50)):
            for offset, value in records_of(batch):
                if offset <= last and self.committed[offset] != (batch.leader_epoch, value):
                    raise Violated(f"E07: leader {member.id} of {epoch} has another {offset}")

    # E01, E05
    def _on_append(self, member, batch: RecordBatch) -> None:  # type: ignore[no-untyped-def]
        for offset, value in records_of(batch):
            known = self.written.setdefault((batch.leader_epoch, offset), value)
            if known != value:
                raise Violated(f"E05: ({batch.leader_epoch}, {offset}) is {known!r} and {value!r}")

    # committed data are the same everywhere
    def _on_commit(self, member, effect: Commit) -> None:  # type: ignore[no-untyped-def]
        for batch in effect.batches:
            for offset, value in records_of(batch):
                record = (batch.leader_epoch, value)
                if offset == len(self.committed):
                    self.committed.append(record)
                elif offset > len(self.committed):
                    raise Violated(f"{member.id} skips to {offset} after {len(self.committed)}")
                elif self.committed[offset] != record:
                    raise Violated(f"{member.id}: {record} replaces {self.committed[offset]}")

    # E06, E08
    def _on_high_watermark(self, network, member, mark: int) -> None:  # type: ignore[no-untyped-def]
        machine = member.machine
        key = (member.id, member.life)
        if mark < self.marks.get(key, -1) and not machine.is_leader:
            raise Violated(f"E06: high watermark of {member.id} falls to {mark}")
        self.marks[key] = max(mark, self.marks.get(key, -1))
        voters = machine.voters.ids
        flushed = [network.members[i].log.flushed_offset for i in voters if i in network.members]
        if machine.is_leader and sum(f >= mark for f in flushed) < len(voters) // 2 + 1:
            raise Violated(f"E06: {mark} at {member.id} is not on a majority: {flushed}")
        if machine.is_leader:
            role = machine.node.role
            if mark <= role.epoch_start_offset:
                raise Violated(f"E08: {mark} before the epoch's own first record is committed")

    def on_rest(self, network) -> None:  # type: ignore[no-untyped-def]
        """E01 and E43, of every running node."""
        for member in network.members.values():
            if member.machine is None:
                continue
            log = member.log
            if log.start_offset > 0 and not any(s[0] == log.start_offset for s in log.snapshots):
                raise Violated(f"E01: log of {member.id} starts at {log.start_offset}, no snapshot")
            if network.dynamic:
                expected = voters_of(member.log)
                if expected is not None and member.machine.voters != expected:
                    raise Violated(f"E43: {member.id} has {member.machine.voters.ids}")


def records_of(batch: RecordBatch) -> list[tuple[int, object]]:
    if batch.is_control:
        return [(batch.base_offset + i, r.message) for i, r in enumerate(control_records(batch))]
    return [(record.offset, record.value) for record in batch.records]


def voters_of(log: object) -> VoterSet | None:
    """The last voter set in a log's latest snapshot and the records behind it."""
    raft_log = RaftLog(log)  # type: ignore[arg-type]
    found: VoterSet | None = None
    start = 0
    latest = raft_log.latest_snapshot
    if latest is not None:
        start = latest[0]
        for message in decode_snapshot_control(raft_log.log.snapshots[latest]):
            if isinstance(message, VotersRecord):
                found = VoterSet.from_record(message)
    for batch in raft_log.log.read(start):
        for record in control_records(batch):
            if isinstance(record.message, VotersRecord):
                found = VoterSet.from_record(record.message)
    return found
