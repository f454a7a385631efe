"""What a leader remembers of one follower between its fetches.

Source:  Replica, ReplicaState.
"""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_OFFSET = -1


@dataclass(frozen=True, slots=True)
class FollowerState:
    """One follower, as its fetches have told.

    Units:   offsets -1 before the first fetch; times in ms, 0 means never.
    Shapes:  leader_epoch is that of the leadership in which log_end_offset was learned, -1 before.
    """

    log_start_offset: int = UNKNOWN_OFFSET
    log_end_offset: int = UNKNOWN_OFFSET
    leader_end_at_last_fetch: int = 0
    last_fetch_ms: int = 0
    last_caught_up_ms: int = 0
    broker_epoch: int | None = None
    leader_epoch: int = -1

    def fetched(
        self,
        *,
        log_start_offset: int,
        log_end_offset: int,
        leader_end_offset: int,
        broker_epoch: int,
        leader_epoch: int,
        now_ms: int,
    ) -> FollowerState:
        """The state after a fetch.

        It has caught up now if it asked from the leader's end; it had caught up at its previous
        fetch if it asked from where that end was then.
        """
        if log_end_offset >= leader_end_offset:
            caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif log_end_offset >= self.leader_end_at_last_fetch:
            caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        else:
            caught_up_ms = self.last_caught_up_ms
        return FollowerState(
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            leader_end_at_last_fetch=max(leader_end_offset, self.leader_end_at_last_fetch),
            last_fetch_ms=now_ms,
            last_caught_up_ms=caught_up_ms,
            broker_epoch=broker_epoch,
            leader_epoch=leader_epoch,
        )

    def new_epoch(
        self,
        *,
        leader_end_offset: int,
        leader_epoch: int,
        is_new_leader: bool,
        in_isr: bool,
        now_ms: int,
    ) -> FollowerState:
        """The state when a leader epoch begins here.

        A new leader knows nothing. One that is elected again keeps offsets and broker epochs,
        which its unchanged log vouches for, and begins to count time anew.
        """
        if is_new_leader:
            return FollowerState(
                leader_end_at_last_fetch=UNKNOWN_OFFSET,
                last_caught_up_ms=now_ms if in_isr else 0,
            )
        return FollowerState(
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            leader_end_at_last_fetch=leader_end_offset,
            last_fetch_ms=now_ms if in_isr else 0,
            last_caught_up_ms=now_ms if in_isr else 0,
            broker_epoch=self.broker_epoch,
            leader_epoch=leader_epoch if self.broker_epoch is not None else -1,
        )

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether it holds everything, or did not long ago."""
        return (
            self.log_end_offset == leader_end_offset
            or now_ms - self.last_caught_up_ms <= max_lag_ms
        )
