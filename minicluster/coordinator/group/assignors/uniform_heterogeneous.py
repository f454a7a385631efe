"""The uniform assignor for members with different subscriptions.

Each member keeps what it still subscribes to, what is free goes to the least loaded subscribers,
and then partitions move from the most loaded ones until no move improves the balance.

Source:  UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from minicluster.coordinator.group.assignors.assignor import Assignment, GroupSpec, add_partition
from minicluster.coordinator.group.assignors.balancer import Balancer

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
