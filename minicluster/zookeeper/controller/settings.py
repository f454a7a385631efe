"""The settings of a broker that can be the controller, and the rules of its release."""

from __future__ import annotations

from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.values import Value

LAST_PATCH = 99
"""A release that is named without its patch is the last one of that name."""


class ReleaseRules(Value, kw_only=True):
    """The differences between releases of the controller on ZooKeeper.

    The level of inter.broker.protocol.version is not part of it: a release takes any older one.
    """

    newer_epochs_rejected: bool = True
    """A leader or partition epoch that is newer than the controller's is NOT_CONTROLLER."""
    partition_epoch_checked_first: bool = True
    """An old partition epoch is rejected before the recovery state; else ZooKeeper finds it."""
    ineligible_members_rejected: bool = True
    """A member of the ISR that is not alive, or is shutting down, is rejected (KIP-841)."""
    recovery_state_known: bool = True
    """LeaderRecoveryState is read from AlterPartition (KIP-704)."""
    kraft_epoch_in_controller_znode: bool = True
    """/controller has version 2, with an epoch for the migration to KRaft (KIP-866)."""
    controller_checked_for_configs: bool = True
    """Configs are set in a multi with a check of /controller (KAFKA-16539)."""
    stops_in_same_epoch: bool = True
    """StopReplica of the leader epoch that a broker has stops it; else only of a newer one
    (KAFKA-13972)."""
    marked_topics_rejected: bool = True
    """A topic that waits for its deletion is rejected with an error of its own."""

    wrong_config_is_invalid_config: bool = True
    """A new topic's config without a value, and one that cannot be altered so, is INVALID_CONFIG;
    else INVALID_REQUEST."""
    config_requests_preprocessed: bool = True
    """AlterConfigs is checked as with KRaft first: a resource that comes twice is rejected."""

    appends_again: bool = False
    """A value appended to a list config is added even if it is there (before KAFKA-13827)."""

    @classmethod
    def of(cls, release: str) -> ReleaseRules:
        """The rules of a release such as 3.2.3."""
        major, minor, *patch = (int(number) for number in release.split("."))
        version = (major, minor, *(patch or (LAST_PATCH,)))
        if version >= (3, 3):
            return cls(
                kraft_epoch_in_controller_znode=version >= (3, 4),
                controller_checked_for_configs=version >= (3, 7, 1),
                stops_in_same_epoch=version >= (3, 4, 1),
            )
        return cls(
            newer_epochs_rejected=False,
            partition_epoch_checked_first=False,
            ineligible_members_rejected=False,
            recovery_state_known=version >= (3, 2),
            kraft_epoch_in_controller_znode=False,
            controller_checked_for_configs=False,
            stops_in_same_epoch=False,
            marked_topics_rejected=version >= (3, 2),
            wrong_config_is_invalid_config=False,
            config_requests_preprocessed=version >= (3, 2),
            appends_again=True,
        )


class ZooKeeperControllerSettings(Value, kw_only=True):
    """The configs of a broker that its controller reads."""

    broker_id: int
    protocol: InterBrokerProtocol
    release: ReleaseRules = ReleaseRules()
    unclean_leader_election_enable: bool = False
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_ms: int = 300_000
    leader_imbalance_per_broker_percentage: int = 10
    delete_topic_enable: bool = True
    inter_broker_listener: str = "PLAINTEXT"
    own_writes_recognized: bool = True
    """A write of AlterPartition that took effect unnoticed is not a conflict (a bug of Kafka's)."""
    replica_states_reported: bool = False
    """AlterReplicaState is served, as KIP-589 has it."""
