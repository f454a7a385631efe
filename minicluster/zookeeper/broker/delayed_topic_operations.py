"""Responses about topics that wait until this broker's metadata has what they promise.

A client that has created a topic sends to it at once. On ZooKeeper the metadata arrives later, by
UpdateMetadata: a response that did not wait would promise a topic which no broker has.

Units:   the timeout is that of the request; one of 0 or less has passed at once.
Errors:  REQUEST_TIMED_OUT for the topics that are not there in time, though they may come later.
Source:  kafka.server.DelayedCreatePartitions, DelayedDeleteTopics, ZkAdminManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.effects import CancelTimer, Effect, Respond, SetTimer
from minicluster.metadata.image.partition import NO_LEADER
from minicluster.metadata.image.topics import TopicsImage
from minicluster.protocol import ErrorCode, Message
from minicluster.protocol import messages as m
from minicluster.values import Value, replace

TIMER = "topic-operations"
NO_SIZE = -1

RESULTS: Mapping[type[Message], str] = {
    m.CreateTopicsResponse: "topics",
    m.CreatePartitionsResponse: "results",
    m.DeleteTopicsResponse: "responses",
}


class _Delayed(Value, eq=False):
    token: Any
    request: Any
    response: Any
    expires_ms: int


class DelayedTopicOperations:
    """The responses of one broker that wait, in the order of their requests."""

    def __init__(self) -> None:
        self._delayed: list[_Delayed] = []

    def add(
        self, token: Any, request: Any, response: Any, topics: TopicsImage, now_ms: int
    ) -> list[Effect]:
        """Respond as soon as the metadata has every topic, and none that was deleted."""
        names = list(promised(request, response))
        if not names:
            return [Respond(token, response)]
        if request.timeout_ms <= 0:  # even if it is there: the client does not wait for it
            return [Respond(token, timed_out(response, names))]
        self._delayed.append(_Delayed(token, request, response, now_ms + request.timeout_ms))
        return self.on_metadata(topics, now_ms)

    def on_metadata(self, topics: TopicsImage, now_ms: int) -> list[Effect]:
        """Respond where the metadata has what was promised, or the time has passed."""
        effects: list[Effect] = []
        waiting = []
        for delayed in self._delayed:
            missing = list(_missing(delayed, topics))
            if missing and now_ms < delayed.expires_ms:
                waiting.append(delayed)
            else:
                effects.append(Respond(delayed.token, timed_out(delayed.response, missing)))
        if self._delayed:
            next_ms = min((delayed.expires_ms for delayed in waiting), default=None)
            timer = CancelTimer(TIMER) if next_ms is None else SetTimer(TIMER, next_ms)
            effects.append(timer)
        self._delayed = waiting
        return effects


def promised(request: Any, response: Any) -> Iterator[str]:
    """The names of the topics that the response has no error for."""
    results = RESULTS.get(type(response))
    if results is None or getattr(request, "validate_only", False):
        return
    for result in getattr(response, results):
        if result.error_code == ErrorCode.NONE and result.name is not None:
            yield result.name


def _missing(delayed: _Delayed, topics: TopicsImage) -> Iterator[str]:
    """The topics that lack a leader somewhere, or are there though they were deleted."""
    response = delayed.response
    names = list(promised(delayed.request, response))
    if isinstance(response, m.DeleteTopicsResponse):
        yield from (name for name in names if topics.named(name) is not None)
        return
    if isinstance(response, m.CreateTopicsResponse):
        sizes = {topic.name: topic.num_partitions for topic in response.topics}
    else:
        sizes = {topic.name: topic.count for topic in delayed.request.topics}
    for name in names:
        topic = topics.named(name)
        led = [] if topic is None else [p for _, p in topic.items() if p.leader != NO_LEADER]
        if len(led) < sizes[name]:
            yield name


def timed_out(response: Any, names: list[str]) -> Any:
    """The response with REQUEST_TIMED_OUT for these topics, without what a new one is like."""
    if not names:
        return response
    results = RESULTS[type(response)]
    changes: dict[str, Any] = {"error_code": ErrorCode.REQUEST_TIMED_OUT}
    if isinstance(response, m.CreateTopicsResponse):
        changes |= {"configs": (), "num_partitions": NO_SIZE, "replication_factor": NO_SIZE}
    late = set(names)
    new = []
    for result in getattr(response, results):
        if result.name in late:  # of a topic that was deleted twice, the first result
            late.discard(result.name)
            result = replace(result, **changes)
        new.append(result)
    return replace(response, **{results: tuple(new)})
