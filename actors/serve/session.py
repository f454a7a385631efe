"""The steps of a serving cluster: those of a scenario, and those of the control socket.

All are performed by one thread, one after the other; a step that waits for a condition lets the
others continue. Every step that changed something is kept with its time, so the run folder holds
a scenario that plays the same disturbances again.
"""

from __future__ import annotations

import threading
from bisect import insort
from collections import deque
from collections.abc import Callable

from msgspec import Struct

from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.play.performer import (
    Outcome,
    Performance,
    Performer,
    StepFailed,
    Waiting,
    created_by,
)
from minicluster.actors.serve.control import Command
from minicluster.actors.serve.control_lines import Response
from minicluster.actors.serve.outcome_text import outcome_text, shortened
from minicluster.errors import UserError
from minicluster.scenario import Scenario, Step
from minicluster.scenario.checks.limits import STEPS_MAX
from minicluster.values import replace
from minicluster.verify.evidence.scenario_failure import ScenarioFailure

EXIT_INVALID, EXIT_UNKNOWN = 1, 2
LOOK_EVERY_S = 0.25
ROUND_MS_MIN = 1_000  # of a scenario that begins again
ENDS = Response(text="the cluster ended before this step", exit_code=EXIT_UNKNOWN)

Respond = Callable[[Response], None]


class _Waiter(Struct):
    """A step that waits for its condition."""

    performance: Performance
    waiting: Waiting
    until_ms: int
    respond: Respond


