"""A broker's queue of requests to the active controller.

Requests leave one at a time, in order. A request whose controller is gone or is no longer active
goes back to the head of the queue. It waits for another controller, or 100 ms. A request that has
waited for longer than the channel's timeout ends without a response.

Source:  NodeToControllerChannelManager, NodeToControllerRequestThread.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from minicluster.configs.without_effect import CONTROLLER_SOCKET_TIMEOUT_MS
from minicluster.effects import CancelTimer, Effect, Forward, Send, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.values import Value

RECHECK_MS = 100
_ITEMS = ("topics", "responses", "results")


class CorrelationIds:
    """The counter of the correlation ids of all machines of one broker."""

    __slots__ = ("_ids",)

    def __init__(self, start: int = 1) -> None:
        self._ids: Iterator[int] = itertools.count(start)

    def take(self) -> int:
        """The next id."""
        return next(self._ids)


class ClientResponse(Value, kw_only=True):
    """The end of one request; ``response`` is None after the timeout.

    Shapes:  token is that of ``submit``.
    Source:  ClientResponse, ControllerRequestCompletionHandler.
    """

    token: Any
    request: Any
    version: int
    response: Any | None


class _Item(Struct):
    token: Any
    request: Any
    version: int
    created_ms: int
    client: Any

    def end(self, response: Any | None) -> ClientResponse:
        return ClientResponse(
            token=self.token, request=self.request, version=self.version, response=response
        )


class ControllerChannel(Struct):
    """The queue. Each input returns effects; the requests that it has ended are taken afterwards.

    Units:   ``retry_timeout_ms`` None means that no request times out.
    """

    name: str
    ids: CorrelationIds
    retry_timeout_ms: int | None = None
    controller_id: int | None = None
    _queue: deque[_Item] = field(default_factory=deque)
    _in_flight: tuple[int, _Item] | None = None
    _ended: list[ClientResponse] = field(default_factory=list)
    _hold_until_ms: int = 0
    _timer_ms: int | None = None

    @property
    def timer(self) -> str:
        """The name of the channel's timer."""
        return f"{self.name}-channel"

    def owns(self, correlation_id: int) -> bool:
        """True for the id of the request in flight."""
        return self._in_flight is not None and self._in_flight[0] == correlation_id

    def submit(
        self, token: Any, request: Any, version: int, now_ms: int, *, client: Any = None
    ) -> list[Effect]:
        """Queue a request; it leaves at once if none is in flight and a controller is known.

        Shapes:  client: the token of the client's request that is forwarded; None for one of this
                 broker's own.
        """
        self._queue.append(_Item(token, request, version, now_ms, client))
        return self._send_head(now_ms)

    def on_controller(self, controller_id: int | None, now_ms: int) -> list[Effect]:
        """Send to another controller from now on; None: no controller is known."""
        if controller_id == self.controller_id:
            return []
        self.controller_id = controller_id
        self._hold_until_ms = 0
        return self._send_head(now_ms)

    def take_ended(self) -> list[ClientResponse]:
        """The requests that have ended since the last call, in order."""
        ended, self._ended = self._ended, []
        return ended

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> list[Effect]:
        """A response has come; NOT_CONTROLLER puts its request back into the queue."""
        if self._in_flight is None or self._in_flight[0] != correlation_id:
            return []
        item = self._in_flight[1]
        self._in_flight = None
        # To the head, not to the end: what was queued later builds on it.
        if is_from_inactive_controller(response):
            return self._put_back(item, now_ms)
        self._ended.append(item.end(response))
        return self._pump(now_ms)

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """No response will come: the connection broke or the request timed out."""
        if self._in_flight is None or self._in_flight[0] != correlation_id:
            return []
        item = self._in_flight[1]
        self._in_flight = None
        return self._put_back(item, now_ms)

    def on_timer(self, now_ms: int) -> list[Effect]:
        """The timer of this channel has fired."""
        self._timer_ms = None
        return self._pump(now_ms)

    def close(self) -> list[Effect]:
        """Drop all requests; a response that still comes is ignored."""
        self._queue.clear()
        self._in_flight = None
        return self._set_timer(None)

    def _put_back(self, item: _Item, now_ms: int) -> list[Effect]:
        self._queue.appendleft(item)
        self._hold_until_ms = now_ms + RECHECK_MS
        return self._pump(now_ms)

    def _pump(self, now_ms: int) -> list[Effect]:
        """End the requests that have timed out, and send the next one.

        Only here and not in ``submit``, whose caller takes no ended requests: one that ended there
        would not be completed before the next input.
        """
        if self.retry_timeout_ms is not None and self._in_flight is None:
            while self._queue and now_ms - self._queue[0].created_ms >= self.retry_timeout_ms:
                self._ended.append(self._queue.popleft().end(None))
        return self._send_head(now_ms)

    def _send_head(self, now_ms: int) -> list[Effect]:
        """Send the oldest request if possible, else set the timer."""
        if self._in_flight is not None:
            return []
        if not self._queue:
            return self._set_timer(None)
        if self.controller_id is not None and now_ms >= self._hold_until_ms:
            item = self._queue.popleft()
            correlation_id = self.ids.take()
            self._in_flight = (correlation_id, item)
            timeout_ms = min(
                CONTROLLER_SOCKET_TIMEOUT_MS, self.retry_timeout_ms or CONTROLLER_SOCKET_TIMEOUT_MS
            )
            sent = (self.controller_id, item.request, item.version, correlation_id, timeout_ms)
            send = Send(*sent) if item.client is None else Forward(*sent, client=item.client)
            return [*self._set_timer(None), send]
        return self._set_timer(self._wake_ms(now_ms))

    def _wake_ms(self, now_ms: int) -> int | None:
        times = [self._hold_until_ms] if now_ms < self._hold_until_ms else []
        if self.retry_timeout_ms is not None:
            times.append(self._queue[0].created_ms + self.retry_timeout_ms)
        return min(times, default=None)

    def _set_timer(self, at_ms: int | None) -> list[Effect]:
        if at_ms == self._timer_ms:
            return []
        self._timer_ms = at_ms
        return [CancelTimer(self.timer) if at_ms is None else SetTimer(self.timer, at_ms)]


def is_from_inactive_controller(response: Any) -> bool:
    """NOT_CONTROLLER is in the response or in any of its items, as in one that was forwarded.

    Source:  AbstractResponse.errorCounts, which Kafka's senders look into.
    """
    items = (item for name in _ITEMS for item in getattr(response, name, None) or ())
    return any(
        getattr(each, "error_code", None) == ErrorCode.NOT_CONTROLLER for each in (response, *items)
    )
