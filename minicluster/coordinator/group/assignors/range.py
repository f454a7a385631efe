"""The range assignor: of each topic, a run of neighbouring partitions for each member.

Members with equal subscriptions get the same numbers of each topic, so that topics can be joined.

Source:  RangeAssignor.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from minicluster.coordinator.group.assignors.assignor import Assignment, GroupSpec


@dataclass(slots=True)
class _Topic:
    partitions: int
    members: int = 0
    next_start: int = 0
    ranges: int = 0

    def next_range(self) -> range:
        """The partitions of the next member; the first ones get one more."""
        quota, extra = divmod(self.partitions, self.members)
        start, size = self.next_start, quota + (self.ranges < extra)
        self.ranges += 1
        self.next_start = start + size
        return range(start, self.next_start)


def assign_ranges(spec: GroupSpec) -> Assignment:
    """Assign all partitions; static members come first, by their instance ids.

    Errors:  AssignorError.
    """
    members = sorted(spec.members, key=lambda member_id: _sort_key(spec, member_id))
    topics: dict[UUID, _Topic] = {}
    for member_id in members:
        for topic_id in spec.members[member_id].subscribed:
            if topic_id not in topics:
                topics[topic_id] = _Topic(spec.require_partition_count(topic_id))
            topics[topic_id].members += 1
    assignment: Assignment = {}
    for member_id in members:
        ranges = {t: topics[t].next_range() for t in spec.members[member_id].subscribed}
        assignment[member_id] = {t: set(indexes) for t, indexes in ranges.items() if indexes}
    return assignment


def _sort_key(spec: GroupSpec, member_id: str) -> tuple[bool, str]:
    instance_id = spec.members[member_id].instance_id
    return (True, member_id) if instance_id is None else (False, instance_id)
