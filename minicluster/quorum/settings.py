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
    # How long a node that looks for the leader rests between two questions. Kafka does not rest
    # at all, which costs a lot where a round trip costs nothing; 0 is what Kafka does.
    leaderless_pause_ms: int = 20
    auto_join: bool = False
    observers_flush: bool = False

    @property
    def check_quorum_timeout_ms(self) -> int:
        """How long a leader goes on without a majority's fetches."""
        return int(self.fetch_timeout_ms * CHECK_QUORUM_FACTOR)

    @property
    def begin_epoch_interval_ms(self) -> int:
        """How often a leader announces itself to voters that do not fetch."""
        return self.fetch_timeout_ms // 2

    @property
    def update_voter_period_ms(self) -> int:
        """How often a follower looks whether the voter set knows it as it is."""
        return self.fetch_timeout_ms
