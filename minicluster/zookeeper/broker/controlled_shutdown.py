"""The end of a broker on ZooKeeper: the controller moves its leaderships away before it stops.

An attempt has failed when no controller is there, when the request is lost, and when the response
names partitions that the broker still leads. After the last one the broker stops anyway: an
operator who ends a process must not wait for a controller that is gone.

Source:  kafka.server.KafkaServer.controlledShutdown; controlled.shutdown.max.retries,
         controlled.shutdown.retry.backoff.ms.
"""

from __future__ import annotations

from typing import Any

from minicluster.effects import Effect, Send, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ControlledShutdownRequest

TIMER = "controlled-shutdown"
CORRELATION_ID = 1 << 31  # one request is under way at a time


class LeadershipsMoved(Effect):
    """The replicas may end: nothing is led here any more, or no attempt is left."""


class ControlledShutdown:
    """The attempts of one broker.

    Shapes:  controller and broker_epoch are kept up to date by the shell; a controller of None is
             one that no UpdateMetadata has named yet.
    """

    def __init__(
        self, broker: int, max_attempts: int, backoff_ms: int, request_timeout_ms: int
    ) -> None:
        self._broker = broker
        self._attempts_left, self._backoff_ms = max_attempts, backoff_ms
        self._request_timeout_ms = request_timeout_ms
        self.controller: int | None = None
        self.broker_epoch = -1

    def owns(self, correlation_id: int) -> bool:
        return correlation_id == CORRELATION_ID

    def attempt(self, now_ms: int) -> list[Effect]:
        """Make the first attempt, or the next one when the timer has fired."""
        if not self._attempts_left:
            return [LeadershipsMoved()]  # none is wanted
        self._attempts_left -= 1
        if self.controller is None:
            return self._back_off(now_ms)
        request = ControlledShutdownRequest(broker_id=self._broker, broker_epoch=self.broker_epoch)
        version = ControlledShutdownRequest.latest_version
        timeout_ms = self._request_timeout_ms
        return [Send(self.controller, request, version, CORRELATION_ID, timeout_ms)]

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> list[Effect]:
        """End, if the controller has moved every leadership."""
        if response.error_code == ErrorCode.NONE and not response.remaining_partitions:
            return [LeadershipsMoved()]
        return self._back_off(now_ms)

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """Try again later: the request, or its response, was lost."""
        return self._back_off(now_ms)

    def _back_off(self, now_ms: int) -> list[Effect]:
        if not self._attempts_left:
            return [LeadershipsMoved()]
        return [SetTimer(TIMER, now_ms + self._backoff_ms)]
