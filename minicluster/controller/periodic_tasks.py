"""The periodic tasks of the active controller, and their timers.

| task | does |
|---|---|
| maybeFenceStaleBroker | fences a broker whose session has expired |
| electPreferred | gives leadership back to preferred replicas |
| electUnclean | elects where no clean candidate is left and the topic allows it |
| expireDelegationTokens | removes tokens that have expired, where there are any (KIP-48) |
| writeNoOpRecord | advances the end of the log (KIP-835) |
| processReplicaStates, decideIsrProposals | what the texts of KIP-589 and KIP-497 do later |

In 4.x each task has a fixed period from activation on; up to 3.9 a task is scheduled after a write
that gives it something to do.

Source:  PeriodicTaskControlManager; ReplicationControlManager.maybeFenceStaleBroker,
         maybeBalancePartitionLeaders, maybeElectUncleanLeaders; QuorumController.
"""

from __future__ import annotations

from collections.abc import Callable

from minicluster.controller.broker_changes import Records, broker_fenced
from minicluster.controller.decision import Decision
from minicluster.controller.leader_election import Election
from minicluster.controller.operations.delegation_tokens import sweep_expired_tokens
from minicluster.controller.operations.elect_leaders import (
    ElectionType,
    elect_leader,
    election_record,
)
from minicluster.controller.operations.kip_texts.alter_isr import decide_isr_proposal
from minicluster.controller.operations.kip_texts.alter_replica_state import process_replica_state
from minicluster.controller.settings import ControllerSettings
from minicluster.controller.state.broker_heartbeat_manager import (
    BrokerIdAndEpoch,
    DropSession,
    ForgetBroker,
    SoftChange,
)
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.effects import CancelTimer, Effect, SetTimer
from minicluster.metadata.image.cluster import BrokerRegistration
from minicluster.planting import step
from minicluster.protocol.records import NoOpRecord, VersionedRecord
from minicluster.rules import Rules
from minicluster.security.delegation_tokens import secret_key_of

FENCE = "maybeFenceStaleBroker"
BALANCE = "electPreferred"
ELECT_UNCLEAN = "electUnclean"
NO_OP = "writeNoOpRecord"
EXPIRE_TOKENS = "expireDelegationTokens"
REPLICA_STATES = "processReplicaStates"
ISR_PROPOSALS = "decideIsrProposals"

_ALWAYS_PERIODIC = (NO_OP, EXPIRE_TOKENS)
AGAIN_MS = 10
FAILED_MS = 300_000
FENCE_CHECKS_PER_SESSION = 8


def maybe_fence_stale_broker(
    state: ClusterState, now_ms: int, *, first: BrokerIdAndEpoch | None = None
) -> Decision:
    """Fence one broker whose session has run out; the response is True to run again at once.

    One at a time: of two brokers that expire together, the first one's leaderships would go to the
    second.

    Shapes:  first names the session to take when several have run out; else the oldest contact.
    """
    heartbeats = state.active_heartbeats()
    if not state.rules.sessions_by_epoch:
        stale = heartbeats.stale_broker(now_ms) if first is None else first.broker_id
        broker = None if stale is None else state.image.cluster.broker(stale)
        records = [] if broker is None else list(broker_fenced(state, broker))
        return Decision(records=tuple(records), response=bool(records))
    expired = heartbeats.expired_sessions(now_ms)
    if not expired:
        return Decision(response=False)
    session = expired[0] if first is None else first
    soft: list[SoftChange] = [DropSession(session)]
    broker = state.image.cluster.broker(session.broker_id)
    records = []
    if broker is None:
        soft.append(ForgetBroker(session.broker_id))
    else:
        records = list(fence_after_session(state, broker, session))
    return Decision(records=tuple(records), response=True, soft=tuple(soft))


@step
def fence_after_session(
    state: ClusterState, broker: BrokerRegistration, session: BrokerIdAndEpoch
) -> Records:
    """Fence the broker of a session that has run out, unless a newer incarnation has its id."""
    # The session of the process before. Fencing the present one by it would take a live broker out.
    if broker.epoch != session.epoch:
        return
    if broker.fenced and not state.rules.fenced_broker_is_fenced_again:
        return
    yield from broker_fenced(state, broker)


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


_NO_OP = (VersionedRecord(NoOpRecord(), 0),)  # the same one, since a day's log has 172,800


