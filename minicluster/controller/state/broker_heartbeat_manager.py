"""The heartbeats of brokers: soft state of the active controller, lost on fail-over.

Three things are known of a broker that no record has: when it was last heard of, up to where it has
read the metadata log, and where in that log its controlled shutdown began. A new controller begins
without them, and with a full session for every unfenced broker (``machine.on_claim``).

Sessions differ by release. In 4.x every contact counts under (broker, epoch), registered or not,
fenced or not, and an expired session is removed once. So a fenced broker that sends heartbeats
keeps another incarnation of its id out, and one that was stopped in good order does so until its
last heartbeat is a session old. Up to 3.9 the unfenced brokers form a list by last contact.
Everything else is the same.

A broker in controlled shutdown may stop when each active broker has read past its shutdown offset:
by then all know who leads in its place. A broker whose registration has just changed counts with
offset -1 until its next heartbeat, and holds up every controlled shutdown that long.

Units:   times in milliseconds; offsets are those of the metadata log, -1 when unknown.
Source:  BrokerHeartbeatManager, BrokerHeartbeatTracker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum

from msgspec import Struct

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from minicluster.rules import Rules
from minicluster.values import Value

NO_OFFSET = -1
MAX_OFFSET = (1 << 63) - 1


class BrokerControlState(Enum):
    """The state in which the controller holds a broker. SHUTDOWN_NOW is only ever a next state."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        """True for a broker that must not serve."""
        return self in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW)

    @property
    def in_controlled_shutdown(self) -> bool:
        """True while the broker hands over its leaderships."""
        return self is BrokerControlState.CONTROLLED_SHUTDOWN

    @property
    def should_shut_down(self) -> bool:
        """True when the broker may stop."""
        return self is BrokerControlState.SHUTDOWN_NOW


class _Entry(Struct):
    fenced: bool
    metadata_offset: int = NO_OFFSET
    shutdown_offset: int = NO_OFFSET
    last_contact_ms: int = 0

    @property
    def shutting_down(self) -> bool:
        return self.shutdown_offset >= 0

    @property
    def active(self) -> bool:
        return not self.fenced and not self.shutting_down


class BrokerIdAndEpoch(Value, order=True):
    """A broker's session: its id and the epoch that its heartbeats carry."""

    broker_id: int
    epoch: int


