"""Fetch sessions: the partitions that a client fetches, and what it was last sent (KIP-227).

    epoch 0     a full fetch opens a session, if there is room
    epoch n     an incremental fetch names what has changed since fetch n - 1
    epoch -1    a full fetch without a session; it closes the one that it names

Without sessions a follower of a thousand idle partitions sends a thousand names with each fetch, to
be told that there is nothing. In a session the request names what the client changes, and the
response what has changed for it: records, an error, or another high watermark or log start than it
was last sent. So both sides must agree on what was sent last. The epoch sees to that: if a response
is lost, the client's next epoch is not the one expected, INVALID_FETCH_SESSION_EPOCH makes it open
another session, and everything is sent once more.

Session ids are drawn from the incarnation of the broker, so that a session that an earlier one has
opened is not found: a new incarnation knows nothing of what was sent. The cache has eight shards,
each with its range of ids and its part of max.incremental.fetch.session.cache.slots.

Source:  FetchSession, CachedPartition, FetchMetadata; FetchSessionCache, FetchSessionCacheShard,
         BrokerServer.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from minicluster.log.epochs import NO_EPOCH
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchResponse
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.values import Value

if TYPE_CHECKING:
    from minicluster.replica.fetching.skipped import SkippedPartition
    from minicluster.replica.requests.delayed_fetch import DelayedFetch

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0  # a full fetch that begins a session
FINAL_EPOCH = -1  # a full fetch without a session
_HIGHEST_EPOCH = 0x7FFF_FFFF
_INVALID_OFFSET = -1
SHARDS = 8
EVICTION_MS = 120_000
_ID_RANGE = 0x7FFF_FFFF // SHARDS
_BY_NONE: frozenset[bool] = frozenset()
_BY_PRIVILEGED = frozenset({True})
_BY_ANY = frozenset({True, False})

# (topic id as a number, which Python hashes without a call, or before version 13 its name; index)
PartitionKey = tuple[int | str, int]


def next_epoch(epoch: int) -> int:
    """The epoch of the request after this one."""
    if epoch < INITIAL_EPOCH:
        return FINAL_EPOCH
    return 1 if epoch == _HIGHEST_EPOCH else epoch + 1


class CachedPartition(Struct):
    """A partition of a session.

    Shapes:  topic is None while its id is not known; data is the partition of the last request that
             named it; the offsets are those of the last response that had it, -1 before. place:
             partitions are read by ascending places.
    """

    topic: str | None
    topic_id: uuid.UUID
    data: Any
    place: int = 0
    high_watermark: int = _INVALID_OFFSET
    log_start_offset: int = _INVALID_OFFSET

    def take_response(self, data: Any) -> bool:
        """Note what is about to be sent.

        Shapes:  -> whether the partition has to be in an incremental response.
        Source:  CachedPartition.maybeUpdateResponseData.
        """
        failed = data.error_code != ErrorCode.NONE
        must_respond = (
            bool(data.records)
            or self.high_watermark != data.high_watermark
            or self.log_start_offset != data.log_start_offset
            or data.preferred_read_replica >= 0
            or failed
            or data.diverging_epoch.epoch != NO_EPOCH
        )
        # After an error the partition is sent again, even if its offsets have not changed.
        self.high_watermark = _INVALID_OFFSET if failed else data.high_watermark
        self.log_start_offset = data.log_start_offset
        return must_respond


class FetchSession(Struct, kw_only=True):
    """The partitions of one client, in the order in which they are read.

    Shapes:  privileged: the session of a follower; the epoch is that of the next request. follower:
             (broker id, broker epoch) of the last request. A partition is in ``to_read`` or, where
             a follower has been sent all of it, in ``skipped``. waiting: the fetches that wait, by
             their numbers in the purgatory.
    """

    id: int
    privileged: bool
    uses_topic_ids: bool
    partitions: dict[PartitionKey, CachedPartition]
    creation_ms: int
    last_used_ms: int
    epoch: int = next_epoch(INITIAL_EPOCH)
    cached_size: int = 0
    evictable_by: frozenset[bool] = field(default_factory=frozenset)  # of (privileged, other) ones
    follower: tuple[int, int] | None = None
    to_read: dict[PartitionKey, None] = field(default_factory=dict)
    skipped: dict[PartitionKey, SkippedPartition] = field(default_factory=dict)
    waiting: dict[int, DelayedFetch] = field(default_factory=dict)
    last_place: int = 0

    def __post_init__(self) -> None:
        self.to_read = dict.fromkeys(self.partitions)
        for partition in self.partitions.values():
            self.put_last(partition)

    def put_last(self, partition: CachedPartition) -> None:
        """Read a partition after all others."""
        self.last_place += 1
        partition.place = self.last_place

    def partitions_to_read(self) -> dict[PartitionKey, CachedPartition]:
        """The partitions that are not skipped, in order."""
        if not self.skipped:
            return dict(self.partitions)
        to_read = [(key, self.partitions[key]) for key in self.to_read]
        return dict(sorted(to_read, key=lambda item: item[1].place))

    def take_follower(self, follower: tuple[int, int] | None) -> None:
        """Take the sender of a request; nothing is skipped for another one."""
        if follower != self.follower:
            self.read_all_again()
            self.follower = follower

    def read_all_again(self) -> None:
        """Read all partitions again."""
        for skipped in list(self.skipped.values()):
            skipped.read_again()

    def update(
        self,
        wanted: Iterable[tuple[PartitionKey, CachedPartition]],
        forgotten: Iterable[PartitionKey],
    ) -> None:
        """Add and change the partitions of a request, then drop those that it forgets.

        Source:  FetchSession.update.
        """
        for key, partition in wanted:
            cached = self.partitions.get(key)
            if cached is None:
                self.partitions[key] = partition
                self.put_last(partition)
            else:
                if key in self.skipped:
                    self.skipped[key].read_again()
                cached.data = partition.data
            self.to_read[key] = None
        for key in forgotten:
            if key in self.skipped:
                self.skipped[key].read_again()
            self.partitions.pop(key, None)
            self.to_read.pop(key, None)


# --- the cache ----------------------------------------------------------------------------------


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
            self.sessions.pop(evicted.id).read_all_again()
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
            session.read_all_again()

    def read_all_again(self, followers: Collection[int]) -> None:
        """Read all partitions again of the sessions of these brokers."""
        for shard in self.shards:
            for session in shard.sessions.values():
                if session.follower is not None and session.follower[0] in followers:
                    session.read_all_again()

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


# The context of one Fetch request: which partitions it reads, and which of them it responds with.
#
#     full, without a session   reads and responds with the partitions of the request
#     full, with a new session  likewise, and opens a session if there is room
#     incremental               reads the partitions of the session that may have changed, responds
#                               with those that have
#     error                     reads none; the response has the error alone
#
# Source:  FetchContext, FetchManager.newContext, FetchRequest.fetchData, forgottenTopics.


NameOf = Callable[[uuid.UUID], str | None]
Wanted = dict[PartitionKey, CachedPartition]


class FetchContext(Protocol):
    """The context of a request."""

    @property
    def partitions(self) -> Mapping[PartitionKey, CachedPartition]:
        """The partitions to read, in order."""

    @property
    def session(self) -> FetchSession | None:
        """The session that the request continues."""

    def response(
        self, updates: dict[PartitionKey, Any], endpoints: tuple[Any, ...], now_ms: int
    ) -> FetchResponse:
        """The response, from what was read of each partition."""


class _OutsideSession(Value):
    """A request that continues no session."""

    @property
    def session(self) -> FetchSession | None:
        """None."""
        return None


class SessionErrorContext(_OutsideSession):
    """The session or its epoch is not the one of the request."""

    error: ErrorCode

    @property
    def partitions(self) -> Mapping[PartitionKey, CachedPartition]:
        """None."""
        return {}

    def response(
        self, updates: dict[PartitionKey, Any], endpoints: tuple[Any, ...], now_ms: int
    ) -> FetchResponse:
        """The error."""
        return FetchResponse(error_code=self.error)


class SessionlessFetchContext(_OutsideSession):
    """A full request that opens no session."""

    partitions: Wanted

    def response(
        self, updates: dict[PartitionKey, Any], endpoints: tuple[Any, ...], now_ms: int
    ) -> FetchResponse:
        """All partitions."""
        return _response(INVALID_SESSION_ID, self.partitions, updates, endpoints)


class FullFetchContext(_OutsideSession):
    """A full request that opens a session."""

    partitions: Wanted
    cache: FetchSessionCache
    uses_topic_ids: bool
    follower: tuple[int, int] | None

    def response(
        self, updates: dict[PartitionKey, Any], endpoints: tuple[Any, ...], now_ms: int
    ) -> FetchResponse:
        """All partitions, with the id of the session, if there was room for one."""
        cached: Wanted = {}
        for key, data in updates.items():
            partition = cached[key] = self.partitions[key]
            partition.high_watermark = data.high_watermark
            partition.log_start_offset = data.log_start_offset
        session_id = self.cache.next_shard().create(
            cached,
            follower=self.follower,
            uses_topic_ids=self.uses_topic_ids,
            now_ms=now_ms,
        )
        return _response(session_id, self.partitions, updates, endpoints)


class IncrementalFetchContext(Value):
    """A request of a session.

    Shapes:  the epoch is that of the request.
    """

    session: FetchSession
    epoch: int

    @property
    def partitions(self) -> Mapping[PartitionKey, CachedPartition]:
        """The partitions of the session that are not skipped."""
        return self.session.partitions_to_read()

    def response(
        self, updates: dict[PartitionKey, Any], endpoints: tuple[Any, ...], now_ms: int
    ) -> FetchResponse:
        """The partitions that have changed.

        Those with records go to the end of the session, so that each has its turn where a response
        holds only some of them.

        Errors:  INVALID_FETCH_SESSION_EPOCH if another request has continued the session meanwhile.
        """
        # While this fetch waited the client has given it up and sent another. What that one was
        # sent must not be followed by older offsets.
        session = self.session
        if session.epoch != next_epoch(self.epoch):
            return FetchResponse(
                error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                session_id=session.id,
                node_endpoints=endpoints,
            )
        session.waiting.clear()
        changed: dict[PartitionKey, Any] = {}
        for key, data in updates.items():
            partition = session.partitions.get(key)
            if partition is not None and partition.take_response(data):
                changed[key] = data
                if data.records:
                    session.partitions[key] = session.partitions.pop(key)
                    session.put_last(partition)
        return _response(session.id, session.partitions, changed, endpoints)


def new_context(
    cache: FetchSessionCache,
    request: Any,
    wanted: Wanted,
    *,
    uses_topic_ids: bool,
    follower: tuple[int, int] | None,
    name_of: NameOf,
    now_ms: int,
) -> FetchContext:
    """The context of a request; a session that it uses or closes is changed.

    Shapes:  wanted: the partitions that the request names, from ``partitions_of``.
    Errors:  in the context: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
             FETCH_SESSION_TOPIC_ID_ERROR (a session by topic names is continued by topic ids, or
             the other way round).
    Source:  FetchManager.newContext.
    """
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id != INVALID_SESSION_ID:
            cache.remove(request.session_id)
        if request.session_epoch == FINAL_EPOCH:
            return SessionlessFetchContext(wanted)
        return FullFetchContext(wanted, cache, uses_topic_ids, follower)
    session = cache.find(request.session_id)
    if session is None:
        return SessionErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != request.session_epoch:
        return SessionErrorContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    # A topic by its name and the one by its id need not be the same any more.
    if session.uses_topic_ids != uses_topic_ids:
        return SessionErrorContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
    session.take_follower(follower)
    if wanted or request.forgotten_topics_data:
        session.update(wanted.items(), _forgotten(request, uses_topic_ids))
    if not session.partitions:
        cache.remove(session.id)
        return SessionlessFetchContext(wanted)
    touch(session, now_ms)
    session.epoch = next_epoch(session.epoch)
    # Topics that this broker had not learned of when the session began: a client can be ahead of a
    # broker's metadata, and would otherwise get UNKNOWN_TOPIC_ID as long as the session lasts.
    if uses_topic_ids:
        for key in session.to_read:
            partition = session.partitions[key]
            if partition.topic is None:
                partition.topic = name_of(partition.topic_id)
    return IncrementalFetchContext(session, request.session_epoch)


def partitions_of(request: Any, uses_topic_ids: bool, name_of: NameOf) -> Wanted:
    """The partitions that a request names; of one that comes twice the last counts."""
    partitions: Wanted = {}
    for topic in request.topics:
        name = name_of(topic.topic_id) if uses_topic_ids else topic.topic
        topic_id = topic.topic_id if uses_topic_ids else ZERO_UUID
        for data in topic.partitions:
            key = (topic_id.int if uses_topic_ids else topic.topic, data.partition)
            partitions[key] = CachedPartition(name, topic_id, data)
    return partitions


def _forgotten(request: Any, uses_topic_ids: bool) -> Iterator[PartitionKey]:
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield (topic.topic_id.int if uses_topic_ids else topic.topic, index)


def _response(
    session_id: int,
    partitions: Mapping[PartitionKey, CachedPartition],
    updates: Mapping[PartitionKey, Any],
    endpoints: tuple[Any, ...],
) -> FetchResponse:
    """The partitions in their order; neighbours of one topic share an entry.

    Source:  FetchResponse.toMessage.
    """
    if not updates:
        return FetchResponse(session_id=session_id, node_endpoints=endpoints)
    topics: list[tuple[CachedPartition, list[Any]]] = []
    last: int | str | None = None
    for key, data in updates.items():
        if not topics or key[0] != last:
            topics.append((partitions[key], []))
            last = key[0]
        topics[-1][1].append(data)
    return FetchResponse(
        session_id=session_id,
        responses=tuple(
            FetchResponse.FetchableTopicResponse(
                topic=partition.topic or "", topic_id=partition.topic_id, partitions=tuple(data)
            )
            for partition, data in topics
        ),
        node_endpoints=endpoints,
    )
