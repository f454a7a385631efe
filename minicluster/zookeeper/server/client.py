"""A client's session: it lives by pings, sends requests in order, and connects again.

How to drive it::

    client = ZooKeeperClient(server=201, timeout_ms=6_000)
    for effect in client.start(now_ms): …
    for effect in client.submit(key, requests, now_ms): …     # their results come as ``Results``
    for effect in client.on_response(correlation_id, response, now_ms): …
    for effect in client.on_failure(correlation_id, now_ms): …
    for effect in client.on_timer(name, now_ms): …

A request without a response is sent again once there is a connection: it may have taken effect, and
then finds its own write (KAFKA-6082 and the versions of znodes are there for it).

Source:  org.apache.zookeeper.ClientCnxn; kafka.zookeeper.ZooKeeperClient,
         kafka.zk.KafkaZkClient.retryRequestsUntilConnected.
"""

from __future__ import annotations

from bisect import insort
from typing import Any

from msgspec import Struct, field

from minicluster.effects import CancelTimer, Effect, Send, SetTimer
from minicluster.zookeeper.server.messages import (
    VERSION,
    ZooKeeperCloseRequest,
    ZooKeeperConnectRequest,
    ZooKeeperConnectResponse,
    ZooKeeperOperationRequest,
    ZooKeeperOperationResponse,
    ZooKeeperPingRequest,
)
from minicluster.zookeeper.server.operations import Code, Request, Result

TIMER = "zookeeper-session"
RETRY_MS = 100


class SessionOpened(Effect):
    """There is a new session."""

    session: int


class SessionExpired(Effect):
    """The session is gone, with its ephemeral znodes and watches; a new one is on its way."""


class Results(Effect):
    """The results of the requests under a key, in order."""

    key: Any
    results: tuple[Result, ...]


class _Batch(Struct):
    number: int
    key: Any
    requests: tuple[Request, ...]
    results: dict[int, Result] = field(default_factory=dict)


def _order(waiting: tuple[_Batch, int]) -> tuple[int, int]:
    """The place of a request among all of its client."""
    batch, place = waiting
    return batch.number, place


class ZooKeeperClient:
    """One client; the module shows how to drive it."""

    def __init__(self, *, server: int, timeout_ms: int) -> None:
        self.session = 0
        self._server, self._timeout_ms = server, timeout_ms
        self._correlation_id = 0
        self._in_flight: dict[int, tuple[_Batch, int] | None] = {}  # None: ping or connect
        self._batches = 0
        self._unsent: list[tuple[_Batch, int]] = []
        self._connecting = False
        self._has_expired = False  # and there is no new session yet
        self._received_ms = 0
        self.closed = False

    def start(self, now_ms: int) -> list[Effect]:
        """Open a session."""
        self._received_ms = now_ms
        return self._connect(now_ms)

    def submit(
        self, key: Any, requests: tuple[Request, ...], now_ms: int, *, may_wait: bool = True
    ) -> list[Effect]:
        """Send requests at once, in order.

        Shapes:  may_wait: for the next session, where this one has expired; else they fail. A
                 controller's must: Kafka begins its next session only once the controller has taken
                 notice. If they waited, what a controller was about when it lost its office would
                 be written in the next session, and while no other is elected the check of the
                 epoch would let it pass (K2).
        Source:  KafkaController's StateChangeHandler.beforeInitializingSession.
        """
        if self._has_expired and not may_wait:
            return [Results(key, (Result(Code.SESSIONEXPIRED),) * len(requests))]
        self._batches += 1
        batch = _Batch(self._batches, key, requests)
        self._unsent += [(batch, place) for place in range(len(requests))]
        return self._flush()

    def close(self, now_ms: int) -> list[Effect]:
        """End the session; no request follows."""
        self.closed = True
        return [CancelTimer(TIMER), self._send(ZooKeeperCloseRequest(self.session), None)]

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> list[Effect]:
        """A response of the server."""
        waiting = self._in_flight.pop(correlation_id, None)
        self._received_ms = now_ms
        match response:
            case ZooKeeperConnectResponse():
                return self._connected(response.session, now_ms)
            case ZooKeeperOperationResponse(result) if result.code is Code.SESSIONEXPIRED:
                gone = [] if waiting is None else self._completed(*waiting, result)
                return [*gone, *self._expired(now_ms)]
            case ZooKeeperOperationResponse(result) if waiting is not None:
                return self._completed(*waiting, result)
        return []

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """The connection is lost: what it was for is sent again."""
        waiting = self._in_flight.pop(correlation_id, None)
        if waiting is not None:
            # Each request fails by itself, the first one first. A child must not be created before
            # its parent, so all are sent again as they were submitted.
            insort(self._unsent, waiting, key=_order)
        self._connecting = False
        return [] if self.closed else [SetTimer(TIMER, now_ms + RETRY_MS)]

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """Ping; after a silence, connect again."""
        if name != TIMER or self.closed:
            return []
        if self.session == 0:
            return self._connect(now_ms)
        if now_ms - self._received_ms >= self._timeout_ms // 2 and not self._connecting:
            return self._connect(now_ms)
        ping = self._send(ZooKeeperPingRequest(self.session), None)
        return [ping, *self._flush(), SetTimer(TIMER, now_ms + self._timeout_ms // 3)]

    def _connect(self, now_ms: int) -> list[Effect]:
        self._connecting = True
        request = ZooKeeperConnectRequest(self.session, self._timeout_ms)
        return [self._send(request, None), SetTimer(TIMER, now_ms + self._timeout_ms // 3)]

    def _connected(self, session: int, now_ms: int) -> list[Effect]:
        self._connecting = False
        if session == 0:
            return self._expired(now_ms)
        new = session != self.session
        self.session, self._has_expired = session, False
        opened = [SessionOpened(session)] if new else []
        timer = SetTimer(TIMER, now_ms + self._timeout_ms // 3)
        return [*opened, *self._flush(), timer]

    def _expired(self, now_ms: int) -> list[Effect]:
        if self.session == 0:
            return []  # known already
        self.session, self._has_expired = 0, True
        sent = [request for request in self._in_flight.values() if request is not None]
        waiting = sent + self._unsent
        self._in_flight.clear()
        self._unsent.clear()
        effects: list[Effect] = []
        for batch, place in waiting:
            effects += self._completed(batch, place, Result(Code.SESSIONEXPIRED))
        return [*effects, SessionExpired(), *self._connect(now_ms)]

    def _completed(self, batch: _Batch, place: int, result: Result) -> list[Effect]:
        batch.results[place] = result
        if len(batch.results) < len(batch.requests):
            return []
        return [Results(batch.key, tuple(batch.results[n] for n in range(len(batch.requests))))]

    def _flush(self) -> list[Effect]:
        if self.session == 0 or self._connecting:
            return []
        unsent, self._unsent = self._unsent, []
        return [
            self._send(
                ZooKeeperOperationRequest(self.session, batch.requests[place]), (batch, place)
            )
            for batch, place in unsent
        ]

    def _send(self, request: Any, waiting: tuple[_Batch, int] | None) -> Send:
        self._correlation_id -= 1  # apart from those of the broker's other machines
        self._in_flight[self._correlation_id] = waiting
        timeout_ms = self._timeout_ms * 2 // 3
        return Send(self._server, request, VERSION, self._correlation_id, timeout_ms)

    def owns(self, correlation_id: int) -> bool:
        """The correlation id is of a request of this client."""
        return correlation_id < 0
