"""The timers of the periodic tasks of the active controller.

In 4.x each task has a fixed period from activation on; up to 3.9 a task is scheduled after a write
that gives it something to do.

Source:  PeriodicTaskControlManager; QuorumController (maybeScheduleNext...).
"""

from __future__ import annotations

from collections.abc import Callable

from minicluster.controller.deciding.decision import Decision
from minicluster.controller.operations.kip_texts.alter_isr import decide_isr_proposal
from minicluster.controller.operations.kip_texts.alter_replica_state import process_replica_state
from minicluster.controller.periodic_tasks import (
    maybe_balance_leaders,
    maybe_elect_unclean_leaders,
    maybe_fence_stale_broker,
    write_no_op,
)
from minicluster.controller.settings import ControllerSettings
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.effects import CancelTimer, Effect, SetTimer
from minicluster.rules import Rules

FENCE = "maybeFenceStaleBroker"
BALANCE = "electPreferred"
ELECT_UNCLEAN = "electUnclean"
NO_OP = "writeNoOpRecord"
REPLICA_STATES = "processReplicaStates"
ISR_PROPOSALS = "decideIsrProposals"

AGAIN_MS = 10
FAILED_MS = 300_000
FENCE_CHECKS_PER_SESSION = 8

_RUN: dict[str, Callable[[ClusterState, int], Decision]] = {
    FENCE: maybe_fence_stale_broker,
    BALANCE: maybe_balance_leaders,
    ELECT_UNCLEAN: maybe_elect_unclean_leaders,
    NO_OP: write_no_op,
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
        }
        if not settings.auto_leader_rebalance:
            del self._periods_ms[BALANCE]
        if not settings.max_idle_interval_ms:
            del self._periods_ms[NO_OP]
        self._due_ms: dict[str, int] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._periods_ms or name in (REPLICA_STATES, ISR_PROPOSALS)

    def start(self, state: ClusterState, now_ms: int) -> list[Effect]:
        """The timers of a controller that has just become active."""
        self._due_ms.clear()
        if self._rules.tasks_are_periodic:
            return [self._set(name, now_ms + period) for name, period in self._periods_ms.items()]
        effects: list[Effect] = []
        if NO_OP in self:
            effects.append(self._set(NO_OP, now_ms + self._periods_ms[NO_OP]))
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
        elif name in self._periods_ms and (self._rules.tasks_are_periodic or name == NO_OP):
            effects.append(self._set(name, now_ms + self._periods_ms[name]))
        return effects + self.after_write(state, now_ms)

    def failed(self, name: str, now_ms: int) -> list[Effect]:
        """Set the timer of a task that has failed."""
        return [self._set(name, now_ms + FAILED_MS)]

    def _set(self, name: str, at_ms: int) -> SetTimer:
        self._due_ms[name] = at_ms
        return SetTimer(name, at_ms)
