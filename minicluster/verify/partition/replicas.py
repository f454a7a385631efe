"""The acts of each replica of a partition: begins, appends, truncates, moves its high watermark.

subject   a partition: the events of its replicas, beside the truth
keeps     by broker, the last event and the highest partition epoch of its process, and of its log
          the last leader epoch and the highest high watermark; by leader epoch, who appended;
          truncations, until the run has ended
"""

from __future__ import annotations

from msgspec import Struct

from minicluster.verify.model import Evidence
from minicluster.verify.partition.event import PartitionEvent
from minicluster.verify.partition.setting import Setting
from minicluster.verify.partition.truth import PartitionTruth
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, ids, rule


class Replica(Struct):
    """A replica of a broker.

    Shapes:  is_new: the broker has had no log of the partition, or has deleted it. last: the last
             event of its process; highest_epoch: of the partition epochs that this has applied.
             began_with: the high watermark with which it began to lead.
    """

    is_new: bool = True
    incarnation: str | None = None
    last: PartitionEvent | None = None
    highest_epoch: int | None = None
    log_epoch: int | None = None
    high_watermark: int | None = None
    began_with: int | None = None


class Truncation(Struct):
    """A replica truncates its log, with what was known of it and of its partition then.

    Shapes:  log_epoch: of its last record. high_watermark: the highest that the replica has had.
             end, end_epoch: the highest high watermark of leaders, the highest epoch of those.
    """

    event: PartitionEvent
    log_epoch: int | None
    high_watermark: int | None
    end: int | None
    end_epoch: int | None


class ReplicasOfPartition:
    """The replicas of one partition."""

    def __init__(self, setting: Setting, truth: PartitionTruth) -> None:
        self.setting, self.truth = setting, truth
        self.replicas: dict[int, Replica] = {}
        self.writers: dict[int, dict[int, PartitionEvent]] = {}  # leader epoch -> first appends
        self.truncations: list[Truncation] = []

    def on_event(self, event: PartitionEvent) -> Said:
        """An event of a replica."""
        replica = self.replicas.get(event.broker)
        if replica is None:
            replica = self.replicas[event.broker] = Replica()
        if replica.incarnation != event.incarnation:
            # Only what is on its disk outlives a process. Epochs are promised of a running broker,
            # and another process begins with the image that it loads (B6).
            replica.incarnation, replica.last, replica.highest_epoch = event.incarnation, None, None
        if event.partition_epoch is not None:
            yield from partition_epochs_never_decrease_on_a_broker(replica, event)
            replica.highest_epoch = max(event.partition_epoch, replica.highest_epoch or 0)
        match event.kind:
            case "become_leader" | "become_follower":
                replica.began_with = event.hw_new
                yield from a_new_replica_begins_empty(replica, event)
                if replica.last is not None and not replica.is_new:
                    yield from a_replica_begins_with_the_log_that_it_had(replica.last, event)
            case "hw" if event.maximal_isr is not None:
                yield from the_high_watermark_waits_for_the_maximal_isr(self, event)
                yield from the_high_watermark_waits_for_min_isr(event)
                yield from a_leaders_high_watermark_does_not_decrease(event)
                if event.hw_new > event.hw_old:
                    yield from the_members_own_logs_have_what_is_committed(self, event)
            case "ack" if event.maximal_isr is not None:
                yield from acks_all_waits_for_the_maximal_isr(self, replica, event)
            case "append":
                replica.log_epoch = _highest(replica.log_epoch, event.leader_epoch)
                if event.maximal_isr is not None:
                    yield from self._on_append(event)
            case "truncate" if self.setting.is_over:  # F5 is judged at the end
                truth = self.truth
                self.truncations.append(
                    Truncation(
                        event, replica.log_epoch, replica.high_watermark, truth.end, truth.end_epoch
                    )
                )
        replica.high_watermark = _highest(replica.high_watermark, event.hw_new)
        replica.last, replica.is_new = event, event.kind == "delete"

    def at_end(self) -> Said:
        """All losses are known, of which a later event may tell."""
        for truncation in self.truncations:
            yield from committed_records_are_not_truncated(self.truth, truncation)

    def _on_append(self, event: PartitionEvent) -> Said:
        """A leader appends records of clients."""
        writers = self.writers.setdefault(event.leader_epoch, {})
        if event.broker not in writers:
            writers[event.broker] = event
            yield from one_writer_per_leader_epoch(writers)

    def awaited(self, event: PartitionEvent) -> tuple[int, ...] | None:
        """The members of its maximal ISR for whom a leader waits, but itself; None: not recorded.

        On ZooKeeper, whose partitions no metadata log has, a move takes a replica from its leader
        before the ISR loses it (KafkaController.onPartitionReassignment). There a member of which
        the leader knows no fetch is left out; else B2 and F8 would have it wait for a replica that
        it no longer has. In KRaft such a member has never fetched, and the leader must wait for it.
        """
        followers = event.followers
        if followers is None:
            return None
        return tuple(
            member
            for member in event.maximal_isr or ()
            if member != event.broker
            and (member in followers or self.setting.is_in_log(event.place))
        )


