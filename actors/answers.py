"""Answers on demand: what clients get besides what nodes make of their requests.

    client ──request──▶ Network ──▶ Answers ──▶ node         before: the node never handles it
    client ◀─response── Network ◀── Answers ◀── response     after: it has taken effect

What a node says is in the trace as the node says it, and is judged so; what the client got in its
place stands beside it (``rpc.answer``). So an answer accuses nobody. A response in which some
partitions have an error in place of what the node says is in the trace with these errors.

One answer acts on a request: the one that was given first, of those that cover it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from uuid import UUID

from minicluster.actors.recording.exchange import OWN_CLIENT, End, Exchange, Given
from minicluster.errors import UserError, counted
from minicluster.protocol import ErrorCode, ProtocolError, encode
from minicluster.protocol import messages as m
from minicluster.protocol.api_keys import BY_NAME
from minicluster.protocol.error_responses import error_items, error_response
from minicluster.protocol.error_responses.places import (
    Keeps,
    Place,
    changed_to,
    has_items,
    kept,
    places,
    with_errors,
)
from minicluster.scenario.bounds import shown

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


class Receiver(Protocol):
    """A node that gets requests.

    Shapes:  topic_ids: by name, in its image. fetched: the partitions of a fetch session by its id.
    """

    @property
    def topic_ids(self) -> Callable[[], Mapping[str, UUID]] | None: ...

    @property
    def fetched(self) -> Callable[[int], Iterable[Place]] | None: ...


@dataclass(frozen=True, slots=True)
class Passed:
    """The request reaches the node, maybe as another one.

    Shapes:  change: of the response that will come; None: it was only looked at, so that another
             answer may act on it.
    """

    request: Any
    what: str
    change: Callable[[Any], Given | None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
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
            and (self.client_id is None or exchange.client_id == self.client_id)
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


def _apis(requests: Requests) -> str:
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
        apis = _apis(self.requests)
        times = "" if self.times is None else f" of {self.times}"
        return f"<{self.action} {apis}: {self.hits}{times} hits>"

    def on_request(self, request: Any, exchange: Exchange, node: Receiver) -> Given | Passed | None:
        """A request that it covers has arrived; None: it does not act on it now."""
        return None

    def on_response(self, response: Any, exchange: Exchange, node: Receiver | None) -> Given | None:
        """The node has responded to a request that it covers; None: it does not act on it."""
        return None

    def matched(self, request: Any, node: Receiver | None) -> Any | None:
        """The request with only those places that it is for; None: it names none of them."""
        if not self.requests.names_places:
            return request
        keep = self.requests.keeps(node)
        narrowed = kept(request, keep)
        return narrowed if any(map(keep, places(narrowed))) else None


class ErrorAnswer(Answer):
    """An error in place of what the node does, or of what it says."""

    def __init__(
        self, requests: Requests, times: int | None, errors: Sequence[ErrorCode], when: str
    ) -> None:
        super().__init__("respond", requests, times)
        self.errors = tuple(errors)
        self.when = when

    def on_request(self, request: Any, exchange: Exchange, node: Receiver) -> Given | Passed | None:
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
                merged = lambda response: self._merged(response, errors, error)  # noqa: E731
                return Passed(rest, error.name, merged)
        return self._given(error_response(request, error, version=version), error)

    def on_response(self, response: Any, exchange: Exchange, node: Receiver | None) -> Given | None:
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
        return self._given(error_response(request, error, version=version), error)

    @property
    def _error(self) -> ErrorCode:
        return self.errors[self.hits % len(self.errors)]

    def _given(self, response: Any, error: ErrorCode) -> Given:
        misleads = error in _MISLEADING
        return Given(
            by=self.action, what=error.name, when=self.when, response=response, misleads=misleads
        )

    def _merged(self, response: Any, errors: Any, error: ErrorCode) -> Given:
        answer = self._given(with_errors(response, errors), error)
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

        def change(response: Any) -> Given | None:
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
        change = lambda response: self._in_metadata(response, exchange, node, error)  # noqa: E731
        return Passed(request, error.name, change)

    def _in_metadata(
        self,
        response: m.MetadataResponse,
        exchange: Exchange,
        node: Receiver | None,
        error: ErrorCode,
    ) -> Given | None:
        keep, topic = self.requests.keeps(node), m.MetadataRequest.MetadataRequestTopic
        wanted = [
            topic(name=requested.name, topic_id=requested.topic_id)
            for requested in response.topics
            if keep(Place(requested.name, requested.topic_id))
        ]
        if not wanted:
            return None
        asked = m.MetadataRequest(topics=tuple(wanted))
        return self._merged(response, error_items(asked, error, version=exchange.version), error)


def _fetch_of(wanted: Iterable[Place]) -> m.FetchRequest:
    """A request that names these places."""
    topic, partition = m.FetchRequest.FetchTopic, m.FetchRequest.FetchPartition
    topics: dict[tuple[str | None, UUID | None], list[int]] = {}
    for place in wanted:
        topics.setdefault((place.topic, place.topic_id), []).append(place.partition or 0)
    fetched = []
    for (name, topic_id), numbers in topics.items():
        named = topic(topic=name or "", partitions=tuple(partition(partition=n) for n in numbers))
        fetched.append(named if topic_id is None else changed_to(named, {"topic_id": topic_id}))
    return m.FetchRequest(topics=tuple(fetched))


class EndAnswer(Answer):
    """No response: it is lost, or the connection ends."""

    def __init__(
        self, action: str, requests: Requests, times: int | None, end: End, when: str
    ) -> None:
        super().__init__(action, requests, times)
        self.end = end
        self.when = when

    def on_request(self, request: Any, exchange: Exchange, node: Receiver) -> Given | None:
        return self._given(request, node) if self.when == "before" else None

    def on_response(self, response: Any, exchange: Exchange, node: Receiver | None) -> Given | None:
        return self._given(exchange.request, node) if self.when == "after" else None

    def _given(self, request: Any, node: Receiver | None) -> Given | None:
        if self.matched(request, node) is None:
            return None
        return Given(by=self.action, what=self.end.value, when=self.when, end=self.end)


class LateAnswer(Answer):
    """The node's own response, later.

    Shapes:  delay_ms: of the n-th response.
    """

    def __init__(
        self, requests: Requests, times: int | None, delay_ms: Callable[[int], int]
    ) -> None:
        super().__init__("delay", requests, times)
        self.delay_ms = delay_ms

    def on_response(self, response: Any, exchange: Exchange, node: Receiver | None) -> Given | None:
        if response is None or self.matched(exchange.request, node) is None:
            return None
        later_ms = self.delay_ms(self.hits)
        return Given(
            by=self.action, what=f"{later_ms} ms", when="after", response=response, of_node=True,
            later_ms=later_ms,
        )  # fmt: skip


class Interception(Answer):
    """A function of the test that sees each request, and may answer or change it.

    Shapes:  function(request) -> None: it reaches the node. Another request: that one does. A
             response, or the value of an ``End``: the node never gets the request. A generator
             yields the request (or None) for the node, gets the node's response, and returns what
             the client gets. failed: takes an error of the function; the request still reaches the
             node.
    """

    def __init__(
        self,
        requests: Requests,
        times: int | None,
        function: Callable[[Any], Any],
        failed: Callable[[BaseException], None],
    ) -> None:
        super().__init__("intercept", requests, times)
        self.function = function
        self.failed = failed

    def on_request(self, request: Any, exchange: Exchange, node: Receiver) -> Given | Passed | None:
        if self.matched(request, node) is None:
            return None
        try:
            return self._of(self.function(request), request, exchange)
        except Exception as error:
            self.failed(error)
            return Passed(request, "failed", None)

    def _of(self, outcome: Any, request: Any, exchange: Exchange) -> Given | Passed:
        if not isinstance(outcome, Generator):
            if outcome is None or type(outcome) is type(request):
                return self._passed(outcome, request, exchange, None)
            return self._given(outcome, "before", exchange)
        try:
            yielded = next(outcome)
        except StopIteration as end:
            return self._of(end.value, request, exchange)
        return self._passed(yielded, request, exchange, outcome)

    def _passed(
        self, changed: Any, request: Any, exchange: Exchange, rest: Generator[Any, Any, Any] | None
    ) -> Passed:
        """The request reaches the node, and a generator waits for its response."""
        if changed is not None:
            self._check(changed, type(request), exchange)
        if rest is None and changed is None:
            return Passed(request, "seen", None)

        def change(response: Any) -> Given | None:
            told = None
            if rest is not None and response is not None:
                try:
                    told = self._end_of(rest, response, exchange)
                except Exception as error:
                    self.failed(error)
            if told is None and changed is not None and response is not None:
                # The node's words, to another request than the client's.
                told = self._given(response, "before", exchange)
            return told

        what = "seen" if changed is None else "another request"
        return Passed(request if changed is None else changed, what, change)

    def _end_of(
        self, rest: Generator[Any, Any, Any], response: Any, exchange: Exchange
    ) -> Given | None:
        try:
            rest.send(response)
        except StopIteration as end:
            return None if end.value is None else self._given(end.value, "after", exchange)
        raise UserError(f"intercept: {self._name} yields twice; it yields the request once")

    def _given(self, told: Any, when: str, exchange: Exchange) -> Given:
        if isinstance(told, str) and told in {end.value for end in End}:
            return Given(by=self.action, what=told, when=when, end=End(told))
        self._check(told, BY_NAME[exchange.api].response, exchange)
        return Given(by=self.action, what=self._name, when=when, response=told, misleads=True)

    def _check(self, body: Any, kind: type[Any], exchange: Exchange) -> None:
        """Errors:  UserError for what is no such message, or not of this version."""
        if type(body) is not kind:
            what = f"{exchange.api}Request or {exchange.api}Response, drop, close, reset or None"
            raise UserError(f"intercept: {self._name} gave {shown(body)}; it gives a {what}")
        try:
            encode(body, exchange.version)
        except ProtocolError as error:
            raise UserError(f"intercept: {self._name}: {error}") from None

    @property
    def text(self) -> str:
        """What it has seen, for people."""
        return f"{self._name}: {counted(self.hits, 'request')} of {_apis(self.requests)}"

    @property
    def _name(self) -> str:
        return name_of(self.function)


def name_of(function: Callable[..., Any]) -> str:
    """A function's own name."""
    return str(getattr(function, "__name__", type(function).__name__))


