"""The orders in which Java's, Scala's and Kafka's hash sets are walked, where they show.

Source:  java.util.HashMap, java.util.concurrent.ConcurrentHashMap, String.hashCode,
         scala.collection.mutable.HashMap, scala.collection.immutable.HashMap, Uuid.hashCode;
         org.apache.kafka.timeline.BaseHashTable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar
from uuid import UUID

K = TypeVar("K")

_MULTIPLIER = 0x9E3779B97F4A7C15
_LONG = (1 << 64) - 1
SCALA_IN_ORDER_MAX = 4
"""The most members of an immutable Scala map or set that keep the order of their arrival."""


@lru_cache(maxsize=65_536)
def string_hash(text: str) -> int:
    """Java's hash code of a string, as an unsigned number of 32 bits."""
    code = 0
    units = text.encode("utf-16-be")
    for place in range(0, len(units), 2):
        code = (31 * code + (units[place] << 8 | units[place + 1])) & 0xFFFFFFFF
    return code


def utf16_length(text: str) -> int:
    """The length of a string in Java, which counts some characters twice."""
    return len(text.encode("utf-16-be")) // 2


def topic_partition_hash(partition: tuple[str, int]) -> int:
    """The hash code of Kafka's TopicPartition, as an unsigned number of 32 bits."""
    return (31 * (31 + partition[1]) + string_hash(partition[0])) & 0xFFFFFFFF


def int_hash(value: int) -> int:
    """Java's hash code of an int, as an unsigned number of 32 bits."""
    return value & 0xFFFFFFFF


def long_hash(value: int) -> int:
    """Java's hash code of a long, as an unsigned number of 32 bits."""
    return (value ^ value >> 32) & 0xFFFFFFFF


def topic_id_partition_hash(partition: tuple[UUID, str, int]) -> int:
    """The hash code of Kafka's TopicIdPartition, as an unsigned number of 32 bits."""
    topic_id, topic, index = partition
    of_id = 31 * (31 + uuid_hash(topic_id))
    return (of_id + topic_partition_hash((topic, index))) & 0xFFFFFFFF


def uuid_hash(value: UUID) -> int:
    """The hash code of Kafka's Uuid, as an unsigned number of 32 bits."""
    folded = (value.int >> 64) ^ (value.int & _LONG)
    return (folded >> 32) ^ (folded & 0xFFFFFFFF)


def hash_map_order(keys: Iterable[K], hash_of: Callable[[K], int], room: int = 16) -> list[K]:
    """The keys of a java.util.HashMap in the order of its bins; in a bin, in the order of arrival.

    A map has 16 bins, or as many as its maker gives it room for, in powers of two. It doubles them
    whenever three quarters are exceeded.
    """
    members = list(keys)
    bins = 1 << (room - 1).bit_length() if room else 1
    return _by_bin(members, hash_of, _grown(bins, len(members)))


def string_map_hash(entries: Mapping[str, str | None]) -> int:
    """Java's hash code of a map of strings, as an unsigned number of 32 bits."""
    hashes = (
        string_hash(key) ^ (0 if value is None else string_hash(value))
        for key, value in entries.items()
    )
    return sum(hashes) & 0xFFFFFFFF


def scala_map_order(keys: Iterable[K], hash_of: Callable[[K], int], made_from: int = 0) -> list[K]:
    """The keys of a mutable Scala map in the order of its bins; in a bin, by their hashes.

    A map made from some entries has room for these, an empty one 16 bins; it doubles them before
    three quarters are reached.
    """
    members = list(keys)
    if len(members) < 2:
        return members
    room = (made_from + 1) * 4 // 3 if made_from else 16
    bins = 1 << (room - 1).bit_length()
    while len(members) >= bins * 3 // 4:
        bins *= 2

    def place(key: K) -> tuple[int, int]:
        code = hash_of(key)
        improved = code ^ code >> 16
        return improved & (bins - 1), improved - (1 << 32) if improved >= 1 << 31 else improved

    return sorted(members, key=place)


def scala_trie_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """The keys of an immutable Scala HashMap: a trie of 32 branches, five bits of a hash at a time.

    In a node its own keys come before those of its branches.
    """
    hashed = [(_mixed(hash_of(key)), key) for key in dict.fromkeys(keys)]
    return list(_trie(hashed, 0))


def _mixed(code: int) -> int:
    """Source:  scala.collection.Hashing.improve."""
    code = (code + ~(code << 9)) & 0xFFFFFFFF
    code ^= code >> 14
    code = (code + (code << 4)) & 0xFFFFFFFF
    return code ^ code >> 10


def _trie(hashed: list[tuple[int, K]], shift: int) -> Iterator[K]:
    if shift > 30:  # equal hashes
        yield from (key for _, key in hashed)
        return
    branches: dict[int, list[tuple[int, K]]] = {}
    for code, key in hashed:
        branches.setdefault(code >> shift & 31, []).append((code, key))
    in_order = [branches[index] for index in sorted(branches)]
    yield from (members[0][1] for members in in_order if len(members) == 1)
    for members in in_order:
        if len(members) > 1:
            yield from _trie(members, shift + 5)


def scala_copy_order(keys: Sequence[K], hash_of: Callable[[K], int]) -> list[K]:
    """The keys of an immutable Scala map: up to four as they came, more in a trie."""
    return list(keys) if len(keys) <= SCALA_IN_ORDER_MAX else scala_trie_order(keys, hash_of)


def persistent_map_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """The keys of a persistent map of an image, in the order of its tree of signed hash codes.

    Of two with the same code the newer one comes first.

    Source:  org.pcollections.HashPMap, IntTreePMap.
    """
    newest_first = list(keys)[::-1]
    return sorted(newest_first, key=lambda key: (hash_of(key) + (1 << 31)) % (1 << 32))