def _highest(known: int | None, value: int | None) -> int | None:
    if known is None or (value is not None and value > known):
        return value
    return known


@rule("B2", "The high watermark waits for the maximal ISR",
      source="KIP-497, KIP-101; Partition.maybeIncrementLeaderHW", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="The high watermark goes to 8, and broker 3 of the maximal ISR has fetched up to 7.",
      keeps="The high watermark goes to 8; brokers 2 and 3 have fetched that, and 4 "
      "is not in the maximal ISR.")  # fmt: skip
def the_high_watermark_waits_for_the_maximal_isr(
    replicas: ReplicasOfPartition, event: PartitionEvent
) -> Findings:
    """A leader advances its high watermark only over offsets that every member of its maximal ISR
    has fetched up to, in this leader epoch, and that the member's own log has."""
    awaited = replicas.awaited(event)
    if awaited is None:
        return
    yield CASE
    fetches = [event.fetch_state(member) for member in awaited]
    have_fetched = all(
        fetch.leader_epoch == event.leader_epoch and fetch.log_end >= event.hw_new
        for fetch in fetches
    )
    if event.leo < event.hw_new or not have_fetched:
        yield broken(
            f"leader {event.broker} advanced its high watermark to {event.hw_new} before all of "
            f"{ids(event.maximal_isr)} had fetched up to it",
            event,
        )


@the_high_watermark_waits_for_the_maximal_isr.also
def the_members_own_logs_have_what_is_committed(
    replicas: ReplicasOfPartition, event: PartitionEvent
) -> Findings:
    """A leader knows the fetches of its followers alone: one that crashed may have lost since what
    it had fetched, which its own events show."""
    logs, awaited = replicas.truth.logs, replicas.awaited(event)
    epoch = logs[event.broker].epochs.epoch_of(event.hw_new - 1)
    for member in (event.maximal_isr or ()) if awaited is None else awaited:
        log = logs.get(member)
        if member == event.broker or log is None:
            continue
        # A member that follows a leader of a later epoch has left this one, which need not see it
        # yet.
        if log.leader_epoch <= event.leader_epoch and not log.holds(event.hw_new, epoch):
            yield broken(
                f"leader {event.broker} advanced its high watermark to {event.hw_new}, and the log "
                f"of a member of its maximal ISR, {ids([member])}, does not hold the leader's "
                "records up to there",
                event,
            )


@rule("B6", "Partition epochs never decrease on a broker",
      source="KIP-497, KAFKA-13790; Partition.makeLeader, makeFollower",
      evidence=Evidence.TRACE, tables=("partition_event",),
      breaks="Broker 1 applies partition epoch 1, and then 0.",
      keeps="Broker 1 applies partition epochs 0, 0 and 1; another incarnation of "
      "it applies 0.")  # fmt: skip
def partition_epochs_never_decrease_on_a_broker(
    replica: Replica, event: PartitionEvent
) -> Findings:
    """A running broker never applies an older partition epoch, and an equal partition epoch has the
    same leader epoch."""
    last, highest = replica.last, replica.highest_epoch
    if last is None or highest is None:
        return
    yield CASE
    is_equal = event.partition_epoch == last.partition_epoch
    if event.partition_epoch < highest or (is_equal and event.leader_epoch != last.leader_epoch):
        yield broken(
            f"broker {event.broker} applied an older partition epoch, or the same one with another "
            "leader epoch",
            event,
        )


@rule("B10", "The high watermark does not advance below min.insync.replicas",
      source="KIP-966, KAFKA-15583; Partition.maybeIncrementLeaderHW", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="min.insync.replicas is 2, the ISR [1], and the high watermark goes from 0 to 8.",
      keeps="min.insync.replicas is 2, the ISR [1, 2], and the high watermark goes "
      "from 0 to 8.")  # fmt: skip
def the_high_watermark_waits_for_min_isr(event: PartitionEvent) -> Findings:
    """A leader's high watermark does not advance while its ISR is smaller than
    min.insync.replicas."""
    if event.min_isr is None:
        return
    yield CASE
    if event.hw_new > event.hw_old and len(event.isr or ()) < event.min_isr:
        yield broken(
            f"leader {event.broker} advanced its high watermark with the ISR {ids(event.isr)}, "
            "below min.insync.replicas",
            event,
        )


@rule("E27", "A new replica begins empty",
      source="KIP-516, KAFKA-14616; LogManager.isStrayKraftReplica", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="Broker 2 creates a replica whose log ends at 4.",
      keeps="Broker 2 restarts with the 4 records that it had, deletes its replica, "
      "and begins another at 0.")  # fmt: skip
