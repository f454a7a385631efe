"""Live and whole: equal verdicts, cases and findings on every example and near miss."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from minicluster.values import replace
from minicluster.verify import Finding
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Run
from minicluster.verify.judging import Judge
from minicluster.verify.live import is_judged_live
from minicluster.verify.model import Evidence
from minicluster.verify.rules.every import RULES
from minicluster.verify.whole import judge_run, judge_whole
from tests.verify.check_run import (
    OF_EACH_LOG,
    OF_LOGS,
    check_run,
    judge_of,
    play_rows,
)
from tests.verify.examples.by_rule import RUNS_BAD, RUNS_NEAR, by_name
from tests.verify.handwritten.run import RunBuilder
from tests.verify.logs_beside_rules import EVERY_LOG
from tests.verify.test_log_rules import KAFKA_LOGS, RUNS

LIVE_RULES = [rule for rule in RULES if is_judged_live(rule) and rule.evidence != Evidence.ZNODES]
JUDGE_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "judge.md"
TRACES = by_name(RUNS_BAD, RUNS_NEAR)


@pytest.mark.parametrize("name", TRACES)
def test_a_run_is_judged_live_as_afterwards(name: str, tmp_path: Path) -> None:
    """Where the trace shows when the log was committed; F19 asks whether an election was clean."""
    written: RunBuilder = TRACES[name]()
    run = read_run(written.write(tmp_path / "run"), "run")
    live = play_rows(written, judge_of(run), run.committed)
    whole = judge_whole(run, LIVE_RULES)
    assert whole.crashes == {}
    apart = set() if written.rows["raft_event"] else {"F19"}
    if len(run.nodes) > 1:  # live there is one log, of all controllers
        apart |= {*OF_EACH_LOG}
    if not run.foldable:  # as a cluster's log always is
        apart |= {*OF_LOGS}
    for rule in (rule for rule in LIVE_RULES if rule.id not in apart):
        tally, afterwards = live.judge.tally(rule.id), whole.tallies[rule.id]
        assert {*tally.findings} == {*afterwards.findings}, rule
        if rule.id != "F19":  # live, a leader waits for its election in the log
            assert tally.looked_at == afterwards.looked_at, rule


def test_the_docs_name_the_rules_that_are_judged_when_the_run_is_over() -> None:
    table = JUDGE_PAGE.read_text().partition("| judged when the run is over |")[2]
    rows = [line.split("|")[1].split() for line in table.partition("\n\n")[0].splitlines()[2:]]
    named = [rule for row in rows for rule in row]
    assert sorted(named) == sorted(
        rule.id
        for rule in RULES
        if not is_judged_live(rule) and rule.evidence is not Evidence.ZNODES
    )


def cut(run: Run, batches: int) -> Run:
    """A log that ends earlier."""
    committed = run.committed[:batches]
    (node,) = run.nodes
    return replace(
        run,
        committed=committed,
        nodes=(replace(node, batches=node.batches[:batches]),),
    )


def judged_cut(run: Run, batches: int) -> dict[str, tuple[int, int, set[Finding]]]:
    """Cases, not promised and findings by rule, equal live and afterwards."""

    def counts(judge: Judge) -> dict[str, tuple[int, int, set[Finding]]]:
        every = {rule: judge.tally(rule) for rule in OF_LOGS}
        return {
            rule: (tally.looked_at, tally.not_promised, {*tally.findings})
            for rule, tally in every.items()
        }

    short = cut(run, batches)
    live, whole = check_run(short).judge, judge_run(short, RULES, {})
    assert counts(live) == counts(whole), f"{run.name} up to batch {batches}"
    return counts(live)


def check_cuts(run: Run, ends: list[int]) -> None:
    """What is found in a log is found as well in each longer one."""
    before: set[Finding] = set()
    for end in ends:
        findings = {one for *_, several in judged_cut(run, end).values() for one in several}
        assert before <= findings
        before = findings


@pytest.mark.parametrize("name", EVERY_LOG)
def test_a_log_that_ends_at_any_batch_is_judged_live_as_afterwards(
    name: str, tmp_path: Path
) -> None:
    run = read_run(EVERY_LOG[name]().write(tmp_path / "log"), "log")
    check_cuts(run, [*range(1, len(run.committed) + 1)])


@pytest.mark.parametrize("name", RUNS)
def test_a_log_of_kafka_that_ends_at_any_batch_is_judged_live_as_afterwards(name: str) -> None:
    run = read_run(KAFKA_LOGS / name, name)
    if len(run.nodes) > 1:
        run = replace(run, nodes=run.nodes[:1])
    run = replace(run, committed=run.nodes[0].batches, known_extent=None)
    chance = Random(name)
    ends = sorted(chance.sample(range(1, len(run.committed) + 1), k=min(12, len(run.committed))))
    print(f"{name} up to batches {ends}")
    check_cuts(run, ends)
