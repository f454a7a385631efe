"""The two assignors of consumer groups: ranges of each topic, or all partitions evenly (KIP-848).

Both get a group and the topics that it may have, and give each member its partitions. Neither
remembers anything: what members keep, they keep because the group says what they had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from msgspec import Struct

from minicluster.errors import MiniclusterError
from minicluster.java_order import hash_set_order, java_set_order
from minicluster.values import Value

# The input and the output of an assignor.
#
# Source:  GroupSpec, MemberSubscription, SubscribedTopicDescriber, GroupAssignment.

Assignment = dict[str, dict[UUID, set[int]]]
"""The partitions of each member, by topic id."""


class AssignorError(MiniclusterError):
    """A member subscribes to a topic that does not exist."""


class MemberSpec(Value):
    """One member: the topics that it subscribes to, and its last target assignment.

    Shapes:  both are in the order in which Java walks over them.
    """

    instance_id: str | None
    subscribed: tuple[UUID, ...]
    assignment: Mapping[UUID, frozenset[int]]


class GroupSpec(Value, kw_only=True):
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


# The range assignor: of each topic, a run of neighbouring partitions for each member.
#
# Members with equal subscriptions get the same numbers of each topic, so that topics can be joined.
#
# Source:  RangeAssignor.


class _Topic(Struct):
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
    subscribed = {member_id: spec.members[member_id].subscribed for member_id in members}
    if spec.is_homogeneous:  # the first one speaks for all, also where that is not true (any more)
        subscribed = dict.fromkeys(members, subscribed[members[0]] if members else ())
    topics: dict[UUID, _Topic] = {}
    for member_id in members:
        for topic_id in subscribed[member_id]:
            if topic_id not in topics:
                topics[topic_id] = _Topic(spec.require_partition_count(topic_id))
            topics[topic_id].members += 1
    assignment: Assignment = {}
    for member_id in members:
        ranges = {t: topics[t].next_range() for t in subscribed[member_id]}
        assignment[member_id] = {t: set(indexes) for t, indexes in ranges.items() if indexes}
    return assignment


def _sort_key(spec: GroupSpec, member_id: str) -> tuple[bool, str]:
    instance_id = spec.members[member_id].instance_id
    return (True, member_id) if instance_id is None else (False, instance_id)


# The uniform assignor: members differ by one partition at most, and keep what they have.
#
# Members with different subscriptions keep what they still subscribe to, what is free goes to the
# least loaded subscribers, and then partitions move from the most loaded ones until no move
# improves the balance.
#
# Source:  UniformAssignor, UniformHomogeneousAssignmentBuilder,
#          UniformHeterogeneousAssignmentBuilder (MemberAssignmentBalancer).


class Balancer:
    """Shapes: sizes has the number of partitions of each member, and changes meanwhile."""

    def __init__(self, sizes: list[int]) -> None:
        self._sizes = sizes
        self._sorted: list[int] = []
        self._least_end = self._least_count = self._next_least = 0
        self._most_start = self._most_end = self._most_count = self._next_most = 0

    def begin(self, subscribers: Iterable[int]) -> int:
        """Begin with the subscribers of a topic; by how many partitions they differ at most."""
        sizes = self._sizes
        self._sorted = sorted(subscribers, key=lambda member: (sizes[member], member))
        lowest, highest = sizes[self._sorted[0]], sizes[self._sorted[-1]]
        self._least_end, self._least_count, self._next_least = 0, lowest - 1, 0
        self._most_start = self._most_end = len(self._sorted)
        self._most_count = highest + 1
        self._next_most = len(self._sorted) - 1
        return highest - lowest

    @property
    def is_balanced(self) -> bool:
        """The ranges differ by one partition at most."""
        return self._most_count - self._least_count <= 1

    def next_least_loaded(self) -> int:
        """The member that gets the next partition."""
        if self._next_least >= self._least_end:
            self._least_count += 1
            while self._least_end < len(self._sorted) and (
                self._sizes[self._sorted[self._least_end]] == self._least_count
            ):
                self._least_end += 1
            self._next_least = 0
        self._next_least += 1
        return self._sorted[self._next_least - 1]

    def next_most_loaded(self) -> int | None:
        """The member that gives the next partition; None where no one has any to give."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # All of the range are excluded, so it begins again with its neighbour.
                self._most_count = self._sizes[self._sorted[self._most_start - 1]]
            else:
                self._most_count -= 1
            while self._most_start > 0 and (
                self._sizes[self._sorted[self._most_start - 1]] == self._most_count
            ):
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        self._next_most -= 1
        return self._sorted[self._next_most + 1]

    def exclude_most_loaded(self) -> None:
        """Leave out the last member of next_most_loaded, which has no partition of the topic."""
        place, last = self._next_most + 1, self._most_end - 1
        self._sorted[place], self._sorted[last] = self._sorted[last], self._sorted[place]
        self._most_end = last