def a_new_replica_begins_empty(replica: Replica, event: PartitionEvent) -> Findings:
    """A replica that a broker creates for the first time, or again after deleting it, begins with
    an empty log, and any other with the log that its process had."""
    if not replica.is_new:
        return
    yield CASE
    if event.leo is not None and event.leo > 0:
        yield broken(
            f"broker {event.broker} created a new replica whose log ends at {event.leo}", event
        )


@a_new_replica_begins_empty.also
def a_replica_begins_with_the_log_that_it_had(
    last: PartitionEvent, event: PartitionEvent
) -> Findings:
    """A process begins to lead or follow again. Another one may have lost what was not on disk."""
    if event.leo is not None and last.leo is not None and event.leo < last.leo:
        yield broken(
            f"broker {event.broker} lost records without a truncation: its log ends at {event.leo}",
            event,
        )


@rule("F5", "Committed records are not truncated",
      source="KIP-101, KIP-279; AbstractFetcherThread.truncate", evidence=Evidence.TRACE,
      at_end=True, tables=("partition_event", "raft_event"),
      breaks="The high watermark is 8, and broker 2 truncates to 7.",
      keeps="The high watermark is 8, and broker 2 truncates to 8.")  # fmt: skip
def committed_records_are_not_truncated(truth: PartitionTruth, truncation: Truncation) -> Findings:
    """No replica truncates below the highest high watermark of its partition, except of what an
    unclean election or the last ISR member has lost. A replica whose records are all older than the
    epoch of that high watermark may have diverged there, and does not truncate below its own high
    watermark."""
    event, loss = truncation.event, truth.loss
    if loss is not None and event.leader_epoch >= loss.lost_from and event.offset >= loss.kept:
        yield exempt(loss.why)
        return
    yield CASE
    # A deposed leader cannot know what was committed after it: it may cut off what only it had.
    log_epoch, end_epoch, lowest = truncation.log_epoch, truncation.end_epoch, truncation.end
    if log_epoch is not None and end_epoch is not None and log_epoch < end_epoch:
        lowest = truncation.high_watermark or 0
    if lowest is not None and event.offset < lowest:
        yield broken(
            f"broker {event.broker} truncated below the high watermark {truncation.end}", event
        )


@rule("F8", "acks=all waits for the whole maximal ISR",
      source="KIP-497; Partition.checkEnoughReplicasReachOffset", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="acks=all succeeds for offset 8, and broker 2 of the ISR has fetched up to 8.",
      keeps="acks=all succeeds for offset 8; broker 2 has fetched up to 9, and 3 is "
      "not in the ISR.")  # fmt: skip
def acks_all_waits_for_the_maximal_isr(
    replicas: ReplicasOfPartition, replica: Replica, event: PartitionEvent
) -> Findings:
    """When a Produce with acks=all succeeds, every member of the maximal ISR holds its records, and
    they are at least min.insync.replicas. A batch that a producer sends again, and that was
    committed when its leader began to lead, waits for no fetch."""
    awaited, members = replicas.awaited(event), event.maximal_isr or ()
    if awaited is None:
        return
    yield CASE
    log_ends = [event.leo, *(event.fetch_state(member).log_end for member in awaited)]
    is_held = min(log_ends) > event.offset or event.offset < (replica.began_with or 0)
    if not is_held or len(members) < (event.min_isr or 1):
        yield broken(
            f"leader {event.broker} acknowledged offset {event.offset} before all of "
            f"{ids(members)} had it, or with fewer than min.insync.replicas",
            event,
        )


@rule("F16", "One writer per leader epoch",
      source="KIP-101, KIP-320; Partition.appendRecordsToLeader", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="Brokers 1 and 2 both append records of clients in leader epoch 0.",
      keeps="Broker 1 appends records of clients in leader epoch 0, and 2 in 1; "
      "broker 3 appends what it fetched.")  # fmt: skip
def one_writer_per_leader_epoch(writers: dict[int, PartitionEvent]) -> Findings:
    """In each leader epoch of a partition only one broker appends records of clients."""
    yield CASE
    for broker, event in writers.items() if len(writers) > 1 else ():
        yield broken(
            f"broker {broker} appended records in a leader epoch in which another broker did", event
        )


@rule("F18", "A leader's high watermark does not decrease",
      source="KIP-101, KIP-207; Partition.maybeIncrementLeaderHW, fetchOffsetForTimestamp",
      evidence=Evidence.TRACE, tables=("partition_event", "client_record"),
      breaks="Leader 1 moves its high watermark from 8 back to 7.",
      keeps="Leader 1 has high watermark 8, and follower 2 moves its own from 8 "
      "back to 7.")  # fmt: skip
def a_leaders_high_watermark_does_not_decrease(event: PartitionEvent) -> Findings:
    """While a broker leads an epoch its high watermark only advances, also as clients see it, and
    consumers receive an end offset only once the high watermark has passed the start of the
    epoch."""
    yield CASE
    if event.hw_new < event.hw_old:
        yield broken(
            f"leader {event.broker} moved its high watermark back to {event.hw_new}", event
        )
