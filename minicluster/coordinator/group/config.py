"""The static configs of a group coordinator.

Source:  GroupCoordinatorConfig.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from minicluster.configs.effective import BrokerLevels
from minicluster.configs.views import broker_config, values_of
from minicluster.log.format.compression import Codec
from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT, GROUP, ConfigsImage
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.values import Value, dataclass

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


class ConsumerGroupConfig(Value):
    """The configs of one consumer group: its own, else the broker's."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


def _words(text: str | None) -> tuple[str, ...]:
    words = (word.strip().lower() for word in (text or "").split(","))
    return tuple(word for word in words if word)


def _assignors(text: str | None) -> tuple[str, ...]:
    return tuple(_ASSIGNOR_CLASSES.get(name, name) for name in _words(text))


def _migration_policy(text: str | None) -> MigrationPolicy:
    return MigrationPolicy(_words(text)[0])


def _codec(text: str | None) -> Codec:
    return Codec(int(text or 0))


def _minutes_as_ms(text: str | None) -> int:
    return 60_000 * int(text or 0)


@dataclass(slots=True, kw_only=True, eq=False)
class GroupCoordinatorConfig:
    """The configs of a group coordinator; but for one, none of them changes at run time."""

    broker: BrokerLevels
    broker_id: int
    consumer_max_size: int = broker_config("group.consumer.max.size")
    consumer_assignors: tuple[str, ...] = broker_config("group.consumer.assignors", _assignors)
    rebalance_protocols: tuple[str, ...] = broker_config(
        "group.coordinator.rebalance.protocols", _words
    )
    migration_policy: MigrationPolicy = broker_config(
        "group.consumer.migration.policy", _migration_policy
    )
    regex_refresh_interval_ms: int = broker_config("group.consumer.regex.refresh.interval.ms")
    offsets_topic_codec: Codec = broker_config("offsets.topic.compression.codec", _codec)
    offset_commit_timeout_ms: int = broker_config("offsets.commit.timeout.ms")
    offset_metadata_max_bytes: int = broker_config("offset.metadata.max.bytes")
    offsets_retention_ms: int = broker_config("offsets.retention.minutes", _minutes_as_ms)
    offsets_retention_check_interval_ms: int = broker_config("offsets.retention.check.interval.ms")
    initial_rebalance_delay_ms: int = broker_config("group.initial.rebalance.delay.ms")
    group_max_size: int = broker_config("group.max.size")
    min_session_timeout_ms: int = broker_config("group.min.session.timeout.ms")
    max_session_timeout_ms: int = broker_config("group.max.session.timeout.ms")
    _known: tuple[ConfigsImage, dict[str, ConsumerGroupConfig]] = field(
        default_factory=lambda: (ConfigsImage(), {})
    )

    @classmethod
    def of(cls, broker: BrokerLevels, broker_id: int) -> GroupCoordinatorConfig:
        """The configs as a broker has them."""
        return cls(broker=broker, broker_id=broker_id, **values_of(cls, broker.value))

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
        broker = self.broker
        interval = BrokerLevels(
            image.configs.of(BROKER, str(self.broker_id)),
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
