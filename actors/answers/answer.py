"""An answer: the requests that it is for, and what it does with one. The plain ones.

It sees a request that it covers before the node does, and again with the node's response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol
from uuid import UUID

from minicluster.actors.answers.places import (
    Keeps,
    Place,
    kept,
    places,
)
from minicluster.actors.exchange import End, Exchange, Substitute
from minicluster.values import Value


class Receiver(Protocol):
    """A node that gets requests.

    Shapes:  topic_ids: by name, in its image. fetched: the partitions of a fetch session by its id.
    """

    @property
    def topic_ids(self) -> Callable[[], Mapping[str, UUID]] | None: ...

    @property
    def fetched(self) -> Callable[[int], Iterable[Place]] | None: ...


class Passed(Value):
    """The request reaches the node, maybe as another one.

    Shapes:  change: of the response that will come; None: it was only looked at, so that another
             answer may act on it. description: for people.
    """

    request: Any
    description: str
    change: Callable[[Any], Substitute | None] | None


class Requests(Value, kw_only=True):
    """The requests of clients that an answer is for; None: whichever."""

    apis: frozenset[str]
    versions: range | None = None
    nodes: frozenset[int] | None = None
    client_id: str | None = None
    topic: str | None = None
    topic_id: UUID | None = None
    partitions: frozenset[tuple[str, int]] | None = None

    @property
    def names_places(self) -> bool:
        """It is for some topics or partitions only."""
        return not (self.topic is None and self.topic_id is None and self.partitions is None)

    def covers(self, exchange: Exchange) -> bool:
        """A request is one of these, as far as all of its topics may be."""
        return (
            exchange.api in self.apis
            and (self.versions is None or exchange.version in self.versions)
            and (self.nodes is None or exchange.dst in self.nodes)
            and (self.client_id is None or exchange.sender.client_id == self.client_id)
        )

    def keeps(self, node: Receiver | None) -> Keeps:
        """Whether a place is one of these; a node knows which names its topic ids have."""
        ids: Mapping[str, UUID] = {}
        if self.names_places and node is not None and node.topic_ids is not None:
            ids = node.topic_ids()
        names = {topic_id: name for name, topic_id in ids.items()}

        def keep(place: Place) -> bool:
            topic, topic_id = place.topic, place.topic_id
            if topic is None and topic_id is not None:
                topic = names.get(topic_id)
            if topic_id is None and topic is not None:
                topic_id = ids.get(topic)
            if self.topic is not None and topic != self.topic:
                return False
            if self.topic_id is not None and topic_id != self.topic_id:
                return False
            if self.partitions is None:
                return True
            if place.partition is None:
                return any(name == topic for name, _ in self.partitions)
            return (topic, place.partition) in self.partitions

        return keep


def apis_of(requests: Requests) -> str:
    """The names of their APIs, for people."""
    return ", ".join(sorted(requests.apis))


class Answer:
    """An answer on demand; ``hits`` counts the requests on which it has acted.

    Shapes:  times: on how many it acts; None: on all until it is lifted.
    """

    def __init__(self, action: str, requests: Requests, times: int | None) -> None:
        self.action = action
        self.requests = requests
        self.times = times
        self.hits = 0
        self.is_over = False
        self.lift: Callable[[], None] = lambda: None  # take it back; one that is over stays so

    def __repr__(self) -> str:
        apis = apis_of(self.requests)
        times = "" if self.times is None else f" of {self.times}"
        return f"<{self.action} {apis}: {self.hits}{times} hits>"

    def on_request(
        self, request: Any, exchange: Exchange, node: Receiver
    ) -> Substitute | Passed | None:
        """A request that it covers has arrived; None: it does not act on it now."""
        return None

    def on_response(
        self, response: Any, exchange: Exchange, node: Receiver | None
    ) -> Substitute | None:
        """The node has responded to a request that it covers; None: it does not act on it."""
        return None

    def matched(self, request: Any, node: Receiver | None) -> Any | None:
        """The request with only those places that it is for; None: it names none of them."""
        if not self.requests.names_places:
            return request
        keep = self.requests.keeps(node)
        narrowed = kept(request, keep)
        return narrowed if any(map(keep, places(narrowed))) else None


class EndAnswer(Answer):
    """No response: it is lost, or the connection ends."""

    def __init__(
        self, action: str, requests: Requests, times: int | None, end: End, when: str
    ) -> None:
        super().__init__(action, requests, times)
        self.end = end
        self.when = when

    def on_request(self, request: Any, exchange: Exchange, node: Receiver) -> Substitute | None:
        return self._substitute(request, node) if self.when == "before" else None

    def on_response(
        self, response: Any, exchange: Exchange, node: Receiver | None
    ) -> Substitute | None:
        return self._substitute(exchange.request, node) if self.when == "after" else None

    def _substitute(self, request: Any, node: Receiver | None) -> Substitute | None:
        if self.matched(request, node) is None:
            return None
        return Substitute(by=self.action, description=self.end.value, when=self.when, end=self.end)


class LateAnswer(Answer):
    """The node's own response, later.

    Shapes:  delay_ms: of the n-th response.
    """

    def __init__(
        self, requests: Requests, times: int | None, delay_ms: Callable[[int], int]
    ) -> None:
        super().__init__("delay", requests, times)
        self.delay_ms = delay_ms

    def on_response(
        self, response: Any, exchange: Exchange, node: Receiver | None
    ) -> Substitute | None:
        if response is None or self.matched(exchange.request, node) is None:
            return None
        later_ms = self.delay_ms(self.hits)
        return Substitute(
            by=self.action,
            description=f"{later_ms} ms",
            when="after",
            response=response,
            of_node=True,
            later_ms=later_ms,
        )
