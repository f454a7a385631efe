"""A broker tells the controller in which directories its replicas really lie.

The latest word per partition counts; one request is in flight; what fails is sent again after a
growing pause.

Source:  KIP-858; AssignmentsManager, ReplicaManager.maybeUpdateTopicAssignment.
"""

from __future__ import annotations

import uuid
from typing import Any

from minicluster.effects import Effect, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AssignReplicasToDirsRequest
from minicluster.replica.requests.purgatory import Key
from minicluster.replica.to_controller.controller_channel import (
    Answer,
    ControllerChannel,
    CorrelationIds,
)

MOST_PER_REQUEST = 2_250
BACKOFF_FIRST_MS = 100
BACKOFF_MOST_MS = 10_000
TIMER = "directory-assignments"


class DirectoryAssignments:
    """The assignments that the controller has not confirmed.

    Shapes:  ``broker_epoch`` is read when a request leaves.
    """

    def __init__(self, broker_id: int, ids: CorrelationIds) -> None:
        self.broker_id = broker_id
        self.broker_epoch = -1
        self.channel = ControllerChannel(name="directory-assignments", ids=ids)
        self._wanted: dict[Key, uuid.UUID] = {}
        self._sent: dict[Key, uuid.UUID] | None = None
        self._failures = 0
        self._pausing = False

    @property
    def timer(self) -> str:
        """The name of the timer that it sets."""
        return TIMER

    @property
    def pending(self) -> dict[Key, uuid.UUID]:
        """What is not confirmed, oldest first."""
        return dict(self._wanted)

    def assign(self, now_ms: int, key: Key, directory: uuid.UUID) -> list[Effect]:
        """A replica lies in this directory; an older word about it is forgotten."""
        self._wanted[key] = directory
        return self._send(now_ms)

    def forget(self, key: Key) -> None:
        """The replica is gone, or lies where the controller says."""
        self._wanted.pop(key, None)

    def on_answers(self, now_ms: int, effects: list[Effect], answers: list[Answer]) -> list[Effect]:
        """Take what the channel brought back."""
        for answer in answers:
            effects += self._answered(now_ms, answer.response)
        return effects

    def on_timer(self, now_ms: int) -> list[Effect]:
        """The pause is over."""
        self._pausing = False
        return self._send(now_ms)

    def _answered(self, now_ms: int, response: Any | None) -> list[Effect]:
        sent, self._sent = self._sent or {}, None
        if response is None or response.error_code != ErrorCode.NONE:
            return self._pause(now_ms)
        done = {
            (topic.topic_id, partition.partition_index): directory.id
            for directory in response.directories
            for topic in directory.topics
            for partition in topic.partitions
            if partition.error_code == ErrorCode.NONE
        }
        for key, directory in sent.items():
            if done.get(key) == directory == self._wanted.get(key):
                del self._wanted[key]
        if any(key not in done for key in sent if key in self._wanted):
            return self._pause(now_ms)
        self._failures = 0
        return self._send(now_ms)

    def _pause(self, now_ms: int) -> list[Effect]:
        pause_ms = min(BACKOFF_FIRST_MS << min(self._failures, 20), BACKOFF_MOST_MS)
        self._failures += 1
        self._pausing = True
        return [SetTimer(TIMER, now_ms + pause_ms)]

    def _send(self, now_ms: int) -> list[Effect]:
        if self._sent is not None or self._pausing or not self._wanted:
            return []
        self._sent = dict(list(self._wanted.items())[:MOST_PER_REQUEST])
        kind = AssignReplicasToDirsRequest
        places: dict[uuid.UUID, dict[uuid.UUID, list[int]]] = {}
        for (topic_id, index), directory in self._sent.items():
            places.setdefault(directory, {}).setdefault(topic_id, []).append(index)
        request = kind(
            broker_id=self.broker_id,
            broker_epoch=self.broker_epoch,
            directories=tuple(
                kind.DirectoryData(
                    id=directory,
                    topics=tuple(
                        kind.TopicData(
                            topic_id=topic_id,
                            partitions=tuple(kind.PartitionData(partition_index=i) for i in found),
                        )
                        for topic_id, found in topics.items()
                    ),
                )
                for directory, topics in places.items()
            ),
        )
        return self.channel.submit(now_ms, None, request, kind.latest_version)
