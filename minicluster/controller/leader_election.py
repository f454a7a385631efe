"""The election of a partition's leader, clean or unclean.

| candidate, the first that could lead wins | election | is |
|---|---|---|
| the first replica | preferred only | clean, if it is in the ISR, or in the ELR of an empty ISR |
| the leader that it has | all | clean, likewise |
| the replicas, in the order of the assignment | all | clean, likewise |
| the last known leader, when ISR and ELR are empty | all | unclean |
| the replicas, in the order of the assignment | unclean only | unclean |

A member of the ISR has every committed record, and so has a member of the ELR while the ISR is
empty (KIP-966). An unclean leader may lack some: what it lacks is lost to all followers, which
truncate to its log. So it is elected last of all, where unclean.leader.election.enable chooses a
leader over the records (KIP-106) or by request (KIP-460), and the partition is RECOVERING until
the leader has recovered its log (KIP-704). The last known leader is the exception: with
no member left in ISR and ELR it has the most of all replicas (KIP-966).

Source:  KIP-106, KIP-460, KIP-704, KIP-966; PartitionChangeBuilder.electLeader, LeaderAcceptor.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from minicluster.controller.state.cluster_state import Gates
from minicluster.metadata.image.partition import NO_LEADER
from minicluster.values import Value

Replicas = tuple[int, ...]


class Election(Enum):
    """The kinds of election."""

    ONLINE = "online"  # the leader if it can stay, else a clean candidate
    PREFERRED = "preferred"  # the first replica before the leader
    UNCLEAN = "unclean"  # as online, and rather an unclean candidate than none


class Candidates(Value, kw_only=True):
    """The replicas of a partition as they will be, and its leaders so far.

    Shapes:  acceptable: a replica could lead now (its broker is active, its log online).
    """

    leader: int
    replicas: Replicas
    isr: Replicas
    elr: Replicas
    last_known: Replicas
    acceptable: Callable[[int], bool]


def elect_leader(candidates: Candidates, election: Election, gates: Gates) -> tuple[int, bool]:
    """Elect a leader: NO_LEADER if nobody can, and True when the election is unclean."""
    replicas = candidates.replicas
    first = replicas[:1] if election is Election.PREFERRED else ()
    for replica in (*first, candidates.leader, *replicas):
        if _is_clean(candidates, replica):
            return replica, False
    if _can_elect_last_known_leader(candidates, gates):
        return candidates.last_known[0], True
    if election is Election.UNCLEAN:
        for replica in replicas:
            if candidates.acceptable(replica):
                return replica, True
    return NO_LEADER, False


def _is_clean(candidates: Candidates, replica: int) -> bool:
    # The ELR only while the ISR is empty: as long as it has a member, records may be committed that
    # a member of the ELR does not have.
    eligible = candidates.isr or candidates.elr
    return replica in eligible and candidates.acceptable(replica)


def _can_elect_last_known_leader(candidates: Candidates, gates: Gates) -> bool:
    if not gates.elr_enabled or candidates.isr or candidates.elr:
        return False
    if len(candidates.last_known) != 1:
        return False
    # Before KAFKA-19522 nothing asked whether it lives: a fenced broker became leader.
    if gates.rules.fenced_last_known_leader_is_elected:
        return True
    return candidates.acceptable(candidates.last_known[0])
