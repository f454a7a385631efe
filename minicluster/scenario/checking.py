"""Every mistake of a scenario file at once, each with its line and column.

Reading ends at the first mistake. Here each part of a file is read alone: the header's fields, each
fault, each step, and each argument of a step that is wrong. A part that is no YAML is left out.
Then the names are looked up: the brokers, controllers and topics that no part of the file creates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from minicluster.errors import UserError, instead
from minicluster.scenario.actions.action import Action, arguments_of
from minicluster.scenario.actions.arguments import GROUPS, NODES, PARTITIONS, Selector
from minicluster.scenario.actions.topics import CreateTopic
from minicluster.scenario.document import Document, Path
from minicluster.scenario.errors import ScenarioError
from minicluster.scenario.expression import Both, Call, Comparison, Expression, Nodes, Not, Word
from minicluster.scenario.functions import FUNCTIONS, Takes
from minicluster.scenario.reading import scenario_from, step_of
from minicluster.scenario.scenario import FIRST_CONTROLLER, Scenario, Step
from minicluster.scenario.view import ZOOKEEPER_NODE
from minicluster.scenario.vocabulary import ACTIONS

_NOTHING: Mapping[str, Any] = {"do": "heal"}
_OF_TOPIC = ("topic", "name")  # the arguments that name a topic


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """One mistake: line and column (0 where it is of the whole file), place and text."""

    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class Others:
    """Checks of other rooms: the ids of rules, and the reader of a cluster's configs."""

    rules: Collection[str]
    read_config: Callable[[str, Any], object]


def mistakes(
    text: str, where: str, name: str, others: Others
) -> tuple[Scenario | None, list[Mistake]]:
    """Check the text of a scenario file.

    Shapes:  -> the scenario, None where it cannot be played, and the mistakes in order of place.
    """
    from minicluster.scenario.yaml_text import NotYaml, read_yaml, without_item

    broken: list[Mistake] = []
    while True:
        try:
            read = read_yaml(text, where)
            break
        except NotYaml as error:
            broken.append(_of_yaml(str(error), where))
            whole, text = text, without_item(text, error.line)
            if text == whole:
                return None, broken
    found = _Found(read)
    if isinstance(read.value, dict):
        _header(found, others)
        _steps(found)
    if broken:  # what the rest names may be created by what cannot be read
        return None, sorted({*found.mistakes, *broken})
    scenario = None
    try:
        scenario = scenario_from(read, name)
    except ScenarioError as error:
        if not found.mistakes:
            found.add((), str(error).removeprefix(where).lstrip(":0123456789 "))
    else:
        _names(found, scenario)
    return scenario, sorted(set(found.mistakes))


def _of_yaml(text: str, where: str) -> Mistake:
    """A mistake of YAML, whose text begins with file, line and column."""
    rest = text.removeprefix(f"{where}:")
    line, _, rest_of_line = rest.partition(":")
    column, _, why = rest_of_line.partition(": ")
    if line.isdecimal() and column.isdecimal():
        return Mistake(int(line), int(column), why)
    return Mistake(0, 0, text.removeprefix(f"{where}: "))


class _Found:
    """The mistakes so far."""

    def __init__(self, read: Document) -> None:
        self.read = read
        self.mistakes: list[Mistake] = []

    def add(self, path: Path, text: str) -> None:
        line, column = self.read.places.get(path, (0, 0))
        self.mistakes.append(Mistake(line, column, text))

    def probe(self, path: Path, prefix: str, read: Callable[[], Any]) -> bool:
        """Read one part; its mistake, without the prefix, belongs to the path."""
        try:
            read()
        except UserError as error:
            self.add(path, str(error).removeprefix(prefix))
            return False
        return True


def _header(found: _Found, others: Others) -> None:
    value = found.read.value
    for key, item in value.items():
        if key == "cluster" and isinstance(item, dict):
            _cluster(found, item, others)
        elif key == "faults" and isinstance(item, list):
            for index, fault in enumerate(item):
                _part(found, ("faults", index), {"faults": [fault]})
        elif key == "exercises" and isinstance(item, list):
            for index, rule in enumerate(item):
                if rule not in others.rules:
                    what = instead(rule, others.rules, "see minicluster list rules")
                    found.add(("exercises", index), f"exercises: {rule!r} is no rule; {what}")
        elif key != "steps":
            _part(found, (key,), {key: item})


