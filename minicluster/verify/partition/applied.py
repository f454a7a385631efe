"""The states of a partition as brokers apply them, beside the log and the images that they have.

subject   a partition of a run that has ended: the events of its replicas; its committed states,
          each after the event that committed it
keeps     the latest committed state of each partition epoch; the processes that had a replica
"""

from __future__ import annotations

from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.model import Evidence
from minicluster.verify.partition.event import PartitionEvent, Place
from minicluster.verify.partition.setting import Setting
from minicluster.verify.rules.rule import CASE, Event, Findings, Said, broken, rule

_APPLIES = ("become_leader", "become_follower", "isr_commit")
_LEADS = ("append", "hw", "ack", "stop")


class AppliedOfPartition:
    """The states of one partition as brokers apply them.

    Shapes:  states: of the whole log, the first one of each partition epoch.
    """

    def __init__(self, setting: Setting, place: Place) -> None:
        self.setting, self.place = setting, place
        self.states: dict[int, CommittedPartition] = {}
        for state in setting.states_of(place):
            if state.step.leaves_a_state:
                self.states.setdefault(state.partition_epoch, state)
        self.first_epoch = min(self.states, default=None)
        self.committed: dict[int, CommittedPartition] = {}
        self.processes: set[tuple[int, str | None]] = set()

    def on_event(self, event: PartitionEvent) -> Said:
        """An event of a replica."""
        self.processes.add((event.broker, event.incarnation))
        if event.kind in _APPLIES:
            epoch, first = event.partition_epoch, self.first_epoch
            if first is not None and epoch is not None and epoch >= first:
                # There are several of an epoch where the id of a deleted topic is used again.
                state = self.committed.get(epoch) or self.states.get(epoch)
                yield from partition_epochs_are_those_of_the_log(event, state)
                if state is not None:
                    yield from leader_epochs_are_those_of_the_log(event, state)
                    yield from brokers_act_as_their_image_has_it(event, state)
        elif event.kind == "delete":
            image = self.setting.image_of(event.broker, event.seq)
            if image is not None:
                state = self.setting.partition_at(self.place, image)
                yield from brokers_keep_the_replicas_assigned_to_them(event, image, state)
        elif event.kind in _LEADS and event.maximal_isr is not None:
            applied = self.setting.applied_image_of(event.broker, event.incarnation, event.at_ms)
            state = None if applied is None else self.setting.partition_at(self.place, applied)
            if applied is not None and state is not None:
                yield from _epochs_of_leaders_are_not_behind(event, applied, state)

    def on_commit(self, state: CommittedPartition) -> Said:
        """A record about the partition is committed."""
        self.committed[state.partition_epoch] = state
        return ()

    def on_kept(self, kept: PartitionEvent) -> Said:
        """A broker has the replica at the end of the run, or had it as it ended.

        It is judged by the newest image, and a removal counts once the broker has had it for a
        while.
        """
        image = self.setting.image_of(kept.broker, kept.seq)
        applied = self.setting.applied_image_of(kept.broker, kept.incarnation, kept.at_ms)
        if image is not None and applied is not None:
            state = self.setting.partition_at(self.place, image)
            yield from _and_no_others(kept, image, applied, state)


@rule("B5", "Each partition change adds one to the partition epoch",
      source="KIP-497; PartitionRegistration.merge", at_end=True, evidence=Evidence.TRACE,
      tables=("partition_event", "rpc"),
      breaks="The log has partition epoch 0, and leader 1 applies 1.",
      keeps="The response to an AlterPartition has the partition epoch 1 of its "
      "record; leader 1 has applied 0.")  # fmt: skip
def partition_epochs_are_those_of_the_log(
    event: PartitionEvent, state: CommittedPartition | None
) -> Findings:
    """The partition epoch that a broker applies, and that a leader receives in a response, is the
    epoch of a committed record, one above the epoch before."""
    yield CASE
    if state is None:
        yield broken(f"broker {event.broker} applied a partition epoch that no record has", event)


