"""The truth of a partition: what is committed, what each replica holds, what is lost.

Nothing here rests on what a leader believes of its followers. A log is known as its end and the
leader epochs along it: two logs with the same epoch at an offset are the same up to there. All
rules about the partition read this one truth, and what excuses them is decided here.

Records are lost by an unclean election of a leader that lacks them, where the last ISR member comes
back with less, or where a new incarnation stays in the ISR with a shorter log, as under Kafka 3.x
and on ZooKeeper. An election or a restart that loses nothing excuses nothing.

subject   a partition: the events of its replicas, and its committed states, each after the event
          that committed it; of a running cluster as the metadata log is followed, perhaps later
keeps     by broker its log, the highest high watermark of the leaders with the leader epochs of the
          records below it, what is acknowledged, the candidates (ISR and ELR), the losses
"""

from __future__ import annotations

from msgspec import Struct

from minicluster.log.epochs import LeaderEpochs
from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.model import Evidence
from minicluster.verify.partition.event import Ids, PartitionEvent
from minicluster.verify.partition.setting import Setting
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, ids, rule

Epochs = tuple[tuple[int, int], ...]  # leader epoch and its first offset, ascending
_ENDS = ("stop", "delete", "truncate")  # events that say nothing of what a running replica holds
_BEGINS = ("become_leader", "become_follower")
NO_EPOCH = 2**62

UNCLEAN, LAST, STAYS, CLEANED = "unclean", "last", "stays", "cleaned"
EXCUSES = {
    UNCLEAN: "an unclean election has lost records of the partition",
    LAST: "the last ISR member came back without records of the partition",
    STAYS: "a new incarnation stayed in the ISR without records of the partition (Kafka 3.x)",
    CLEANED: "the log of the partition was cleaned",
}


class Loss(Struct):
    """The records that a partition has lost.

    Shapes:  cause: one of ``EXCUSES``.
    Units:   kept: the lowest offset that was lost. lost_from: the leader epoch from which on
             records are there to stay; lost_below: those of an epoch below this one may be lost (a
             member that stays with less may lead at any time, so then there is no such epoch).
    """

    cause: str
    kept: int
    lost_from: int
    lost_below: int

    @property
    def why(self) -> str:
        """Why the partition, or a record of it, promises nothing."""
        return EXCUSES[self.cause]

    def excuse_of(self, offset: int, leader_epoch: int | None) -> str | None:
        """Why a record promises nothing, if it is one of those; None for one that stays promised.

        A record of a later epoch was written after the loss.
        """
        if offset < self.kept or leader_epoch is None or leader_epoch >= self.lost_below:
            return None
        return self.why

    def take(self, other: Loss) -> None:
        """The partition has lost records once more."""
        self.cause = min(self.cause, other.cause)
        self.kept = min(self.kept, other.kept)
        self.lost_from = min(self.lost_from, other.lost_from)
        self.lost_below = max(self.lost_below, other.lost_below)


class ReplicaLog(Struct):
    """The log of one replica.

    Shapes:  lost: what it held before a crash, or before it was deleted. A leader may count it
             until the follower has fetched again, which its next append or truncation shows.
             begun: an event of its process told what the replica is.
    """

    incarnation: str | None
    end: int
    epochs: LeaderEpochs
    leader_epoch: int = -1
    lost: ReplicaLog | None = None
    begun: bool = False

    def holds(self, end: int, epoch: int | None) -> bool:
        """The records below an offset, of which the last one is of an epoch; None: of any."""
        if self.end >= end:
            own = self.epochs.epoch_of(end - 1)
            if own is None or epoch is None or own == epoch:
                return True
        return self.lost is not None and self.lost.holds(end, epoch)


class Beginning(Struct):
    """A broker begins to lead.

    Shapes:  kept: up to where its log has what is committed; None: all of it. is_first: it is the
             first event of its process.
    """

    event: PartitionEvent
    kept: int | None
    is_first: bool