def concurrent_map_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """The keys of a java.util.concurrent.ConcurrentHashMap, one key in a bin.

    It doubles its 16 bins once three quarters are reached.
    """
    members, bins = list(keys), 16
    while len(members) >= bins * 3 // 4:
        bins *= 2
    return _by_bin(members, hash_of, bins)


def copied_map_order(
    copied: Sequence[K], then: Sequence[K], hash_of: Callable[[K], int]
) -> list[K]:
    """The keys of a HashMap that is made from another one and gets more keys afterwards."""
    bins = 1
    while bins < len(copied) * 4 // 3 + 1:
        bins *= 2
    members = list(dict.fromkeys((*copied, *then)))
    return _by_bin(members, hash_of, _grown(bins, len(members)))


def computed_map_order(copied: Sequence[K], key: K, hash_of: Callable[[K], int]) -> list[K]:
    """The keys of a HashMap that is made from another one, and has computed one more value.

    A new key that is computed becomes the first of its bin, and the bins stay as many.
    """
    bins = 1
    while bins < len(copied) * 4 // 3 + 1:
        bins *= 2
    return _by_bin(list(copied) if key in copied else [key, *copied], hash_of, bins)


def hash_set_order(first: Sequence[K], then: Sequence[K], hash_of: Callable[[K], int]) -> list[K]:
    """The members of a java.util.HashSet that is made from some keys and gets more afterwards.

    A set made from a collection starts with room for it.
    """
    bins = 16
    while bins < len(first) * 4 // 3 + 1:
        bins *= 2
    members = list(dict.fromkeys((*first, *then)))
    return _by_bin(members, hash_of, _grown(bins, len(members)))


def java_set_order(first: Sequence[int], then: Sequence[int] = ()) -> list[int]:
    """The members of a HashSet of numbers. Few ids below 16 ascend; 16 is before 1."""
    return hash_set_order(first, then, lambda member: member)


def _grown(bins: int, size: int) -> int:
    while size > bins * 3 // 4:
        bins *= 2
    return bins


def _by_bin(keys: list[K], hash_of: Callable[[K], int], bins: int) -> list[K]:
    last = bins - 1
    places = [(code ^ code >> 16) & last for code in map(hash_of, keys)]
    return [keys[index] for index in sorted(range(len(keys)), key=places.__getitem__)]


class TimelineHashOrder(Generic[K]):
    """The keys of one of Kafka's own hash tables (TimelineHashMap, TimelineHashSet).

    Slots ascend; within a slot the last to arrive is the first.
    """

    __slots__ = ("_hash_of", "_size", "_slots")

    def __init__(self, hash_of: Callable[[K], int], slots: int = 2) -> None:
        self._hash_of = hash_of
        self._slots: list[list[K]] = [[] for _ in range(slots)]
        self._size = 0

    def __iter__(self) -> Iterator[K]:
        for keys in self._slots:
            yield from reversed(keys)

    def __len__(self) -> int:
        return self._size

    def put(self, key: K) -> None:
        """Add a key; putting one that is there can find the table too full as well."""
        if _is_too_full(self._size, len(self._slots)):
            old, self._slots = self._slots, [[] for _ in range(2 * len(self._slots))]
            for keys in old:
                for moved in keys:
                    self._slots[self.slot_of(moved)].append(moved)
        keys = self._slots[self.slot_of(key)]
        if key not in keys:
            keys.append(key)
            self._size += 1

    def remove(self, key: K) -> None:
        """Remove a key, if it is there."""
        keys = self._slots[self.slot_of(key)]
        if key in keys:
            keys.remove(key)
            self._size -= 1

    def slot_of(self, key: K) -> int:
        """The slot of a key."""
        return _slot(self._hash_of(key), 65 - len(self._slots).bit_length())


@dataclass(frozen=True, slots=True)
class TimelineNumbers:
    """The whole numbers of such a table as a value: to put or remove one gives another table.

    It never gets smaller, so the order depends on how many there once were.
    """

    arrived: tuple[int, ...] = ()
    slots: int = 2

    def __iter__(self) -> Iterator[int]:
        return iter(timeline_slots_order(self.arrived, int, self.slots))

    def put(self, number: int, *, is_new: bool) -> TimelineNumbers:
        """With a number; it can grow for one that is there."""
        slots = timeline_slots(len(self.arrived), self.slots)
        return TimelineNumbers((*self.arrived, number) if is_new else self.arrived, slots)

    def remove(self, number: int) -> TimelineNumbers:
        """Without a number."""
        rest = tuple(other for other in self.arrived if other != number)
        return TimelineNumbers(rest, self.slots)


def timeline_slots(size: int, slots: int) -> int:
    """The slots of such a table once a key is put, new or not, beside so many."""
    return 2 * slots if _is_too_full(size, slots) else slots


def timeline_slots_order(keys: Iterable[K], hash_of: Callable[[K], int], slots: int) -> list[K]:
    """Keys in the order of their arrival, in the order of a table with so many slots."""
    shift = 65 - slots.bit_length()
    newest_first = [*keys][::-1]
    return sorted(newest_first, key=lambda key: _slot(hash_of(key), shift))


def _slot(code: int, shift: int) -> int:
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return (signed * _MULTIPLIER & _LONG) >> shift


def _is_too_full(size: int, slots: int) -> bool:
    return (size + 1) * 3 > slots * 4


def timeline_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """Keys that were put into one of Kafka's own hash tables, in the order of its slots."""
    order: TimelineHashOrder[K] = TimelineHashOrder(hash_of)
    for key in keys:
        order.put(key)
    return list(order)