@rule("E15", "Each record that names a leader adds one to the leader epoch",
      source="KIP-497, KIP-631; PartitionRegistration.merge", at_end=True, evidence=Evidence.TRACE,
      tables=("partition_event", "rpc"),
      breaks="The log has leader epoch 1 at partition epoch 1, and broker 1 applies 0 there.",
      keeps="The log has leader epoch 1 at partition epoch 1, and broker 1 applies "
      "it.")  # fmt: skip
def leader_epochs_are_those_of_the_log(
    event: PartitionEvent, state: CommittedPartition
) -> Findings:
    """Brokers apply, and leaders receive, each partition state with the leader epoch that the log
    gives it: one more for each record that names a leader."""
    yield CASE
    if event.leader_epoch not in (None, state.leader_epoch):
        yield broken(
            f"broker {event.broker} applied leader epoch {event.leader_epoch}, which is not that "
            "of the log",
            event,
            offset=state.offset,
        )


@rule("E36", "Brokers act as their metadata image has it",
      source="KAFKA-14296, KAFKA-13858; ReplicaManager.applyDelta", evidence=Evidence.TRACE,
      at_end=True, tables=("partition_event", "publish", "replica_log"),
      breaks="The log has leader 1, and broker 2 becomes leader.",
      keeps="Broker 1 has not published the image with leader 2, and leads by the "
      "one before.")  # fmt: skip
def brokers_act_as_their_image_has_it(event: PartitionEvent, state: CommittedPartition) -> Findings:
    """A broker leads the partitions that its metadata makes it lead and no others, even while it
    shuts down, and its own epochs of a partition are at least those of its metadata."""
    if event.kind == "isr_commit":
        return
    yield CASE
    if (state.after.leader == event.broker) != (event.kind == "become_leader"):
        yield broken(
            f"broker {event.broker} became leader or follower against the metadata",
            event,
            offset=state.offset,
        )


@brokers_act_as_their_image_has_it.also
def _epochs_of_leaders_are_not_behind(
    event: PartitionEvent, image: int, state: CommittedPartition
) -> Findings:
    """The same of a leader that acts, by the image that it has had for a while."""
    yield CASE
    if state.after.alive is not True or event.leader_epoch is None:
        return
    if state.leader_epoch > event.leader_epoch:
        yield broken(
            f"broker {event.broker} acts as leader of an epoch older than that of its own image",
            event,
            offset=image,
        )
    if not event.is_led_as(state):
        return
    if event.partition_epoch is not None and state.partition_epoch > event.partition_epoch:
        yield broken(
            f"leader {event.broker} is at a partition epoch older than that of its own image",
            event,
            offset=image,
        )


@rule("E37", "Brokers keep the replicas that are assigned to them, and no others",
      source="KAFKA-13127, KAFKA-14616; ReplicaManager.applyDelta, LogManager.isStrayKraftReplica",
      at_end=True, evidence=Evidence.TRACE, tables=("partition_event", "publish", "replica_log"),
      breaks="Broker 2 deletes its replica of orders-0, which its image assigns to it.",
      keeps="orders is deleted; broker 2 deletes its replica, and 3, whose image is "
      "older, has its own.")  # fmt: skip
def brokers_keep_the_replicas_assigned_to_them(
    event: PartitionEvent, image: int, state: CommittedPartition | None
) -> Findings:
    """A broker deletes only replicas that its image does not assign to it, and keeps no replica
    that is not assigned."""
    yield CASE
    if _is_assigned(state, event):
        yield broken(
            f"broker {event.broker} deleted a replica that is assigned to it", event, offset=image
        )


@brokers_keep_the_replicas_assigned_to_them.also
def _and_no_others(
    kept: PartitionEvent, image: int, applied: int, state: CommittedPartition | None
) -> Findings:
    yield CASE
    was_told = state is None or state.position <= applied
    if was_told and not _is_assigned(state, kept):
        yield broken(
            f"broker {kept.broker} kept a replica that is not assigned to it", kept, offset=image
        )


def _is_assigned(state: CommittedPartition | None, event: Event) -> bool:
    return state is not None and state.after.alive is True and event.broker in state.after.replicas
