"""A sender of one kind of request to the active controller.

The common part of the AlterPartition manager, the directory assignments and the reports of offline
replicas: a channel with one request in flight, and timers. ``BackOffClient`` adds the queue of the
latter two: what fails is sent again after a growing pause.

Source:  NodeToControllerChannelManager, ControllerRequestCompletionHandler; AssignmentsManager
         (the back-off).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from minicluster.channel.backoff import ExponentialBackoff
from minicluster.channel.controller_channel import ControllerChannel
from minicluster.effects import Effect, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.replica.broker_context import BrokerContext

BACKOFF_FIRST_MS = 100
BACKOFF_MAX_MS = 10_000


class ControllerClient(ABC):
    """The channel of one kind of request, and what becomes of its requests.

    Shapes:  inputs as those of a machine; effects go to the context.
    """

    def __init__(self, context: BrokerContext, *, name: str, timer: str) -> None:
        self.context = context
        self.timer = timer
        self.channel = ControllerChannel(name=name, ids=context.ids)

    @abstractmethod
    def on_completion(self, response: Any | None, now_ms: int) -> None:
        """The request in flight has ended; None if it got no response."""

    @abstractmethod
    def on_retry_timer(self, now_ms: int) -> None:
        """The timer of this name has fired."""

    def on_controller(self, controller_id: int | None, now_ms: int) -> None:
        """The active controller has changed; None if it is not known."""
        self.context.effects += self.channel.on_controller(controller_id, now_ms)

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> None:
        """A response has come to what this client sent."""
        self._complete(self.channel.on_response(correlation_id, response, now_ms), now_ms)

    def on_failure(self, correlation_id: int, now_ms: int) -> None:
        """No response will come to what this client sent."""
        self._complete(self.channel.on_failure(correlation_id, now_ms), now_ms)

    def on_timer(self, name: str, now_ms: int) -> None:
        """A timer has fired; other names than this client's are ignored."""
        if name == self.timer:
            self.on_retry_timer(now_ms)
        elif name == self.channel.timer:
            self._complete(self.channel.on_timer(now_ms), now_ms)

    def close(self) -> None:
        """End the channel; responses that still come are ignored."""
        self.context.effects += self.channel.close()

    def _send(self, request: Any, version: int, now_ms: int) -> None:
        self.context.effects += self.channel.submit(None, request, version, now_ms)

    def _complete(self, effects: list[Effect], now_ms: int) -> None:
        self.context.effects += effects
        for request in self.channel.take_ended():
            self.on_completion(request.response, now_ms)


class BackOffClient(ControllerClient):
    """A queue whose head is one request in flight; a failed request is sent again after a pause."""

    def __init__(
        self,
        context: BrokerContext,
        *,
        name: str,
        timer: str,
        backoff_first_ms: int = BACKOFF_FIRST_MS,
    ) -> None:
        super().__init__(context, name=name, timer=timer)
        self._backoff = ExponentialBackoff(backoff_first_ms, BACKOFF_MAX_MS)
        self._in_flight = False
        self._waiting = False
        self._failures = 0

    @abstractmethod
    def next_request(self) -> Any | None:
        """The request with what is pending, None if nothing is."""

    @abstractmethod
    def on_success(self, response: Any, now_ms: int) -> None:
        """The request in flight got a response without a top-level error."""

    def on_completion(self, response: Any | None, now_ms: int) -> None:
        """Back off after a failure."""
        self._in_flight = False
        if response is None or response.error_code != ErrorCode.NONE:
            self.back_off(now_ms)
        else:
            self.on_success(response, now_ms)

    def on_retry_timer(self, now_ms: int) -> None:
        """The pause is over."""
        self._waiting = False
        self.send_pending(now_ms)

    def send_pending(self, now_ms: int) -> None:
        """Send what is pending, unless a request is in flight or a pause is not over."""
        if self._in_flight or self._waiting:
            return
        request = self.next_request()
        if request is not None:
            self._in_flight = True
            self._send(request, request.latest_version, now_ms)

    def wait(self, until_ms: int) -> None:
        """Send nothing before a time; a pause that has begun is not prolonged.

        Otherwise a steady stream of new entries would put off the first one for ever.
        """
        if not self._waiting:
            self._waiting = True
            self.context.effects.append(SetTimer(self.timer, until_ms))

    def back_off(self, now_ms: int) -> None:
        """Wait, twice as long as after the previous failure."""
        self.wait(now_ms + self._backoff.backoff_ms(self._failures))
        self._failures += 1

    def succeed(self) -> None:
        """Begin with the shortest pause after the next failure."""
        self._failures = 0
