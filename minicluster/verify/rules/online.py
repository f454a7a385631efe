"""The rules judged while a cluster runs: over its metadata log, quorum, replicas and clients."""

from __future__ import annotations

from minicluster.verify.rules.log import (
    active_brokers,
    batches,
    broker_registrations,
    eligible_leaders,
    leader_recovery,
    log_directories,
    partitions,
    snapshots,
    topics,
    transactions,
)
from minicluster.verify.rules.model import Rule
from minicluster.verify.rules.replicas import replica_events
from minicluster.verify.rules.trace import broker_requests, client_records, producers, quorum

LOG_RULES: tuple[Rule, ...] = (
    *partitions.RULES,
    *leader_recovery.RULES,
    *eligible_leaders.RULES,
    *broker_registrations.RULES,
    *active_brokers.RULES,
    *log_directories.RULES,
    *topics.RULES,
    *batches.RULES,
    *transactions.RULES,
    *snapshots.RULES,
)
_BY_ID = {
    rule.id: rule
    for rule in (
        *LOG_RULES,
        *quorum.RULES,
        *replica_events.RULES,
        *broker_requests.RULES,
        *client_records.RULES,
        *producers.RULES,
    )
}


def online_rule(rule_id: str) -> Rule:
    """The rule of an id."""
    return _BY_ID[rule_id]
