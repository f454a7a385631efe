"""The fetch sessions of a broker, and which of them make room for new ones.

Session ids are drawn from the incarnation of the broker, so that a session that an earlier one has
opened is not found. The cache has eight shards, each with its range of ids and its part of
max.incremental.fetch.session.cache.slots.

Source:  FetchSessionCache, FetchSessionCacheShard, BrokerServer.
"""

from __future__ import annotations

import zlib

from minicluster.replica.sessions.fetch_session import (
    INVALID_SESSION_ID,
    CachedPartition,
    FetchSession,
    PartitionKey,
)

SHARDS = 8
EVICTION_MS = 120_000
_ID_RANGE = 0x7FFF_FFFF // SHARDS
_BY_NONE: frozenset[bool] = frozenset()
_BY_PRIVILEGED = frozenset({True})
_BY_ANY = frozenset({True, False})


class FetchSessionCacheShard:
    """The sessions whose ids lie in one range."""

    def __init__(self, number: int, max_entries: int, seed: str) -> None:
        self.sessions: dict[int, FetchSession] = {}
        self._number = number
        self._max_entries = max_entries
        self._seed = seed
        self._drawn = 0

    def create(
        self,
        partitions: dict[PartitionKey, CachedPartition],
        *,
        follower: tuple[int, int] | None,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> int:
        """Open a session if there is room.

        Shapes:  follower: (broker id, broker epoch), None for a consumer -> its id, or
                 INVALID_SESSION_ID.
        Source:  FetchSessionCacheShard.maybeCreateSession.
        """
        privileged = follower is not None
        if len(self.sessions) >= self._max_entries:
            evicted = self._evictable(privileged, len(partitions), now_ms)
            if evicted is None:
                return INVALID_SESSION_ID
            self.sessions.pop(evicted.id).unsettle_all()
        session = FetchSession(
            id=self._new_id(),
            privileged=privileged,
            follower=follower,
            uses_topic_ids=uses_topic_ids,
            partitions=partitions,
            creation_ms=now_ms,
            last_used_ms=now_ms,
        )
        self.sessions[session.id] = session
        touch(session, now_ms)
        return session.id

    def _evictable(self, privileged: bool, size: int, now_ms: int) -> FetchSession | None:
        """The session that a new one of this size replaces.

        It is one that was not used for long; else the least of those that have lived for long, or
        that a follower's session outranks, if it is not worth more than the new one.

        Source:  FetchSessionCacheShard.tryEvict.
        """
        if not self.sessions:
            return None
        stale = min(self.sessions.values(), key=lambda session: (session.last_used_ms, session.id))
        if now_ms - stale.last_used_ms > EVICTION_MS:
            return stale
        candidates = [s for s in self.sessions.values() if privileged in s.evictable_by]
        least = min(candidates, key=_worth, default=None)
        return None if least is None or (privileged, size, 0) < _worth(least) else least

    def _new_id(self) -> int:
        lowest = max(1, self._number * _ID_RANGE)
        span = (self._number + 1) * _ID_RANGE - lowest
        while True:
            self._drawn += 1
            draw = zlib.crc32(f"{self._seed}/{self._number}/{self._drawn}".encode())
            session_id = lowest + draw % span
            if session_id not in self.sessions:
                return session_id


class FetchSessionCache:
    """The shards; new sessions go to one after the other."""

    def __init__(self, slots: int, seed: str) -> None:
        self.shards = tuple(FetchSessionCacheShard(n, slots // SHARDS, seed) for n in range(SHARDS))
        self._next = 0

    @staticmethod
    def has_shard(session_id: int) -> bool:
        """A shard has the range of an id; Kafka looks for it in a list, and divides as Java does.

        Source:  FetchSessionCache.getCacheShard.
        """
        return -_ID_RANGE < session_id < SHARDS * _ID_RANGE

    def find(self, session_id: int) -> FetchSession | None:
        """The session with an id; None if there is none."""
        return self._shard(session_id).sessions.get(session_id)

    def remove(self, session_id: int) -> None:
        """Close a session; one that is not there is ignored."""
        session = self._shard(session_id).sessions.pop(session_id, None)
        if session is not None:
            session.unsettle_all()

    def unsettle_all(self) -> None:
        """Read all partitions of all sessions again."""
        for shard in self.shards:
            for session in shard.sessions.values():
                session.unsettle_all()

    def next_shard(self) -> FetchSessionCacheShard:
        """The shard of the next new session."""
        shard = self.shards[self._next % SHARDS]
        self._next += 1
        return shard

    def _shard(self, session_id: int) -> FetchSessionCacheShard:
        return self.shards[max(session_id, 0) // _ID_RANGE]


def touch(session: FetchSession, now_ms: int) -> None:
    """A session was used; one that has lived for long may be evicted by any larger one.

    Source:  FetchSessionCacheShard.touch.
    """
    session.last_used_ms = now_ms
    session.cached_size = len(session.partitions)
    if now_ms - session.creation_ms > EVICTION_MS:
        session.evictable_by = _BY_ANY
    else:
        session.evictable_by = _BY_NONE if session.privileged else _BY_PRIVILEGED


def _worth(session: FetchSession) -> tuple[bool, int, int]:
    return session.privileged, session.cached_size, session.id
