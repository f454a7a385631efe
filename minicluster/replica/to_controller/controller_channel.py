"""A broker's queue of requests to the active controller.

Requests leave one at a time, in order. A request whose controller is gone or is no longer active
goes back to the head of the queue and waits until the shell names another controller, or a little
while; one that waits too long is handed back unanswered.

Source:  NodeToControllerChannelManager, NodeToControllerRequestThread.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from minicluster.effects import CancelTimer, Effect, Send, SetTimer
from minicluster.protocol import ErrorCode

RECHECK_MS = 100
REQUEST_TIMEOUT_MS = 30_000


class CorrelationIds:
    """The counter from which all machines of one broker take their correlation ids."""

    __slots__ = ("_ids",)

    def __init__(self, start: int = 1) -> None:
        self._ids: Iterator[int] = itertools.count(start)

    def take(self) -> int:
        """The next id; none is given twice."""
        return next(self._ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of one request; ``response`` is None if it was given up."""

    token: Any
    request: Any
    version: int
    response: Any | None


@dataclass(slots=True)
class _Item:
    token: Any
    request: Any
    version: int
    created_ms: int

    def answer(self, response: Any | None) -> Answer:
        return Answer(
            token=self.token, request=self.request, version=self.version, response=response
        )


@dataclass(slots=True)
class ControllerChannel:
    """The queue. Every input returns effects; answers come with the inputs that end a request.

    Units:   ``retry_timeout_ms`` None means that nothing is ever given up.
    """

    name: str
    ids: CorrelationIds
    retry_timeout_ms: int | None = None
    controller_id: int | None = None
    _queue: deque[_Item] = field(default_factory=deque)
    _in_flight: tuple[int, _Item] | None = None
    _hold_until_ms: int = 0
    _timer_ms: int | None = None

    @property
    def timer(self) -> str:
        """The name of the one timer that this channel sets."""
        return f"{self.name}-channel"

    def owns(self, correlation_id: int) -> bool:
        """Whether the request in flight has this id."""
        return self._in_flight is not None and self._in_flight[0] == correlation_id

    def submit(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Queue a request; it leaves at once if nothing is in the way."""
        self._queue.append(_Item(token, request, version, now_ms))
        return self._pump(now_ms)[0]

    def on_controller(self, controller_id: int | None, now_ms: int) -> list[Effect]:
        """The shell learned who the active controller is (None: nobody that it knows)."""
        if controller_id == self.controller_id:
            return []
        self.controller_id = controller_id
        self._hold_until_ms = 0
        return self._pump(now_ms)[0]

    def on_response(
        self, correlation_id: int, response: Any, now_ms: int
    ) -> tuple[list[Effect], list[Answer]]:
        """A response arrived; one that says NOT_CONTROLLER puts its request back."""
        if self._in_flight is None or self._in_flight[0] != correlation_id:
            return [], []
        item = self._in_flight[1]
        self._in_flight = None
        if says_not_controller(response):
            return self._put_back(item, now_ms)
        effects, answers = self._pump(now_ms)
        return effects, [item.answer(response), *answers]

    def on_failure(self, correlation_id: int, now_ms: int) -> tuple[list[Effect], list[Answer]]:
        """No response will come: the link broke or the request timed out."""
        if self._in_flight is None or self._in_flight[0] != correlation_id:
            return [], []
        item = self._in_flight[1]
        self._in_flight = None
        return self._put_back(item, now_ms)

    def on_timer(self, now_ms: int) -> tuple[list[Effect], list[Answer]]:
        """The time that this channel asked for has come."""
        self._timer_ms = None
        return self._pump(now_ms)

    def close(self) -> list[Effect]:
        """Forget everything; answers that still come are ignored."""
        self._queue.clear()
        self._in_flight = None
        return self._set_timer(None)

    def _put_back(self, item: _Item, now_ms: int) -> tuple[list[Effect], list[Answer]]:
        self._queue.appendleft(item)
        self._hold_until_ms = now_ms + RECHECK_MS
        return self._pump(now_ms)

    def _pump(self, now_ms: int) -> tuple[list[Effect], list[Answer]]:
        """Send the head if possible, give up what waited too long, set the timer."""
        if self._in_flight is not None:
            return [], []
        answers: list[Answer] = []
        if self.retry_timeout_ms is not None:
            while self._queue and now_ms - self._queue[0].created_ms >= self.retry_timeout_ms:
                answers.append(self._queue.popleft().answer(None))
        if not self._queue:
            return self._set_timer(None), answers
        if self.controller_id is not None and now_ms >= self._hold_until_ms:
            item = self._queue.popleft()
            correlation_id = self.ids.take()
            self._in_flight = (correlation_id, item)
            timeout_ms = min(REQUEST_TIMEOUT_MS, self.retry_timeout_ms or REQUEST_TIMEOUT_MS)
            send = Send(self.controller_id, item.request, item.version, correlation_id, timeout_ms)
            return [*self._set_timer(None), send], answers
        return self._set_timer(self._wake_ms(now_ms)), answers

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


def says_not_controller(response: Any) -> bool:
    """Whether a response as a whole, or a forwarded one per item, says NOT_CONTROLLER."""
    top = getattr(response, "error_code", None)
    if top is not None:
        return bool(top == ErrorCode.NOT_CONTROLLER)
    for name in ("topics", "responses", "results"):
        for item in getattr(response, name, None) or ():
            if getattr(item, "error_code", None) == ErrorCode.NOT_CONTROLLER:
                return True
    return False
