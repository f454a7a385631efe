"""An AlterPartition manager whose controller is the test."""

from __future__ import annotations

from functools import partial
from typing import Any

from minicluster.effects import Effect, Send, SetTimer
from minicluster.replica.broker_context import (
    AlterPartitionItem,
    AlterPartitionResult,
    BrokerContext,
    BrokerView,
)
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.to_controller.alter_partition_manager import TIMER, AlterPartitionManager
from minicluster.rules import Rules

NOW_MS = 1_000


class Outbox:
    """A channel to the controller that sends everything at once."""

    def submit(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        return [Send(0, request, version, correlation_id=0)]


class ManagerKit:
    """The manager of one broker; each input gives the requests that leave because of it."""

    def __init__(
        self, *, broker_id: int = 1, broker_epoch: int = 101, rules: Rules = Rules.KAFKA_4_3
    ) -> None:
        self.context = BrokerContext(ReplicaManagerConfig(broker_id=broker_id), rules=rules)
        self.register(broker_epoch)
        self.manager = AlterPartitionManager(self.context)
        self.manager.channel = Outbox()  # type: ignore[assignment]
        self.ended: list[tuple[str, AlterPartitionResult]] = []
        self.again: AlterPartitionItem | None = None  # submitted when the next item ends
        self.timers_ms: list[int] = []

    def register(self, broker_epoch: int) -> None:
        """The broker has got this epoch."""
        self.context.view = BrokerView(broker_epoch)

    def submit(self, item: AlterPartitionItem, name: str = "item") -> list[Send]:
        self.manager.submit(item, partial(self._complete, name), NOW_MS)
        return self._sends()

    def respond(self, response: Any | None, now_ms: int = NOW_MS) -> list[Send]:
        """End the request in flight; None: without a response."""
        self.manager.on_completion(response, now_ms)
        return self._sends()

    def wake(self, now_ms: int) -> list[Send]:
        self.manager.on_timer(TIMER, now_ms)
        return self._sends()

    def take_ended(self) -> dict[str, Any]:
        """The errors of the items that have ended since the last call, by name."""
        ended, self.ended = self.ended, []
        return {name: result.error for name, result in ended}

    def _complete(self, name: str, result: AlterPartitionResult, now_ms: int) -> None:
        self.ended.append((name, result))
        if self.again is not None:
            item, self.again = self.again, None
            self.manager.submit(item, partial(self._complete, f"{name} again"), now_ms)

    def _sends(self) -> list[Send]:
        effects = self.context.take_effects()
        self.timers_ms = [e.at_ms for e in effects if isinstance(e, SetTimer)]
        return [effect for effect in effects if isinstance(effect, Send)]
