"""The periodic tasks of the active controller: fence, balance, elect uncleanly, write no-ops.

Source:  PeriodicTaskControlManager; ReplicationControlManager.maybeFenceStaleBroker,
         maybeBalancePartitionLeaders, maybeElectUncleanLeaders; QuorumController.
"""

from __future__ import annotations

from minicluster.controller.deciding.broker_changes import broker_fenced
from minicluster.controller.deciding.decision import Decision
from minicluster.controller.deciding.elections import ElectionType, elect_leader, election_record
from minicluster.controller.deciding.leader_election import Election
from minicluster.controller.state.broker_heartbeat_manager import (
    BrokerIdAndEpoch,
    DropSession,
    ForgetBroker,
    SoftChange,
)
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.cluster import BrokerRegistration
from minicluster.planting import step
from minicluster.protocol.records import NoOpRecord, VersionedRecord


def maybe_fence_stale_broker(
    state: ClusterState, now_ms: int, *, first: BrokerIdAndEpoch | None = None
) -> Decision:
    """Fence one broker whose session has run out; the response is True to run again at once.

    One at a time, so that each decision has the changes of the one before.
    Shapes:  first names the session to take when several have run out; else the oldest contact.
    """
    heartbeats = state.active_heartbeats()
    if not state.rules.sessions_by_epoch:
        stale = heartbeats.stale_broker(now_ms) if first is None else first.broker_id
        broker = None if stale is None else state.image.cluster.broker(stale)
        records = () if broker is None else tuple(broker_fenced(state, broker))
        return Decision(records=records, response=bool(records))
    expired = heartbeats.expired_sessions(now_ms)
    if not expired:
        return Decision(response=False)
    session = expired[0] if first is None else first
    soft: list[SoftChange] = [DropSession(session)]
    broker = state.image.cluster.broker(session.broker_id)
    records = ()
    if broker is None:
        soft.append(ForgetBroker(session.broker_id))
    else:
        records = tuple(fence_after_session(state, broker, session))
    return Decision(records=records, response=True, soft=tuple(soft))


@step
def fence_after_session(
    state: ClusterState, broker: BrokerRegistration, session: BrokerIdAndEpoch
) -> list[VersionedRecord]:
    """Fence the broker of a session that has run out, unless a newer incarnation has its id."""
    if broker.epoch != session.epoch:
        return []
    if broker.fenced and not state.rules.fenced_broker_is_fenced_again:
        return []
    return broker_fenced(state, broker)


def maybe_balance_leaders(state: ClusterState, now_ms: int) -> Decision:
    """Elect preferred replicas; the response is True when there is more to do."""
    limit = state.settings.elections_per_task_max
    records: list[VersionedRecord] = []
    for topic_id, index in state.indexes.imbalanced:
        if len(records) >= limit:
            break
        topic = state.image.topics.by_id[topic_id]
        partition = topic.partitions[index]
        record = election_record(state, topic, index, partition, Election.PREFERRED)
        if record is not None:
            records.append(record)
    return Decision(records=tuple(records), response=len(records) >= limit)


def maybe_elect_unclean_leaders(state: ClusterState, now_ms: int) -> Decision:
    """Elect leaders where no clean candidate is left; the response is True when there is more.

    Only topics with unclean.leader.election.enable: their administrator has chosen a leader that
    may lack committed records over none (KIP-106). The new leader recovers first (KIP-704).
    """
    limit = state.settings.elections_per_task_max
    records: list[VersionedRecord] = []
    for topic_id, index in state.indexes.leaderless:
        if len(records) >= limit:
            break
        topic = state.image.topics.by_id[topic_id]
        if state.unclean_election_allowed(topic.name):
            partition = topic.partitions[index]
            elect_leader(state, topic, index, partition, ElectionType.UNCLEAN, records)
    return Decision(records=tuple(records), response=len(records) >= limit)


def write_no_op(state: ClusterState, now_ms: int) -> Decision:
    """A record that changes nothing, so that the end of the log moves on (KIP-835)."""
    if not state.gates.metadata_version.no_op_record_supported:
        return Decision(response=False)
    return Decision(records=(VersionedRecord(NoOpRecord(), 0),), response=False)
