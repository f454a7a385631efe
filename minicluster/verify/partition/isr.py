"""How leaders change their ISRs: KIP-497, KAFKA-14140, KAFKA-13091.

A leader proposes an ISR to the controller. Until the change is answered, or newer metadata has
come, it acts on the maximal ISR: the members of the old ISR and those that it proposes to add.
Metadata that it has applied already leaves such a change pending: its row comes once more, and is
no proposal. Nor is it where the controller has rejected the change as out of date: the leader then
waits for metadata, any of its leader epoch ends the change, and the row has the error.

subject   a partition: the events of its replicas; of a whole run also its committed states, each
          after the event that committed it
keeps     by broker, what its running process has shown; the committed state, the leader's last ISR
"""

from __future__ import annotations

from msgspec import Struct

from minicluster.verify.exchange.controller import a_rejected_alter_partition_writes_nothing
from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.model import Evidence
from minicluster.verify.partition.event import Ids, PartitionEvent
from minicluster.verify.partition.setting import Setting
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, ids, rule

_CHANGES = frozenset(
    ("become_leader", "become_follower", "isr_pending", "isr_commit", "isr_revert")
)
_NOTHING_IN_FLIGHT = frozenset(("become_leader", "isr_commit", "isr_revert"))
_NO_BROKER_EPOCH = -1
_FINAL_REJECTIONS = ("INELIGIBLE_REPLICA", "OPERATION_NOT_ATTEMPTED")


class Process(Struct):
    """A replica since its broker started.

    Shapes:  isr: at its last event. change: its last change of leader or ISR. epoch: in which it
             became leader last; epoch_start: its log end then.
    """

    incarnation: str | None
    isr: Ids | None = None
    change: PartitionEvent | None = None
    epoch: int | None = None
    epoch_start: int | None = None
    shrink: Shrink | None = None

    @property
    def pending(self) -> PartitionEvent | None:
        """The proposal that has not been answered."""
        change = self.change
        return change if change is not None and change.kind == "isr_pending" else None


class Shrink(Struct):
    """A shrink that is committed, until the next event of its leader.

    Shapes:  leaving: the replicas that leave. before: the leader's last change, the proposal.
    """

    event: PartitionEvent
    leaving: Ids
    before: PartitionEvent | None


