"""The registrations of each broker: epochs, incarnations, fencing, log directories.

========================  ========================================================================
takes                     RegisterBrokerRecord, UnregisterBrokerRecord, FenceBrokerRecord,
                          UnfenceBrokerRecord, BrokerRegistrationChangeRecord
keeps                     ``Cluster.brokers``; by directory its owner
yields                    ``Registration``, ``BrokerRecord``, ``RegisteredDirectory``
========================  ========================================================================

Bounded by the brokers and their directories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from minicluster.protocol import records as r
from minicluster.protocol.schema import Message
from minicluster.values import Value
from minicluster.verify.histories.cluster import Broker, Cluster
from minicluster.verify.judging import Judge
from minicluster.verify.promises import Release

# The release from which an incarnation that registers again keeps its epoch, fencing and controlled
# shutdown. Before, it gets a new epoch (up to 3.8.0; KAFKA-16952), and is fenced while it leads and
# is in ISRs (up to 3.7.0; KAFKA-16757): brokers of 3.7 register again at their start, and where the
# metadata.version rises to 3.7-IV2.
KEEPS_EPOCH: Release = (3, 9)


class Registration(Value, kw_only=True):
    """A broker registers.

    Shapes:  again: the incarnation that is registered registers once more. is_new_incarnation: a
             registration came before, of another one. before: the broker until then.
    Units:   level: of metadata.version; clean_from: the first offset at which it may have begun,
             before records that clean up after its predecessor; leaves_from: the level from which
             a new incarnation leaves its ISRs. release: the oldest that may have written it.
    """

    broker: int
    offset: int
    again: bool
    is_new_incarnation: bool
    epoch: int
    fenced: bool
    in_controlled_shutdown: bool
    registered_epoch: int
    was_fenced: bool
    was_in_controlled_shutdown: bool
    highest_epoch: int | None
    level: int
    clean_from: int
    leaves_from: int
    release: Release


class BrokerRecord(Value, kw_only=True):
    """A record fences, unfences, changes or unregisters a broker.

    Shapes:  is_registered: when it comes. fences: True, False, or None where it does neither.
    """

    broker: int
    is_registered: bool
    epoch: int
    registered_epoch: int
    fences: bool | None
    was_fenced: bool
    level: int

    @property
    def flips_to_fenced(self) -> bool:
        """A registered broker becomes fenced, which it was not."""
        return self.is_registered and bool(self.fences) and not self.was_fenced


class RegisteredDirectory(Value, kw_only=True):
    """A broker registers a log directory; owner: the broker to which it belongs until then."""

    broker: int
    directory: UUID
    owner: int


class BrokerHistories:
    """Folds the records of brokers.

    Shapes:  on_new_incarnation: gets a broker; on_fenced: one that flips to fenced; on_lost: a
             broker and a directory that it has lost; on_changed: a broker of which there was a
             record.
    """

    def __init__(
        self,
        cluster: Cluster,
        judge: Judge,
        *,
        on_new_incarnation: Callable[[int], None],
        on_fenced: Callable[[int], None],
        on_lost: Callable[[int, UUID], None],
        on_regained: Callable[[int, UUID], None],
        on_changed: Callable[[int], None],
    ) -> None:
        self._cluster = cluster
        self._judge = judge
        self._on_new_incarnation = on_new_incarnation
        self._on_fenced = on_fenced
        self._on_lost = on_lost
        self._on_regained = on_regained
        self._on_changed = on_changed
        self._owners: dict[UUID, int] = {}

    def on_registration(self, record: r.RegisterBrokerRecord, clean_from: int) -> None:
        """A broker registers."""
        cluster, number = self._cluster, record.broker_id
        broker = cluster.broker(number)
        is_new = cluster.judged and broker.incarnation not in (None, record.incarnation_id)
        again = broker.registered and broker.incarnation == record.incarnation_id
        leaves_from = cluster.promises.new_incarnation_leaves_from
        release = cluster.releases.oldest
        if cluster.judged:
            step = Registration(
                broker=number,
                offset=cluster.offset,
                again=again,
                is_new_incarnation=is_new,
                epoch=record.broker_epoch,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                registered_epoch=broker.epoch,
                was_fenced=broker.fenced,
                was_in_controlled_shutdown=broker.in_controlled_shutdown,
                highest_epoch=broker.highest_epoch,
                level=cluster.level,
                clean_from=clean_from,
                leaves_from=leaves_from,
                release=release,
            )
            self._judge.take(step, cluster.offset)
        broker.may_stay = cluster.level < leaves_from if is_new else again and release < KEEPS_EPOCH
        if is_new:
            self._on_new_incarnation(number)
        self._register_directories(number, record.log_dirs, broker.log_dirs)
        epoch, highest = record.broker_epoch, broker.highest_epoch
        broker.highest_epoch = epoch if highest is None else max(highest, epoch)
        broker.registered, broker.epoch = True, epoch
        broker.incarnation = record.incarnation_id
        broker.fenced = record.fenced
        broker.in_controlled_shutdown = record.in_controlled_shutdown
        broker.log_dirs = tuple(record.log_dirs)
        broker.rack = record.rack
        self._changed(number)

    def on_record(self, record: Message) -> None:
        """A broker is fenced, unfenced, changed or unregistered."""
        fences: bool | None = None
        match record:
            case r.FenceBrokerRecord():
                number, epoch, fences = record.id, record.epoch, True
            case r.UnfenceBrokerRecord():
                number, epoch, fences = record.id, record.epoch, False
            case r.BrokerRegistrationChangeRecord():
                number, epoch = record.broker_id, record.broker_epoch
                fences = None if record.fenced == 0 else record.fenced > 0
            case r.UnregisterBrokerRecord():
                number, epoch = record.broker_id, record.broker_epoch
            case _:
                return
        broker = self._cluster.broker(number)
        self._step(broker, number, epoch, fences)
        if fences is not None:
            broker.fenced, broker.may_stay = fences, False
        if isinstance(record, r.UnregisterBrokerRecord):
            broker.registered = broker.may_stay = False
            for directory in broker.log_dirs:
                self._owners.pop(directory, None)
        elif isinstance(record, r.BrokerRegistrationChangeRecord):
            if record.in_controlled_shutdown:
                broker.in_controlled_shutdown = record.in_controlled_shutdown > 0
            if record.log_dirs:
                self._lose(number, broker.log_dirs, record.log_dirs)
            broker.log_dirs = tuple(record.log_dirs or broker.log_dirs)
        self._changed(number)

    def _step(self, broker: Broker, number: int, epoch: int, fences: bool | None) -> None:
        cluster = self._cluster
        if not cluster.judged:
            return
        step = BrokerRecord(
            broker=number,
            is_registered=broker.registered,
            epoch=epoch,
            registered_epoch=broker.epoch,
            fences=fences,
            was_fenced=broker.fenced,
            level=cluster.level,
        )
        self._judge.take(step, cluster.offset)
        if step.flips_to_fenced:
            self._on_fenced(number)

    def _changed(self, number: int) -> None:
        self._cluster.brokers_changed()
        self._on_changed(number)

    def _register_directories(
        self, number: int, directories: Iterable[UUID], before: Iterable[UUID]
    ) -> None:
        directories = tuple(directories)
        if not directories:
            return
        self._lose(number, before, directories)
        for directory in directories:
            owner = self._owners.get(directory, number)
            if self._cluster.judged:
                step = RegisteredDirectory(broker=number, directory=directory, owner=owner)
                self._judge.take(step, self._cluster.offset)
            self._owners[directory] = number
            self._on_regained(number, directory)

    def _lose(self, number: int, before: Iterable[UUID], after: Iterable[UUID]) -> None:
        remaining = {*after}
        for directory in dict.fromkeys(before):
            if directory not in remaining:
                self._on_lost(number, directory)
                if self._owners.get(directory) == number:
                    del self._owners[directory]
