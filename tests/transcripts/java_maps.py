"""The order in which Java's hash maps are walked, where a transcript shows it."""

from __future__ import annotations

from collections.abc import Iterator

from minicluster.controller.state.broker_heartbeat_manager import BrokerIdAndEpoch

_INT = 0xFFFFFFFF


class SessionMap:
    """A java.util.concurrent.ConcurrentHashMap of broker ids with their epochs.

    Bins ascend; within a bin entries are in the order of arrival until a resize. It keeps the last
    run of equal halves in order and puts each of the entries before it in front.
    """

    def __init__(self) -> None:
        self._bins: list[list[BrokerIdAndEpoch]] = [[] for _ in range(16)]
        self._size = 0

    def __iter__(self) -> Iterator[BrokerIdAndEpoch]:
        for entries in self._bins:
            yield from entries

    def put(self, session: BrokerIdAndEpoch) -> None:
        """Put a session in, if it is not in."""
        entries = self._bins[self._slot(session)]
        if session in entries:
            return
        entries.append(session)
        self._size += 1
        while self._size >= len(self._bins) * 3 // 4:
            self._resize()

    def remove(self, session: BrokerIdAndEpoch) -> None:
        """Take a session out, if it is in."""
        entries = self._bins[self._slot(session)]
        if session in entries:
            entries.remove(session)
            self._size -= 1

    def _slot(self, session: BrokerIdAndEpoch) -> int:
        return _spread(session) & (len(self._bins) - 1)

    def _resize(self) -> None:
        old, size = self._bins, len(self._bins)
        self._bins = [[] for _ in range(2 * size)]
        for slot, entries in enumerate(old):
            halves = [bool(_spread(entry) & size) for entry in entries]
            start = len(entries)
            while start > 0 and halves[start - 1] == halves[-1]:
                start -= 1
            low, high = self._bins[slot], self._bins[slot + size]
            (high if halves and halves[-1] else low).extend(entries[start:])
            for entry, is_high in zip(entries[:start], halves[:start], strict=True):
                (high if is_high else low).insert(0, entry)


def _spread(session: BrokerIdAndEpoch) -> int:
    epoch = session.epoch & (1 << 64) - 1
    code = (31 * session.broker_id + ((epoch ^ (epoch >> 32)) & _INT)) & _INT
    return (code ^ (code >> 16)) & 0x7FFFFFFF
