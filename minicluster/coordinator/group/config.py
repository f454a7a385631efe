"""The static configs of a group coordinator.

Source:  GroupCoordinatorConfig.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from minicluster.configs.effective import BrokerLevels
from minicluster.log.format.compression import Codec
from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT, GROUP, ConfigsImage
from minicluster.metadata.image.metadata_image import MetadataImage

_ASSIGNOR_CLASSES = {
    f"org.apache.kafka.coordinator.group.assignor.{name}assignor": name
    for name in ("uniform", "range")
}
"""The assignors that are there, by the names of Kafka's classes in lower case."""
_ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"


class MigrationPolicy(Enum):
    """Which groups with members may change their kind (ConsumerGroupMigrationPolicy)."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def is_upgrade_enabled(self) -> bool:
        """A classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def is_downgrade_enabled(self) -> bool:
        """A consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True)
class ConsumerGroupConfig:
    """The configs of one consumer group: its own, else the broker's."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class GroupCoordinatorConfig:
    """The values by Kafka's names; but one, no config of the coordinator changes at run time."""

    def __init__(self, broker: BrokerLevels, broker_id: int) -> None:
        self._broker = broker
        self._broker_id = broker_id
        self._known: tuple[ConfigsImage, dict[str, ConsumerGroupConfig]] = (ConfigsImage(), {})

        def number(name: str) -> int:
            return int(broker.value(name) or 0)

        def words(name: str) -> tuple[str, ...]:
            given = (word.strip().lower() for word in (broker.value(name) or "").split(","))
            return tuple(word for word in given if word)

        self.consumer_max_size = number("group.consumer.max.size")
        assignors = words("group.consumer.assignors")
        self.consumer_assignors = tuple(_ASSIGNOR_CLASSES.get(name, name) for name in assignors)
        self.rebalance_protocols = words("group.coordinator.rebalance.protocols")
        self.migration_policy = MigrationPolicy(words("group.consumer.migration.policy")[0])
        self.regex_refresh_interval_ms = number("group.consumer.regex.refresh.interval.ms")
        self.offsets_topic_codec = Codec(number("offsets.topic.compression.codec"))
        self.offset_commit_timeout_ms = number("offsets.commit.timeout.ms")
        self.offset_metadata_max_bytes = number("offset.metadata.max.bytes")
        self.offsets_retention_ms = number("offsets.retention.minutes") * 60_000
        self.offsets_retention_check_interval_ms = number("offsets.retention.check.interval.ms")
        self.initial_rebalance_delay_ms = number("group.initial.rebalance.delay.ms")
        self.group_max_size = number("group.max.size")
        self.min_session_timeout_ms = number("group.min.session.timeout.ms")
        self.max_session_timeout_ms = number("group.max.session.timeout.ms")

    def of_group(self, group_id: str, image: MetadataImage) -> ConsumerGroupConfig:
        """The configs that hold for a group, within the bounds of this broker.

        Source:  GroupConfig.evaluate, GroupCoordinatorConfig.clampDynamicConfigs.
        """
        if self._known[0] is not image.configs:
            self._known = image.configs, {}
        known = self._known[1]
        if group_id not in known:
            known[group_id] = self._of_group(group_id, image)
        return known[group_id]

    def _of_group(self, group_id: str, image: MetadataImage) -> ConsumerGroupConfig:
        own = image.configs.of(GROUP, group_id)
        broker = self._broker
        interval = BrokerLevels(
            image.configs.of(BROKER, str(self._broker_id)),
            image.configs.of(BROKER, CLUSTER_DEFAULT),
            broker.static,
        ).value(_ASSIGNMENT_INTERVAL)

        def bounded(name: str, of_broker: str | None) -> int:
            value = int(own.get(f"consumer.{name}") or of_broker or 0)
            lowest = int(broker.value(f"group.consumer.min.{name}") or 0)
            highest = int(broker.value(f"group.consumer.max.{name}") or value)
            return min(max(value, lowest), highest)

        session, heartbeat = "session.timeout.ms", "heartbeat.interval.ms"
        return ConsumerGroupConfig(
            session_timeout_ms=bounded(session, broker.value(f"group.consumer.{session}")),
            heartbeat_interval_ms=bounded(heartbeat, broker.value(f"group.consumer.{heartbeat}")),
            assignment_interval_ms=bounded("assignment.interval.ms", interval),
        )
