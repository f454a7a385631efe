"""The state that a leader keeps of one follower between its fetches.

Source:  Replica, ReplicaState.
"""

from __future__ import annotations

from minicluster.values import Value

UNKNOWN_OFFSET = -1


class ReplicaState(Value):
    """One follower, as of its last fetch.

    Units:   offsets are -1 before the first fetch; times in ms, 0 means never.
    Shapes:  leader_epoch is that of the leadership in which log_end_offset was learned, -1 before.
    """

    log_start_offset: int = UNKNOWN_OFFSET
    log_end_offset: int = UNKNOWN_OFFSET
    last_fetch_leader_log_end_offset: int = 0
    last_fetch_ms: int = 0
    last_caught_up_ms: int = 0
    broker_epoch: int | None = None
    leader_epoch: int = -1

    @classmethod
    def of_new_leader(cls, *, in_isr: bool, now_ms: int) -> ReplicaState:
        """The state at the start of a leadership: nothing is known.

        A member of the ISR counts as caught up now, so that it has the full lag time to fetch.
        """
        return cls(
            last_fetch_leader_log_end_offset=UNKNOWN_OFFSET,
            last_caught_up_ms=now_ms if in_isr else 0,
        )

    def of_next_epoch(
        self, *, leader_end_offset: int, leader_epoch: int, in_isr: bool, now_ms: int
    ) -> ReplicaState:
        """The state when the same leader is elected again.

        Its log has not changed, so offsets and broker epochs stay valid; times begin again.
        """
        return ReplicaState(
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            last_fetch_leader_log_end_offset=leader_end_offset,
            last_fetch_ms=now_ms if in_isr else 0,
            last_caught_up_ms=now_ms if in_isr else 0,
            broker_epoch=self.broker_epoch,
            leader_epoch=leader_epoch if self.broker_epoch is not None else -1,
        )

    def fetched(
        self,
        *,
        log_start_offset: int,
        log_end_offset: int,
        leader_end_offset: int,
        broker_epoch: int,
        leader_epoch: int,
        now_ms: int,
    ) -> ReplicaState:
        """The state after a fetch.

        The follower has caught up now if it fetched from the leader's end. It had caught up at its
        previous fetch if it fetched from where that end was then: under constant appends a follower
        never reaches the present end.

        Source:  Replica.updateFetchStateOrThrow.
        """
        if log_end_offset >= leader_end_offset:
            caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif log_end_offset >= self.last_fetch_leader_log_end_offset:
            caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        else:
            caught_up_ms = self.last_caught_up_ms
        return ReplicaState(
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            last_fetch_leader_log_end_offset=max(
                leader_end_offset, self.last_fetch_leader_log_end_offset
            ),
            last_fetch_ms=now_ms,
            last_caught_up_ms=caught_up_ms,
            broker_epoch=broker_epoch,
            leader_epoch=leader_epoch,
        )

    def fetched_end(self, now_ms: int) -> ReplicaState:
        """The state after fetches at the leader's end that changed nothing else."""
        if now_ms <= self.last_fetch_ms:
            return self
        return ReplicaState(
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            last_fetch_leader_log_end_offset=self.last_fetch_leader_log_end_offset,
            last_fetch_ms=now_ms,
            last_caught_up_ms=max(self.last_caught_up_ms, now_ms),
            broker_epoch=self.broker_epoch,
            leader_epoch=self.leader_epoch,
        )

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """The follower holds everything, or did within the allowed lag."""
        return (
            self.log_end_offset == leader_end_offset
            or now_ms - self.last_caught_up_ms <= max_lag_ms
        )