class BrokerHeartbeatManager:
    """The heartbeat state of all brokers on one active controller."""

    def __init__(self, rules: Rules, session_timeout_ms: int) -> None:
        self._rules = rules
        self._session_timeout_ms = session_timeout_ms
        self._brokers: dict[int, _Entry] = {}
        self._contacts: dict[BrokerIdAndEpoch, int] = {}

    def __contains__(self, broker_id: object) -> bool:
        return broker_id in self._brokers

    # Sessions.

    def contact(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """Renew a session by a heartbeat that arrives, before anything in it is checked (4.x)."""
        if self._rules.sessions_by_epoch:
            self._contacts[BrokerIdAndEpoch(broker_id, epoch)] = now_ms

    def has_valid_session(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """True while the registered incarnation is alive, so that no other may take its id."""
        entry = self._brokers.get(broker_id)
        if not self._rules.sessions_by_epoch:
            if entry is None or entry.fenced:
                return False
            return entry.last_contact_ms + self._session_timeout_ms >= now_ms
        if not self._rules.fenced_broker_holds_session and (entry is None or entry.fenced):
            return False
        contact_ms = self._contacts.get(BrokerIdAndEpoch(broker_id, epoch))
        return contact_ms is not None and not self._expired(contact_ms, now_ms)

    def expired_sessions(self, now_ms: int) -> tuple[BrokerIdAndEpoch, ...]:
        """The sessions that have run out, the one with the oldest contact first (4.x)."""
        expired = [
            (contact_ms, session)
            for session, contact_ms in self._contacts.items()
            if self._expired(contact_ms, now_ms)
        ]
        return tuple(session for _, session in sorted(expired))

    def stale_broker(self, now_ms: int) -> int | None:
        """The unfenced broker with the oldest contact, if its session has run out (3.9)."""
        silent = self.by_last_contact()
        if not silent or self.last_contact_ms(silent[0]) + self._session_timeout_ms >= now_ms:
            return None
        return silent[0]

    def next_check_ms(self) -> int | None:
        """When the oldest session of an unfenced broker runs out (3.9); None without any."""
        contacts = [e.last_contact_ms for e in self._brokers.values() if not e.fenced]
        return min(contacts) + self._session_timeout_ms if contacts else None

    def by_last_contact(self) -> tuple[int, ...]:
        """The unfenced brokers, the longest silent first (3.9)."""
        unfenced = [(e.last_contact_ms, b) for b, e in self._brokers.items() if not e.fenced]
        return tuple(broker_id for _, broker_id in sorted(unfenced, key=lambda pair: pair[0]))

    def _expired(self, contact_ms: int, now_ms: int) -> bool:
        return contact_ms <= now_ms and contact_ms + self._session_timeout_ms < now_ms

    # Brokers.

    def register(self, broker_id: int, fenced: bool, now_ms: int) -> None:
        """Note a broker's fencing from a record; where it is not new, the offset is forgotten."""
        entry = self._brokers.get(broker_id)
        offset = NO_OFFSET
        if entry is None:
            self._brokers[broker_id] = _Entry(fenced)
        elif entry.fenced != fenced:
            offset = entry.metadata_offset
        self.touch(broker_id, fenced, offset, now_ms)

    def touch(self, broker_id: int, fenced: bool, metadata_offset: int, now_ms: int) -> None:
        """Set the metadata offset that a broker has read; fencing ends a controlled shutdown."""
        entry = self._entry(broker_id)
        # Brokers of the same last contact keep the order of arrival.
        self._brokers[broker_id] = self._brokers.pop(broker_id)
        entry.fenced = fenced
        entry.metadata_offset = metadata_offset
        if fenced:
            entry.shutdown_offset = NO_OFFSET
        if not self._rules.sessions_by_epoch:
            entry.last_contact_ms = now_ms

    def remove(self, broker_id: int) -> None:
        """Forget a broker; its sessions, if they count by epoch, run out by themselves."""
        self._brokers.pop(broker_id, None)

    def drop_session(self, session: BrokerIdAndEpoch) -> None:
        """Forget one session."""
        self._contacts.pop(session, None)

    def set_shutdown_offset(self, broker_id: int, offset: int) -> None:
        """Remember where a controlled shutdown began; only the first time counts.

        Errors:  ValueError for a fenced broker.
        """
        entry = self._entry(broker_id)
        if entry.fenced:
            raise ValueError("Fenced brokers cannot enter controlled shutdown.")
        if not entry.shutting_down:
            entry.shutdown_offset = offset

    def last_contact_ms(self, broker_id: int) -> int:
        """The time of a broker's last contact (3.9)."""
        return self._entry(broker_id).last_contact_ms

    def usable(self) -> Iterator[tuple[int, bool]]:
        """(broker, fenced) by id, of the brokers that may get replicas: not of those that leave."""
        for broker_id in sorted(self._brokers):
            entry = self._brokers[broker_id]
            if not entry.shutting_down:
                yield broker_id, entry.fenced

    def lowest_active_offset(self) -> int:
        """The metadata offset of the slowest active broker; the largest number without any."""
        return min(
            (e.metadata_offset for e in self._brokers.values() if e.active), default=MAX_OFFSET
        )

    # The state machine.

    def current_state(self, broker_id: int) -> BrokerControlState:
        """The current state of a registered broker.

        Errors:  ValueError for an unknown one.
        """
        entry = self._entry(broker_id)
        if entry.shutting_down:
            return BrokerControlState.CONTROLLED_SHUTDOWN
        return BrokerControlState.FENCED if entry.fenced else BrokerControlState.UNFENCED

    def next_state(
        self,
        broker_id: int,
        *,
        want_fence: bool,
        want_shut_down: bool,
        metadata_offset: int,
        register_offset: int,
        has_leaderships: Callable[[], bool],
    ) -> BrokerControlState:
        """The next state of a broker by its heartbeat; the table is in ``broker_heartbeat``.

        Errors:  ValueError for an unknown broker.
        Source:  BrokerHeartbeatManager.calculateNextBrokerState.
        """
        current = self.current_state(broker_id)
        if current is BrokerControlState.FENCED:
            if want_shut_down:
                return BrokerControlState.SHUTDOWN_NOW
            if want_fence or metadata_offset < register_offset:
                return BrokerControlState.FENCED
            return BrokerControlState.UNFENCED
        if current is BrokerControlState.UNFENCED:
            if want_fence:
                return (
                    BrokerControlState.SHUTDOWN_NOW if want_shut_down else BrokerControlState.FENCED
                )
            if not want_shut_down:
                return BrokerControlState.UNFENCED
            if has_leaderships():
                return BrokerControlState.CONTROLLED_SHUTDOWN
            return BrokerControlState.SHUTDOWN_NOW
        # In controlled shutdown. Whatever it wants by now: it has handed its leaderships over, so
        # there is no way back but a new registration.
        if has_leaderships():
            return BrokerControlState.CONTROLLED_SHUTDOWN
        if self._entry(broker_id).shutdown_offset <= self.lowest_active_offset():
            return BrokerControlState.SHUTDOWN_NOW
        return BrokerControlState.CONTROLLED_SHUTDOWN

    def _entry(self, broker_id: int) -> _Entry:
        entry = self._brokers.get(broker_id)
        if entry is None:
            raise ValueError(f"Broker {broker_id} is not registered.")
        return entry


class Touch(Value):
    """A contact of a broker, which has read the metadata up to the offset."""

    broker_id: int
    fenced: bool
    metadata_offset: int


class DropSession(Value):
    """A session has run out and is taken off the list."""

    session: BrokerIdAndEpoch


class ForgetBroker(Value):
    """A session ran out whose broker is not registered any more."""

    broker_id: int


class SetShutdownOffset(Value):
    """After the records: remember their last offset as the start of a controlled shutdown."""

    broker_id: int


SoftChange = Touch | DropSession | ForgetBroker | SetShutdownOffset


def replay_registration(
    heartbeats: BrokerHeartbeatManager, record: object, image: MetadataImage, now_ms: int
) -> None:
    """Apply a registration record to the heartbeats; the image includes it.

    A registration, new or amended, resets the broker's entry; every change of a registration sets
    its fencing again, and so resets the metadata offset of the broker.
    Source:  ClusterControlManager.replay.
    """
    match record:
        case RegisterBrokerRecord(broker_id=broker_id):
            heartbeats.remove(broker_id)
        case BrokerRegistrationChangeRecord(broker_id=broker_id):
            pass
        case FenceBrokerRecord(id=broker_id) | UnfenceBrokerRecord(id=broker_id):
            pass
        case UnregisterBrokerRecord(broker_id=broker_id):
            heartbeats.remove(broker_id)
            return
        case _:
            return
    broker = image.cluster.broker(broker_id)
    if broker is not None:
        heartbeats.register(broker_id, broker.fenced, now_ms)


def apply_soft(
    heartbeats: BrokerHeartbeatManager, change: SoftChange, last_offset: int, now_ms: int
) -> None:
    """Carry out a decision's change of the heartbeat state."""
    match change:
        case Touch(broker_id, fenced, offset):
            heartbeats.touch(broker_id, fenced, offset, now_ms)
        case DropSession(session):
            heartbeats.drop_session(session)
        case ForgetBroker(broker_id):
            heartbeats.remove(broker_id)
        case SetShutdownOffset(broker_id):
            heartbeats.set_shutdown_offset(broker_id, last_offset)
