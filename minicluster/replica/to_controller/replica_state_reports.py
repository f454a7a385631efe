"""A broker tells the controller which of its replicas are offline (KIP-589).

    replica offline --> gathered for a moment --> AlterReplicaState --error--> again, after a pause
                                                                    --answer--> told
    another controller --> everything that is offline is untold again

Nothing makes the broker stop when nobody hears it: a follower leaves the ISR because it lags, a
leader stays until the controller learns of it (the KIP's failure modes 1 and 2). The controller
answers before it acts and may fail in between, so each new one is told everything (mode 3).

Only where the rules say so; as shipped, directories go with the heartbeats (KIP-858).
Source:  KIP-589, "Broker" and "Failure modes".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.effects import Effect, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages.kip_texts.kip_589 import EVENT_OFFLINE, AlterReplicaStateRequest
from minicluster.replica.requests.purgatory import Key
from minicluster.replica.to_controller.controller_channel import (
    Answer,
    ControllerChannel,
    CorrelationIds,
)

GATHER_MS = 100
BACKOFF_FIRST_MS = 100
BACKOFF_MOST_MS = 10_000
TIMER = "replica-state-reports"
REASON = "the log directory has failed"


class ReplicaStateReports:
    """The offline replicas, and which of them the active controller has not heard of.

    Shapes:  ``broker_epoch`` is read when a request leaves. Replicas are known here by topic id
             and told by name, as the KIP has it.
    """

    def __init__(self, broker_id: int, ids: CorrelationIds) -> None:
        self.broker_id = broker_id
        self.broker_epoch = -1
        self.channel = ControllerChannel(name="replica-states", ids=ids)
        self._offline: dict[Key, str] = {}
        self._untold: dict[Key, None] = {}
        self._sent: tuple[Key, ...] | None = None
        self._sent_to_another = False  # the answer under way is of a controller that is gone
        self._waiting = False
        self._failures = 0

    @property
    def timer(self) -> str:
        """The name of the timer that it sets."""
        return TIMER

    @property
    def untold(self) -> tuple[Key, ...]:
        """What the controller has not confirmed, oldest first."""
        return tuple(self._untold)

    def follow(self, now_ms: int, offline: Mapping[Key, str]) -> list[Effect]:
        """These replicas are offline now; what is new among them is to be told.

        Shapes:  offline holds the topic names.
        """
        new = [key for key in offline if key not in self._offline]
        self._offline = dict(offline)
        self._untold = {key: None for key in self._untold if key in offline}
        self._untold.update(dict.fromkeys(new))
        return self._gather(now_ms) if new else []

    def on_controller(self, now_ms: int, controller_id: int | None) -> list[Effect]:
        """The active controller is this one: it knows nothing of what another was told."""
        is_new = controller_id is not None and controller_id != self.channel.controller_id
        effects = self.channel.on_controller(now_ms, controller_id)
        if is_new and self._offline:
            self._sent_to_another = self._sent is not None
            self._untold = dict.fromkeys(self._offline)
            effects += self._gather(now_ms)
        return effects

    def on_answers(self, now_ms: int, effects: list[Effect], answers: list[Answer]) -> list[Effect]:
        """Take what the channel brought back."""
        for answer in answers:
            effects += self._answered(now_ms, answer)
        return effects

    def on_timer(self, now_ms: int) -> list[Effect]:
        """Enough has been gathered, or the pause is over."""
        self._waiting = False
        return self._send(now_ms)

    def _answered(self, now_ms: int, answer: Answer) -> list[Effect]:
        sent, self._sent = self._sent or (), None
        old_news, self._sent_to_another = self._sent_to_another, False
        response: Any = answer.response
        if response is None or response.error_code != ErrorCode.NONE:
            pause_ms = min(BACKOFF_FIRST_MS << min(self._failures, 20), BACKOFF_MOST_MS)
            self._failures += 1
            return self._wait(now_ms + pause_ms)
        self._failures = 0
        if old_news:
            return self._gather(now_ms)
        # A partition that the controller does not know has been deleted: there is nothing to tell.
        named = {
            (topic.topic, partition.partition_id)
            for topic in response.topics
            for partition in topic.partitions
        }
        for key in sent:
            if key in self._untold and (self._offline[key], key[1]) in named:
                del self._untold[key]
        return self._gather(now_ms)

    def _gather(self, now_ms: int) -> list[Effect]:
        return self._wait(now_ms + GATHER_MS) if self._untold else []

    def _wait(self, until_ms: int) -> list[Effect]:
        if self._waiting:
            return []
        self._waiting = True
        return [SetTimer(TIMER, until_ms)]

    def _send(self, now_ms: int) -> list[Effect]:
        if self._sent is not None or not self._untold:
            return []
        kind = AlterReplicaStateRequest
        self._sent = tuple(self._untold)
        by_topic: dict[str, list[int]] = {}
        for key in self._sent:
            by_topic.setdefault(self._offline[key], []).append(key[1])
        request = kind(
            broker_id=self.broker_id,
            broker_epoch=self.broker_epoch,
            event_type=EVENT_OFFLINE,
            event_reason=REASON,
            topics=tuple(
                kind.TopicData(
                    topic=topic,
                    partitions=tuple(kind.PartitionData(partition_id=i) for i in sorted(found)),
                )
                for topic, found in by_topic.items()
            ),
        )
        return self.channel.submit(now_ms, None, request, kind.latest_version)