class Session:
    """The steps of one serving cluster.

    Shapes:  again: the scenario begins again after its last step; on_step(text, cluster time in
             ms), as a step begins, and once more where it fails; on_failure(one line), of the
             scenario; on_look: called several times a second.
    """

    def __init__(
        self,
        cluster: RunningCluster,
        scenario: Scenario,
        *,
        again: bool = False,
        on_step: Callable[[str, int], None] = lambda text, now_ms: None,
        on_failure: Callable[[str], None] = lambda text: None,
        on_look: Callable[[], None] = lambda: None,
    ) -> None:
        self.cluster = cluster
        self.played: list[Step] = []
        self.failure: Response | None = None  # the first step of the scenario that failed
        self.scenario_failure: ScenarioFailure | None = None  # the same, for the verdict
        self._count = 0
        self._on_step, self._on_failure, self._on_look = on_step, on_failure, on_look
        self._performer = Performer(cluster, created_by(self.played))
        self.scenario = scenario
        self._steps = scenario.steps
        self._next = 0  # of the scenario
        self._again = again
        self._began_ms = self._round_ms = self._after_ms = cluster.now_ms
        self._waiters: list[_Waiter] = []
        self._scenario_waits = False
        self._commands: deque[Command] = deque()
        self._woken = threading.Event()
        self._stopping = False

    # From other threads, and from signal handlers.

    def submit(self, command: Command) -> None:
        """Perform a step as soon as possible."""
        self._commands.append(command)
        self._woken.set()

    def stop(self) -> None:
        """End ``run`` at its next look.

        No event is set: a signal handler may have met this thread with the event's lock held.
        """
        self._stopping = True

    # In the thread of the session.

    def perform(self, step: Step) -> None:
        """Perform a step before the scenario begins.

        Errors:  UserError for what the cluster rejects.
        """
        responses: list[Response] = []
        self._begin(step, responses.append)
        if responses and responses[0].exit_code:
            raise UserError(responses[0].text)

    def run(self) -> None:
        """Perform the steps as they come, until ``stop``.

        Errors:  ActorCrashed and InvariantViolated, which end the cluster.
        """
        self._round_ms = self._after_ms = self.cluster.now_ms
        try:
            while not self._stopping:
                self._woken.clear()
                while self._commands and not self._stopping:
                    command = self._commands.popleft()
                    self._begin(command.step, command.respond)
                self._continue_waiters()
                if not self._begin_step_of_scenario() and not self._commands:
                    self._on_look()
                    self._wait()
        finally:
            while self._waiters:
                self._waiters.pop().respond(ENDS)
            while self._commands:
                self._commands.popleft().respond(ENDS)

    def _wait(self) -> None:
        """Let the cluster run until something is to be done."""
        left_ms = self._left_ms()
        if self._waiters:
            until_ms = min([waiter.until_ms for waiter in self._waiters])
            within_ms = min(until_ms - self.cluster.now_ms, int(LOOK_EVERY_S * 1000))
            if left_ms is not None:
                within_ms = min(within_ms, left_ms)
            self.cluster.run_until(self._has_work, max(0, within_ms))
            return
        pace = self.cluster.pace or 1.0
        within_s = LOOK_EVERY_S if left_ms is None else min(LOOK_EVERY_S, left_ms / 1000 / pace)
        self._woken.wait(within_s)
        self.cluster.rt.check()

    def _has_work(self) -> bool:
        return (
            self._stopping
            or bool(self._commands)
            or any(waiter.waiting.condition() for waiter in self._waiters)
        )

    # Steps.

    def _begin(
        self,
        step: Step,
        respond: Respond,
        on_failure: Callable[[ScenarioFailure], None] = lambda failure: None,
    ) -> None:
        self._count += 1
        at_ms = self.cluster.now_ms
        step = replace(step, number=self._count, at_ms=at_ms - self._began_ms, after_ms=0)
        self._on_step(step.text, at_ms)
        sequence = self.cluster.recorder.sequence

        def done(outcome: Outcome) -> Response:
            if len(self.played) < STEPS_MAX:
                insort(self.played, step, key=lambda played: played.number)
            text = outcome_text(self.cluster, step, outcome, sequence)
            return Response(text=text, step=step.number, at_ms=at_ms)

        def respond_at_end(response: Response) -> None:
            if response.exit_code:
                self._on_step(f"failed: {response.text}", self.cluster.now_ms)
            if response.exit_code and self._count == step.number:
                self._count -= 1  # a step that is not kept leaves no gap
            respond(response)

        performance = self._performer.perform(step)
        self._continue(self._to_its_end(performance, done, respond_at_end, on_failure), respond)

    def _to_its_end(
        self,
        performance: Performance,
        done: Callable[[Outcome], Response],
        respond: Respond,
        on_failure: Callable[[ScenarioFailure], None],
    ) -> Performance:
        """A performance whose end is the response."""
        try:
            outcome = yield from performance
        except StepFailed as failed:
            code = EXIT_UNKNOWN if failed.failure.is_unknown else EXIT_INVALID
            on_failure(failed.failure)
            respond(Response(text=shortened(failed.failure.text), exit_code=code))
            return Outcome()
        except UserError as error:
            on_failure(ScenarioFailure("refused", str(error)))
            respond(Response(text=shortened(str(error)), exit_code=error.exit_code))
            return Outcome()
        respond(done(outcome))
        return outcome

    def _continue(
        self, performance: Performance, respond: Respond, held: bool | None = None
    ) -> None:
        """Perform up to the next wait, or to the end."""
        try:
            waiting = next(performance) if held is None else performance.send(held)
        except StopIteration:
            return
        until_ms = self.cluster.now_ms + waiting.within_ms
        self._waiters.append(_Waiter(performance, waiting, until_ms, respond))

    def _continue_waiters(self) -> None:
        for waiter in list(self._waiters):
            holds = waiter.waiting.condition()
            if holds or self.cluster.now_ms >= waiter.until_ms:
                self._waiters.remove(waiter)
                self._continue(waiter.performance, waiter.respond, holds)

    # The scenario.

    def _begin_step_of_scenario(self) -> bool:
        """Begin the next step of the scenario, if its time has come."""
        left_ms = self._left_ms()
        if left_ms is None or left_ms > 0:
            return False
        step = self._steps[self._next]
        self._next += 1
        self._scenario_waits = True
        self._begin(step, self._scenario_responded, self._scenario_failed)
        return True

    def _scenario_failed(self, failure: ScenarioFailure) -> None:
        self.scenario_failure = failure

    def _scenario_responded(self, response: Response) -> None:
        self._scenario_waits = False
        self._after_ms = self.cluster.now_ms
        if response.exit_code:
            self.failure = response
            self._on_failure(response.text)
        elif self._next == len(self._steps) and self._again:
            self._after_ms = max(self._after_ms, self._round_ms + ROUND_MS_MIN)
            self._next, self._round_ms = 0, self._after_ms

    def _left_ms(self) -> int | None:
        """The time until the next step of the scenario, None where none is to come."""
        if self._scenario_waits or self.failure is not None or self._next >= len(self._steps):
            return None
        step = self._steps[self._next]
        due_ms = self._after_ms + step.after_ms
        if step.at_ms is not None:
            due_ms = self._round_ms + step.at_ms
        return max(0, due_ms - self.cluster.now_ms)
