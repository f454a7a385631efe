"""Where new replicas go: Kafka's striped placement over racks, with injected chance.

Leaders rotate over racks and, within a rack, over unfenced brokers; followers fill up rack by rack,
unfenced before fenced. Fed with the draws that Kafka made, it gives the lists that Kafka gave.
Source: KIP-36; StripedReplicaPlacer (RackList, Rack, BrokerList).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from minicluster.java_order import hash_map_order, string_hash
from minicluster.values import Value

Draw = Callable[[int], int]
"""A number from 0 up to, not including, the bound."""


class PlacementError(Exception):
    """The replicas cannot be placed; the message is Kafka's reason (INVALID_REPLICATION_FACTOR)."""


class UsableBroker(Value, kw_only=True):
    """A broker that may be given replicas."""

    id: int
    rack: str | None = None
    fenced: bool = False


def place_replicas(
    brokers: Iterable[UsableBroker],
    *,
    partitions: int,
    replication_factor: int,
    draw: Draw,
    cordoned_in_messages: bool = True,
) -> Iterator[tuple[int, ...]]:
    """Choose the replicas of some new partitions, one after the other, the leader first.

    Chance:  one draw per list of brokers in a rack, one over the racks, and reshuffles; the first
             draws are made before anything is rejected.
    Errors:  PlacementError, in this order: factor not positive, all fenced, too few brokers.
    Source:  StripedReplicaPlacer.place.
    """
    racks = RackList(brokers, draw, cordoned_in_messages=cordoned_in_messages)
    racks.reject_non_positive(replication_factor)
    racks.reject_all_fenced()
    racks.reject_too_few(replication_factor)
    return (racks.place(replication_factor) for _ in range(partitions))


class BrokerList:
    """Brokers of one rack that are all fenced or all unfenced; each epoch starts one further on."""

    __slots__ = ("_brokers", "_epoch", "_index", "_offset")

    def __init__(self, brokers: Iterable[int] = ()) -> None:
        self._brokers = list(brokers)
        self._epoch = self._index = self._offset = 0

    def add(self, broker: int) -> None:
        """Put one more broker in, before ``initialize``."""
        self._brokers.append(broker)

    def initialize(self, draw: Draw) -> None:
        """Sort the brokers and start at a random one; an empty list draws nothing."""
        if self._brokers:
            self._brokers.sort()
            self._offset = draw(len(self._brokers))

    def shuffle(self, draw: Draw) -> None:
        """Reorder the brokers at random."""
        shuffle(self._brokers, draw)

    def next(self, epoch: int) -> int:
        """The next broker of this epoch, or -1 when all have been given out."""
        size = len(self._brokers)
        if size == 0:
            return -1
        if self._epoch != epoch:
            self._epoch, self._index = epoch, 0
            self._offset = (self._offset + 1) % size
        if self._index >= size:
            return -1
        broker = self._brokers[(self._index + self._offset) % size]
        self._index += 1
        return broker


class _Rack:
    __slots__ = ("fenced", "unfenced")

    def __init__(self) -> None:
        self.fenced = BrokerList()
        self.unfenced = BrokerList()

    def next(self, epoch: int) -> int:
        broker = self.unfenced.next(epoch)
        return broker if broker >= 0 else self.fenced.next(epoch)


class RackList:
    """All racks with their brokers, in the order in which leaders rotate over them."""

    def __init__(
        self, brokers: Iterable[UsableBroker], draw: Draw, *, cordoned_in_messages: bool = True
    ) -> None:
        self._draw = draw
        self._cordoned = cordoned_in_messages
        by_name: dict[str | None, _Rack] = {}
        self.total = self.unfenced = 0
        for broker in brokers:
            rack = by_name.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.unfenced).add(broker.id)
            self.unfenced += not broker.fenced
            self.total += 1
        # The draws are made while walking a Java hash map, so its order is part of the algorithm.
        names = hash_map_order(by_name, lambda name: string_hash(name or ""))
        self._racks = {name: by_name[name] for name in names}
        for rack in self._racks.values():
            rack.fenced.initialize(draw)
            rack.unfenced.initialize(draw)
        self.names = sorted(self._racks, key=lambda name: (name is not None, name or ""))
        self._epoch = 0
        self._offset = draw(len(self.names)) if self.names else 0

    def reject_non_positive(self, replication_factor: int) -> None:
        """Raise when less than one replica is wanted."""
        if replication_factor <= 0:
            raise PlacementError(
                f"Invalid replication factor {replication_factor}: the replication factor must be "
                "positive."
            )

    def reject_all_fenced(self) -> None:
        """Raise when no broker may lead."""
        if self.unfenced == 0:
            more = ", or have all their log directories cordoned" if self._cordoned else ""
            raise PlacementError(f"All brokers are currently fenced{more}.")

    def reject_too_few(self, replication_factor: int) -> None:
        """Raise when there are fewer brokers, fenced ones included, than replicas wanted."""
        if replication_factor > self.total:
            more = " or some brokers have all their log directories cordoned"
            raise PlacementError(
                f"The target replication factor of {replication_factor} cannot be reached because "
                f"only {self.total} broker(s) are registered{more if self._cordoned else ''}."
            )

    def place(self, replication_factor: int) -> tuple[int, ...]:
        """The replicas of the next partition, the leader first."""
        self.reject_non_positive(replication_factor)
        self.reject_too_few(replication_factor)
        self.reject_all_fenced()
        if self._epoch == self.unfenced and self.unfenced > 1:
            self._shuffle()
            self._epoch = 0
        if self._offset == len(self.names):
            self._offset = 0
        leader, leader_rack = self._leader()
        replicas = [leader]
        rack_index: int = self._offset
        while len(replicas) < replication_factor:
            broker = -1
            if rack_index == leader_rack:
                leader_rack = -1  # passed over once, then a rack like any other
            else:
                broker = self._racks[self.names[rack_index]].next(self._epoch)
            rack_index = (rack_index + 1) % len(self.names)
            if broker >= 0:
                replicas.append(broker)
        self._epoch += 1
        self._offset += 1
        return tuple(replicas)

    def _leader(self) -> tuple[int, int]:
        rack_index = self._offset
        while True:
            broker = self._racks[self.names[rack_index]].unfenced.next(self._epoch)
            if broker >= 0:
                return broker, rack_index
            rack_index = (rack_index + 1) % len(self.names)

    def _shuffle(self) -> None:
        shuffle(self.names, self._draw)
        for rack in self._racks.values():
            rack.fenced.shuffle(self._draw)
            rack.unfenced.shuffle(self._draw)


def shuffle(items: list[Any], draw: Draw) -> None:
    """Reorder in place with draws of bounds n, n-1, ..., 2 (java.util.Collections.shuffle)."""
    for bound in range(len(items), 1, -1):
        other = draw(bound)
        items[bound - 1], items[other] = items[other], items[bound - 1]
