"""A consumer in a group: it reads what it is assigned and commits what it has read.

member ──assignment──▶ committed offsets ──▶ reads ──records──▶ commit … ──stop──▶ leave
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from minicluster.clients.classic_member import ClassicMember
from minicluster.clients.client import BACKOFF_MS, COORDINATOR_ERRORS, Client, TopicPartition
from minicluster.clients.consumer_member import ConsumerMember
from minicluster.clients.member import Member
from minicluster.clients.offsets import Membership, commit_offsets, fetch_offsets
from minicluster.clients.reader import ConsumedRecord, Reader
from minicluster.effects import Effect
from minicluster.protocol import ErrorCode
from minicluster.values import Value

GroupProtocol = Literal["classic", "consumer"]
_TRIED_AGAIN = COORDINATOR_ERRORS | {
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}


class ConsumerConfig(Value, kw_only=True):
    """The group of a consumer, and what it reads.

    Shapes:  records_max: the latest records that it keeps; all where none is given.
    """

    group: str
    topics: tuple[str, ...]
    read_committed: bool = False
    protocol: GroupProtocol = "classic"
    records_max: int | None = None


class Consumer(Client):
    """One consumer.

    Inputs:  as ``Client``, and ``start``, ``stop``.
    Shapes:  records: what it has seen, in their order; seen: how many those are, with what it
             does not keep. reached: how far it was in each partition, in all of its assignments:
             what its group had committed, and what it has read. is_done: it has left its group.
    """

    def __init__(self, name: str, brokers: Sequence[int], config: ConsumerConfig) -> None:
        super().__init__(name, brokers)
        self.config = config
        self.records: list[ConsumedRecord] = []
        self.seen = 0
        self.is_done = False
        self.committed: dict[TopicPartition, int] = {}
        self.reached: dict[TopicPartition, int] = {}
        self._is_stopping = False
        self._turn = 0  # of a beginning: what an earlier one still waits for is ignored
        self._commit_number = 0  # of the commit that is waited for, or that an assignment has ended
        self._is_committing = False
        self._after_commit: Callable[[int], None] | None = None
        self._reader = Reader(
            self, read_committed=config.read_committed, on_records=self._on_records
        )
        kind = ClassicMember if config.protocol == "classic" else ConsumerMember
        self._member: Member = kind(
            self,
            config.group,
            config.topics,
            on_assigned=self._on_assigned,
            on_revoked=self._on_revoked,
        )

    def start(self, now_ms: int) -> list[Effect]:
        """Join the group."""
        self._member.join(now_ms)
        return self.take_effects()

    def stop(self, now_ms: int) -> list[Effect]:
        """Commit, and leave the group."""
        if not self._is_stopping:
            self._is_stopping = True
            self._turn += 1
            self._reader.stop()
            self._commit_then(self._leave, now_ms)
        return self.take_effects()

    def _leave(self, now_ms: int) -> None:
        self.forget_timers()

        def left(at_ms: int) -> None:
            self.forget_timers()
            self.forget_requests()
            self.is_done = True

        self._member.leave(left, now_ms)

    # --- assignments --------------------------------------------------------------------------

    def _on_assigned(
        self, member: Membership, places: tuple[TopicPartition, ...], now_ms: int
    ) -> None:
        self._reader.stop()
        if self._is_stopping:
            self._leave(now_ms)
            return
        self._commit_number += 1
        self._is_committing, self._after_commit = False, None
        self._reader.positions, self.committed = {}, {}
        self._turn += 1
        if places:
            self._begin(member, places, now_ms)

    def _begin(self, member: Membership, places: Iterable[TopicPartition], now_ms: int) -> None:
        """Read from the committed offsets on."""
        self._turn += 1
        turn = self._turn

        def start(offsets: dict[TopicPartition, int]) -> None:
            if turn == self._turn:
                self._reader.start(offsets)

        def begin(offsets: dict[TopicPartition, int] | None, at_ms: int) -> None:
            if self._is_stopping or turn != self._turn:
                return
            if offsets is None:
                self._member.on_rejected(ErrorCode.UNKNOWN_MEMBER_ID, at_ms)
                return
            self.committed = offsets
            self.reach(offsets)
            self.find_leaders(self.config.topics, lambda _: start(offsets), at_ms)

        fetch_offsets(self, member, places, begin, now_ms)

    def _on_revoked(self, then: Callable[[int], None], now_ms: int) -> None:
        self._turn += 1
        self._reader.stop()
        self._commit_then(then, now_ms)

    # --- records and commits ------------------------------------------------------------------

    def _on_records(self, records: Sequence[ConsumedRecord], now_ms: int) -> None:
        self.see(records)
        self.reach(self._reader.positions)
        self._commit(now_ms)

    def reach(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Take offsets into how far it was."""
        for place, offset in offsets.items():
            self.reached[place] = max(offset, self.reached.get(place, 0))

    def see(self, records: Sequence[ConsumedRecord]) -> None:
        """Take records into what it has seen."""
        self.seen += len(records)
        self.records += records
        if self.config.records_max is not None:
            del self.records[: -self.config.records_max]

    def _commit_then(self, then: Callable[[int], None], now_ms: int) -> None:
        """Commit what is read, and then continue, whatever came of it."""
        self._after_commit = then
        self._commit(now_ms)

    def _commit(self, now_ms: int) -> None:
        if self._is_committing:
            return
        positions = dict(self._reader.positions)
        if not positions or positions == self.committed:
            self._committed_all(now_ms)
            return
        self._is_committing = True
        self._commit_number += 1
        number = self._commit_number

        def on_end(error: ErrorCode, at_ms: int) -> None:
            if number != self._commit_number:  # of the assignment before
                return
            self._is_committing = False
            if error == ErrorCode.NONE:
                self.committed = positions
                self._commit(at_ms)
            elif self._after_commit is not None:
                self._committed_all(at_ms)
            elif error in _TRIED_AGAIN:
                self.after("commit", BACKOFF_MS, self._commit, at_ms)
            else:
                self._reader.stop()
                self._member.on_rejected(error, at_ms)

        commit_offsets(self, self._member.membership, positions, on_end, now_ms)

    def _committed_all(self, now_ms: int) -> None:
        then, self._after_commit = self._after_commit, None
        if then is not None:
            then(now_ms)