# --- members that subscribe to different topics ---------------------------------------------------

_NOBODY = -1
_ITERATIONS_MAX = 16
_SIGN = 1 << 63
_LONG = (1 << 64) - 1


class HeterogeneousAssignment:
    """One assignment on its way. Members are numbered in their order."""

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.members = list(spec.members)
        self.subscribers: dict[UUID, list[int]] = {}
        self.counts: dict[UUID, int] = {}
        self.owners: dict[UUID, list[int]] = {}
        self.sizes = [0] * len(self.members)
        self.target: Assignment = {member_id: {} for member_id in self.members}
        for number, member in enumerate(spec.members.values()):
            for topic_id in member.subscribed:
                if topic_id not in self.counts:
                    self.counts[topic_id] = spec.require_partition_count(topic_id)
                    self.owners[topic_id] = [_NOBODY] * self.counts[topic_id]
                self.subscribers.setdefault(topic_id, []).append(number)

    def build(self) -> Assignment:
        """Keep, assign, balance."""
        if not self.subscribers:
            return {}
        self._keep()
        free = {
            topic_id: [index for index, owner in enumerate(owners) if owner == _NOBODY]
            for topic_id, owners in self.owners.items()
        }
        balancer = Balancer(self.sizes)
        for topic_id in self._sorted(t for t, partitions in free.items() if partitions):
            balancer.begin(self.subscribers[topic_id])
            for index in free[topic_id]:
                self._assign(topic_id, index, balancer.next_least_loaded())
        self._balance(balancer)
        return self.target

    def _keep(self) -> None:
        for number, (member_id, member) in enumerate(self.spec.members.items()):
            for topic_id, partitions in member.assignment.items():
                if topic_id not in member.subscribed:
                    continue
                self.target[member_id][topic_id] = set(partitions)
                self.sizes[number] += len(partitions)
                for index in partitions:
                    if index >= self.counts[topic_id]:
                        # A leader of the classic protocol may have assigned it, of an earlier
                        # topic of this name. Kafka fails here as well.
                        raise AssignorError(f"partition {index} of {topic_id} does not exist")
                    self.owners[topic_id][index] = number

    def _sorted(self, topic_ids: Iterable[UUID]) -> list[UUID]:
        """Most partitions for each subscriber first, then fewest subscribers, then by id."""

        def key(topic_id: UUID) -> tuple[float, int, int, int]:
            subscribers = len(self.subscribers[topic_id])
            # Kafka compares the halves of an id as signed numbers.
            high, low = topic_id.int >> 64, topic_id.int & _LONG
            per_subscriber = self.counts[topic_id] / subscribers
            return (-per_subscriber, subscribers, high ^ _SIGN, low ^ _SIGN)

        return sorted(topic_ids, key=key)

    def _assign(self, topic_id: UUID, index: int, number: int) -> None:
        before = self.owners[topic_id][index]
        if before != _NOBODY:
            partitions = self.target[self.members[before]][topic_id]
            partitions.discard(index)
            if not partitions:
                del self.target[self.members[before]][topic_id]
            self.sizes[before] -= 1
        add_partition(self.target, self.members[number], topic_id, index)
        self.owners[topic_id][index] = number
        self.sizes[number] += 1

    def _balance(self, balancer: Balancer) -> None:
        """Move partitions, topic by topic, until a whole round has moved none."""
        shared = self._sorted(t for t, members in self.subscribers.items() if len(members) > 1)
        last_moved = -1
        for _ in range(_ITERATIONS_MAX):
            for place, topic_id in enumerate(shared):
                if place == last_moved:
                    return
                moved = self._balance_topic(topic_id, balancer)
                if moved or last_moved == -1:
                    last_moved = place

    def _balance_topic(self, topic_id: UUID, balancer: Balancer) -> int:
        owners = self.owners[topic_id]
        if balancer.begin(self.subscribers[topic_id]) <= 1:
            return 0
        partitions = sorted(range(self.counts[topic_id]), key=lambda index: (owners[index], index))
        starts: dict[int, int] = {}
        ends: dict[int, int] = {}
        for place, index in enumerate(partitions):
            starts.setdefault(owners[index], place)
            ends[owners[index]] = place + 1
        moved = 0
        while True:
            most = balancer.next_most_loaded()
            while most is not None and ends.get(most, 0) <= starts.get(most, 0):
                balancer.exclude_most_loaded()
                most = balancer.next_most_loaded()
            if most is None:
                break
            ends[most] -= 1
            index = partitions[ends[most]]
            least = balancer.next_least_loaded()
            if balancer.is_balanced:
                break
            self._assign(topic_id, index, least)
            moved += 1
        return moved


# --- members that subscribe to the same topics, and the choice between both -----------------------


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
