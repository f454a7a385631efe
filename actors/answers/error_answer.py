"""Errors in place of what a node does, or of what it says.

An error of a whole request needs no node. One of some topics or partitions does: the node handles
the others, and their results and the errors become one response. Two APIs reach the node even where
the error is for all of it, since a client could not continue otherwise: Fetch, whose session the
node has to keep, and Metadata, from which the client has its brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from minicluster.actors.answers.answer import Answer, Passed, Receiver, Requests
from minicluster.actors.answers.places import (
    Place,
    changed_to,
    has_items,
    kept,
    places,
    with_errors,
)
from minicluster.actors.exchange import Exchange, Substitute
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.error_responses import error_items, error_response
from minicluster.values import replace

# A whole Fetch fails for its session alone; every other error is that of a partition.
_OF_SESSIONS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    }
)
# After these a client goes where the node has not sent it.
_MISLEADING = frozenset({ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE})


class ErrorAnswer(Answer):
    """An error in place of what the node does, or of what it says."""

    def __init__(
        self, requests: Requests, times: int | None, errors: Sequence[ErrorCode], when: str
    ) -> None:
        super().__init__("respond", requests, times)
        self.errors = tuple(errors)
        self.when = when

    def on_request(
        self, request: Any, exchange: Exchange, node: Receiver
    ) -> Substitute | Passed | None:
        if self.when != "before":
            return None
        if isinstance(request, m.FetchRequest) and self._error not in _OF_SESSIONS:
            return self._of_fetch(request, exchange, node)
        if isinstance(request, m.MetadataRequest):
            return self._of_metadata(request, exchange, node)
        matched = self.matched(request, node)
        if matched is None:
            return None
        version, error = exchange.version, self._error
        if self.requests.names_places:
            keep = self.requests.keeps(node)
            rest = kept(request, lambda place: not keep(place))
            errors = error_items(matched, error, version=version)
            if has_items(errors) and any(places(rest)):
                return Passed(rest, error.name, partial(self._merged, errors=errors, error=error))
        return self._substitute(error_response(request, error, version=version), error)

    def on_response(
        self, response: Any, exchange: Exchange, node: Receiver | None
    ) -> Substitute | None:
        if self.when != "after":
            return None
        request, version, error = exchange.request, exchange.version, self._error
        if isinstance(request, m.MetadataRequest):
            return self._in_metadata(response, exchange, node, error)
        if isinstance(request, m.FetchRequest) and error not in _OF_SESSIONS:
            passed = self._of_fetch(request, exchange, node)
            if passed is None or passed.change is None or response is None:
                return None
            return passed.change(response)
        matched = self.matched(request, node)
        if matched is None:
            return None
        if self.requests.names_places and response is not None:
            errors = error_items(matched, error, version=version)
            if has_items(errors):
                return self._merged(response, errors, error)
        return self._substitute(error_response(request, error, version=version), error)

    @property
    def _error(self) -> ErrorCode:
        return self.errors[self.hits % len(self.errors)]

    def _substitute(self, response: Any, error: ErrorCode) -> Substitute:
        misleads = error in _MISLEADING
        return Substitute(
            by=self.action,
            description=error.name,
            when=self.when,
            response=response,
            misleads=misleads,
        )

    def _merged(self, response: Any, errors: Any, error: ErrorCode) -> Substitute:
        answer = self._substitute(with_errors(response, errors), error)
        return replace(answer, of_node=not answer.misleads)

    def _of_fetch(
        self, request: m.FetchRequest, exchange: Exchange, node: Receiver | None
    ) -> Passed | None:
        """The node reads at once, and its response gets the errors: a session continues.

        An incremental request does not name the partitions of its session.
        """
        keep, error, version = self.requests.keeps(node), self._error, exchange.version
        named = list(places(request))
        if node is not None and node.fetched is not None:
            named += node.fetched(request.session_id)
        wanted = list(dict.fromkeys(filter(keep, named)))
        if not wanted:
            return None
        errors = error_items(_fetch_of(wanted), error, version=version)

        def change(response: Any) -> Substitute | None:
            if response.error_code != ErrorCode.NONE:
                return None
            return self._merged(response, errors, error)

        return Passed(changed_to(request, {"max_wait_ms": 0}), error.name, change)

    def _of_metadata(
        self, request: m.MetadataRequest, exchange: Exchange, node: Receiver
    ) -> Passed | None:
        """The node responds, since a client needs its brokers, and topics get the errors."""
        if request.topics is not None and self.matched(request, node) is None:
            return None
        error = self._error
        change = partial(self._in_metadata, exchange=exchange, node=node, error=error)
        return Passed(request, error.name, change)

    def _in_metadata(
        self,
        response: m.MetadataResponse,
        exchange: Exchange,
        node: Receiver | None,
        error: ErrorCode,
    ) -> Substitute | None:
        keep, topic = self.requests.keeps(node), m.MetadataRequest.MetadataRequestTopic
        wanted = [
            topic(name=requested.name, topic_id=requested.topic_id)
            for requested in response.topics
            if keep(Place(requested.name, requested.topic_id))
        ]
        if not wanted:
            return None
        request = m.MetadataRequest(topics=tuple(wanted))
        return self._merged(response, error_items(request, error, version=exchange.version), error)


def _fetch_of(wanted: Iterable[Place]) -> m.FetchRequest:
    """A request that names these places."""
    topic, partition = m.FetchRequest.FetchTopic, m.FetchRequest.FetchPartition
    topics: dict[tuple[str | None, UUID | None], list[int]] = {}
    for place in wanted:
        topics.setdefault((place.topic, place.topic_id), []).append(place.partition or 0)
    fetched = []
    for (name, topic_id), numbers in topics.items():
        partitions = tuple(partition(partition=number) for number in numbers)
        named = topic(topic=name or "", partitions=partitions)
        fetched.append(named if topic_id is None else changed_to(named, {"topic_id": topic_id}))
    return m.FetchRequest(topics=tuple(fetched))
