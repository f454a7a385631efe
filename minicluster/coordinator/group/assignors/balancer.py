"""The least and the most loaded of a topic's subscribers, one after the other.

Subscribers are sorted by their number of partitions. A range at the left holds the least loaded
ones, all with the same number; a range at the right the most loaded ones. Whoever gets or gives a
partition is the next of its range. When a range is through, its number has changed by one, and it
takes in the neighbours that have this number.

Source:  UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer.
"""

from __future__ import annotations

from collections.abc import Iterable


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
