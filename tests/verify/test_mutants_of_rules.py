"""Mutants of the rules themselves: each changes what is said of some example or log of Kafka.

A mutant negates one condition of a rule, never takes one of its exemptions, or leaves out one of
its findings. One that changes nothing shows a line of a rule that nothing here rests on.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from minicluster.verify.judging import Judge
from minicluster.verify.rules.every import RULES
from minicluster.verify.rules.rule import CASE, NOT_PROMISED, Broken, Judgement
from tests.verify.examples.every import EXAMPLES
from tests.verify.in_process import verified

LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
StepsByRun = dict[str, list[Any]]

# Of rule -> conditions (or findings, by their first words) on which no example and no log rests.
# Most are exemptions for losses, which the stories of the zoo and random runs reach.
UNSEEN: dict[str, list[str]] = {
    "A2": ["never step.level < FROM_3_3"],
    "B3": ["never replica.has_lost"],
    "C1": ["never step.level < FROM_3_2"],
    "C2": ["never step.level < FROM_3_2"],
    "C3": ["never step.level < FROM_3_2"],
    "C4": ["never step.level < FROM_3_2"],
    "C5": ["never step.level < FROM_3_3 or not election.failures_in_log"],
    "E02": ["silent yield broken(f'controller {batch.node}: a batch of ep"],
    "E03": [
        "never batch.elected is None and batch.release < LEADER_CHANGE_COMES_FIRST",
        "silent yield broken(f'controller {batch.node}: epoch {batch.",
        "never batch.elected is None and batch.release < LEADER_CHANGE_COMES_FIRST",
    ],
    "E12": ["not step.kind == CLEAR_ELR"],
    "E17": ["never step.level < FROM_3_3"],
    "E20": ["silent yield broken(message, broker=broker"],
    "E32": ["not image.after_snapshot"],
    "E34": ["never not is_the_fold and snapshot.release == HAS_OTHER_DIRECTORIES"],
    "F1": [
        "never record.excuse is not None",
        "silent yield _lost(leader.acknowledged, leader.broker",
    ],
    "F2": ["never record.excuse is not None"],
    "F9": ["never value.is_beyond"],
    "F10": ["never passage.may_seek", "never passage.misled"],
    "F11": ["never record.excuse is not None"],
    "G10": ["never wait.unjudged is not None"],
    "H3": ["never read.excuse is not None"],
    "H4": ["never read.excuse is not None"],
    "H5": ["never end.excuse is not None", "never record.excuse is not None"],
    "H6": ["never batch.marker is not None and batch.excuse is not None"],
    "H7": ["never batch.excuse is not None"],
    "K1": ["silent yield broken(f'broker {broker} created /controller wi"],
    "P1": [
        "never record.excuse is not None",
        "not record.left_out",
        "not record.given is not None and record.given > record.offset",
        "not record.is_reset",
    ],
    "P2": ["never commit.misled", "never commit.excuse is not None"],
    "P3": ["never lag.unjudged is not None", "not lag.handed", "not lag.asked"],
    "P4": ["never transaction.unjudged is not None"],
    "P5": ["never end.life.ended == 'failed' and end.restarted"],
    "P6": ["not held.by_cluster"],
    "U1": ["never asked.is_allowed is None"],
    "U2": ["never asked.is_allowed is None"],
    "X1": ["never header.intercepted"],
}


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[type, StepsByRun]:
    """Every step that the histories make of the examples and of Apache Kafka's logs."""
    folder = tmp_path_factory.mktemp("examples")
    made: dict[type, StepsByRun] = defaultdict(lambda: defaultdict(list))
    take, remembered = Judge.take, Judge.remembered

    def on_take(judge: Judge, step: Any, *place: Any, **trace: Any) -> None:
        made[type(step)][judge.run].append(step)
        take(judge, step, *place, **trace)

    def on_remembered(judge: Judge, *several: Any) -> Any:
        for step in several:
            made[type(step)][judge.run].append(step)
        return remembered(judge, *several)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Judge, "take", on_take)
        patch.setattr(Judge, "remembered", on_remembered)
        logs = [path for path in sorted(LOGS.iterdir()) if any(path.glob("controller-*"))]
        verified(*(one().write(folder / one.name) for one in EXAMPLES), *logs)
    return made


def said(judge: Judgement, steps: Iterable[Any]) -> tuple[Any, ...]:
    """The places of findings, and whether there are cases, things not promised, exemptions."""
    places: set[Any] = set()
    counted: set[str] = set()
    for step in steps:
        try:
            for outcome in judge(step):
                if isinstance(outcome, Broken):
                    places.add((outcome.broker, outcome.offset, outcome.topic, outcome.partition))
                else:
                    counted.add(repr(outcome) if outcome in (CASE, NOT_PROMISED) else "exempt")
        except Exception as error:  # a mutant may be no rule at all
            places.add(type(error).__name__)
    return frozenset(places), frozenset(counted)


def mutants(judge: Judgement) -> Iterator[tuple[str, Judgement]]:
    """Each mutant of a function, and what was changed."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(judge)))
    [function] = tree.body
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    for node in ast.walk(function):
        if isinstance(node, ast.If):
            test = node.test
            if _excuses(node.body):
                node.test = ast.Constant(False)
                yield f"never {ast.unparse(test)}", _compiled(judge, tree)
            node.test = ast.UnaryOp(ast.Not(), test)
            yield f"not {ast.unparse(test)}", _compiled(judge, tree)
            node.test = test
        elif isinstance(node, ast.Expr) and _finds(node.value):
            value, node.value = node.value, ast.YieldFrom(ast.Tuple([], ast.Load()))
            yield f"silent {ast.unparse(value).strip('()')}"[:60], _compiled(judge, tree)
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
def test_each_mutant_of_a_rule_changes_a_judgement(
    rule: Any, steps: dict[type, StepsByRun]
) -> None:
    unseen: list[str] = []
    killed = 0
    for step_type, judge in rule.parts:
        by_run = steps[step_type]
        right = {run: said(judge, made) for run, made in by_run.items()}
        for change, mutant in mutants(judge):
            if all(said(mutant, made) == right[run] for run, made in by_run.items()):
                unseen.append(change)
            else:
                killed += 1
    assert killed
    assert unseen == UNSEEN.get(rule.id, [])
