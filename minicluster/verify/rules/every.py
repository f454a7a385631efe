"""Every rule, each declared once, with the views that its checks are computed on."""

from __future__ import annotations

from minicluster.verify.rules.log import (
    active_brokers,
    batches,
    broker_registrations,
    log_directories,
    partitions,
    snapshots,
    topics,
    transactions,
)
from minicluster.verify.rules.model import Rule, View
from minicluster.verify.rules.online import LOG_RULES
from minicluster.verify.rules.replicas import held_logs, replica_events, replica_logs
from minicluster.verify.rules.time import bounds
from minicluster.verify.rules.trace import (
    alter_partition,
    applied_metadata,
    broker_requests,
    client_records,
    controller_requests,
    groups,
    header,
    histories,
    leader_isrs,
    producers,
    publishing,
    quorum,
    transforms,
)
from minicluster.verify.rules.znodes import others as znode_others
from minicluster.verify.rules.znodes import states as znode_states

_LOG_VIEWS: tuple[View, ...] = (
    *partitions.VIEWS,
    *broker_registrations.VIEWS,
    *active_brokers.VIEWS,
    *log_directories.VIEWS,
    *topics.VIEWS,
    *batches.VIEWS,
    *transactions.VIEWS,
    *snapshots.VIEWS,
)
_TRACE_VIEWS: tuple[View, ...] = (
    *controller_requests.VIEWS,
    *alter_partition.VIEWS,
    *leader_isrs.VIEWS,
    *replica_events.VIEWS,
    *applied_metadata.VIEWS,
    *replica_logs.VIEWS,
    *held_logs.VIEWS,
    *broker_requests.VIEWS,
    *client_records.VIEWS,
    *groups.VIEWS,
    *producers.VIEWS,
    *histories.VIEWS,
    *transforms.VIEWS,
    *publishing.VIEWS,
    *header.VIEWS,
    *quorum.VIEWS,
    *bounds.VIEWS,
)
_ZNODE_VIEWS: tuple[View, ...] = (*znode_states.VIEWS, *znode_others.VIEWS)
VIEWS = {view.name: view for view in (*_LOG_VIEWS, *_TRACE_VIEWS, *_ZNODE_VIEWS)}
LOG_VIEWS = frozenset(view.name for view in _LOG_VIEWS)
ZNODE_VIEWS = frozenset(view.name for view in _ZNODE_VIEWS)
ZNODE_RULES = (*znode_states.RULES, *znode_others.RULES)

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *LOG_RULES,
            *controller_requests.RULES,
            *alter_partition.RULES,
            *leader_isrs.RULES,
            *replica_events.RULES,
            *applied_metadata.RULES,
            *replica_logs.RULES,
            *broker_requests.RULES,
            *client_records.RULES,
            *groups.RULES,
            *producers.RULES,
            *histories.RULES,
            *transforms.RULES,
            *publishing.RULES,
            *header.RULES,
            *quorum.RULES,
            *bounds.RULES,
            *ZNODE_RULES,
        ),
        key=lambda rule: rule.id,
    )
)
# Rules over traces that need no metadata log. Those that excuse losses by unclean elections do.
ALSO_ON_ZOOKEEPER = frozenset(
    {
        *("B2", "B7", "B8", "B10", "E27", "E42", "F8", "F14", "F15", "F16", "F17", "F18", "X1"),
    }
)
BY_ID = {rule.id: rule for rule in RULES}
