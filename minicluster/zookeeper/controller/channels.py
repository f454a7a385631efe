"""The channels of the controller to the brokers: one request at a time to each, until it arrives.

Source:  kafka.controller.ControllerChannelManager, RequestSendThread.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct, field

from minicluster.effects import Effect, Send, SetTimer
from minicluster.zookeeper.controller.effects import CloseChannel, ControlRequest, OpenChannel

BACKOFF_MS = 100
TIMER_PREFIX = "controller-channel-"
FIRST_CORRELATION_ID = 1 << 32  # apart from those of the broker's other machines


class _Channel(Struct):
    waiting: deque[ControlRequest] = field(default_factory=deque)
    in_flight: int | None = None


class ControllerChannels:
    """The channels of one broker, while it is the controller.

    Units:   request_timeout_ms: of the config request.timeout.ms; controller.socket.timeout.ms is
             that of a connection attempt.
    """

    def __init__(self, request_timeout_ms: int) -> None:
        self._request_timeout_ms = request_timeout_ms
        self._channels: dict[int, _Channel] = {}
        self._in_flight: dict[int, ControlRequest] = {}
        self._next_id = FIRST_CORRELATION_ID

    def on_effect(self, effect: Effect) -> list[Effect]:
        """Open and close channels, and queue requests; to a broker without one, nothing goes."""
        match effect:
            case OpenChannel(broker):
                self._channels.setdefault(broker, _Channel())
            case CloseChannel(broker):
                self._channels.pop(broker, None)
            case ControlRequest(to=broker) if broker in self._channels:
                self._channels[broker].waiting.append(effect)
                return self._send_next(broker)
        return []

    def owns(self, correlation_id: int) -> bool:
        """The correlation id is of a control request."""
        return correlation_id >= FIRST_CORRELATION_ID

    def on_response(self, correlation_id: int) -> tuple[ControlRequest | None, list[Effect]]:
        """The request that was responded to, None if its channel was closed; the next one goes."""
        request = self._in_flight.pop(correlation_id, None)
        channel = None if request is None else self._channels.get(request.to)
        if request is None or channel is None or channel.in_flight != correlation_id:
            return None, []
        channel.in_flight = None
        channel.waiting.popleft()
        return request, self._send_next(request.to)

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """Not delivered: once more, later."""
        request = self._in_flight.pop(correlation_id, None)
        channel = None if request is None else self._channels.get(request.to)
        if request is None or channel is None or channel.in_flight != correlation_id:
            return []
        channel.in_flight = None
        return [SetTimer(f"{TIMER_PREFIX}{request.to}", now_ms + BACKOFF_MS)]

    def on_timer(self, name: str) -> list[Effect]:
        """Send again."""
        return self._send_next(int(name.removeprefix(TIMER_PREFIX)))

    def _send_next(self, broker: int) -> list[Effect]:
        channel = self._channels.get(broker)
        if channel is None or channel.in_flight is not None or not channel.waiting:
            return []
        request: Any = channel.waiting[0]
        self._next_id += 1
        channel.in_flight = self._next_id
        self._in_flight[self._next_id] = request
        return [
            Send(
                broker,
                request.request,
                request.version,
                self._next_id,
                self._request_timeout_ms,
            )
        ]
