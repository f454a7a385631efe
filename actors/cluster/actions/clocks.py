"""The actions on the clocks of nodes."""

from __future__ import annotations

from functools import partial

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.nodes.clock import USUAL_RATE
from minicluster.actors.nodes.shell import ClockChanged, Shell
from minicluster.durations import format_duration
from minicluster.scenario.actions import nodes as declared


@performs(declared.ClockSkew)
def clock_skew(cluster: ClusterRoles, do: declared.ClockSkew) -> None:
    rate = round((1 + do.drift) * USUAL_RATE)
    for node_id in cluster.own_ids(do.node):
        _skew(cluster, node_id, ms(do.offset), rate)
        if do.lasting is not None:
            until_ms = cluster.now_ms + ms(do.lasting)
            cluster.rt.schedule(until_ms, partial(_ends, cluster), node_id)


def _skew(cluster: ClusterRoles, node_id: int, ahead_ms: int, rate: int) -> None:
    clock = cluster.clocks[node_id]
    drifted = clock.drifts
    clock.skew(ahead_ms, rate)
    process = cluster.processes.get(node_id)
    for name in () if process is None else process.actors:
        actor = cluster.rt.actor(name)
        if isinstance(actor, Shell):
            actor.deliver(ClockChanged())
    ahead = f"{format_duration(ahead_ms)} ahead" if ahead_ms else ""
    speed = f"{rate / USUAL_RATE:g} times as fast" if clock.drifts else ""
    changes = ", ".join(filter(None, [ahead, speed]))
    if changes:
        cluster.note("clock_skew", [node_id], "start", changes)
    if not clock.drifts and (changes or drifted):  # what it is ahead disturbs nobody from here on
        cluster.note("clock_skew", [node_id], "stop")


def _ends(cluster: ClusterRoles, node_id: int) -> None:
    if cluster.clocks[node_id].drifts:
        _skew(cluster, node_id, 0, USUAL_RATE)


def repair_clocks(cluster: ClusterRoles) -> None:
    """Let every clock go as fast as the cluster's; what it is ahead or behind stays."""
    for node_id in cluster.node_ids:
        _ends(cluster, node_id)
