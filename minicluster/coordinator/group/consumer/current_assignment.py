"""The next step of a member from the partitions that it has to those that it is to have.

First it gives up what is not in its target. Only then it enters the epoch of the target, and gets
what is free of it. What other members still have follows with their releases.

Source:  CurrentAssignmentBuilder; KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from minicluster.coordinator.group.consumer.group import UNASSIGNED_EPOCH, TopicHash
from minicluster.coordinator.group.consumer.member import (
    ConsumerGroupMember,
    MemberState,
    PartitionEpochs,
    Partitions,
)
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.java_order import copied_map_order, hash_map_order, hash_set_order, java_set_order
from minicluster.protocol import ErrorCode

Owned = Sequence[Any] | None
"""The partitions that a member reports, with ``topic_id`` and ``partitions``; None: no report."""
Epochs = dict[UUID, dict[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """One member before the step.

    Shapes:  ``subscribed`` are the topics that it subscribes to and that exist;
             ``partition_epoch`` gives the epoch of a partition's owner, -1 for none.
    """

    member: ConsumerGroupMember
    target_epoch: int
    target: Partitions
    subscribed: frozenset[UUID]
    has_subscription_changed: bool
    owned: Owned
    partition_epoch: Callable[[UUID, int], int]
    topic_hash: TopicHash

    def next_member(self) -> ConsumerGroupMember:
        """The member after the step; the same one where there is nothing to do.

        Errors:  FENCED_MEMBER_EPOCH for a member in a state that this release does not have.
        """
        member = self.member
        match member.state:
            case MemberState.STABLE:
                if member.epoch != self.target_epoch:
                    return self._next_assignment()
                return self._within_subscription() if self.has_subscription_changed else member
            case MemberState.UNREVOKED_PARTITIONS:
                if self._owns_any_of(member.pending_revocation):
                    return self._within_subscription() if self.has_subscription_changed else member
                return self._next_assignment()
            case MemberState.UNRELEASED_PARTITIONS:
                return self._next_assignment()
        if self.owned is None or self.owned:
            raise OperationError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its "
                "partitions and rejoin.",
            )
        return replace(self, member=replace(member, epoch=self.target_epoch))._next_assignment()

    def _owns_any_of(self, partitions: PartitionEpochs) -> bool:
        if self.owned is None:
            return True
        return any(
            index in partitions.get(topic.topic_id, {})
            for topic in self.owned
            for index in topic.partitions
        )

    # --- another subscription -----------------------------------------------------------------

    def _within_subscription(self) -> ConsumerGroupMember:
        """Give up at once the topics that the member does not subscribe to any more."""
        member = self.member
        kept = {t: p for t, p in member.assigned.items() if t in self.subscribed}
        if len(kept) == len(member.assigned):
            return member
        revoked: dict[UUID, Mapping[int, int]] = dict(member.pending_revocation)
        for topic_id, epochs in member.assigned.items():
            if topic_id not in kept:
                revoked[topic_id] = {**revoked.get(topic_id, {}), **epochs}
        if self._owns_any_of(revoked):
            return _in_epoch(
                member,
                member.epoch,
                state=MemberState.UNREVOKED_PARTITIONS,
                assigned=kept,
                pending_revocation=self._ordered(revoked),
            )
        # They were given up before they were revoked.
        return _in_epoch(member, member.epoch, assigned=kept)

    # --- another target -----------------------------------------------------------------------

    def _next_assignment(self) -> ConsumerGroupMember:
        member = self.member
        assigned: Epochs = {}
        revoked: Epochs = {}
        free: dict[UUID, list[int]] = {}
        is_any_unreleased = False
        topic_ids = hash_set_order(list(self.target), list(member.assigned), self.topic_hash)
        for topic_id in topic_ids:
            current = member.assigned.get(topic_id, {})
            target: frozenset[int] = frozenset()
            if topic_id in self.subscribed:
                target = self.target.get(topic_id, target)
            kept = {index: epoch for index, epoch in current.items() if index in target}
            gone = {index: epoch for index, epoch in current.items() if index not in target}
            wanted = [index for index in java_set_order(sorted(target)) if index not in kept]
            available = [index for index in wanted if self._is_available(topic_id, index)]
            is_any_unreleased |= len(available) < len(wanted)
            if kept:
                assigned[topic_id] = _in_map_order(current, kept, ())
            if gone:
                revoked[topic_id] = _in_map_order(current, gone, ())
            if available:
                free[topic_id] = available
        if revoked and self._owns_any_of(revoked):
            return _in_epoch(
                member,
                member.epoch,
                state=MemberState.UNREVOKED_PARTITIONS,
                assigned=self._ordered(assigned),
                pending_revocation=self._ordered(revoked),
            )
        for topic_id in hash_map_order(free, self.topic_hash):
            before = assigned.get(topic_id, {})
            added = dict.fromkeys(free[topic_id], self.target_epoch)
            copied = member.assigned.get(topic_id, {}) if before else {}
            # Map.computeIfAbsent puts a new key in front of its bin.
            place: Epochs = {} if before else {topic_id: {}}
            assigned = {**place, **assigned}
            assigned[topic_id] = _in_map_order(copied, {**before, **added}, added)
        unreleased = MemberState.UNRELEASED_PARTITIONS
        return _in_epoch(
            member,
            self.target_epoch,
            state=unreleased if is_any_unreleased else MemberState.STABLE,
            assigned=self._ordered(assigned),
            pending_revocation={},
        )

    def _is_available(self, topic_id: UUID, index: int) -> bool:
        """No member has the partition, unless it is this one, which was to give it up."""
        if self.partition_epoch(topic_id, index) == UNASSIGNED_EPOCH:
            return True
        return index in self.member.pending_revocation.get(topic_id, {})

    def _ordered(self, partitions: PartitionEpochs) -> PartitionEpochs:
        order = hash_map_order(partitions, self.topic_hash)
        return {topic_id: partitions[topic_id] for topic_id in order}


def _in_epoch(member: ConsumerGroupMember, epoch: int, **changes: Any) -> ConsumerGroupMember:
    return replace(member, epoch=epoch, previous_epoch=member.epoch, **changes)


def _in_map_order(
    copied: Mapping[int, int], epochs: Mapping[int, int], then: Iterable[int]
) -> dict[int, int]:
    """The partitions in the order of a HashMap that is a copy with changes."""
    if not copied:
        order = hash_map_order(epochs, lambda index: index)
    else:
        order = copied_map_order(list(copied), list(then), lambda index: index)
    return {index: epochs[index] for index in order if index in epochs}
