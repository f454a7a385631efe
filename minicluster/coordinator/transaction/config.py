"""The static configs of a transaction coordinator.

Source:  TransactionStateManagerConfig, TransactionLogConfig.
"""

from __future__ import annotations

from minicluster.configs.effective import BrokerLevels


class TransactionCoordinatorConfig:
    """The values by Kafka's names, read once: no config of the coordinator changes at run time."""

    def __init__(self, broker: BrokerLevels) -> None:
        def number(name: str) -> int:
            return int(broker.value(name) or 0)

        self.max_timeout_ms = number("transaction.max.timeout.ms")
        self.transactional_id_expiration_ms = number("transactional.id.expiration.ms")
        self.abort_timed_out_interval_ms = number(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        )
        self.remove_expired_interval_ms = number(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        )
        self.two_phase_commit_enabled = (
            broker.value("transaction.two.phase.commit.enable") == "true"
        )
        self.request_timeout_ms = number("request.timeout.ms")
        self.broker = broker
