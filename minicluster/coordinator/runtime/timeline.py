"""A dictionary that can also be read as it was at the last committed offset.

A coordinator decides on the newest state, and describes the committed one: what is not replicated
yet may be lost with this leader.

Source:  org.apache.kafka.timeline.TimelineHashMap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from minicluster.java_order import timeline_order

K = TypeVar("K")
V = TypeVar("V")
_ABSENT: Any = object()


class Timeline:
    """The committed offset that the dictionaries of one shard share.

    Units:   an offset is the one behind a record, as a high watermark is.
    """

    def __init__(self) -> None:
        self.written = 0
        self._changed: dict[int, TimelineDict[Any, Any]] = {}

    def new_dict(self) -> TimelineDict[Any, Any]:
        """An empty dictionary of this shard."""
        return TimelineDict(self)

    def on_change(self, changed: TimelineDict[Any, Any]) -> None:
        """A dictionary holds values from before a change that is not committed."""
        self._changed[id(changed)] = changed

    def commit(self, offset: int) -> None:
        """Forget what was true before an offset that is committed now."""
        for key, changed in list(self._changed.items()):
            if changed.commit(offset):
                del self._changed[key]


class TimelineDict(Generic[K, V]):
    """Newest values by key, and for each change above the committed offset the value before it.

    **Invariant:** a value is never changed in place, or the committed one would change with it.
    """

    __slots__ = ("_changes", "_newest", "_timeline")

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._newest: dict[K, V] = {}
        # No deque, which takes 600 bytes without a change: there is a dictionary for each topic.
        self._changes: list[tuple[int, K, V]] = []

    def __getitem__(self, key: K) -> V:
        return self._newest[key]

    def __contains__(self, key: object) -> bool:
        return key in self._newest

    def __iter__(self) -> Iterator[K]:
        return iter(self._newest)

    def __len__(self) -> int:
        return len(self._newest)

    def get(self, key: K) -> V | None:
        """The newest value of a key."""
        return self._newest.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self._remember(key)
        self._newest[key] = value

    def pop(self, key: K) -> V | None:
        """Remove a key; its value, if it had one."""
        if key not in self._newest:
            return None
        self._remember(key)
        return self._newest.pop(key)

    def in_order(self, hash_of: Callable[[K], int], *, committed: bool = False) -> list[K]:
        """The keys in the order of Kafka's table."""
        return timeline_order(self.view(committed=committed), hash_of)

    def values_in_order(self, hash_of: Callable[[K], int], *, committed: bool = False) -> list[V]:
        """The values in the order of their keys in Kafka's table."""
        values = self.view(committed=committed)
        return [values[key] for key in timeline_order(values, hash_of)]

    def view(self, *, committed: bool) -> Mapping[K, V]:
        """The values as of the committed offset, or the newest, which change with this."""
        return self.committed() if committed else self._newest

    def committed(self) -> dict[K, V]:
        """The values as of the committed offset."""
        state = dict(self._newest)
        for _, key, before in reversed(self._changes):
            if before is _ABSENT:
                state.pop(key, None)
            else:
                state[key] = before
        return state

    def committed_value(self, key: K) -> V | None:
        """The value of a key as of the committed offset."""
        for _, changed, before in self._changes:
            if changed == key:
                return None if before is _ABSENT else before
        return self._newest.get(key)

    def commit(self, offset: int) -> bool:
        """Forget the values before changes below an offset; whether all are forgotten."""
        later = next((n for n, each in enumerate(self._changes) if each[0] > offset), None)
        del self._changes[:later]
        return not self._changes

    def _remember(self, key: K) -> None:
        if not self._changes:
            self._timeline.on_change(self)
        self._changes.append((self._timeline.written, key, self._newest.get(key, _ABSENT)))
