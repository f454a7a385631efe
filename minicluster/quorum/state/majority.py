"""Majorities, and the offset that a majority has reached.

Source:  LeaderState.maybeUpdateHighWatermark, updateCheckQuorumForFollowingVoter.
"""

from __future__ import annotations

from collections.abc import Sequence


def majority(voters: int) -> int:
    """The number of voters that are a majority of so many."""
    return voters // 2 + 1


def fetchers_needed(voters: int, *, leader_votes: bool) -> int:
    """The number of others whose fetches show, with a leader that votes, a majority."""
    return majority(voters) - (1 if leader_votes else 0)


def replicated_offset(end_offsets: Sequence[int | None]) -> int | None:
    """The highest offset that a majority of the voters has reached; None while unknown."""
    if not end_offsets:
        return None
    ascending = sorted([-1 if end is None else end for end in end_offsets])
    reached = ascending[len(ascending) - majority(len(ascending))]
    return None if reached < 0 else reached