def _cluster(found: _Found, cluster: Mapping[str, Any], others: Others) -> None:
    good = {key: item for key, item in cluster.items() if _reads({"cluster": {key: item}})}
    wrong = False
    for key, item in cluster.items():  # what is wrong alone may go with another key
        if key not in good and not _reads({"cluster": {**good, key: item}}):
            wrong = True
            _part(found, ("cluster", key), {"cluster": {**good, key: item}})
    if not wrong:
        _part(found, ("cluster",), {"cluster": dict(cluster)})
    config = cluster.get("config")
    for name, value in config.items() if isinstance(config, dict) else ():
        read = partial(others.read_config, name, value)
        found.probe(("cluster", "config", name), "", read)


def _reads(header: Mapping[str, Any]) -> bool:
    try:
        scenario_from(Document("", {**header, "steps": [_NOTHING]}), "scenario")
    except ScenarioError:
        return False
    return True


def _part(found: _Found, path: Path, header: Mapping[str, Any]) -> bool:
    document = Document("", {**header, "steps": [_NOTHING]})
    return found.probe(path, ": ", lambda: scenario_from(document, "scenario"))


def _steps(found: _Found) -> None:
    steps = found.read.value.get("steps")
    if not isinstance(steps, list) or not steps:
        document = Document("", {"steps": steps})
        found.probe(("steps",), ": ", lambda: scenario_from(document, "scenario"))
        return
    for index, step in enumerate(steps):
        where = f"step {index + 1}"
        try:
            step_of(index + 1, step, where)
        except ScenarioError as error:
            before = len(found.mistakes)
            if isinstance(step, dict):
                _parts_of_step(found, ("steps", index), step, where)
            if len(found.mistakes) == before:
                found.add(("steps", index), str(error))


def _parts_of_step(found: _Found, path: Path, step: Mapping[str, Any], where: str) -> None:
    """Look at each argument of a step that is wrong."""
    for name in ("at", "after"):
        if name in step:
            probe = {name: step[name], **_NOTHING}
            found.probe((*path, name), "", partial(step_of, 1, probe, where))
    for name in ("until", "expect"):
        if name in step:
            found.probe((*path, name), "", partial(step_of, 1, {name: step[name]}, where))
    if "until" in step and "within" in step:
        probe = {"until": "unfenced(brokers)", "within": step["within"]}
        found.probe((*path, "within"), "", partial(step_of, 1, probe, where))
    method = step.get("do")
    if not isinstance(method, str):
        return
    if method not in ACTIONS:
        found.probe((*path, "do"), "", partial(step_of, 1, {"do": method}, where))
        return
    action = ACTIONS[method]
    declared = arguments_of(action)
    allowed = {"do", "at", "after", *declared, *(["may_fail"] if action.refusable else [])}
    for name, value in step.items():
        if name not in allowed:
            what = instead(name, declared, f"it takes {', '.join(declared) or 'nothing'}")
            found.add((*path, name), f"{where}: {method} has no argument {name!r}; {what}")
        elif name == "may_fail" and not isinstance(value, bool):
            found.add((*path, name), f"{where}: may_fail: {value!r} is not true or false")
        elif name in declared:
            read = partial(declared[name].read, value, f"{where}: {name}")
            found.probe((*path, name), "", read)
    for name, argument in declared.items():
        if argument.required and name not in step:
            found.add(path, f"{where}: {method} needs {name!r}: {argument.kind.text}")


# --- names that nothing creates ------------------------------------------------------------------


