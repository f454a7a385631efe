"""The static configs of a transaction coordinator.

Source:  TransactionStateManagerConfig, TransactionLogConfig.
"""

from __future__ import annotations

from minicluster.configs.effective import BrokerLevels
from minicluster.configs.views import broker_config, values_of
from minicluster.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCoordinatorConfig:
    """The configs of a transaction coordinator, read once: none of them changes at run time."""

    broker: BrokerLevels
    max_timeout_ms: int = broker_config("transaction.max.timeout.ms")
    transactional_id_expiration_ms: int = broker_config("transactional.id.expiration.ms")
    abort_timed_out_interval_ms: int = broker_config(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    )
    remove_expired_interval_ms: int = broker_config(
        "transaction.remove.expired.transaction.cleanup.interval.ms"
    )
    two_phase_commit_enabled: bool = broker_config("transaction.two.phase.commit.enable")
    request_timeout_ms: int = broker_config("request.timeout.ms")

    @classmethod
    def of(cls, broker: BrokerLevels) -> TransactionCoordinatorConfig:
        """The configs as a broker has them."""
        return cls(broker=broker, **values_of(cls, broker.value))
