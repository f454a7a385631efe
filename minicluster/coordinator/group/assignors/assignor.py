"""The input and the output of an assignor.

Source:  GroupSpec, MemberSubscription, SubscribedTopicDescriber, GroupAssignment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from minicluster.errors import MiniclusterError

Assignment = dict[str, dict[UUID, set[int]]]
"""The partitions of each member, by topic id."""


class AssignorError(MiniclusterError):
    """A member subscribes to a topic that does not exist."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member: the topics that it subscribes to, and its last target assignment.

    Shapes:  both are in the order in which Java walks over them.
    """

    instance_id: str | None
    subscribed: tuple[UUID, ...]
    assignment: Mapping[UUID, frozenset[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A group before an assignment.

    Shapes:  ``owners`` has the member of each partition that is assigned; ``topic_hash`` orders
             topics as Java's maps do; ``partition_count`` is None for a topic that does not exist.
    """

    members: Mapping[str, MemberSpec]
    is_homogeneous: bool
    owners: Mapping[UUID, Mapping[int, str]]
    partition_count: Callable[[UUID], int | None]
    topic_hash: Callable[[UUID], int]

    def require_partition_count(self, topic_id: UUID) -> int:
        """The number of partitions of a topic.

        Errors:  AssignorError.
        """
        count = self.partition_count(topic_id)
        if count is None:
            raise AssignorError(
                f"Members are subscribed to topic {topic_id} which doesn't exist in the topic "
                "metadata."
            )
        return count


def add_partition(assignment: Assignment, member_id: str, topic_id: UUID, index: int) -> None:
    """Give a partition to a member; a new topic is in front of its bin (Map.computeIfAbsent)."""
    if topic_id not in assignment[member_id]:
        assignment[member_id] = {topic_id: set(), **assignment[member_id]}
    assignment[member_id][topic_id].add(index)
