"""The orders in which Java's, Scala's and Kafka's hash sets are walked, where they show.

Source:  java.util.HashMap, java.util.concurrent.ConcurrentHashMap, String.hashCode,
         scala.collection.mutable.HashMap, scala.collection.immutable.HashMap, Uuid.hashCode;
         org.apache.kafka.timeline.BaseHashTable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar
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
    while len(members) > bins * 3 // 4:
        bins *= 2
    return _by_bin(members, hash_of, bins)


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


def room_of_copy(count: int) -> int:
    """The room of a HashMap or HashSet that is made from a collection of so many."""
    return count * 4 // 3 + 1


def hash_set_order(first: Sequence[K], then: Sequence[K], hash_of: Callable[[K], int]) -> list[K]:
    """The members of a java.util.HashSet that is made from some keys and gets more afterwards.

    A set made from a collection starts with room for it.
    """
    members = dict.fromkeys((*first, *then))
    return hash_map_order(members, hash_of, max(16, room_of_copy(len(first))))


def java_set_order(first: Sequence[int], then: Sequence[int] = ()) -> list[int]:
    """The members of a HashSet of numbers. Few ids below 16 ascend; 16 is before 1."""
    return hash_set_order(first, then, lambda member: member)


def _by_bin(keys: list[K], hash_of: Callable[[K], int], bins: int) -> list[K]:
    last = bins - 1
    places = [(code ^ code >> 16) & last for code in map(hash_of, keys)]
    return [keys[index] for index in sorted(range(len(keys)), key=places.__getitem__)]


def timeline_order(
    keys: Iterable[K], hash_of: Callable[[K], int], *, put_again: bool = False
) -> list[K]:
    """The keys of one of Kafka's own hash tables (TimelineHashMap, TimelineHashSet).

    Slots ascend; in a slot the last to arrive is the first. A table of Kafka never gets smaller, so
    one that has held more keys has more slots, and orders those that share a slot here otherwise.

    Shapes:  put_again: of rows that have changed; to put a key that is there makes room as well.
    """
    newest_first, slots = list(keys)[::-1], 2
    while (len(newest_first) + put_again) * 3 > slots * 4:
        slots *= 2
    shift = 65 - slots.bit_length()

    def slot(key: K) -> int:
        code = hash_of(key)
        signed = code - (1 << 32) if code >= 1 << 31 else code
        return (signed * _MULTIPLIER & _LONG) >> shift

    return sorted(newest_first, key=slot)
