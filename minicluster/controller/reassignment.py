"""The algebra of moving a partition to other replicas: start, complete, take back.

While a reassignment runs, the replicas are the target followed by what will be removed: the old
ones keep serving while the new ones copy the log. It completes with the ISR change that brings the
last new replica in, by no request of its own. From [0, 1, 2] to [3, 4, 1]:

| | replicas | adding | removing | ISR |
|---|---|---|---|---|
| start | 3, 4, 1, 0, 2 | 3, 4 | 0, 2 | 0, 1, 2 |
| 3 has caught up | 3, 4, 1, 0, 2 | 3, 4 | 0, 2 | 0, 1, 2, 3 |
| 4 as well: complete | 3, 4, 1 | | | 1, 3, 4 |
| or taken back before that | 1, 0, 2 | | | 0, 1, 2 |

The order of the target survives, that of the first list does not: 1 is preferred after the
reassignment is taken back, not 0.

Source: KIP-455; PartitionReassignmentReplicas, PartitionReassignmentRevert.
"""

from __future__ import annotations

from minicluster.values import Value

Replicas = tuple[int, ...]


class Reassignment(Value, kw_only=True):
    """The replicas of a partition, and those that are being added and removed."""

    replicas: Replicas
    adding: Replicas = ()
    removing: Replicas = ()

    @property
    def in_progress(self) -> bool:
        """True while anything remains to be added or removed."""
        return bool(self.adding or self.removing)


class Completed(Value, kw_only=True):
    """Replicas and ISR of a reassignment that is done."""

    replicas: Replicas
    isr: Replicas


class Revert(Value, kw_only=True):
    """Replicas and ISR to go back to; unclean when no ISR member would remain."""

    replicas: Replicas
    isr: Replicas
    unclean: bool


def start_reassignment(current: Replicas, target: Replicas) -> Reassignment:
    """Begin to move from one list of replicas to another.

    What the current list is still adding counts as current: a second reassignment replaces the
    first with everything that has been assigned so far as its baseline.
    Source:  PartitionReassignmentReplicas, the constructor of two assignments.
    """
    removing = tuple(sorted(without(current, target)))
    adding = tuple(sorted(without(target, current)))
    return Reassignment(replicas=target + removing, adding=adding, removing=removing)


def complete_reassignment(
    state: Reassignment, isr: Replicas, *, needs_all_replicas: bool
) -> Completed | None:
    """Finish a reassignment if the ISR allows it.

    It is complete when the ISR holds every replica that is being added; when the number of replicas
    shrinks, it must also hold every one that stays. Up to 3.9 it must hold those that stay, and no
    others. The two differ over a replica that is added and removed at once: what a first
    reassignment adds remains in the list when a second one drops it and adds nothing.
    Source:  PartitionReassignmentReplicas.maybeCompleteReassignment; KAFKA-19073.
    """
    if not state.in_progress:
        return None
    new_isr = without(isr, state.removing)
    new_replicas = without(state.replicas, state.removing)
    if (needs_all_replicas or state.removing) and not (new_isr and new_replicas):
        return None
    if not needs_all_replicas and not contains_all(new_isr, state.adding):
        return None
    shrinks = len(state.adding) < len(state.removing)
    if (needs_all_replicas or shrinks) and not contains_all(new_isr, new_replicas):
        return None
    return Completed(replicas=new_replicas, isr=new_isr)


def revert_reassignment(state: Reassignment, isr: Replicas) -> Revert:
    """Take a reassignment back. What was being added goes; the order of the rest stays.

    Source:  PartitionReassignmentRevert.
    """
    replicas = without(state.replicas, state.adding)
    remaining = without(isr, state.adding)
    if remaining:
        return Revert(replicas=replicas, isr=remaining, unclean=False)
    # Only new replicas are in sync: the first old one would be elected without what they have.
    return Revert(replicas=replicas, isr=replicas[:1], unclean=True)


def without(items: Replicas, others: Replicas) -> Replicas:
    """The items that are not among the others, in order."""
    return tuple(item for item in items if item not in others) if others else items


def contains_all(items: Replicas, wanted: Replicas) -> bool:
    """True when every wanted item is among the items."""
    return all(item in items for item in wanted)