class PartitionTruth:
    """The truth of one partition.

    Shapes:  end: the highest high watermark of its leaders, None before there was one; end_epochs:
             along the records below it; end_epoch: the highest in which a leader moved its own.
             candidates: None where neither the log nor a leader has told them. unclean_epoch: of
             the last unclean election. led_epoch: the highest that a leader had.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.logs: dict[int, ReplicaLog] = {}
        self.end: int | None = None
        self.end_epochs: Epochs = ()
        self.end_epoch: int | None = None
        self.acknowledged = -1
        self.committed: CommittedPartition | None = None
        self.candidates: Ids | None = None
        self.may_stay = False
        self.unclean_epoch: int | None = None
        self.led_epoch = -1
        self.loss: Loss | None = None
        self._awaited: list[Beginning] = []  # those whose election is not in the log yet

    def on_event(self, event: PartitionEvent) -> Said:
        """An event of a replica."""
        self._follow(event)
        if event.kind in _ENDS:
            return
        log, is_first = self.logs[event.broker], not self.logs[event.broker].begun
        log.begun = True
        if self.setting.on_zookeeper:
            self._take_isr_of_leader(event)
        if event.kind == "become_leader":
            beginning = Beginning(event, self._kept_by(event), is_first)
            if self.setting.is_over or self.setting.on_zookeeper or self._is_in_log(event):
                yield from self._on_leader(beginning)
            else:
                self._awaited.append(beginning)
            return
        if event.kind == "become_follower":
            self._on_loss(self._lost_by_less(event, None, is_first))
        leads = event.maximal_isr is not None
        if event.kind == "hw" and leads:
            self._on_loss(self._lost_behind_an_election(event))
        if self.setting.is_over:  # B3 is judged at the end
            yield from electable_replicas_hold_what_is_committed(self, event)
        if event.kind == "hw" and leads:
            if self.end is None or event.hw_new > self.end:
                self.end, self.end_epochs = event.hw_new, log.epochs.entries
            self.end_epoch = max(
                event.leader_epoch, -1 if self.end_epoch is None else self.end_epoch
            )
        elif event.kind == "ack" and event.leader_epoch >= (self.unclean_epoch or -1):
            self.acknowledged = max(self.acknowledged, event.offset)

    def on_commit(self, state: CommittedPartition) -> Said:
        """A record about the partition is committed."""
        self.committed = state
        self.candidates = tuple(dict.fromkeys((*state.after.isr, *(state.after.elr or ()))))
        self.may_stay = state.step.level < self.setting.new_incarnation_leaves_from
        if state.step.is_unclean:
            self.unclean_epoch = state.leader_epoch
        while self._awaited and self._is_in_log(self._awaited[0].event):
            yield from self._on_leader(self._awaited.pop(0))

    # --- what replicas hold -----------------------------------------------------------------------

    def _follow(self, event: PartitionEvent) -> None:
        """Keep up with the log of a replica."""
        log = self.logs.get(event.broker)
        if event.kind == "delete":
            # A leader that has not heard of it may still count what the replica has fetched, so
            # the log stays as the lost one; dropped at once, B2 would find the member lacking.
            begun = log is not None and log.begun and log.incarnation == event.incarnation
            self.logs[event.broker] = ReplicaLog(
                event.incarnation, 0, LeaderEpochs(), lost=log, begun=begun
            )
            return
        if log is None or log.incarnation != event.incarnation:
            log = self.logs[event.broker] = _log_on_disk(log, event)
        if event.kind == "append" or event.kind == "truncate":
            _change(log, event)
        if event.leader_epoch is not None:
            log.leader_epoch = max(log.leader_epoch, event.leader_epoch)

    def _kept_by(self, event: PartitionEvent) -> int | None:
        """Up to where a new leader's log has the committed records; None: it has all of them.

        The ends alone would not do: a log may be as long, with records of another leader epoch.
        Without epochs, as runs of earlier versions have them, they decide.
        """
        if self.end is None or event.leo is None:
            return None
        epochs = self.logs[event.broker].epochs.entries
        if not self.end_epochs or not epochs:
            kept = min(self.end, event.leo)
        else:
            ends = _ends(epochs, event.leo)
            committed = _ends(self.end_epochs, self.end)
            kept = max(
                (min(end, ends[epoch]) for epoch, end in committed.items() if epoch in ends),
                default=0,
            )
        return kept if kept < self.end else None

    # --- what is lost -----------------------------------------------------------------------------

    def _is_in_log(self, event: PartitionEvent) -> bool:
        """The metadata log has the election, so it is known whether that was an unclean one."""
        return self.committed is not None and self.committed.leader_epoch >= event.leader_epoch

    def _on_leader(self, begun: Beginning) -> Said:
        event, unclean = begun.event, self.unclean_epoch
        is_unclean = unclean is not None and self.led_epoch < unclean <= event.leader_epoch
        if unclean is not None and is_unclean and begun.kept is not None:
            self._on_loss(Loss(UNCLEAN, begun.kept, unclean, unclean))
        else:
            self._on_loss(self._lost_by_less(event, begun.kept, begun.is_first))
        if self.setting.is_over:
            yield from electable_replicas_hold_what_is_committed(self, event)
        yield from a_leader_begins_with_what_is_committed(self, event)
        self.led_epoch = max(self.led_epoch, event.leader_epoch)

    def _lost_behind_an_election(self, event: PartitionEvent) -> Loss | None:
        """What a leader of before commits by itself after an unclean election is lost as well."""
        unclean = self.unclean_epoch
        if unclean is None or event.leader_epoch >= unclean or event.hw_new <= event.hw_old:
            return None
        return Loss(UNCLEAN, event.hw_old, unclean, unclean)

    def _lost_by_less(self, event: PartitionEvent, kept: int | None, is_first: bool) -> Loss | None:
        """A replica begins with less than is committed, rightly."""
        if event.leo is None or self.end is None:
            return None
        if event.leo >= self.end:
            return self._lost_tail(event, event.leo, is_first)
        first_lost = event.leo if kept is None else kept
        candidates = self.candidates
        if candidates is None:
            # Every log begins behind the partition's records: they are as the leader has them.
            candidates = event.isr
        if event.kind == "become_leader" and candidates is not None and len(candidates) <= 1:
            return Loss(LAST, first_lost, event.leader_epoch, event.leader_epoch + 1)
        if is_first and self.may_stay:
            return Loss(STAYS, first_lost, event.leader_epoch, NO_EPOCH)
        return None

    def _lost_tail(self, event: PartitionEvent, log_end: int, is_first: bool) -> Loss | None:
        """A process leads on in the leader epoch of the one before, without the end of its log.

        It writes other records in that place, and followers that have the first ones cannot tell:
        both are of one epoch. A controller of ZooKeeper's that begins after the broker came back
        does not see that it was gone.
        """
        before = self.logs[event.broker].lost
        if event.kind != "become_leader" or not is_first or not self.may_stay or before is None:
            return None
        if before.end <= log_end or before.leader_epoch != event.leader_epoch:
            return None
        return Loss(STAYS, log_end, event.leader_epoch, event.leader_epoch + 1)

    def _on_loss(self, loss: Loss | None) -> None:
        if loss is not None and self.loss is not None:
            self.loss.take(loss)
        elif loss is not None:
            self.loss = loss

    def _take_isr_of_leader(self, event: PartitionEvent) -> None:
        """On ZooKeeper no metadata log has the ISR: a leader knows it, and what it has proposed."""
        if event.maximal_isr is None or event.leader_epoch < self.led_epoch:
            return  # a leader of before, which has not heard of its successor, knows an old ISR
        known = self.candidates
        if event.kind == "become_leader" and known is not None and event.broker not in known:
            self.unclean_epoch = event.leader_epoch
        self.candidates, self.may_stay = event.maximal_isr, True


def _ends(epochs: Epochs, end: int) -> dict[int, int]:
    """The offset at which each leader epoch of a log ends."""
    ends = [*(min(start, end) for _, start in epochs[1:]), end]
    return {epoch: until for (epoch, _), until in zip(epochs, ends, strict=True)}


def _pairs(event: PartitionEvent) -> Epochs:
    numbers = event.epochs or ()
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _log_on_disk(before: ReplicaLog | None, event: PartitionEvent) -> ReplicaLog:
    """The log as a broker finds it on its disk when it starts."""
    log = ReplicaLog(event.incarnation, event.leo or 0, LeaderEpochs(_pairs(event)))
    if before is not None:
        # The leader still counts what the follower fetched before its crash: without that log, B2
        # would accuse a leader that cannot know of it yet. One log back is kept and no chain, or a
        # broker that crashes again and again would keep all of its logs.
        before.lost = None
        log.lost = before
    return log


def _change(log: ReplicaLog, event: PartitionEvent) -> None:
    """Append to a log, or truncate it."""
    log.lost = None
    if event.kind == "truncate":
        log.epochs.truncate_from_end(event.offset)
        log.end = event.offset
        return
    if event.offset is None:  # the log is emptied, and begins further on
        log.epochs.clear()
    for epoch, start in _pairs(event):
        log.epochs.truncate_from_end(start)
        log.epochs.assign(epoch, start)
    log.end = event.leo


@rule("B3", "Replicas that may be elected hold every committed record",
      source="KIP-497, KIP-966; StrongISR", evidence=Evidence.TRACE, at_end=True,
      tables=("partition_event", "raft_event"),
      breaks="The high watermark is 8; broker 2 is in the ISR, and its log ends at 3.",
      keeps="Broker 2 has all 8 committed records; after an unclean election it "
      "leads with 3.")  # fmt: skip
def electable_replicas_hold_what_is_committed(
    truth: PartitionTruth, event: PartitionEvent
) -> Findings:
    """A running replica in the committed ISR or ELR holds every record below the highest high
    watermark, except after an unclean election or the loss of the last ISR member."""
    candidates, end = truth.candidates or (), truth.end
    if len(candidates) <= 1 or event.broker not in candidates or end is None:
        return
    if truth.loss is not None:
        yield exempt("the partition had lost records by then, rightly")
        return
    yield CASE
    if event.leo is not None and event.leo < end:
        yield broken(
            f"broker {event.broker} may be elected (ISR and ELR {ids(candidates)}) and its log "
            f"ends below the high watermark {end}",
            event,
        )


@rule("F19", "A leader begins with every committed record",
      source="KIP-966; LeaderCandidateCompleteness of Vanlightly's kip_966_properties.tla",
      evidence=Evidence.TRACE, tables=("partition_event", "raft_event"),
      breaks="The high watermark is 2, and 2 is elected from ISR [2, 3] with a log that ends at 1.",
      keeps="The high watermark is 2, and 2 is elected from ISR [2, 3] with a log that ends at "
      "2.")  # fmt: skip
def a_leader_begins_with_what_is_committed(
    truth: PartitionTruth, event: PartitionEvent
) -> Findings:
    """A broker that is elected cleanly has every record below the highest high watermark, and every
    one that was acknowledged by all in-sync replicas, except after an unclean election or the loss
    of the last ISR member."""
    candidates, end = truth.candidates or (), max(truth.end or 0, truth.acknowledged + 1)
    # A broker that leads on, or again, was not elected from among others.
    if event.leader_epoch <= truth.led_epoch or not end:
        return
    if truth.loss is not None:
        yield exempt(truth.loss.why)
        return
    if len(candidates) <= 1 or event.broker not in candidates:
        return
    yield CASE
    if event.leo is not None and event.leo < end:
        yield broken(
            f"leader {event.broker} was elected from ISR and ELR {ids(candidates)}, and its log "
            f"ends at {event.leo}, where records up to {end - 1} were committed or acknowledged",
            event,
        )
