"""inter.broker.protocol.version: the gate of everything between brokers on ZooKeeper.

Source:  KIP-584; org.apache.kafka.server.common.MetadataVersion (its IBP levels).
"""

from __future__ import annotations

import re

from minicluster.errors import UserError
from minicluster.values import Value

_TEXT = re.compile(r"(\d+)\.(\d+)(?:-IV(\d+))?")
_NEWEST_OF_A_RELEASE = 99  # "3.9" is the last level of 3.9
# 0 as AlterIsr up to 3.1; 1 with KIP-704, 2 with KIP-841, 3 with KIP-903: releases before that.
_ALTER_PARTITION = ((2, 0), (3, 1), (5, 2))


class InterBrokerProtocol(Value, order=True):
    """A level such as 2.7-IV2; a release without IV is its last level."""

    major: int
    minor: int
    level: int = _NEWEST_OF_A_RELEASE

    @classmethod
    def parse(cls, text: str) -> InterBrokerProtocol:
        """Read a level.

        Errors:  UserError if it is none, or outside of 2.6 to 3.9.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise UserError(
                f"inter_broker_protocol: {text!r} is not a level such as 2.7-IV2 or 3.9"
            )
        major, minor, level = match.groups()
        parsed = cls(int(major), int(minor), _NEWEST_OF_A_RELEASE if level is None else int(level))
        if not cls(2, 6, 0) <= parsed <= cls(3, 9):
            raise UserError(f"inter_broker_protocol: {text} is outside of 2.6 to 3.9")
        return parsed

    def __str__(self) -> str:
        level = "" if self.level == _NEWEST_OF_A_RELEASE else f"-IV{self.level}"
        return f"{self.major}.{self.minor}{level}"

    @property
    def features_supported(self) -> bool:
        """Brokers register features, and /feature is enabled (KIP-584)."""
        return self >= InterBrokerProtocol(2, 7, 0)

    @property
    def alter_partition_supported(self) -> bool:
        """Leaders propose another ISR to the controller and write none themselves (KIP-497)."""
        return self >= InterBrokerProtocol(2, 7, 2)

    @property
    def topic_ids_supported(self) -> bool:
        """Topics have ids in ZooKeeper (KIP-516)."""
        return self >= InterBrokerProtocol(2, 8, 0)

    @property
    def allocate_producer_ids_supported(self) -> bool:
        """Brokers get producer ids from the controller and write no blocks themselves (KIP-730)."""
        return self >= InterBrokerProtocol(3, 0, 0)

    @property
    def leader_recovery_supported(self) -> bool:
        """An unclean leader is recovering (KIP-704)."""
        return self >= InterBrokerProtocol(3, 2, 0)

    @property
    def feature_znode_version(self) -> int:
        """1 with a lowest level of each feature, 2 without."""
        return 2 if self >= InterBrokerProtocol(3, 3, 0) else 1

    @property
    def broker_znode_version(self) -> int:
        """5 with features, 4 without."""
        return 5 if self.features_supported else 4

    @property
    def leader_and_isr_version(self) -> int:
        """The version of LeaderAndIsr that the controller sends."""
        if self >= InterBrokerProtocol(3, 4, 0):
            return 7
        if self.leader_recovery_supported:
            return 6
        return 5 if self >= InterBrokerProtocol(2, 8, 1) else 4

    @property
    def update_metadata_version(self) -> int:
        """The version of UpdateMetadata that the controller sends."""
        if self >= InterBrokerProtocol(3, 4, 0):
            return 8
        return 7 if self >= InterBrokerProtocol(2, 8, 1) else 6

    @property
    def stop_replica_version(self) -> int:
        """The version of StopReplica that the controller sends."""
        return 4 if self >= InterBrokerProtocol(3, 4, 0) else 3

    @property
    def release(self) -> str:
        """The release that plays this level: that of its name, and 3.9 for those before 3.0."""
        return f"{self.major}.{self.minor}" if self.major >= 3 else "3.9"

    @property
    def alter_partition_version(self) -> int:
        """The version of AlterPartition that a leader of the level's release sends."""
        if not self.topic_ids_supported:
            return 1
        for first, version in _ALTER_PARTITION:
            if self.major == 3 and self.minor < first:
                return version
        return 3
