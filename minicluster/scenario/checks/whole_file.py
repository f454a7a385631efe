"""Every mistake of a scenario file at once, each with its line and column.

Reading ends at the first mistake. Here each part of a file is read alone: the header's fields, each
fault, each step, and each argument of a step that is wrong. A part that is not YAML is left out.
Then the names are looked up (``names_that_exist``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from minicluster.errors import UserError, instead
from minicluster.scenario.actions.action import arguments_of
from minicluster.scenario.checks.impossible_steps import OtherChecks
from minicluster.scenario.checks.names_that_exist import mistaken_references
from minicluster.scenario.document import QUOTE_HINT, Document, Path
from minicluster.scenario.errors import ScenarioError
from minicluster.scenario.reading import NO_STEPS, scenario_from, step_of
from minicluster.scenario.scenario import Scenario
from minicluster.scenario.vocabulary import ACTIONS
from minicluster.values import Value

_NOTHING: Mapping[str, Any] = {"do": "heal"}


class Mistake(Value, order=True):
    """One mistake: its line and column (0 where it is of the whole file), and its text."""

    line: int
    column: int
    text: str


def mistakes(
    text: str, where: str, name: str, others: OtherChecks
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
    check = _Check(read)
    if isinstance(read.value, dict):
        _header(check, others)
        _steps(check)
    if broken:
        # Names are not looked up: a step that cannot be read may create what the others name. That
        # no steps are left is not a mistake either.
        readable = [mistake for mistake in check.mistakes if not mistake.text.endswith(NO_STEPS)]
        return None, sorted({*readable, *broken})
    scenario = None
    try:
        scenario = scenario_from(read, name)
    except ScenarioError as error:
        if not check.mistakes:
            check.add((), str(error).removeprefix(where).lstrip(":0123456789 "))
    else:
        for path, mistake in mistaken_references(scenario, others):
            check.add(path, mistake)
    return scenario, sorted(set(check.mistakes))


def _of_yaml(text: str, where: str) -> Mistake:
    """A mistake of YAML, whose text begins with file, line and column."""
    rest = text.removeprefix(f"{where}:")
    line, _, rest_of_line = rest.partition(":")
    column, _, why = rest_of_line.partition(": ")
    if line.isdecimal() and column.isdecimal():
        return Mistake(int(line), int(column), why)
    return Mistake(0, 0, text.removeprefix(f"{where}: "))


class _Check:
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


def _header(check: _Check, others: OtherChecks) -> None:
    value = check.read.value
    for key, item in value.items():
        if key == "cluster" and isinstance(item, dict):
            _cluster(check, item, others)
        elif key == "faults" and isinstance(item, list):
            for index, fault in enumerate(item):
                _part(check, ("faults", index), {"faults": [fault]})
        elif key == "exercises" and isinstance(item, list):
            for index, rule in enumerate(item):
                if rule not in others.rules:
                    hint = instead(rule, others.rules, "see minicluster list rules")
                    check.add(("exercises", index), f"exercises: unknown rule {rule!r}; {hint}")
        elif key != "steps":
            _part(check, (key,), {key: item})


def _cluster(check: _Check, cluster: Mapping[str, Any], others: OtherChecks) -> None:
    good = {key: item for key, item in cluster.items() if _reads({"cluster": {key: item}})}
    wrong = False
    for key, item in cluster.items():  # what is wrong alone may go with another key
        if key not in good and not _reads({"cluster": {**good, key: item}}):
            wrong = True
            _part(check, ("cluster", key), {"cluster": {**good, key: item}})
    if not wrong:
        _part(check, ("cluster",), {"cluster": dict(cluster)})
    config = cluster.get("config")
    for name, value in config.items() if isinstance(config, dict) else ():
        read = partial(others.read_config, name, value)
        check.probe(("cluster", "config", name), "", read)


def _reads(header: Mapping[str, Any]) -> bool:
    try:
        scenario_from(Document("", {**header, "steps": [_NOTHING]}), "scenario")
    except ScenarioError:
        return False
    return True


def _part(check: _Check, path: Path, header: Mapping[str, Any]) -> bool:
    document = Document("", {**header, "steps": [_NOTHING]})
    return check.probe(path, ": ", lambda: scenario_from(document, "scenario"))


def _steps(check: _Check) -> None:
    steps = check.read.value.get("steps")
    if not isinstance(steps, list) or not steps:
        document = Document("", {"steps": steps})
        check.probe(("steps",), ": ", lambda: scenario_from(document, "scenario"))
        return
    for index, step in enumerate(steps):
        where = f"step {index + 1}"
        try:
            step_of(index + 1, step, where)
        except ScenarioError as error:
            before = len(check.mistakes)
            if isinstance(step, dict):
                _parts_of_step(check, ("steps", index), step, where)
            if len(check.mistakes) == before:
                check.add(("steps", index), str(error))


def _parts_of_step(check: _Check, path: Path, step: Mapping[str, Any], where: str) -> None:
    """Look at each argument of a step that is wrong."""
    parted = _parted(step)
    if parted:
        for name, text in parted.items():
            check.add((*path, name), f"{where}: {QUOTE_HINT}; write {name}: {text}")
        return
    for name in ("at", "after"):
        if name in step:
            probe = {name: step[name], **_NOTHING}
            check.probe((*path, name), "", partial(step_of, 1, probe, where))
    for name in ("until", "expect"):
        if name in step:
            check.probe((*path, name), "", partial(step_of, 1, {name: step[name]}, where))
    if "until" in step and "within" in step:
        probe = {"until": "unfenced(brokers)", "within": step["within"]}
        check.probe((*path, "within"), "", partial(step_of, 1, probe, where))
    method = step.get("do")
    if not isinstance(method, str):
        return
    if method not in ACTIONS:
        check.probe((*path, "do"), "", partial(step_of, 1, {"do": method}, where))
        return
    action = ACTIONS[method]
    declared = arguments_of(action)
    allowed = {"do", "at", "after", *declared}
    for name, value in step.items():
        if name not in allowed:
            hint = instead(name, declared, f"it takes {', '.join(declared) or 'nothing'}")
            check.add((*path, name), f"{where}: {method} has no argument {name!r}; {hint}")
        elif name in declared:
            read = partial(declared[name].read, value, f"{where}: {name}")
            check.probe((*path, name), "", read)
    for name, argument in declared.items():
        if argument.required and name not in step:
            check.add(path, f"{where}: {method} needs {name!r}: {argument.kind.text}")


def _parted(step: Mapping[str, Any]) -> dict[str, str]:
    """The values that YAML took apart at their commas, by their names, in quotes."""
    names = list(step)
    joined: dict[str, str] = {}
    for index, name in enumerate(names):
        if index and isinstance(name, str) and step[name] is None and _closes(name):
            begin = index - 1
            while begin and step[names[begin]] is None:
                begin -= 1
            rest = [str(each) for each in names[begin + 1 : index + 1]]
            joined[names[begin]] = f'"{", ".join([str(step[names[begin]]), *rest])}"'
    return joined


def _closes(text: str) -> bool:
    """True for the rest of a value whose bracket was opened before its comma."""
    return any(text.count(end) > text.count(begin) for begin, end in ("()", "[]"))
