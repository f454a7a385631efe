"""The replicas that an operator holds back: those of which no promise says when they catch up.

Source:  KIP-73; LEADER_REPLICATION_THROTTLED_REPLICAS_CONFIG and the others of QuotaConfig.
"""

from __future__ import annotations

from minicluster.protocol.records import ConfigRecord
from minicluster.values import Value
from minicluster.verify.histories.cluster import BROKER_RESOURCE, TOPIC_RESOURCE

LEADER, FOLLOWER = "leader", "follower"
_RATES = {f"{side}.replication.throttled.rate": side for side in (LEADER, FOLLOWER)}
_REPLICAS = {f"{side}.replication.throttled.replicas": side for side in (LEADER, FOLLOWER)}


class CommittedThrottle(Value, kw_only=True, eq=False):
    """A config of a throttle is set or removed.

    Shapes:  topic: of the throttled replicas, None for a rate. broker: of the rate, by its name;
             empty for all brokers. entries: what the config names, empty where it is removed.
    """

    position: int
    operation: int
    side: str
    topic: str | None
    broker: str
    entries: frozenset[str]

    @classmethod
    def of(cls, record: ConfigRecord, position: int, operation: int) -> CommittedThrottle | None:
        """The throttle that a record sets; None for any other config."""
        sides = {TOPIC_RESOURCE: _REPLICAS, BROKER_RESOURCE: _RATES}.get(record.resource_type, {})
        side = sides.get(record.name)
        if side is None:
            return None
        is_of_topic = record.resource_type == TOPIC_RESOURCE
        texts = (text.strip() for text in (record.value or "").split(","))
        return cls(
            position=position,
            operation=operation,
            side=side,
            topic=record.resource_name if is_of_topic else None,
            broker="" if is_of_topic else record.resource_name,
            entries=frozenset(text for text in texts if text),
        )


class Throttles:
    """The throttles in effect: bounded by the brokers and topics that have one."""

    def __init__(self) -> None:
        self._replicas: dict[tuple[str, str], frozenset[str]] = {}  # by side and topic
        self._with_rate: set[tuple[str, str]] = set()  # side and broker

    def take(self, throttle: CommittedThrottle) -> None:
        """Apply a record."""
        if throttle.topic is not None:
            self._replicas[throttle.side, throttle.topic] = throttle.entries
        elif throttle.entries:
            self._with_rate.add((throttle.side, throttle.broker))
        else:
            self._with_rate.discard((throttle.side, throttle.broker))

    def forget(self, topic: str) -> None:
        """A topic is deleted, with its configs."""
        for side in (LEADER, FOLLOWER):
            self._replicas.pop((side, topic), None)

    def hold_back(self, topic: str, partition: int, leader: int, follower: int) -> bool:
        """The leader sends a follower outside of the ISR no more than a rate, or it takes no
        more."""
        return self._throttles(LEADER, topic, partition, leader) or self._throttles(
            FOLLOWER, topic, partition, follower
        )

    def _throttles(self, side: str, topic: str, partition: int, broker: int) -> bool:
        entries = self._replicas.get((side, topic), frozenset())
        if "*" not in entries and f"{partition}:{broker}" not in entries:
            return False
        return (side, str(broker)) in self._with_rate or (side, "") in self._with_rate
