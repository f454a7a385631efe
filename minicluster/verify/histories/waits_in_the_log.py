"""What waits in the committed log itself: brokers to be unfenced, partitions to be led and in sync.

========================  ========================================================================
takes                     the committed brokers, partitions and throttles of the timeline
keeps                     the latest state of each broker and partition, the throttles
yields                    waits for UNFENCED, IN_SYNC, LED, REASSIGNED, ISR_AT_REST
========================  ========================================================================

The records of one operation take effect together, at the time at which they are committed.
"""

from __future__ import annotations

from itertools import groupby

from minicluster.metadata.image.directory_id import MIGRATING, UNASSIGNED
from minicluster.metadata.image.partition import NO_LEADER, RECOVERING
from minicluster.verify.histories.commits import commits
from minicluster.verify.histories.longest_waits import Awaited, LongestWaits, Subject
from minicluster.verify.histories.partitions import REMOVE_TOPIC
from minicluster.verify.histories.throttles import CommittedThrottle, Throttles
from minicluster.verify.histories.timeline import CommittedBroker, CommittedPartition
from minicluster.verify.histories.traced_run import TracedRun

_ANYWHERE = (UNASSIGNED, MIGRATING)
_OF_PARTITIONS = (Awaited.IN_SYNC, Awaited.LED, Awaited.REASSIGNED)

Place = tuple[str, int]  # topic id, partition
State = CommittedBroker | CommittedPartition | CommittedThrottle


class WaitsInTheLog:
    """Goes through the log operation by operation, and notes what waits after each of them."""

    def __init__(self, run: TracedRun, waits: LongestWaits) -> None:
        self._waits = waits
        self._timeline = run.timeline
        self._commits = run.context(commits)
        # Where the log begins with a snapshot, nothing shows since when its content holds.
        self._expected = () if run.first_image else run.header.brokers
        self._brokers: dict[int, CommittedBroker] = {}
        self._partitions: dict[Place, CommittedPartition] = {}
        self._throttles = Throttles()
        self._at_ms = 0

    def play(self) -> None:
        """Note all waits."""
        for broker in self._expected:
            self._waits.begin(Awaited.UNFENCED, Subject(node=broker), self._at_ms)
        timeline = self._timeline
        states: list[State] = [*timeline.throttles]
        for of_broker in timeline.brokers.values():
            states += of_broker
        for of_record in timeline.by_offset.values():
            states += of_record
        states.sort(key=lambda state: state.position)
        for operation, together in groupby(states, key=lambda state: state.operation):
            self._at_ms = self._commits.at_ms(operation) or self._at_ms
            self._operation(list(together))

    def _operation(self, states: list[State]) -> None:
        changed: dict[Place, None] = {}
        left: list[tuple[Place, int]] = []
        for state in states:
            if isinstance(state, CommittedThrottle):
                self._throttles.take(state)
                changed |= dict.fromkeys(self._partitions)
                continue
            if isinstance(state, CommittedBroker):
                self._on_broker(state)
                changed |= dict.fromkeys(self._with_replica_on(state.broker))
                continue
            place = state.topic_id, state.partition
            changed[place] = None
            left += [(place, member) for member in self._on_partition(place, state)]
        for place in changed:
            if place in self._partitions:
                self._look_at(self._partitions[place])
        for place, member in left:
            if place in self._partitions:
                self._look_at_shrink(self._partitions[place], member)

    def _with_replica_on(self, broker: int) -> list[Place]:
        return [
            place
            for place, state in self._partitions.items()
            if broker in (state.after.replicas or ())
        ]

    def _on_broker(self, broker: CommittedBroker) -> None:
        self._brokers[broker.broker] = broker
        waits = not broker.registered or broker.fenced
        self._waits.set(Awaited.UNFENCED, Subject(node=broker.broker), waits, self._at_ms)

    def _on_partition(self, place: Place, state: CommittedPartition) -> list[int]:
        """Note a record; returns the members that leave the ISR by it."""
        before = self._partitions.get(place)
        if state.step.kind == REMOVE_TOPIC:
            if before is not None:
                del self._partitions[place]
                self._throttles.forget(state.topic)
                for awaited in _OF_PARTITIONS:
                    self._waits.end(awaited, Subject(state.topic, state.partition), self._at_ms)
            return []
        self._partitions[place] = state
        members = () if before is None else before.after.isr or ()
        return [member for member in members if member not in (state.after.isr or ())]

    def _is_eligible(self, state: CommittedPartition, replica: int) -> bool:
        """An active broker whose directory with the replica is online."""
        broker = self._brokers.get(replica)
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
        return self._throttles.hold_back(state.topic, state.partition, leader, replica)

    def _look_at(self, state: CommittedPartition) -> None:
        """One partition, at the end of an operation."""
        after, waits, at_ms = state.after, self._waits, self._at_ms
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

    def _look_at_shrink(self, state: CommittedPartition, member: int) -> None:
        """Once all replicas are in sync, an active one does not leave the ISR."""
        times, awaited = self._waits.times, Awaited.ISR_AT_REST
        if member in (state.after.isr or ()) or awaited not in times.bounds:
            return
        from_ms = times.from_ms(awaited)
        is_due = self._at_ms > from_ms + times.bounds[awaited]
        if is_due and self._is_eligible(state, member):
            subject = Subject(state.topic, state.partition, member)
            self._waits.stretch(awaited, subject, from_ms, self._at_ms)
