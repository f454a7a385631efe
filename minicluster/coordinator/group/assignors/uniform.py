"""The uniform assignor: members differ by one partition at most, and keep what they have.

Source:  UniformAssignor, UniformHomogeneousAssignmentBuilder.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.coordinator.group.assignors.assignor import Assignment, GroupSpec, add_partition
from minicluster.coordinator.group.assignors.uniform_heterogeneous import HeterogeneousAssignment
from minicluster.java_order import hash_set_order, java_set_order


def assign_uniformly(spec: GroupSpec) -> Assignment:
    """Assign all partitions.

    Errors:  AssignorError.
    """
    if not spec.members:
        return {}
    if spec.is_homogeneous:
        return _HomogeneousAssignment(spec).build()
    return HeterogeneousAssignment(spec).build()


class _HomogeneousAssignment:
    """All members subscribe to the same topics."""

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        first = next(iter(spec.members.values()))
        self.topics = dict.fromkeys(hash_set_order(first.subscribed, (), spec.topic_hash))
        self.unassigned: list[tuple[UUID, int]] = []
        self.unfilled: list[tuple[str, int]] = []
        self.target: Assignment = {}
        self.quota = self.extra = 0

    def build(self) -> Assignment:
        """Revoke what exceeds the quota, then give it to those below."""
        if not self.topics:
            return {}
        total = 0
        for topic_id in self.topics:
            count = self.spec.require_partition_count(topic_id)
            owners = self.spec.owners.get(topic_id, {})
            self.unassigned += [(topic_id, i) for i in range(count) if i not in owners]
            total += count
        self.quota, self.extra = divmod(total, len(self.spec.members))
        for place, member_id in enumerate(self.spec.members):
            self._revoke(member_id, len(self.spec.members) - place)
        self._assign()
        return self.target

    def _revoke(self, member_id: str, members_left: int) -> None:
        quota = self.quota
        has_extra = self.extra > 0
        quota += has_extra
        target: dict[UUID, set[int]] = {}
        for topic_id, partitions in self.spec.members[member_id].assignment.items():
            if topic_id not in self.topics:
                continue
            if len(partitions) <= quota:
                quota -= len(partitions)
                target[topic_id] = set(partitions)
                continue
            order = java_set_order(sorted(partitions))
            kept, revoked = order[:quota], order[quota:]
            quota -= len(kept)
            self.unassigned += [(topic_id, index) for index in revoked]
            if kept:
                target[topic_id] = set(kept)
        if quota > 0 and has_extra and members_left > self.extra:
            # Another member takes the extra partition, unless all that are left must.
            quota -= 1
            has_extra = False
        if quota > 0:
            self.unfilled.append((member_id, quota))
        self.extra -= has_extra
        self.target[member_id] = target

    def _assign(self) -> None:
        waiting = iter(self.unassigned)
        for member_id, quota in self.unfilled:
            for _, (topic_id, index) in zip(range(quota), waiting, strict=False):
                add_partition(self.target, member_id, topic_id, index)
