"""The quorum's settings, with Kafka's defaults (``controller.quorum.*``)."""

from __future__ import annotations

from dataclasses import dataclass

OBSERVER_SESSION_TIMEOUT_MS = 5 * 60 * 1000
CAUGHT_UP_WITHIN_MS = 60 * 60 * 1000
CHECK_QUORUM_FACTOR = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    """Timeouts and limits of one node; all times in milliseconds.

    Source:  QuorumConfig, RaftClient's KafkaRaftClient; values of Kafka 4.3.
    """

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    election_backoff_max_ms: int = 1000
    append_linger_ms: int = 25
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024
    # The pause of a node that looks for the leader between two fetches. Kafka makes none (0), which
    # costs a lot where a round trip costs nothing.
    leaderless_pause_ms: int = 20
    auto_join: bool = False
    observers_flush: bool = False

    @property
    def check_quorum_timeout_ms(self) -> int:
        """The time that a leader goes on without a majority's fetches."""
        return int(self.fetch_timeout_ms * CHECK_QUORUM_FACTOR)

    @property
    def begin_epoch_interval_ms(self) -> int:
        """The interval in which a leader announces itself to voters that do not fetch."""
        return self.fetch_timeout_ms // 2

    @property
    def update_voter_period_ms(self) -> int:
        """The period after which a follower compares itself with its entry in the voter set."""
        return self.fetch_timeout_ms
