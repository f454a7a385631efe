"""AssignReplicasToDirs: the directories in which a broker's replicas lie (KIP-858).

When a directory fails, the broker reports its id and no partitions. The controller takes the
replicas out of ISRs and leaderships that its metadata has in that directory; a replica that it has
elsewhere would stay leader on a dead disk. Hence every difference is reported.

The newest directory of each partition counts. One request is in flight. Assignments are collected
for a while before they are sent, and those that the controller rejects one by one wait as long. A
request that fails as a whole is sent again after a growing pause.

Versions: v0 only.
Source:   KIP-858; AssignmentsManager, AssignmentsManagerDeadlineFunction,
          ReplicaManager.maybeUpdateTopicAssignment.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AssignReplicasToDirsRequest
from minicluster.replica.broker_context import BrokerContext
from minicluster.replica.requests.purgatory import Key
from minicluster.replica.to_controller.controller_client import BACKOFF_FIRST_MS, BackOffClient

MOST_PER_REQUEST = 2_250
TIMER = "directory-assignments"
COLLECT_MS = 100


class DirectoryAssignments(BackOffClient):
    """The assignments that the controller has not confirmed."""

    def __init__(self, context: BrokerContext) -> None:
        super().__init__(
            context,
            name="directory-assignments",
            timer=TIMER,
            backoff_first_ms=2 * BACKOFF_FIRST_MS,
        )
        self._wanted: dict[Key, uuid.UUID] = {}
        self._sent: dict[Key, uuid.UUID] = {}

    @property
    def pending(self) -> dict[Key, uuid.UUID]:
        """The assignments that are not confirmed, oldest first."""
        return dict(self._wanted)

    def assign(self, directories: Mapping[Key, uuid.UUID], now_ms: int) -> None:
        """Report the directories of replicas, in place of earlier ones: those of a delta at once.

        Source:  AssignmentsManager.maybeSendAssignments.
        """
        if directories:
            self._wanted |= directories
            if len(self._wanted) > MOST_PER_REQUEST and not self._failures:
                self._waiting = False
                self.send_pending(now_ms)
            else:
                self.wait(now_ms + COLLECT_MS)

    def forget(self, key: Key) -> None:
        """The replica is gone, or lies where the metadata has it."""
        self._wanted.pop(key, None)

    def on_success(self, response: Any, now_ms: int) -> None:
        """Take out what is confirmed; a partition with an error is sent again a little later."""
        confirmed = {
            (topic.topic_id, partition.partition_index): directory.id
            for directory in response.directories
            for topic in directory.topics
            for partition in topic.partitions
            if partition.error_code == ErrorCode.NONE
        }
        # Not what has been assigned to another directory while the request was under way.
        for key, directory in self._sent.items():
            if confirmed.get(key) == directory == self._wanted.get(key):
                del self._wanted[key]
        self.succeed()
        if self._wanted:
            self.wait(now_ms + COLLECT_MS)

    def next_request(self) -> AssignReplicasToDirsRequest | None:
        """The oldest assignments, by directory and topic."""
        if not self._wanted:
            return None
        self._sent = dict(list(self._wanted.items())[:MOST_PER_REQUEST])
        by_directory: dict[uuid.UUID, dict[uuid.UUID, list[int]]] = {}
        for (topic_id, index), directory in self._sent.items():
            by_directory.setdefault(directory, {}).setdefault(topic_id, []).append(index)
        kind = AssignReplicasToDirsRequest
        return kind(
            broker_id=self.context.broker_id,
            broker_epoch=self.context.view.broker_epoch,
            directories=tuple(
                kind.DirectoryData(
                    id=directory,
                    topics=tuple(
                        kind.TopicData(
                            topic_id=topic_id,
                            partitions=tuple(
                                kind.PartitionData(partition_index=i) for i in indexes
                            ),
                        )
                        for topic_id, indexes in topics.items()
                    ),
                )
                for directory, topics in by_directory.items()
            ),
        )
