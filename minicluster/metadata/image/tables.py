"""Persistent maps with a fingerprint of their content.

A fingerprint is the sum of its rows' hashes: it depends on the rows alone, not on the order in
which they came or on former rows, and one changed row costs two hashes. So an image's
digest is known after every commit, whatever the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any, Generic, TypeVar

from msgspec import field
from rpds import HashTrieMap

from minicluster.values import Value

K = TypeVar("K")
V = TypeVar("V")
G = TypeVar("G")

FINGERPRINT_BYTES = 16
FINGERPRINT_MASK = (1 << 8 * FINGERPRINT_BYTES) - 1


def fingerprint(*parts: object) -> int:
    """A hash of values whose ``repr`` is their content: never of sets, dicts or persistent maps."""
    return fingerprint_of_bytes(repr(parts).encode())


def fingerprint_of_bytes(content: bytes) -> int:
    """A hash of bytes, as a number that sums of fingerprints are made of."""
    return int.from_bytes(blake2b(content, digest_size=FINGERPRINT_BYTES).digest(), "little")


def digest_of(sums: Iterable[int]) -> str:
    """A hash of the sums of an image's sections, in their order."""
    masked = [total & FINGERPRINT_MASK for total in sums]
    return blake2b(repr(masked).encode(), digest_size=FINGERPRINT_BYTES).hexdigest()


class Table(Value, Generic[K, V]):
    """A persistent map of one kind of row. Iteration is in the order of the keys."""

    name: str
    rows: HashTrieMap[K, V] = field(default_factory=HashTrieMap)
    fingerprint: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, key: object) -> bool:
        return key in self.rows

    def __iter__(self) -> Iterator[K]:
        return iter(sorted(self.rows, key=_sort_key))

    def __getitem__(self, key: K) -> V:
        return self.rows[key]

    def get(self, key: K) -> V | None:
        """The row, or None."""
        return self.rows.get(key)

    def values(self) -> Iterator[V]:
        """The rows in the order of their keys."""
        return (self.rows[key] for key in self)

    def items(self) -> Iterator[tuple[K, V]]:
        """Keys and rows in the order of the keys."""
        return ((key, self.rows[key]) for key in self)

    def put(self, key: K, value: V) -> Table[K, V]:
        """This table with a row added or replaced."""
        total = self.fingerprint + fingerprint(self.name, key, value)
        old = self.rows.get(key)
        if old is not None:
            total -= fingerprint(self.name, key, old)
        return Table(self.name, self.rows.insert(key, value), total & FINGERPRINT_MASK)

    def remove(self, key: K) -> Table[K, V]:
        """This table without a row; itself, when there is none."""
        old = self.rows.get(key)
        if old is None:
            return self
        total = self.fingerprint - fingerprint(self.name, key, old)
        return Table(self.name, self.rows.remove(key), total & FINGERPRINT_MASK)


class GroupedTable(Value, Generic[G, K, V]):
    """A persistent map of groups of rows; a group without rows is gone."""

    name: str
    groups: HashTrieMap[G, HashTrieMap[K, V]] = field(default_factory=HashTrieMap)
    fingerprint: int = 0

    def __len__(self) -> int:
        return len(self.groups)

    def __contains__(self, group: object) -> bool:
        return group in self.groups

    def __iter__(self) -> Iterator[G]:
        return iter(sorted(self.groups, key=_sort_key))

    def group(self, group: G) -> dict[K, V]:
        """One group's rows in the order of their keys."""
        rows: HashTrieMap[K, V] = self.groups.get(group) or HashTrieMap()
        return {key: rows[key] for key in sorted(rows, key=_sort_key)}

    def get(self, group: G, key: K) -> V | None:
        """One row, or None."""
        rows = self.groups.get(group)
        return None if rows is None else rows.get(key)

    def put(self, group: G, key: K, value: V) -> GroupedTable[G, K, V]:
        """This table with a row added or replaced."""
        rows: HashTrieMap[K, V] = self.groups.get(group) or HashTrieMap()
        total = self.fingerprint + fingerprint(self.name, group, key, value)
        old = rows.get(key)
        if old is not None:
            total -= fingerprint(self.name, group, key, old)
        groups = self.groups.insert(group, rows.insert(key, value))
        return GroupedTable(self.name, groups, total & FINGERPRINT_MASK)

    def remove(self, group: G, key: K) -> GroupedTable[G, K, V]:
        """This table without a row; itself, when there is none."""
        rows = self.groups.get(group)
        old = None if rows is None else rows.get(key)
        if rows is None or old is None:
            return self
        total = self.fingerprint - fingerprint(self.name, group, key, old)
        remaining = rows.remove(key)
        groups = self.groups.insert(group, remaining) if remaining else self.groups.remove(group)
        return GroupedTable(self.name, groups, total & FINGERPRINT_MASK)

    def remove_group(self, group: G) -> GroupedTable[G, K, V]:
        """This table without a whole group."""
        table = self
        for key in self.group(group):
            table = table.remove(group, key)
        return table


def _sort_key(key: Any) -> Any:
    """Order keys that may hold None, which comes before every value."""
    if isinstance(key, tuple):
        return tuple(_sort_key(part) for part in key)
    return (key is not None, key) if key is None or isinstance(key, str) else key


Fold = Callable[[Any, Any, int], Any]
"""(section of an image, record, offset) -> section."""
