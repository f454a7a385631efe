"""The state of one candidate or controller: the cluster, its watches, its queue, its effects."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from minicluster.effects import Effect, Respond, SetTimer
from minicluster.faults import Faults
from minicluster.planting import Planted
from minicluster.zookeeper.controller.context import Context
from minicluster.zookeeper.controller.events import ControllerEvent
from minicluster.zookeeper.controller.settings import ZooKeeperControllerSettings
from minicluster.zookeeper.znodes.cluster import BrokerRegistration

AUTO_REBALANCE = "auto-leader-rebalance"
NO_ACTIVE_CONTROLLER = -1


class ControllerState(Planted):
    """The state of the machine, and the first argument of all its rules."""

    def __init__(
        self,
        settings: ZooKeeperControllerSettings,
        registration: BrokerRegistration,
        new_topic_id: Callable[[], UUID],
        faults: Faults,
    ) -> None:
        super().__init__(faults)
        self.settings = settings
        self.unclean_by_default = settings.unclean_leader_election_enable
        self.registration = registration
        self.new_topic_id = new_topic_id
        self.context = Context()
        self.active_controller = NO_ACTIVE_CONTROLLER
        self.watched_nodes: dict[str, None] = {}
        self.watched_children: dict[str, None] = {}
        self.queue: deque[ControllerEvent] = deque()
        self.effects: list[Effect] = []
        self.now_ms = 0

    @property
    def is_active(self) -> bool:
        """This broker takes itself for the controller."""
        return self.active_controller == self.settings.broker_id

    def put(self, event: ControllerEvent) -> None:
        """Queue an event."""
        self.queue.append(event)

    def respond(self, token: Any, response: Any) -> None:
        """Respond to a request."""
        self.effects.append(Respond(token, response))

    def watch_nodes(self, paths: Iterable[str]) -> None:
        """Handle changes of these znodes: each read of one sets a watch."""
        self.watched_nodes.update(dict.fromkeys(paths))

    def forget_nodes(self, paths: Iterable[str]) -> None:
        """Ignore changes of these znodes."""
        for path in paths:
            self.watched_nodes.pop(path, None)

    def schedule_auto_rebalance(self, delay_ms: int) -> None:
        """Look for leaders that are not the preferred ones later."""
        self.effects.append(SetTimer(AUTO_REBALANCE, self.now_ms + delay_ms))
