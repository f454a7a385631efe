"""The examples of every rule, judged in this process: each breaks its rule, each near miss none.

Spark says the same of all of them, and so does the live judge: ``test_agreement``, and
``test_znode_runs`` for logs of ZooKeeper.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.verify import Report, Verdict, verify
from minicluster.verify.rules.every import RULES
from minicluster.verify.rules.rule import Rule
from tests.verify.examples.by_rule import BY_NAME, Case, each
from tests.verify.examples.every import EXAMPLES, home_of
from tests.verify.examples.example import breaks, examples_of
from tests.verify.in_process import verified

BAD, NEAR = (
    {
        rule.id: tuple(one for one in examples_of(rule, EXAMPLES) if one.is_broken is bad)
        for rule in RULES
    }
    for bad in (True, False)
)


pytestmark = pytest.mark.spark  # on the worker where Spark judges them as well


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("examples")
    return [example().write(folder / name) for name, example in BY_NAME.items()]


@pytest.fixture(scope="module")
def report(paths: list[Path]) -> Report:
    return verified(*paths)


def test_spark_judges_every_example_as_this_process(
    paths: list[Path], report: Report, spark: object
) -> None:
    in_spark = verify(*paths)

    for name, one, other in zip(BY_NAME, in_spark.each, report.each, strict=True):
        assert one.verdict == other.verdict, name
        assert one.rules == other.rules, name
    assert in_spark.rules == report.rules
    assert len(in_spark.findings) > len(BY_NAME) / 3


def verdict(report: Report, rule: str, example: Case) -> tuple[Verdict, int]:
    by_run = {run: (word, looked_at) for run, word, looked_at in report.rule(rule).by_run}
    return by_run[example.name]


@pytest.mark.parametrize(("rule", "example"), each(BAD))
def test_an_example_breaks_its_rule(rule: str, example: Case, report: Report) -> None:
    assert verdict(report, rule, example)[0] is Verdict.INVALID


@pytest.mark.parametrize(("rule", "example"), each(NEAR))
def test_a_near_miss_is_looked_at_and_keeps_its_rule(
    rule: str, example: Case, report: Report
) -> None:
    word, looked_at = verdict(report, rule, example)
    if example.has_cases:
        assert word is Verdict.VALID
        assert looked_at > 0
    else:
        assert word in (Verdict.NO_CASES, Verdict.NOT_PROMISED)
        assert report.rule(rule).exempt or report.rule(rule).not_promised


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_an_example_and_a_near_miss(rule: object) -> None:
    assert {example.is_broken for example in EXAMPLES if rule in example.rules} == {True, False}


def test_examples_stand_in_the_file_of_the_name_of_their_rules() -> None:
    """Those of ``rules/partitions.py`` are in ``examples/partitions.py``."""
    for example in EXAMPLES:
        for rule in example.rules:
            assert example.build.__module__ == home_of(rule.parts[0][1].__module__)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_is_told_of_a_rule_is_judged_here(rule: Rule) -> None:
    """``explain`` shows one sentence of each kind, and these examples are built of them."""
    sentences = {(one.is_broken, one.sentence) for one in examples_of(rule, EXAMPLES)}
    assert {(True, rule.breaks), (False, rule.keeps)} <= sentences


def test_each_sentence_says_what_one_example_builds() -> None:
    assert len(BY_NAME) == len(EXAMPLES), "names are those of runs in reports"
    for example in EXAMPLES:
        assert example.sentence.endswith("."), example.name
    for rule in RULES:
        sentences = [example.sentence for example in examples_of(rule, EXAMPLES)]
        assert len({*sentences}) == len(sentences), rule


def test_an_example_without_a_sentence_is_rejected() -> None:
    def silent() -> None:
        return None

    with pytest.raises(TypeError, match="example silent has no docstring"):
        breaks(RULES[0])(silent)  # type: ignore[type-var]
