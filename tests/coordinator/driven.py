"""A group coordinator whose clock a test holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from minicluster.coordinator.group.machine import GroupCoordinatorMachine
from minicluster.effects import CancelTimer, Effect, Respond, SetTimer


class DrivenCoordinator(ABC):
    """Effects are performed at once; timers run when time passes."""

    machine: GroupCoordinatorMachine

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.timers: dict[str, int] = {}

    @abstractmethod
    def respond(self, token: int, response: Any) -> None:
        """Take the response to a request."""

    def advance(self, ms: int) -> None:
        """Let time pass; timers run in order, each at its time."""
        end_ms = self.now_ms + ms
        while due := [(at_ms, name) for name, at_ms in self.timers.items() if at_ms <= end_ms]:
            at_ms, name = min(due)
            self.now_ms = max(self.now_ms, at_ms)
            del self.timers[name]
            self.perform(self.machine.on_timer(name, self.now_ms))
        self.now_ms = end_ms

    def perform(self, effects: Iterable[Effect]) -> None:
        """Perform what the coordinator asks for."""
        for effect in effects:
            match effect:
                case SetTimer(name, at_ms):
                    self.timers[name] = at_ms
                case CancelTimer(name):
                    self.timers.pop(name, None)
                case Respond(token, response):
                    self.respond(token, response)