def write_no_op(state: ClusterState, now_ms: int) -> Decision:
    """A record that changes nothing, so that the end of the log advances (KIP-835)."""
    if not state.gates.metadata_version.no_op_record_supported:
        return Decision(response=False)
    return Decision(records=_NO_OP, response=False)


_RUN: dict[str, Callable[[ClusterState, int], Decision]] = {
    FENCE: maybe_fence_stale_broker,
    BALANCE: maybe_balance_leaders,
    ELECT_UNCLEAN: maybe_elect_unclean_leaders,
    NO_OP: write_no_op,
    EXPIRE_TOKENS: sweep_expired_tokens,
    REPLICA_STATES: process_replica_state,
    ISR_PROPOSALS: decide_isr_proposal,
}


class TaskTimers:
    """The timers of one controller's background tasks."""

    def __init__(self, rules: Rules, settings: ControllerSettings) -> None:
        self._rules = rules
        self._periods_ms = {
            FENCE: max(1, settings.broker_session_timeout_ms // FENCE_CHECKS_PER_SESSION),
            BALANCE: settings.leader_imbalance_check_interval_ms,
            ELECT_UNCLEAN: settings.unclean_election_check_interval_ms,
            NO_OP: settings.max_idle_interval_ms,
            EXPIRE_TOKENS: settings.token_check_interval_ms,
        }
        if not settings.auto_leader_rebalance:
            del self._periods_ms[BALANCE]
        if not settings.max_idle_interval_ms:
            del self._periods_ms[NO_OP]
        if secret_key_of(settings.static_config) is None:
            del self._periods_ms[EXPIRE_TOKENS]
        self._due_ms: dict[str, int] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._periods_ms or name in (REPLICA_STATES, ISR_PROPOSALS)

    def start(self, state: ClusterState, now_ms: int) -> list[Effect]:
        """The timers of a controller that has just become active."""
        self._due_ms.clear()
        if self._rules.tasks_are_periodic:
            return [self._set(name, now_ms + period) for name, period in self._periods_ms.items()]
        effects: list[Effect] = []
        for name in _ALWAYS_PERIODIC:
            if name in self:
                effects.append(self._set(name, now_ms + self._periods_ms[name]))
        return effects + self.after_write(state, now_ms)

    def stop(self) -> list[Effect]:
        """Cancel all timers."""
        names = list(self._due_ms)
        self._due_ms.clear()
        return [CancelTimer(name) for name in names]

    def after_write(self, state: ClusterState, now_ms: int) -> list[Effect]:
        """Set the timers of tasks that have something to do: of requests, and in 3.9 of all."""
        effects: list[Effect] = []
        for name, waits in (
            (REPLICA_STATES, state.offline_replicas.next_report() is not None),
            (ISR_PROPOSALS, state.pending_alter_isr.next_proposal() is not None),
        ):
            if waits and name not in self._due_ms:
                effects.append(self._set(name, now_ms))
        if self._rules.tasks_are_periodic:
            return effects
        check_ms = state.active_heartbeats().next_check_ms()
        if check_ms is not None and self._due_ms.get(FENCE) != check_ms + 1:
            effects.append(self._set(FENCE, check_ms + 1))
        for name, wanted in (
            (BALANCE, bool(state.indexes.imbalanced)),
            (ELECT_UNCLEAN, bool(state.indexes.leaderless)),
        ):
            if wanted and name in self and name not in self._due_ms:
                effects.append(self._set(name, now_ms + self._periods_ms[name]))
        return effects

    def run(self, name: str, state: ClusterState, now_ms: int) -> Decision:
        """Run a task; the response of its decision is True when there is more to do."""
        self._due_ms.pop(name, None)
        return _RUN[name](state, now_ms)

    def done(self, name: str, state: ClusterState, again: bool, now_ms: int) -> list[Effect]:
        """Set the timer of a task that has run."""
        effects: list[Effect] = []
        if again:
            effects.append(self._set(name, now_ms + AGAIN_MS))
        elif name in self._periods_ms and (
            self._rules.tasks_are_periodic or name in _ALWAYS_PERIODIC
        ):
            effects.append(self._set(name, now_ms + self._periods_ms[name]))
        return effects + self.after_write(state, now_ms)

    def failed(self, name: str, now_ms: int) -> list[Effect]:
        """Set the timer of a task that has failed."""
        return [self._set(name, now_ms + FAILED_MS)]

    def _set(self, name: str, at_ms: int) -> SetTimer:
        self._due_ms[name] = at_ms
        return SetTimer(name, at_ms)
