"""The requests of one client: whom it reaches, and the leaders and coordinators that it knows.

A request ends with its response, or with None where none came. What a client waits for is the
function that takes the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minicluster.effects import Effect, Send, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FindCoordinatorRequest, MetadataRequest

GROUP, TRANSACTION = 0, 1  # the types of coordinators
REQUEST_TIMEOUT_MS = 30_000
BACKOFF_MS = 100
_METADATA_VERSION = 12
_FIND_COORDINATOR_VERSION = 4

TopicPartition = tuple[str, int]
OnEnd = Callable[[Any | None, int], None]
Then = Callable[[int], None]

COORDINATOR_ERRORS = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


class Client:
    """The base of both clients.

    Inputs:  ``on_end``, ``on_timer``; each returns effects.
    Shapes:  leaders, leader_epochs: of the highest leader epoch that a broker has told of. effects
             are Send and SetTimer.
    """

    def __init__(self, name: str, brokers: Sequence[int]) -> None:
        self.name = name
        self.leaders: dict[TopicPartition, int] = {}
        self.leader_epochs: dict[TopicPartition, int] = {}
        self.topic_ids: dict[Any, str] = {}
        self._known_ids: dict[str, Any] = {}  # of the topic that had each name last
        self.effects: list[Effect] = []
        self._brokers = tuple(brokers)
        self._next_broker = 0
        self._coordinators: dict[tuple[int, str], int] = {}  # by type and key
        self._ids = itertools.count(1)
        self._ends: dict[int, OnEnd] = {}
        self._timers: dict[str, Then] = {}

    # --- inputs -------------------------------------------------------------------------------

    def on_end(self, correlation_id: int, response: Any | None, now_ms: int) -> list[Effect]:
        """A response has come, or none will come."""
        end = self._ends.pop(correlation_id, None)
        if end is not None:
            end(response, now_ms)
        return self.take_effects()

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """A timer of this client has fired."""
        then = self._timers.pop(name, None)
        if then is not None:
            then(now_ms)
        return self.take_effects()

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in their order."""
        effects, self.effects = self.effects, []
        return effects

    # --- requests and timers ------------------------------------------------------------------

    def send(
        self,
        to: int,
        request: Any,
        version: int,
        on_end: OnEnd,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        """Send a request to a broker."""
        correlation_id = next(self._ids)
        self._ends[correlation_id] = on_end
        self.effects.append(Send(to, request, version, correlation_id, timeout_ms))

    def forget_requests(self) -> None:
        """Ignore the ends of all requests on their way."""
        self._ends.clear()

    def after(self, name: str, delay_ms: int, then: Then, now_ms: int) -> None:
        """Do something later; a timer of the same name is replaced."""
        self._timers[name] = then
        self.effects.append(SetTimer(name, now_ms + delay_ms))

    def new_timer(self, name: str) -> str:
        """A name of its own, for one of several that do not end each other."""
        return f"{name}-{next(self._ids)}"

    def forget_timers(self) -> None:
        """Drop all timers."""
        self._timers.clear()

    def any_broker(self) -> int:
        """The brokers in turn."""
        self._next_broker += 1
        return self._brokers[(self._next_broker - 1) % len(self._brokers)]

    # --- leaders and coordinators -------------------------------------------------------------

    def find_leaders(self, topics: Iterable[str], then: Then, now_ms: int) -> None:
        """Find the leaders of topics, again until every partition has one."""
        wanted = tuple(topics)
        timer = self.new_timer("metadata")
        request = MetadataRequest(
            topics=tuple(MetadataRequest.MetadataRequestTopic(name=name) for name in wanted),
            allow_auto_topic_creation=False,
        )

        def on_end(response: Any | None, at_ms: int) -> None:
            if self._take_metadata(response, len(wanted)):
                then(at_ms)
            else:
                self.after(timer, BACKOFF_MS, again, at_ms)

        def again(at_ms: int) -> None:
            self.send(self.any_broker(), request, _METADATA_VERSION, on_end)

        again(now_ms)

    def _take_metadata(self, response: Any | None, topics: int) -> bool:
        """Take the leaders of a response; True where so many topics exist, and all are led.

        A broker that is cut off still names the leader of an earlier epoch, perhaps itself. Its log
        may end before what was read elsewhere: the position would be out of range there, and a
        consumer would begin again.

        Source:  KIP-320; Metadata.updateLatestMetadata.
        """
        if response is None:
            return False
        existing = [topic for topic in response.topics if topic.error_code == ErrorCode.NONE]
        for topic in existing:
            is_new = self._known_ids.get(topic.name) != topic.topic_id
            self._known_ids[topic.name] = topic.topic_id
            self.topic_ids[topic.topic_id] = topic.name
            for partition in topic.partitions:
                place = topic.name, partition.partition_index
                if is_new or partition.leader_epoch >= self.leader_epochs.get(place, -1):
                    self.leaders[place] = partition.leader_id
                    self.leader_epochs[place] = partition.leader_epoch
        leads = [leader >= 0 for leader in self.leaders.values()]
        return len(existing) == topics and all(leads)

    def partitions_of(self, topic: str) -> list[int]:
        """The partitions of a topic, as far as they are known."""
        return sorted(index for name, index in self.leaders if name == topic)

    def with_coordinator(
        self, key: str, key_type: int, then: Callable[[int, int], None], now_ms: int
    ) -> None:
        """Find the coordinator of a key, unless it is known; ``then`` takes its node."""
        node_id = self._coordinators.get((key_type, key))
        if node_id is not None:
            then(node_id, now_ms)
            return
        timer = self.new_timer("coordinator")
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))

        def on_end(response: Any | None, at_ms: int) -> None:
            coordinator = None if response is None else response.coordinators[0]
            if coordinator is None or coordinator.error_code != ErrorCode.NONE:
                self.after(timer, BACKOFF_MS, again, at_ms)
                return
            self._coordinators[key_type, key] = coordinator.node_id
            then(coordinator.node_id, at_ms)

        def again(at_ms: int) -> None:
            self.send(self.any_broker(), request, _FIND_COORDINATOR_VERSION, on_end)

        again(now_ms)

    def forget_coordinators(self) -> None:
        """Find each coordinator again with the next request to it."""
        self._coordinators.clear()
