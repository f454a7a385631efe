"""AlterReplicaState: a broker's offline replicas, reported to the controller (KIP-589's text).

    replica offline --> gathered for a moment --> AlterReplicaState --error--> again, after a pause
                                                                    --success--> confirmed
    another controller --> all offline replicas are pending again

An unreported replica does not stop the broker: a follower leaves the ISR because it lags, a leader
stays until the controller learns of it (the KIP's failure modes 1 and 2). The controller responds
before it acts and may fail in between, so each new one gets all replicas (mode 3).

Only with ``Rules.failed_replicas_reported_by``; as shipped, directories go with the heartbeats
(KIP-858).

Versions: v0 only.
Source:   KIP-589, "Broker" and "Failure modes".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.protocol.messages.kip_texts.kip_589 import EVENT_OFFLINE, AlterReplicaStateRequest
from minicluster.replica.broker_context import BrokerContext
from minicluster.replica.requests.purgatory import Key
from minicluster.replica.to_controller.controller_client import BackOffClient

GATHER_MS = 100
TIMER = "replica-state-reports"
REASON = "the log directory has failed"


class ReplicaStateReports(BackOffClient):
    """The offline replicas, and those of them that the active controller has not confirmed.

    Shapes:  replicas are known here by topic id and reported by name, as in the KIP.
    """

    def __init__(self, context: BrokerContext) -> None:
        super().__init__(context, name="replica-states", timer=TIMER)
        self._offline: dict[Key, str] = {}
        self._pending: dict[Key, None] = {}
        self._sent: tuple[Key, ...] = ()
        self._sent_to_another = False  # the request in flight went to a controller that is gone

    @property
    def pending(self) -> tuple[Key, ...]:
        """The replicas that the controller has not confirmed, oldest first."""
        return tuple(self._pending)

    def set_offline(self, offline: Mapping[Key, str], now_ms: int) -> None:
        """Report the replicas that have gone offline since the last call.

        Shapes:  offline has all offline replicas, with their topic names.
        """
        new = [key for key in offline if key not in self._offline]
        self._offline = dict(offline)
        self._pending = {key: None for key in self._pending if key in offline}
        self._pending.update(dict.fromkeys(new))
        if new:
            self._gather(now_ms)

    def on_controller(self, controller_id: int | None, now_ms: int) -> None:
        """A new controller gets everything: the previous one may not have acted on it."""
        is_new = controller_id is not None and controller_id != self.channel.controller_id
        super().on_controller(controller_id, now_ms)
        if is_new and self._offline:
            self._sent_to_another = self._in_flight
            self._pending = dict.fromkeys(self._offline)
            self._gather(now_ms)

    def on_completion(self, response: Any | None, now_ms: int) -> None:
        """A response of an earlier controller confirms nothing."""
        is_outdated, self._sent_to_another = self._sent_to_another, False
        if is_outdated:
            self._sent = ()
        super().on_completion(response, now_ms)

    def on_success(self, response: Any, now_ms: int) -> None:
        """Take out what is confirmed.

        A partition that the controller does not have is deleted, and counts as confirmed.
        """
        self.succeed()
        named = {
            (topic.topic, partition.partition_id)
            for topic in response.topics
            for partition in topic.partitions
        }
        for key in self._sent:
            if key in self._pending and (self._offline[key], key[1]) in named:
                del self._pending[key]
        self._gather(now_ms)

    def _gather(self, now_ms: int) -> None:
        """Wait a moment for the other replicas of a directory before sending."""
        if self._pending:
            self.wait(now_ms + GATHER_MS)

    def next_request(self) -> AlterReplicaStateRequest | None:
        """All pending replicas by topic."""
        if not self._pending:
            return None
        kind = AlterReplicaStateRequest
        self._sent = tuple(self._pending)
        by_topic: dict[str, list[int]] = {}
        for key in self._sent:
            by_topic.setdefault(self._offline[key], []).append(key[1])
        return kind(
            broker_id=self.context.broker_id,
            broker_epoch=self.context.view.broker_epoch,
            event_type=EVENT_OFFLINE,
            event_reason=REASON,
            topics=tuple(
                kind.TopicData(
                    topic=topic,
                    partitions=tuple(kind.PartitionData(partition_id=i) for i in sorted(indexes)),
                )
                for topic, indexes in by_topic.items()
            ),
        )
