"""A group coordinator whose clock a test holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from minicluster.coordinator.group.machine import GroupCoordinatorMachine
from minicluster.effects import CancelTimer, Effect, Respond, SetTimer
from tests.driving import Driving


class DrivenCoordinator(Driving, ABC):
    """Effects are performed at once; timers run when time passes."""

    machine: GroupCoordinatorMachine

    @abstractmethod
    def respond(self, token: int, response: Any) -> None:
        """Take the response to a request."""

    def on_timer(self, timer: str) -> None:
        self.perform(self.machine.on_timer(timer, self.now_ms))

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
