"""What waits in the metadata log: brokers to be unfenced (G1), partitions to be in sync (G6), led
(G7), reassigned (G9), and ISRs to rest (G11).

subject   the committed log, operation by operation: the records of one take effect together, when
          they are committed
keeps     the state of each broker and partition, the throttles
"""

from __future__ import annotations

from minicluster.metadata.image.directory_id import MIGRATING, UNASSIGNED
from minicluster.metadata.image.partition import NO_LEADER, RECOVERING
from minicluster.verify.histories.partitions import REMOVE_TOPIC
from minicluster.verify.histories.throttles import CommittedThrottle, Throttles
from minicluster.verify.histories.timeline import CommittedBroker, CommittedPartition
from minicluster.verify.partition.event import Place
from minicluster.verify.waits.liveness import Awaited
from minicluster.verify.waits.longest import Subject, Waits

_ANYWHERE = (UNASSIGNED, MIGRATING)
State = CommittedBroker | CommittedPartition | CommittedThrottle


class WaitsInTheLog:
    """The log as far as it is committed, and what waits in it."""

    def __init__(self, waits: Waits) -> None:
        self.waits = waits
        self.brokers: dict[int, CommittedBroker] = {}
        self.partitions: dict[Place, CommittedPartition] = {}
        self.throttles = Throttles()

    def on_operation(self, states: list[State], at_ms: int) -> None:
        """The records of an operation are committed."""
        changed: dict[Place, None] = {}
        left: list[tuple[Place, int]] = []
        for state in states:
            if isinstance(state, CommittedThrottle):
                self.throttles.take(state)
                changed |= dict.fromkeys(self.partitions)
            elif isinstance(state, CommittedBroker):
                self.brokers[state.broker] = state
                is_out = not state.registered or state.fenced
                self.waits.set(Awaited.UNFENCED, Subject(node=state.broker), is_out, at_ms)
                changed |= dict.fromkeys(
                    place
                    for place, partition in self.partitions.items()
                    if state.broker in (partition.after.replicas or ())
                )
            else:
                place = state.topic_id, state.partition
                before = self.partitions.pop(place, None)
                if state.step.kind != REMOVE_TOPIC:
                    self.partitions[place] = state
                    changed[place] = None
                    left += [(place, member) for member in (before and before.after.isr) or ()]
                elif before is not None:
                    self.throttles.forget(state.topic)
                    for awaited in (Awaited.IN_SYNC, Awaited.LED, Awaited.REASSIGNED):
                        self.waits.end(awaited, Subject(state.topic, state.partition), at_ms)
        for place in changed:
            if place in self.partitions:
                self._look_at(self.partitions[place], at_ms)
        for place, member in left:
            if place in self.partitions:
                self._look_at_member(self.partitions[place], member, at_ms)

    def _look_at(self, state: CommittedPartition, at_ms: int) -> None:
        """One partition, at the end of an operation."""
        after, waits = state.after, self.waits
        subject = Subject(state.topic, state.partition)
        eligible = [
            replica for replica in after.replicas or () if self._is_eligible(state, replica)
        ]
        isr, elr, adding = after.isr or (), after.elr or (), after.adding or ()
        is_led = after.leader is not None and after.leader != NO_LEADER
        lacks = is_led and any(
            replica not in isr and not self._is_held_back(state, replica) for replica in eligible
        )
        waits.set(Awaited.IN_SYNC, subject, lacks, at_ms)
        has_candidate = any(replica in isr or replica in elr for replica in eligible)
        recovers = is_led and after.recovery == RECOVERING and len(eligible) > 1
        waits.set(Awaited.LED, subject, recovers or (not is_led and has_candidate), at_ms)
        is_blocked = any(
            replica not in eligible or self._is_held_back(state, replica) for replica in adding
        )
        waits.set(Awaited.REASSIGNED, subject, after.moves and is_led and not is_blocked, at_ms)
        waits.case(Awaited.ISR_AT_REST, subject)

    def _look_at_member(self, state: CommittedPartition, member: int, at_ms: int) -> None:
        """Once all replicas are in sync, an active one does not leave the ISR."""
        waits, awaited = self.waits, Awaited.ISR_AT_REST
        if member in (state.after.isr or ()) or not waits.judges(awaited):
            return
        from_ms = waits.from_ms[awaited]
        if at_ms > from_ms + waits.bounds_ms[awaited] and self._is_eligible(state, member):
            waits.stretch(awaited, Subject(state.topic, state.partition, member), from_ms, at_ms)

    def _is_eligible(self, state: CommittedPartition, replica: int) -> bool:
        """An active broker whose directory with the replica is online."""
        broker = self.brokers.get(replica)
        if broker is None or not broker.active or replica not in (state.after.replicas or ()):
            return False
        directory = state.after.directory_of(replica)
        if directory is None or not broker.log_dirs:
            return True
        return directory in _ANYWHERE or directory in broker.log_dirs

    def _is_held_back(self, state: CommittedPartition, replica: int) -> bool:
        """A replica outside of the ISR catches up by a throttle's rate, however long it takes."""
        leader, isr = state.after.leader, state.after.isr or ()
        if leader is None or replica in isr:
            return False
        return self.throttles.hold_back(state.topic, state.partition, leader, replica)
