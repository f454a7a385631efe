"""One group coordinator over a log in memory; the test holds time, topics and fail-over."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.configs.effective import BrokerLevels
from minicluster.coordinator.group.config import GroupCoordinatorConfig
from minicluster.coordinator.group.machine import GroupCoordinatorMachine
from minicluster.coordinator.group.request_context import ClientContext
from minicluster.metadata.image.configs import GROUP
from minicluster.metadata.image.delta import DeltaBuilder, MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import ConfigRecord, RemoveTopicRecord, VersionedRecord
from minicluster.rules import Rules
from tests.coordinator.driven import DrivenCoordinator
from tests.coordinator.memory_log import Log
from tests.metadata.records import broker, feature, partition, topic, uid, version

BROKER = 1
OFFSETS = 99
CONFIG = {
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
TopicPartitions = m.ConsumerGroupHeartbeatRequest.TopicPartitions


class Groups(DrivenCoordinator):
    """A coordinator and its clients.

    Topics have the ids 1, 2, … in the order of their creation.
    """

    def __init__(
        self,
        config: Mapping[str, str] | None = None,
        *,
        rules: Rules = Rules.KAFKA_4_3,
        **topics: int,
    ) -> None:
        super().__init__(now_ms=1_000_000)
        self.rules = rules
        self.config = {**CONFIG, **(config or {})}
        self.image = MetadataImage.EMPTY
        self.offset = 0
        self.log = Log(mark=None)
        self.topic_ids: dict[str, uuid.UUID] = {}
        self._numbers: dict[str, int] = {}
        self._created = 0
        self.counts: dict[str, int] = {}
        self._sent = 0
        self._starts = 0
        self._start()
        self.publish(version(30), feature("group.version", 1), broker(BROKER))
        self.publish(topic("__consumer_offsets", OFFSETS), self._partition(OFFSETS, 0))
        self.advance(0)
        for name, partitions in topics.items():
            self.create_topic(name, partitions)

    # --- the cluster --------------------------------------------------------------------------

    def restart(self) -> None:
        """Another coordinator takes over, and loads the log."""
        self._start()
        delta = MetadataDelta.between(MetadataImage.EMPTY, self.image)
        self.perform(self.machine.on_metadata(delta, self.offset, self.now_ms))
        self.advance(0)

    def _start(self) -> None:
        self._starts += 1
        self._ids = 0
        self.timers.clear()
        self.responses: dict[int, Any] = {}
        self.machine = GroupCoordinatorMachine(
            BROKER,
            GroupCoordinatorConfig.of(BrokerLevels({}, {}, self.config), BROKER),
            self.log,
            new_uuid=self._new_uuid,
            rules=self.rules,
        )

    def _new_uuid(self) -> uuid.UUID:
        self._ids += 1
        return uuid.UUID(int=(self._starts << 64) + self._ids)

    def _partition(self, topic_id: int, index: int) -> Any:
        return partition(topic_id, index, replicas=(BROKER,), isr=(BROKER,), leader=BROKER)

    def publish(self, *records: Any) -> None:
        """Publish metadata records."""
        builder = DeltaBuilder(self.image)
        versioned = tuple(VersionedRecord(record, 0) for record in records)
        for run in SharedFolds().runs(self.image, versioned, self.offset + 1):
            builder.take(run)
        self.offset += len(records)
        delta = builder.build()
        self.image = delta.after
        self.perform(self.machine.on_metadata(delta, self.offset, self.now_ms))

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, or add partitions to one."""
        records = []
        if name not in self._numbers:
            self._created += 1
            self._numbers[name] = self._created
            self.topic_ids[name] = uid(self._created)
            records.append(topic(name, self._created))
        number = self._numbers[name]
        before = self.counts.get(name, 0)
        records += [self._partition(number, index) for index in range(before, partitions)]
        self.counts[name] = partitions
        self.publish(*records)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; one that is created later with its name has another id."""
        del self.counts[name]
        self.publish(RemoveTopicRecord(topic_id=uid(self._numbers.pop(name))))

    def set_group_config(self, group_id: str, name: str, value: str) -> None:
        """Set a dynamic config of a group."""
        self.publish(
            ConfigRecord(resource_type=GROUP, resource_name=group_id, name=name, value=value)
        )

    def respond(self, token: int, response: Any) -> None:
        assert token not in self.responses, "a second response"
        self.responses[token] = response

    # --- requests -----------------------------------------------------------------------------

    def send(self, request: Any, request_version: int, client_id: str = "client") -> int:
        """Send a request; its response is in ``responses`` once it is given."""
        self._sent += 1
        context = ClientContext(client_id)
        self.perform(
            self.machine.on_request(self._sent, request, request_version, context, self.now_ms)
        )
        return self._sent

    def request(self, request: Any, request_version: int, client_id: str = "client") -> Any:
        """Send a request and take its response, which comes at once."""
        token = self.send(request, request_version, client_id)
        self.advance(0)
        return self.responses[token]

    def heartbeat(
        self,
        member_id: str,
        epoch: int,
        *,
        topics: Sequence[str] | None = None,
        owned: Mapping[str, Sequence[int]] | None = None,
        group_id: str = "g",
        **given: Any,
    ) -> Any:
        """Send a ConsumerGroupHeartbeat; a join is a full request."""
        if epoch == 0:
            owned = owned or {}
            given.setdefault("rebalance_timeout_ms", 5_000)
            if topics is None and "subscribed_topic_regex" not in given:
                topics = ()
        request = m.ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            subscribed_topic_names=None if topics is None else tuple(topics),
            topic_partitions=None
            if owned is None
            else tuple(
                TopicPartitions(topic_id=self.topic_ids[name], partitions=tuple(indexes))
                for name, indexes in owned.items()
            ),
            **given,
        )
        return self.request(request, 1, member_id)

    def describe(self, group_id: str = "g") -> Any:
        """The group as ConsumerGroupDescribe shows it."""
        response = self.request(m.ConsumerGroupDescribeRequest(group_ids=(group_id,)), 1)
        return response.groups[0]

    def partitions(self, topic_partitions: Sequence[Any]) -> dict[str, list[int]]:
        """Partitions by topic name."""
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        return {names[t.topic_id]: sorted(t.partitions) for t in topic_partitions}

    def assignment(self, response: Any) -> dict[str, list[int]] | None:
        """The assignment in a heartbeat's response."""
        assert response.error_code == ErrorCode.NONE, response
        given = response.assignment
        return None if given is None else self.partitions(given.topic_partitions)