class IsrOfPartition:
    """The ISRs of one partition."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.processes: dict[int, Process] = {}
        self.committed: CommittedPartition | None = None
        self.leader: PartitionEvent | None = None  # the last event of any leader

    def on_event(self, event: PartitionEvent) -> Said:
        """An event of a replica."""
        process = self.processes.get(event.broker)
        is_same = process is not None and process.incarnation == event.incarnation
        if process is not None and process.shrink is not None:
            # Only the next event shows whether the leader moves its high watermark now that the
            # members are gone. Another process shows nothing of it.
            advances = is_same and event.kind == "hw"
            yield from the_high_watermark_advances_when_the_isr_shrinks(process.shrink, advances)
            process.shrink = None
        if process is None or not is_same:
            process = self.processes[event.broker] = Process(event.incarnation)
        match event.kind:
            case "become_leader":
                if process.epoch != event.leader_epoch:
                    process.epoch, process.epoch_start = event.leader_epoch, event.leo
                if process.pending is not None:
                    yield from a_change_is_dropped_for_newer_metadata_only(process.pending, event)
            case "isr_pending" if not _is_repeated(process.pending, event):
                yield from one_isr_change_is_in_flight_at_a_time(process.pending, event)
                yield from only_a_caught_up_replica_is_proposed(process, event)
                yield from leaders_propose_only_eligible_replicas(self.setting, event)
            case "isr_revert":
                yield from a_change_is_reverted_only_when_it_is_rejected(event)
                if event.error is not None:
                    yield from leaders_give_up_only_what_is_rejected(event, event.error)
            case "isr_commit":
                isr, before = event.isr or (), process.isr or ()
                leaving = tuple(member for member in before if member not in isr)
                process.shrink = Shrink(event, leaving, process.change) if leaving else None
        if event.kind in _CHANGES:
            process.change = event
        process.isr = event.isr
        if event.maximal_isr is not None and self.setting.is_over:  # B1 is judged at the end
            yield from the_maximal_isr_contains_the_committed_isr(event, self.committed)
            self.leader = event

    def on_commit(self, state: CommittedPartition) -> Said:
        """A record about the partition is committed."""
        self.committed = state
        if self.leader is not None and self.leader.is_led_as(state):
            yield from the_committed_isr_is_in_the_maximal_isr(self.leader, state)

    def at_end(self) -> Said:
        """There are no more events: what waited for the next one is judged without it."""
        for process in self.processes.values():
            if process.shrink is not None:
                yield from the_high_watermark_advances_when_the_isr_shrinks(process.shrink, False)


def _is_repeated(pending: PartitionEvent | None, event: PartitionEvent) -> bool:
    """A pending change is shown again: its leader has applied metadata that it had already.

    Taken for a new proposal, it would be compared with the followers and the image of now, though
    the leader decided by those of then: A5, B7 and F14 accused correct leaders in this way.
    """
    return (
        pending is not None
        and (pending.leader_epoch, pending.partition_epoch, pending.maximal_isr)
        == (event.leader_epoch, event.partition_epoch, event.maximal_isr)
    )  # fmt: skip


@rule("A5", "Leaders propose only eligible replicas",
      source="KAFKA-14140, KIP-841; Partition.isReplicaIsrEligible", evidence=Evidence.TRACE,
      at_end=True, tables=("partition_event", "publish"),
      breaks="Broker 3 is fenced in the image of leader 1, which proposes ISR [1, 2, 3].",
      keeps="Leader 1 proposes broker 3 before its broker has published the fencing "
      "of 3.")  # fmt: skip
def leaders_propose_only_eligible_replicas(setting: Setting, event: PartitionEvent) -> Findings:
    """A leader never proposes to add a replica that is fenced, in controlled shutdown or of another
    broker epoch in the image that its own broker has published."""
    image = setting.image_of(event.broker, event.seq)
    if image is None:
        return
    for member in event.joining:
        yield CASE
        broker = setting.broker_at(member, image)
        # A Fetch carries the broker epoch of the replica from version 15 on.
        fetched_as = event.fetch_state(member).broker_epoch
        has_epoch_of_image = fetched_as in (None, _NO_BROKER_EPOCH, broker and broker.epoch)
        if broker is None or not broker.active or not has_epoch_of_image:
            yield broken(
                f"the leader proposes broker {member} for the ISR {ids(event.maximal_isr)}, "
                f"which is ineligible in its own image at offset {image}",
                event,
                broker=member,
                offset=image,
            )


@rule("B1", "A leader's maximal ISR contains the committed ISR",
      source="KIP-497; Partition.scala PartitionState.maximalIsr", evidence=Evidence.TRACE,
      at_end=True, tables=("partition_event", "raft_event"),
      breaks="Leader 1 proposes to shrink ISR [1, 2, 3], and has maximal ISR [1, 2] before that "
      "is committed.",
      keeps="Broker 3 is in the maximal ISR from its proposal on; a deposed "
      "leader's maximal ISR does not count.")  # fmt: skip
def the_maximal_isr_contains_the_committed_isr(
    event: PartitionEvent, committed: CommittedPartition | None
) -> Findings:
    """The committed ISR is a subset of the maximal ISR of the leader of that epoch; without a
    change in flight the leader's ISR and maximal ISR are equal."""
    isr, maximal_isr = event.isr or (), event.maximal_isr or ()
    if committed is not None and event.is_led_as(committed):
        yield CASE
        if not set(maximal_isr).issuperset(committed.after.isr):
            yield broken(
                f"leader {event.broker} has maximal ISR {ids(maximal_isr)} while the "
                f"committed ISR is {ids(committed.after.isr)}",
                event,
                offset=committed.offset,
            )
    if event.kind in _NOTHING_IN_FLIGHT and sorted(isr) != sorted(maximal_isr):
        yield broken(
            f"leader {event.broker} has no ISR change in flight, but ISR {ids(isr)} and "
            f"maximal ISR {ids(maximal_isr)}",
            event,
        )


@the_maximal_isr_contains_the_committed_isr.also
def the_committed_isr_is_in_the_maximal_isr(
    leader: PartitionEvent, state: CommittedPartition
) -> Findings:
    """The same, where the ISR is committed after the leader's last event."""
    if not set(leader.maximal_isr or ()).issuperset(state.after.isr):
        yield broken(
            f"the controller committed ISR {ids(state.after.isr)} while leader {leader.broker} has "
            f"maximal ISR {ids(leader.maximal_isr)}",
            record=state,
            broker=leader.broker,
        )


@rule("B7", "One ISR change is in flight at a time",
      source="KIP-497, KAFKA-12686, KAFKA-12751; Partition.submitAlterPartition",
      evidence=Evidence.TRACE, tables=("partition_event",),
      breaks="Leader 1 proposes [1, 2, 3], and then [1, 2, 4] before the first change has ended.",
      keeps="An ISR change is rejected, proposed again, shown again with metadata "
      "of before, and ended by newer metadata.")  # fmt: skip
