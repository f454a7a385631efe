"""The static configuration of a controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from minicluster.configs.definitions import broker_configs
from minicluster.configs.views import broker_config
from minicluster.metadata.image.configs import MIN_ISR
from minicluster.values import dataclass

UNCLEAN_ELECTION = "unclean.leader.election.enable"

DEFAULTS: Mapping[str, str] = {
    name: broker_configs().keys[name].default or "" for name in (MIN_ISR, UNCLEAN_ELECTION)
}


def _seconds_as_ms(text: str | None) -> int:
    return 1_000 * int(text or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """One controller's static configuration.

    Units:   times in milliseconds; 0 turns the NoOp record off.
    """

    node_id: int = 0
    cluster_id: str = ""
    static_voters: tuple[int, ...] = ()
    """The voters of the node's own configuration; none where they are in the log (KIP-853)."""
    default_replication_factor: int = broker_config("default.replication.factor")
    default_num_partitions: int = broker_config("num.partitions")
    static_config: Mapping[str, str] = field(default_factory=dict)
    broker_heartbeat_interval_ms: int = broker_config("broker.heartbeat.interval.ms")
    broker_session_timeout_ms: int = broker_config("broker.session.timeout.ms")
    auto_leader_rebalance: bool = broker_config("auto.leader.rebalance.enable")
    leader_imbalance_check_interval_ms: int = broker_config(
        "leader.imbalance.check.interval.seconds", _seconds_as_ms
    )
    unclean_election_check_interval_ms: int = broker_config("unclean.leader.election.interval.ms")
    token_lifetime_max_ms: int = broker_config("delegation.token.max.lifetime.ms")
    token_expiry_ms: int = broker_config("delegation.token.expiry.time.ms")
    token_check_interval_ms: int = broker_config("delegation.token.expiry.check.interval.ms")
    epoch_ms: int = 0
    """The time of day at the zero of the clock; clients compare it with the times of tokens."""
    max_idle_interval_ms: int = broker_config("metadata.max.idle.interval.ms")
    elections_per_task_max: int = 1_000
    unstable_feature_versions: bool = broker_config("unstable.feature.versions.enable")
    """True: levels of features that are for testing only are supported."""
    topic_policy: Callable[[str, int, Mapping[str, str]], str | None] | None = None
    """The reason to reject a new topic (name, partitions, configs); None allows it."""
    validates_configs: bool = True
    """True: new values are checked by the definitions of Kafka's configs."""
    brokers_with_configs_exist: bool = True
    """True: a broker must be registered before configs of its own may be set."""

    @property
    def static_min_isr(self) -> int:
        """The min.insync.replicas of this node's own configuration."""
        return int(self.static_config.get(MIN_ISR, DEFAULTS[MIN_ISR]))
