"""The quorum's settings (``controller.quorum.*``)."""

from __future__ import annotations

from minicluster.configs.views import broker_config
from minicluster.values import dataclass

OBSERVER_SESSION_TIMEOUT_MS = 5 * 60 * 1000
CAUGHT_UP_WITHIN_MS = 60 * 60 * 1000
CHECK_QUORUM_FACTOR = 1.5
FETCH_MAX_WAIT_MS = 500  # KafkaRaftClient.MAX_FETCH_WAIT_MS, which no config sets


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    """Timeouts and limits of one node; all times in milliseconds.

    Source:  QuorumConfig, RaftClient's KafkaRaftClient; values of Kafka 4.3.
    """

    election_timeout_ms: int = broker_config("controller.quorum.election.timeout.ms")
    fetch_timeout_ms: int = broker_config("controller.quorum.fetch.timeout.ms")
    request_timeout_ms: int = broker_config("controller.quorum.request.timeout.ms")
    retry_backoff_ms: int = broker_config("controller.quorum.retry.backoff.ms")
    election_backoff_max_ms: int = broker_config("controller.quorum.election.backoff.max.ms")
    append_linger_ms: int = broker_config("controller.quorum.append.linger.ms")
    fetch_max_wait_ms: int = FETCH_MAX_WAIT_MS
    fetch_max_bytes: int = broker_config("controller.quorum.fetch.max.bytes")
    fetch_snapshot_max_bytes: int = broker_config("controller.quorum.fetch.snapshot.max.bytes")
    # The pause of a node that looks for the leader between two fetches. Kafka makes none (0), which
    # costs a lot where a round trip costs nothing.
    leaderless_pause_ms: int = 20
    auto_join: bool = broker_config("controller.quorum.auto.join.enable")
    observers_flush: bool = False

    @property
    def check_quorum_timeout_ms(self) -> int:
        """How long a leader stays leader without fetches of a majority."""
        return int(self.fetch_timeout_ms * CHECK_QUORUM_FACTOR)

    @property
    def begin_epoch_interval_ms(self) -> int:
        """The interval in which a leader announces itself to voters that do not fetch."""
        return self.fetch_timeout_ms // 2

    @property
    def update_voter_period_ms(self) -> int:
        """The period after which a follower compares itself with its entry in the voter set."""
        return self.fetch_timeout_ms
