"""FindCoordinator requests that wait while the internal topic is made.

Kafka responds COORDINATOR_NOT_AVAILABLE at once, and clients come back after a back-off of up to a
second, in which the topic has long been made. Here the first response comes with the topic, as if
the network had been slow. After a limit it is Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minicluster.effects import CancelTimer, Effect, Respond, SetTimer
from minicluster.protocol.messages import FindCoordinatorRequest

TIMER = "coordinator-lookups"
LIMIT_MS = 1_000

Find = Callable[[FindCoordinatorRequest, int], Any]
"""The response of this moment to a request in a version."""


@dataclass(frozen=True, slots=True)
class _Lookup:
    token: Any
    request: FindCoordinatorRequest
    version: int
    topic: str
    until_ms: int


class CoordinatorLookups:
    """The requests that wait, oldest first."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._waiting: list[_Lookup] = []

    def wait(
        self, token: Any, request: FindCoordinatorRequest, version: int, topic: str, now_ms: int
    ) -> list[Effect]:
        """Hold a request until its topic is there."""
        is_first = not self._waiting
        until_ms = now_ms + LIMIT_MS
        self._waiting.append(_Lookup(token, request, version, topic, until_ms))
        return [SetTimer(TIMER, until_ms)] if is_first else []

    def respond(self, is_over: Callable[[str], bool]) -> list[Effect]:
        """Respond to those whose topic has been made, or will not be made."""
        over = [each for each in self._waiting if is_over(each.topic)]
        return self._complete(over)

    def on_timer(self, now_ms: int) -> list[Effect]:
        """Respond to those that have waited long enough."""
        effects = self._complete([each for each in self._waiting if each.until_ms <= now_ms])
        if self._waiting:
            effects.append(SetTimer(TIMER, self._waiting[0].until_ms))
        return effects

    def _complete(self, over: list[_Lookup]) -> list[Effect]:
        if not over:
            return []
        self._waiting = [each for each in self._waiting if each not in over]
        effects: list[Effect] = [
            Respond(each.token, self._find(each.request, each.version)) for each in over
        ]
        if not self._waiting:
            effects.append(CancelTimer(TIMER))
        return effects
