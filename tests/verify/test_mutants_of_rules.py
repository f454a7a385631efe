"""Mutants of the rules themselves: each changes what is said of some example or log of Kafka.

A mutant negates one condition of a rule, never takes one of its exemptions, or leaves out one of
its findings. One that changes nothing shows a line of a rule that nothing here rests on.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from minicluster.verify.judging import Judge
from minicluster.verify.rules.every import RULES
from minicluster.verify.rules.rule import CASE, NOT_PROMISED, Broken, Judgement, Rule
from tests.verify.examples.every import EXAMPLES
from tests.verify.in_process import verified

LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
# Of rule -> conditions (or findings, by their first words) on which no example and no log rests.
# The end of a shutdown is awaited also while a disturbance lasts, so it is never left unjudged.
UNSEEN = {"G10": ["never line.awaited in waits.unjudged"]}


Said = tuple[set[Any], set[str]]  # places of findings; whether there are cases, exemptions, …
SaidByRun = dict[str, dict[str, Said]]  # by run, and by mutant; "" is the rule as it is
ByPart = dict[Judgement, SaidByRun]


@pytest.fixture(scope="module")
def judgements(tmp_path_factory: pytest.TempPathFactory) -> ByPart:
    """What each part of each rule says of the examples and of Apache Kafka's logs, and its mutants.

    Those are asked where the part is: what a fold gives it changes afterwards.
    """
    folder = tmp_path_factory.mktemp("examples")
    made: ByPart = {function: {} for rule in RULES for _, function in rule.parts}
    every = {part: {"": part, **dict(mutants(part))} for part in made}
    begin, said, runs = Judge.__init__, Rule.said, [""]

    def on_begin(judge: Judge, run: str, *more: Any) -> None:
        runs[:] = [run]
        begin(judge, run, *more)

    def on_said(rule: Rule, part: Judgement, what: tuple[Any, ...]) -> Iterable[Any]:
        of_run = made[part].setdefault(runs[0], {name: (set(), set()) for name in every[part]})
        for name, mutant in every[part].items():
            note(of_run[name], mutant, what)
        return said(rule, part, what)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Judge, "__init__", on_begin)
        patch.setattr(Rule, "said", on_said)
        logs = [path for path in sorted(LOGS.iterdir()) if any(path.glob("controller-*"))]
        verified(*(one().write(folder / one.name) for one in EXAMPLES), *logs)
    return made


def note(said: Said, judge: Judgement, what: tuple[Any, ...]) -> None:
    """Add what a function says."""
    places, counted = said
    try:
        for outcome in judge(*what):
            if isinstance(outcome, Broken):
                places.add(outcome)
            else:
                counted.add(repr(outcome) if outcome in (CASE, NOT_PROMISED) else "exempt")
    except Exception as error:  # a mutant may be no rule at all
        places.add(type(error).__name__)


def mutants(judge: Judgement) -> Iterator[tuple[str, Judgement]]:
    """Each mutant of a function, and what was changed."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(judge)))
    number = count()  # two conditions may read alike
    [function] = tree.body
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    for node in ast.walk(function):
        if isinstance(node, ast.If):
            test = node.test
            if _excuses(node.body):
                node.test = ast.Constant(False)
                yield f"{next(number)} never {ast.unparse(test)}", _compiled(judge, tree)
            node.test = ast.UnaryOp(ast.Not(), test)
            yield f"{next(number)} not {ast.unparse(test)}", _compiled(judge, tree)
            node.test = test
        elif isinstance(node, ast.Expr) and _finds(node.value):
            value, node.value = node.value, ast.YieldFrom(ast.Tuple([], ast.Load()))
            silent = f"silent {ast.unparse(value).strip('()')}"[:60]
            yield f"{next(number)} {silent}", _compiled(judge, tree)
            node.value = value


def _counts(value: ast.expr | None) -> bool:
    """CASE, NOT_PROMISED or an exemption."""
    names = ("CASE", "NOT_PROMISED", "exempt")
    called = value.func if isinstance(value, ast.Call) else value
    return isinstance(called, ast.Name) and called.id in names


def _finds(value: ast.expr) -> bool:
    return isinstance(value, ast.YieldFrom) or (
        isinstance(value, ast.Yield) and not _counts(value.value)
    )


def _excuses(body: list[ast.stmt]) -> bool:
    """What is said there first is that nothing is promised, or why it is exempt."""
    first = body[0]
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Yield):
        return False
    value = first.value.value
    return _counts(value) and not (isinstance(value, ast.Name) and value.id == "CASE")


def _compiled(judge: Judgement, tree: ast.Module) -> Judgement:
    code: Any = judge
    names = code.__code__.co_freevars
    free = {
        name: cell.cell_contents for name, cell in zip(names, code.__closure__ or (), strict=True)
    }
    made: dict[str, Any] = {}
    whole = ast.fix_missing_locations(copy.deepcopy(tree))
    exec(compile(whole, "mutant", "exec"), code.__globals__ | free, made)
    mutant: Judgement = made[code.__name__]
    return mutant


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_each_mutant_of_a_rule_changes_a_judgement(rule: Rule, judgements: ByPart) -> None:
    unseen: list[str] = []
    killed = 0
    for part in dict.fromkeys(part for _, part in rule.parts):  # one may judge two kinds of steps
        by_run = judgements[part].values()
        for change, _ in mutants(part):
            if all(said[change] == said[""] for said in by_run):
                unseen.append(change.partition(" ")[2])
            else:
                killed += 1
    assert killed
    assert unseen == UNSEEN.get(rule.id, [])
