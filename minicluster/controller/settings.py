"""The static configuration of a controller, with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from minicluster.metadata.image.configs import MIN_ISR

UNCLEAN_ELECTION = "unclean.leader.election.enable"

DEFAULTS: Mapping[str, str] = {MIN_ISR: "1", UNCLEAN_ELECTION: "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """One controller's static configuration.

    Units:   times in milliseconds; 0 turns the NoOp record off.
    """

    node_id: int = 0
    cluster_id: str = ""
    static_voters: tuple[int, ...] = ()
    """The voters of the node's own configuration; none where they are in the log (KIP-853)."""
    default_replication_factor: int = 3
    default_num_partitions: int = 1
    static_config: Mapping[str, str] = field(default_factory=dict)
    broker_session_timeout_ms: int = 9_000
    auto_leader_rebalance: bool = True
    leader_imbalance_check_interval_ms: int = 300_000
    unclean_election_check_interval_ms: int = 300_000
    max_idle_interval_ms: int = 500
    elections_per_task_max: int = 1_000
    unstable_feature_versions: bool = False
    """True: levels of features that are for testing only are supported."""
    topic_policy: Callable[[str, int, Mapping[str, str]], str | None] | None = None
    """The reason to refuse a new topic (name, partitions, configs); None allows it."""
    validates_configs: bool = True
    """True: new values are checked by the definitions of Kafka's configs."""
    brokers_with_configs_exist: bool = True
    """True: a broker must be registered before configs of its own may be set."""

    @property
    def static_min_isr(self) -> int:
        """The min.insync.replicas of this node's own configuration."""
        return int(self.static_config.get(MIN_ISR, DEFAULTS[MIN_ISR]))
