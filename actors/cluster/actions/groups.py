"""Waits for groups, whose states a broker describes as to Kafka's admin client."""

from __future__ import annotations

from typing import Any, NamedTuple

from minicluster.actors.cluster.actions.performing import ms
from minicluster.actors.cluster.actions.requests import send
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.durations import format_duration
from minicluster.errors import NoResponse, UserError, WaitTimeout, counted, instead
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.api import has_api
from minicluster.scenario.actions.arguments import Duration, Milliseconds, read_duration
from minicluster.scenario.checks.limits import MEMBERS_MAX, shown, whole_number

STATES = (
    *("Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance"),
    *("Assigning", "Reconciling"),
)
LOOK_EVERY_MS = 100
LOOK_WITHIN = Milliseconds(5_000)
_GROUP = 0  # key_type of FindCoordinator
_RESPONDS = (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)


class Group(NamedTuple):
    """A coordinator's description of a group."""

    state: str
    members: int

    def __str__(self) -> str:
        return f"is {self.state} with {counted(self.members, 'member')}"


def wait_for_group(
    cluster: ClusterRoles,
    group: str,
    *,
    state: str = "Stable",
    members: int | None = None,
    within: Duration = "60s",
) -> None:
    """Let the cluster run until a group is in a state, with so many members where that is given.

    Arguments: group: its group.id, of either protocol. state: as Kafka's tools show it. members:
             how many; None: any number.
    Errors:  WaitTimeout, which says what was seen last; UserError for a state that no group has.
    Source:  DescribeGroups, ConsumerGroupDescribe.
    """
    cluster.check_running("wait_for_group")
    if not isinstance(group, str):
        raise UserError(f"wait_for_group: {shown(group)} is not a group.id")
    if state not in STATES:
        raise UserError(f"wait_for_group: state: {shown(state)}; {instead(state, STATES)}")
    if members is not None:
        whole_number(members, "wait_for_group: members", 0, MEMBERS_MAX)
    within_ms = ms(read_duration(within, "wait_for_group: within"))
    until_ms = cluster.now_ms + within_ms
    while True:
        seen = _described(cluster, group)
        if seen is not None and seen.state == state and members in (None, seen.members):
            return
        if cluster.now_ms >= until_ms:
            said = "no coordinator describes it" if seen is None else f"it {seen}"
            wanted = state if members is None else f"{state} with {counted(members, 'member')}"
            raise WaitTimeout(
                f"timed out after {format_duration(within_ms)} waiting for group {group} to be "
                f"{wanted}: {said} (seed {cluster.seed})"
            )
        cluster.run_until(lambda: False, min(LOOK_EVERY_MS, until_ms - cluster.now_ms))


def _described(cluster: ClusterRoles, group: str) -> Group | None:
    """The group, as its coordinator describes it; None while no coordinator does."""
    task = f"describe group {group}"
    try:
        wanted = m.FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=(group,))
        found = send(cluster, task, wanted, LOOK_WITHIN)
        [coordinator] = found.coordinators
        if coordinator.error_code != ErrorCode.NONE:
            return None
        to = coordinator.node_id
        requests: list[Any] = [m.DescribeGroupsRequest(groups=(group,))]
        if has_api(cluster.rules, m.ConsumerGroupDescribeRequest):
            requests.insert(0, m.ConsumerGroupDescribeRequest(group_ids=(group,)))
        for request in requests:
            [described] = send(cluster, task, request, LOOK_WITHIN, to=to).groups
            if described.error_code == ErrorCode.NONE:
                return Group(described.group_state, len(described.members))
    except NoResponse:
        return None
    return Group("Dead", 0) if described.error_code in _RESPONDS else None
