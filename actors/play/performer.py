"""Performing one step of a scenario: selectors resolved now, then the cluster's own method.

So a file, a line at a shell and a test have the same vocabulary. A step whose selector names nobody
changes nothing and adds a note.

A step that waits yields the condition. Its driver lets the cluster run until the condition holds
or the time is over, and sends True or False; meanwhile it may perform other steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

from msgspec import field

from minicluster.actors.cluster.actions import network, processes
from minicluster.actors.cluster.actions.clocks import repair_clocks
from minicluster.actors.cluster.actions.disks import repair_all_dirs, repair_disks
from minicluster.actors.cluster.actions.performing import NothingActedOn, ms
from minicluster.actors.cluster.actions.records import pause_load
from minicluster.actors.cluster.cluster import ZOOKEEPER
from minicluster.actors.cluster.mini_cluster import MiniCluster
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.cluster.scenario_view import ScenarioView
from minicluster.actors.cluster.time_bounds import unregistered_brokers
from minicluster.actors.play.liveness import converge, promises
from minicluster.actors.play.results import clients_result
from minicluster.actors.zookeeper.liveness import promises_on_zookeeper
from minicluster.durations import format_duration
from minicluster.errors import NoResponse, UserError
from minicluster.scenario import ScenarioError, Step, holds, select
from minicluster.scenario.actions.action import Action, arguments_of
from minicluster.scenario.actions.arguments import GROUPS, NODES, Selector
from minicluster.scenario.actions.nodes import Liveness, Wait
from minicluster.scenario.actions.topics import CreateTopic, Produce
from minicluster.scenario.scenario import Condition
from minicluster.values import Value, replace
from minicluster.verify.evidence.scenario_failure import ScenarioFailure


class StepFailed(Exception):
    """A step did not go as written."""

    def __init__(self, failure: ScenarioFailure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class Waiting(Value):
    """A condition that a step waits for, and how long."""

    condition: Callable[[], bool]
    within_ms: int


class Outcome(Value):
    """A step that was performed: its selectors as node ids, and the result of its method."""

    resolved: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    result: Any = None
    note: str | None = None  # the reason that nothing changed


Performance = Generator[Waiting, bool, Outcome]


class Performer:
    """Performs the steps of scenarios on a cluster.

    Shapes:  created: step number -> the topics that steps before it create.
    """

    def __init__(self, cluster: RunningCluster, created: Callable[[int], Iterable[str]]) -> None:
        self.cluster = cluster
        self.created = created
        self.view = ScenarioView(cluster)

    def perform(self, step: Step) -> Performance:
        """Perform one step.

        Errors:  StepFailed for a condition that does not hold; ScenarioError naming the step, for
                 an action that the cluster rejects.
        """
        self.cluster.step = step.number
        done: dict[str, Any] = {"step": step.number, "at_ms": self.cluster.now_ms}
        self.cluster.performed.append(done)
        try:
            outcome = yield from self._perform(step)
        except (StepFailed, UserError) as error:
            done |= {"ended_ms": self.cluster.now_ms, "failed": _first_line(error)}
            raise
        resolved = {name: _plain(nodes) for name, nodes in outcome.resolved.items()}
        done |= {"ended_ms": self.cluster.now_ms, "resolved": resolved, "note": outcome.note}
        if (result := clients_result(outcome.result)) is not None:
            done["result"] = result
        return outcome

    def _perform(self, step: Step) -> Performance:
        try:
            if step.until is not None:
                return (yield from self._until(step, step.until))
            if step.expect is not None:
                return self._expect(step, step.expect)
            assert step.action is not None
            return self._act(step, step.action)
        except NoResponse as error:
            text = f"step {step.number}: {error}"
            raise StepFailed(ScenarioFailure("no_response", text)) from None
        except UserError as error:
            raise ScenarioError(f"step {step.number} ({step.text}): {error}") from None

    def _expect(self, step: Step, condition: Condition) -> Outcome:
        if not holds(condition.expression, self.view):
            text = f"step {step.number}: expected {condition}, but\n  "
            raise StepFailed(ScenarioFailure("expect", text + self._state()))
        return Outcome()

    def _until(self, step: Step, condition: Condition) -> Performance:
        within_ms = step.within_ms
        rejected: list[UserError] = []

        def holds_now() -> bool:
            try:
                return holds(condition.expression, self.view)
            except UserError as error:
                rejected.append(error)
                return True

        came_true = yield Waiting(holds_now, within_ms)
        if rejected:
            raise rejected[0]
        if not came_true:
            waited = f"timed out after {format_duration(within_ms)} waiting for {condition}"
            text = f"step {step.number}: {waited}\n  {self._state()}"
            raise StepFailed(ScenarioFailure("until", text))
        return Outcome()

    def _act(self, step: Step, action: Action) -> Outcome:
        if isinstance(action, Liveness):
            self._converge(step, ms(action.bound))
            return Outcome()
        if isinstance(action, Wait):
            return Outcome()
        if isinstance(action, Produce):
            self._check_topic(step.number, action)
        written, resolved = action, dict[str, Any]()
        for name, argument in arguments_of(type(action)).items():
            value = getattr(action, name)
            if value is not None and argument.kind is NODES:
                resolved[name] = self._nodes(value)
                if not resolved[name]:
                    text = f"{argument.kind.written(value)} names nobody now"
                    self.cluster.note(action.method, [], "note", text)
                    return Outcome(note=text)
            elif argument.kind is GROUPS:
                resolved[name] = tuple(self._nodes(group) for group in value)
        action = replace(action, **resolved)  # type: ignore[type-var]
        method = getattr(MiniCluster, action.method)
        try:
            return Outcome(resolved, method.perform(self.cluster, action))
        except UserError as error:
            is_of_now = isinstance(error, NothingActedOn) and _has_selector(written)
            if not step.may_fail and not is_of_now:
                raise
            self.cluster.note(action.method, [], "note", str(error))
            return Outcome(resolved, note=str(error))

    def _check_topic(self, number: int, produce: Produce) -> None:
        """Reject a name that no topic ever had; a wait for a deleted topic times out."""
        topic, partition = str(produce.topic), produce.partition
        existing = self.cluster.image.topics.named(topic)
        if existing is None:
            if topic not in self.created(number):
                raise ScenarioError(f"there is no topic {topic}")
        elif partition not in existing.partitions:
            count = len(existing.partitions)
            raise ScenarioError(f"there is no partition {topic}-{partition}; {topic} has {count}")

    def _nodes(self, nodes: tuple[int | Selector, ...]) -> tuple[int, ...]:
        node_ids: dict[int, None] = {}
        for node in nodes:
            selector = str(node) if isinstance(node, int) else node.expression
            node_ids |= dict.fromkeys(select(selector, self.view))
        return tuple(node_ids)

    def _state(self) -> str:
        return "\n  ".join(self.cluster.state())

    def _converge(self, step: Step, bound_ms: int) -> None:
        """Undo every fault, start every node, and wait until G1-G7 hold."""
        cluster = self.cluster
        pause_load(cluster)
        network.heal(cluster)
        repair_disks(cluster)
        repair_clocks(cluster)
        repair_all_dirs(cluster)
        for node in cluster.node_ids:
            if node not in cluster.processes:
                processes.restart(cluster, node)
                continue
            process = cluster.processes[node]
            if process.paused:
                processes.resume(cluster, node)
            # Else a shutdown that could not end before, or a registration that has too little of
            # its time left (initial.broker.registration.timeout.ms), would take the node away.
            registers = process.broker is not None and not process.broker.lifecycle.registered
            process.starts_again = registers or process.shuts_down
        for broker in unregistered_brokers(cluster):
            processes.restart(cluster, broker)
        for program in () if cluster.programs is None else cluster.programs.by_name.values():
            if program.is_running and program.current.is_paused:
                processes.resume(cluster, program.node)
            elif program.current.ended == "killed":
                processes.restart(cluster, program.node)
        for client in list(cluster.paused_clients):
            processes.resume(cluster, client)
        processes.publish_delay(cluster, cluster.broker_ids, "0s")
        of_mode = promises_on_zookeeper if cluster.mode == ZOOKEEPER else promises
        broken = converge(cluster, of_mode(cluster.config, bound_ms))
        if broken is not None:
            text = f"step {step.number}: {broken}\n  {self._state()}"
            raise StepFailed(ScenarioFailure("stuck", text, broken.promise.id))


def _has_selector(action: Action) -> bool:
    """The nodes of an action depend on the moment; others are a mistake of their author."""
    nodes: list[Any] = []
    for name, argument in arguments_of(type(action)).items():
        value = getattr(action, name) or ()
        if argument.kind is NODES:
            nodes += value
        elif argument.kind is GROUPS:
            nodes += [node for group in value for node in group]
    return any(isinstance(node, Selector) for node in nodes)


def _plain(nodes: Any) -> Any:
    return [_plain(node) for node in nodes] if isinstance(nodes, tuple) else nodes


def created_by(steps: Iterable[Step]) -> Callable[[int], Iterable[str]]:
    """The topics that the steps before a step create, by the step's number."""
    return lambda number: (
        step.action.name
        for step in steps
        if step.number < number and isinstance(step.action, CreateTopic)
    )


def _first_line(error: BaseException) -> str:
    """The reason of a failure without the state of the cluster, which is in the lines after it."""
    return str(error).splitlines()[0].removesuffix(", but")
