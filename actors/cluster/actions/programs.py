"""The actions on processes, for users' programs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from minicluster.actors.cluster.actions.performing import ms
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.scenario.actions.arguments import Duration

if TYPE_CHECKING:
    from minicluster.actors.programs.program import Incarnation, Program


def kill(cluster: ClusterRoles, program: Program) -> None:
    """End its process at once."""
    if not program.is_running:
        cluster.note("kill", [program.node], "note", "it is down already")
        return
    program.kill()
    cluster.note("kill", [program.node], "start")


def restart(cluster: ClusterRoles, program: Program) -> None:
    """Start it again; one that runs is killed first."""
    if program.is_running:
        kill(cluster, program)
    cluster.note("restart", [program.node], "start")
    assert cluster.programs is not None
    cluster.programs.start(program)


def pause(cluster: ClusterRoles, program: Program, lasting: Duration | None) -> None:
    """Stop its steps."""
    if not program.is_running or program.current.is_paused:
        why = "it is paused already" if program.is_running else "it does not run"
        cluster.note("pause", [program.node], "note", why)
        return
    program.pause()
    cluster.note("pause", [program.node], "start")
    if lasting is not None:
        until_ms = cluster.now_ms + ms(lasting)
        cluster.rt.schedule(until_ms, partial(_resume_later, cluster, program), program.current)


def _resume_later(cluster: ClusterRoles, program: Program, paused: Incarnation) -> None:
    if program.current is paused and paused.is_alive and paused.is_paused:
        resume(cluster, program)


def resume(cluster: ClusterRoles, program: Program) -> None:
    """Let its steps continue."""
    if not program.is_running or not program.current.is_paused:
        cluster.note("resume", [program.node], "note", "it is not paused")
        return
    program.resume()
    cluster.note("resume", [program.node], "stop")