def _names(found: _Found, scenario: Scenario) -> None:
    """Look up the nodes and topics that steps name."""
    created: set[str] = set()
    for index, step in enumerate(scenario.steps):
        path: Path = ("steps", index)
        for name, expression in _expressions(step):
            for text in _unknown(expression, scenario, created):
                found.add((*path, name), f"step {step.number}: {text}")
        for name, topic in _topics(step.action):
            if topic not in created and not scenario.listeners:
                found.add((*path, name), f"step {step.number}: {_no_topic(topic, created)}")
        if isinstance(step.action, CreateTopic):
            created.add(str(step.action.name))


def _no_topic(topic: str, created: set[str]) -> str:
    return f"there is no topic {topic} then; {instead(topic, sorted(created), 'create it before')}"


def _expressions(step: Step) -> Iterator[tuple[str, Expression]]:
    """The expressions of a step, with the names under which they are written."""
    for name, condition in (("until", step.until), ("expect", step.expect)):
        if condition is not None:
            yield name, condition.expression
    if step.action is None:
        return
    for name, argument in arguments_of(type(step.action)).items():
        value = getattr(step.action, name)
        if value is None or argument.kind not in (NODES, GROUPS):
            continue
        nodes = value if argument.kind is NODES else [node for group in value for node in group]
        for node in nodes:
            yield name, node.expression if isinstance(node, Selector) else Nodes((Word(str(node)),))


def _topics(action: Action | None) -> Iterator[tuple[str, str]]:
    """The topics that an action needs, with the names of its arguments."""
    if action is None or isinstance(action, CreateTopic):
        return
    for name, argument in arguments_of(type(action)).items():
        value = getattr(action, name)
        if value is None:
            continue
        if argument.kind is PARTITIONS:
            yield from ((name, topic) for topic, _ in value)
        elif name in _OF_TOPIC:
            yield name, str(value)


def _unknown(expression: Expression, scenario: Scenario, created: set[str]) -> Iterator[str]:
    match expression:
        case Call(name, arguments, _) if arguments and isinstance(arguments[0], Word):
            yield from _unknown_argument(name, arguments[0], scenario, created)
        case Call(_, arguments, _):
            for one in arguments:
                yield from _unknown(one, scenario, created)
        case Nodes(members):
            for one in members:
                if isinstance(one, Word) and one.text.isdecimal():
                    yield from _unknown_node(int(one.text), scenario)
                yield from _unknown(one, scenario, created)
        case Not(of):
            yield from _unknown(of, scenario, created)
        case Both(_, left, right) | Comparison(_, left, right):
            yield from _unknown(left, scenario, created)
            yield from _unknown(right, scenario, created)
        case _:
            pass


def _unknown_node(node: int, scenario: Scenario) -> Iterator[str]:
    last = FIRST_CONTROLLER + scenario.controllers - 1
    if scenario.mode == "zookeeper":
        if not 1 <= node <= scenario.brokers and node != ZOOKEEPER_NODE:
            names = f"1 to {scenario.brokers}, and {ZOOKEEPER_NODE} for ZooKeeper"
            yield f"there is no node {node}; nodes are {names}"
    elif not 1 <= node <= scenario.brokers and not FIRST_CONTROLLER <= node <= last:
        names = f"1 to {scenario.brokers} and {FIRST_CONTROLLER} to {last}"
        yield f"there is no node {node}; nodes are {names}"


def _unknown_argument(
    name: str, word: Word, scenario: Scenario, created: set[str]
) -> Iterator[str]:
    brokers = range(1, scenario.brokers + 1)
    controllers = range(FIRST_CONTROLLER, FIRST_CONTROLLER + scenario.controllers)
    number = int(word.text) if word.text.isdecimal() else None
    if name == "broker" and number is not None and number not in brokers:
        yield f"there is no broker {number}; brokers are 1 to {scenario.brokers}"
    elif name == "controller" and number is not None:
        if number not in controllers and number >= scenario.controllers:
            last = controllers[-1]
            yield f"there is no controller {number}; controllers are {FIRST_CONTROLLER} to {last}"
    elif FUNCTIONS[name].takes is Takes.PARTITION and not scenario.listeners:
        topic, _ = word.partition
        if topic not in created:
            yield _no_topic(topic, created)
