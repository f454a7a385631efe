"""The static configs of a group coordinator.

Source:  GroupCoordinatorConfig.
"""

from __future__ import annotations

from minicluster.configs.effective import BrokerLevels


class GroupCoordinatorConfig:
    """The values by Kafka's names, read once: no config of the coordinator changes at run time."""

    def __init__(self, broker: BrokerLevels) -> None:
        def number(name: str) -> int:
            return int(broker.value(name) or 0)

        self.offset_commit_timeout_ms = number("offsets.commit.timeout.ms")
        self.offset_metadata_max_bytes = number("offset.metadata.max.bytes")
        self.offsets_retention_ms = number("offsets.retention.minutes") * 60_000
        self.offsets_retention_check_interval_ms = number("offsets.retention.check.interval.ms")
        self.initial_rebalance_delay_ms = number("group.initial.rebalance.delay.ms")
        self.group_max_size = number("group.max.size")
        self.min_session_timeout_ms = number("group.min.session.timeout.ms")
        self.max_session_timeout_ms = number("group.max.session.timeout.ms")