class Answers:
    """The answers of a cluster, in the order in which they were given.

    Shapes:  on_hit: an answer has acted on an exchange, and what it did. on_over: it has acted as
             often as it was to.
    """

    def __init__(self) -> None:
        self.present: list[Answer] = []
        self.count_so_far = 0  # of answers that were ever given
        self.on_hit: Callable[[Answer, Exchange, str], None] = lambda *_: None
        self.on_over: Callable[[Answer], None] = lambda _: None

    def add(self, answer: Answer) -> None:
        self.present.append(answer)
        self.count_so_far += 1

    def remove(self, answer: Answer) -> bool:
        """Take an answer back; False for one that is over."""
        if answer.is_over:
            return False
        answer.is_over = True
        self.present.remove(answer)
        return True

    def on_request(self, request: Any, exchange: Exchange, node: Receiver) -> Given | Passed | None:
        """A request has arrived at a node."""
        if exchange.src > OWN_CLIENT:
            return None
        for answer in list(self.present):
            if answer.requests.covers(exchange):
                outcome = answer.on_request(request, exchange, node)
                if isinstance(outcome, Passed) and outcome.change is None:
                    self._count(answer)
                elif outcome is not None:
                    self._hit(answer, exchange, outcome.what)
                    return outcome if isinstance(outcome, Passed) else _carried(outcome, exchange)
        return None

    def on_response(self, exchange: Exchange, response: Any, node: Receiver | None) -> Given | None:
        """A node has responded; None without a response: to a Produce with acks=0."""
        change, exchange.change = exchange.change, None
        if change is not None:
            substitute: Given | None = change(response)
            return None if substitute is None else _carried(substitute, exchange)
        if exchange.src > OWN_CLIENT:
            return None
        for answer in list(self.present):
            if answer.requests.covers(exchange):
                substitute = answer.on_response(response, exchange, node)
                if substitute is not None:
                    self._hit(answer, exchange, substitute.what)
                    return _carried(substitute, exchange)
        return None

    def _hit(self, answer: Answer, exchange: Exchange, what: str) -> None:
        self.on_hit(answer, exchange, what)
        self._count(answer)

    def _count(self, answer: Answer) -> None:
        answer.hits += 1
        if answer.times is not None and answer.hits >= answer.times and self.remove(answer):
            self.on_over(answer)


def _carried(substitute: Given, exchange: Exchange) -> Given:
    """As a connection carries it: an error ends one without responses, as Kafka does."""
    is_unanswered = isinstance(exchange.request, m.ProduceRequest) and not exchange.request.acks
    if is_unanswered and substitute.response is not None:
        return replace(substitute, response=None, end=End.CLOSE)
    return substitute
