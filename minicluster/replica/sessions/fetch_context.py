"""The context of one Fetch request: which partitions it reads, and which of them it responds with.

    full, without a session   reads and responds with the partitions of the request
    full, with a new session  likewise, and opens a session if there is room
    incremental               reads the partitions of the session that may have changed, responds
                              with those that have
    error                     reads none; the response has the error alone

Source:  FetchContext, FetchManager.newContext, FetchRequest.fetchData, forgottenTopics.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchResponse
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.sessions.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    INVALID_SESSION_ID,
    CachedPartition,
    FetchSession,
    FetchSessionCache,
    PartitionKey,
    next_epoch,
    touch,
)

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


class _OutsideSession:
    """A request that continues no session."""

    __slots__ = ()

    @property
    def session(self) -> FetchSession | None:
        """None."""
        return None


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class SessionlessFetchContext(_OutsideSession):
    """A full request that opens no session."""

    partitions: Wanted

    def response(
        self, updates: dict[PartitionKey, Any], endpoints: tuple[Any, ...], now_ms: int
    ) -> FetchResponse:
        """All partitions."""
        return _response(INVALID_SESSION_ID, self.partitions, updates, endpoints)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class IncrementalFetchContext:
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
    *,
    uses_topic_ids: bool,
    follower: tuple[int, int] | None,
    name_of: NameOf,
    now_ms: int,
) -> FetchContext:
    """The context of a request; a session that it uses or closes is changed.

    Errors:  in the context: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
             FETCH_SESSION_TOPIC_ID_ERROR (a session by topic names is continued by topic ids, or
             the other way round).
    Source:  FetchManager.newContext.
    """
    wanted = dict(_wanted(request, uses_topic_ids, name_of)) if request.topics else {}
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
    if uses_topic_ids:
        for key in session.to_read:
            partition = session.partitions[key]
            if partition.topic is None:
                partition.topic = name_of(partition.topic_id)
    return IncrementalFetchContext(session, request.session_epoch)


def _wanted(
    request: Any, uses_topic_ids: bool, name_of: NameOf
) -> Iterator[tuple[PartitionKey, CachedPartition]]:
    for topic in request.topics:
        name = name_of(topic.topic_id) if uses_topic_ids else topic.topic
        topic_id = topic.topic_id if uses_topic_ids else ZERO_UUID
        for data in topic.partitions:
            key = (topic_id.int if uses_topic_ids else topic.topic, data.partition)
            yield key, CachedPartition(name, topic_id, data)


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