def one_isr_change_is_in_flight_at_a_time(
    pending: PartitionEvent | None, event: PartitionEvent
) -> Findings:
    """A leader's ISR change is completed by its own response or by newer metadata before the next
    one begins."""
    yield CASE
    epochs = event.leader_epoch, event.partition_epoch
    if pending is not None and (pending.leader_epoch, pending.partition_epoch) == epochs:
        yield broken(
            f"leader {event.broker} proposed {ids(event.maximal_isr)} while another ISR change was "
            "in flight",
            event,
        )


@one_isr_change_is_in_flight_at_a_time.also
def a_change_is_reverted_only_when_it_is_rejected(event: PartitionEvent) -> Findings:
    """The leader goes back to the ISR before its proposal."""
    yield CASE
    if event.error is None:
        yield broken(f"leader {event.broker} reverted an ISR change that was not rejected", event)


@a_rejected_alter_partition_writes_nothing.also
def leaders_give_up_only_what_is_rejected(event: PartitionEvent, error: str) -> Findings:
    """The leader goes back to the ISR before its proposal because of an error."""
    yield CASE
    if error not in _FINAL_REJECTIONS:
        yield broken(
            f"leader {event.broker} reverted to ISR {ids(event.isr)} on an error that is no final "
            "rejection",
            event,
        )


@one_isr_change_is_in_flight_at_a_time.also
def a_change_is_dropped_for_newer_metadata_only(
    pending: PartitionEvent, event: PartitionEvent
) -> Findings:
    """A leader applies metadata while its proposal has not been answered."""
    yield CASE
    is_newer = pending.leader_epoch != event.leader_epoch or (
        pending.partition_epoch < event.partition_epoch
    )
    if not is_newer and pending.error is None:
        yield broken(
            f"leader {event.broker} dropped an ISR change for metadata that is not newer", event
        )


@rule("B8", "The high watermark advances when the ISR shrinks",
      source="KAFKA-13091; Partition.handleAlterPartitionUpdate", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="Broker 3, with 5 of 9 records, leaves the ISR, and the high watermark stays at 5.",
      keeps="Broker 3, with 5 of 9 records, leaves the ISR, and the high watermark "
      "goes to 9 in the same step.")  # fmt: skip
def the_high_watermark_advances_when_the_isr_shrinks(shrink: Shrink, advances: bool) -> Findings:
    """When a shrink of the ISR is committed, the leader advances its high watermark in the same
    step to the lowest log end of the smaller ISR."""
    yield CASE
    event, isr, mark = shrink.event, shrink.event.isr or (), shrink.event.hw_new
    followers = event.followers
    if advances or followers is None or not isr:
        return
    if len(isr) < (1 if event.min_isr is None else event.min_isr):
        return
    ends = (
        event.leo if member == event.broker else event.fetch_state(member).log_end for member in isr
    )
    if min(ends) <= mark:
        return
    # The leader also waits for replicas outside the ISR that have caught up within the lag time;
    # one that has fetched beyond the high watermark may be among them.
    if any(member not in isr and follower.log_end > mark for member, follower in followers.items()):
        return
    # A replica that leaves and has fetched since the request may have caught up: the leader waits
    # for it.
    before = (shrink.before and shrink.before.followers) or {}
    if any(
        member in before and member in followers and before[member] != followers[member]
        for member in shrink.leaving
    ):
        return
    yield broken(
        f"leader {event.broker} did not advance its high watermark when the ISR shrank to "
        f"{ids(isr)}",
        event,
    )


@rule("F14", "Only a caught-up replica is proposed for the ISR",
      source="KIP-497; Partition.isFollowerInSync", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="The epoch began at 6; leader 1 proposes broker 3, which has fetched up to 5.",
      keeps="The epoch began at 6; leader 1 proposes broker 3, which has fetched up "
      "to 6.")  # fmt: skip
def only_a_caught_up_replica_is_proposed(process: Process, event: PartitionEvent) -> Findings:
    """A leader proposes a replica that has fetched in this leader epoch, up to the high watermark
    and to the start of the epoch."""
    if not event.joining or event.followers is None:
        return
    yield CASE
    epoch_start = process.epoch_start if process.epoch == event.leader_epoch else None
    needed = max(event.hw_new or 0, epoch_start or 0)
    states = [event.fetch_state(member) for member in event.joining]
    if any(state.log_end < needed or state.leader_epoch != event.leader_epoch for state in states):
        yield broken(
            f"leader {event.broker} proposed {ids(event.maximal_isr)} before all of them had "
            "caught up",
            event,
        )
