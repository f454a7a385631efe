"""A cluster that lives: it starts, runs, is waited for, and stops.

``MiniCluster`` is its face for tests; scenarios, campaigns and ``serve`` use it itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minicluster.actors.cluster.apps import program_servers
from minicluster.actors.cluster.client import Client, Directory
from minicluster.actors.cluster.conditions import describe, place_of, state_lines
from minicluster.actors.cluster.incarnations import start_process
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.recording.live_checks import (
    LogChecks,
    ZnodeChecks,
)
from minicluster.actors.recording.metadata_sink import CommitFollower, MetadataSink
from minicluster.actors.recording.problems import warn_of
from minicluster.actors.runtime import tripwire
from minicluster.actors.runtime.paced import PacedRuntime
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.errors import UserError, WaitTimeout
from minicluster.scenario.actions.arguments import Duration, read_duration

if TYPE_CHECKING:
    from minicluster.actors.listeners.endpoints import Endpoints
    from minicluster.actors.listeners.server import Listeners
    from minicluster.verify import Report

LOOK_EVERY_S, LOOK_EVERY_MS = 0.01, 100  # at a condition that is awaited
START_WITHIN_MS = 120_000
KNOWN_WITHIN_MS = 10_000  # a broker that sees metadata late (publish_delay) holds nobody up longer


class RunningCluster(ClusterRoles):
    """A cluster with a life."""

    listeners: Listeners | None = None
    live_checks: LogChecks | ZnodeChecks | None = None  # None: nothing is judged while it runs
    report: Report | None = None  # of the latest verify()
    up_ms = 0  # when its start was over; failure reports begin there
    _is_open_to_clients = False  # somebody has asked for the addresses

    def start(self, *, wait: bool = True) -> None:
        """Start every node, and wait until every broker is unfenced."""
        if self.is_started:
            raise UserError("this cluster has been started already")
        self.is_started = True
        if self.listen_address is not None:
            from minicluster.actors.cluster.listening import open_listeners

            self.listeners = open_listeners(self, self.listen_address)
        with self.rt.exclusive():
            self._start_nodes()
        if wait:
            self.wait(self.is_up, START_WITHIN_MS)
            self.up_ms = self.now_ms
        if isinstance(self.rt, PacedRuntime):
            self.rt.begin_pace()

    def _start_nodes(self) -> None:
        followers: list[CommitFollower] = [self.committed]
        if self.online:
            problems = self.recorder.own_problems
            checks = LogChecks(self.rt, self.run_id, rules=self.rules, problems=problems)
            if self.adopted is not None:
                checks.begin_after(self.adopted.end)
            followers.append(checks)
            self.recorder.follower = self.live_checks = checks
        elif self.znodes_judged:
            of_znodes = ZnodeChecks(
                self.rt, self.run_id, self.protocol, problems=self.recorder.own_problems
            )
            self.zookeeper_log.follower = of_znodes.on_line
            self.recorder.follower = self.live_checks = of_znodes
        followers += self.checks
        self.inlet.connect(self.rt.spawn(MetadataSink, "metadata-sink", followers, self.committed))
        directory = Directory(
            active_controller=self.active_controller_id,
            running_broker=self.running_broker_id,
            leader=self.leader_id,
        )
        self.rt.spawn(Client, "client", self.network, self.recorder, directory)
        client = self.rt.actor("client")
        assert isinstance(client, Client)
        self.own_client = client
        self._format()
        others = [node_id for node_id in self.node_ids if node_id not in self.broker_ids]
        combined = [node_id for node_id in self.broker_ids if node_id in self.controller_ids]
        for node_id in dict.fromkeys((*others, *combined, *self.starting)):
            start_process(self, node_id)

    def open_to_clients(self, name: str) -> Endpoints:
        """Where clients connect; from now on a paced cluster runs by itself.

        The first client may ask any broker, and one with an older image would answer with a part
        of the cluster: they all know each other first.

        Shapes:  name: what an error begins with.
        Errors:  UserError for a cluster without listeners, or before its start.
        """
        if self.listeners is None:
            raise UserError(
                f"{name}: start the cluster with listeners=True; an app inside the simulation "
                f"connects to {program_servers(self)}"
            )
        self.check_running(name)
        if not self._is_open_to_clients and self.is_up():
            self.run_until(self.all_know_each_other, KNOWN_WITHIN_MS)
        self._is_open_to_clients = True
        if isinstance(self.rt, PacedRuntime):
            self.rt.run_alone()
        return self.listeners.endpoints

    def stop(self) -> None:
        """Stop everything.

        Errors:  ActorCrashed if an actor crashed and no wait has raised it; LeakedThread;
                 InvariantViolated for what clients received; NeverFired for an answer that had to
                 act. What the recorder and the live checks failed to see is a warning.
        """
        crashes = list(self.rt.crashes)
        self.rt.close()
        if crashes and not self.rt.raised:
            self.rt.check()
        self.check_clients(at_rest=True)
        warn_of(self.recorder.problems)
        self.check_fired()

    def check_clients(self, *, at_rest: bool = False) -> None:
        """Judge what clients sent and received in the whole run up to now.

        Shapes:  at_rest: the cluster has ended. Actors on threads that still run would change the
                 logs meanwhile, so that nothing is judged then.
        Errors:  InvariantViolated.
        """
        checks = self.live_checks
        if checks is None or self.recorder.problems:  # what excuses a loss may not have been seen
            return
        if at_rest or type(self.rt) is SimulatedRuntime:
            from minicluster.actors.cluster.judged_at_end import findings_about_clients

            findings = [*findings_about_clients(self), *checks.judge.end(self.now_ms)]
            if self.programs is not None:
                from minicluster.verify.rules.accused import beside_the_cluster

                findings = beside_the_cluster(findings, findings)
            checks.judged_at_end(findings)

    def run_for(self, duration: Duration) -> None:
        """Let the cluster run for a while."""
        self.check_running("run_for")
        self.rt.run_for(read_duration(duration, "run_for"))
        self.see_commits()

    def wait(self, condition: Callable[[], Any], within_ms: int) -> None:
        """Let the cluster run until a condition holds.

        Errors:  WaitTimeout; UserError for a condition that gives a function.
        """
        if not self.run_until(_checked(condition), within_ms):
            blocked = ""
            if _is_in_event_loop():
                blocked = "\n  this thread's event loop stood still; write: await until(…)"
            raise self._timed_out(condition, within_ms, blocked)

    async def until(self, condition: Callable[[], Any], within_ms: int) -> None:
        """Let the cluster and the tasks of an event loop run until a condition holds.

        A cluster that runs by itself is looked at now and then; another one runs in between.

        Errors:  WaitTimeout; UserError for a condition that gives a function.
        """
        import asyncio

        holds, rt = _checked(condition), self.rt
        runs_alone = rt.mode == "threaded" or (isinstance(rt, PacedRuntime) and rt.runs_alone)
        runs_alone |= tripwire.program() is not None  # of this very simulation, which runs on
        until_ms = self.now_ms + within_ms
        while not holds():
            rt.check()
            left_ms = until_ms - self.now_ms
            if left_ms <= 0:
                raise self._timed_out(condition, within_ms)
            if runs_alone:
                await asyncio.sleep(LOOK_EVERY_S)
            else:
                self.run_until(holds, min(LOOK_EVERY_MS, left_ms))
                await asyncio.sleep(0)
        self.see_commits()

    def _timed_out(
        self, condition: Callable[[], Any], within_ms: int, more: str = ""
    ) -> WaitTimeout:
        lines = "\n  ".join(self.state())
        return WaitTimeout(
            f"timed out after {within_ms / 1000:g}s waiting for {describe(condition)}"
            f"{place_of(condition)} (seed {self.seed}, cluster time "
            f"{(self.now_ms - self.began_ms) / 1000:g}s){more}\n  {lines}"
        )

    def state(self) -> list[str]:
        """The cluster in a few lines, for people."""
        return state_lines(
            self.image,
            active_controller=self.active_controller_id(),
            running=self.processes,
            brokers=self.broker_ids,
        ) + ([] if self.programs is None else self.programs.state())


def _checked(condition: Callable[[], Any]) -> Callable[[], bool]:
    """A condition whose outcome is looked at."""

    def holds() -> bool:
        outcome = condition()
        if callable(outcome):
            # A method that is not called is true at once: the wait would end before it began.
            problem = f"{describe(condition)} gives a function, which is always true"
            raise UserError(f"wait_until: {problem}; call it: {describe(outcome)}()")
        return bool(outcome)

    return holds


def _is_in_event_loop() -> bool:
    """An event loop of asyncio runs in this thread."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None
