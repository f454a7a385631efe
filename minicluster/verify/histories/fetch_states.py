"""What a leader knows of its followers, as it writes it beside its events.

This is what the leader believes: a follower that crashed may have lost what it had fetched.
``held_logs.py`` has what the replicas' own events say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from minicluster.values import dataclass
from minicluster.verify.histories.traced_run import Row

NOWHERE = -1  # log end and leader epoch of a follower that has not fetched


@dataclass(frozen=True, slots=True)
class FetchState:
    """The last fetch of a follower.

    Units:   log_end: where the fetch began. leader_epoch: the leader's epoch then. broker_epoch: of
             the broker that fetched, None where it does not say.
    """

    log_end: int
    leader_epoch: int
    broker_epoch: int | None


NEVER_FETCHED = FetchState(NOWHERE, NOWHERE, None)
FetchStates = Mapping[int, FetchState]


def fetch_states(row: Row) -> FetchStates | None:
    """The followers of the leader whose event it is, by their broker ids; None: not recorded."""
    text = row.get("follower_leos")
    return None if text is None else parsed(text)


def waits_for(row: Row, *, is_in_log: bool) -> tuple[int, ...] | None:
    """The members of its maximal ISR for whom a leader waits, but itself; None: not recorded.

    On ZooKeeper, whose partitions no metadata log has, a move takes a replica from its leader
    before the ISR loses it (KafkaController.onPartitionReassignment). There a member of which the
    leader knows no fetch is left out; else B2 and F8 would have it wait for a replica that it no
    longer has. In KRaft such a member has never fetched, and the leader must wait for it.
    """
    followers, leader = fetch_states(row), row["broker"]
    if followers is None:
        return None
    members = row["maximal_isr"]
    return tuple(
        member for member in members if member != leader and (member in followers or is_in_log)
    )


@lru_cache(maxsize=256)  # a leader repeats them from event to event
def parsed(text: str) -> FetchStates:
    """The followers as a row names them: a leader's knowledge, as JSON."""
    return {int(broker): _state(*numbers) for broker, numbers in json.loads(text).items()}


def _state(
    log_end: int | None = None, leader_epoch: int | None = None, broker_epoch: int | None = None
) -> FetchState:
    return FetchState(
        NOWHERE if log_end is None else log_end,
        NOWHERE if leader_epoch is None else leader_epoch,
        broker_epoch,
    )
