"""Judgement in this process: only the tests about Spark itself need its session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from minicluster.verify import Report, verify, verifying
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.source import sources_of
from minicluster.verify.judged import Judged
from minicluster.verify.rules.every import BY_ID
from minicluster.verify.rules.rule import Rule
from minicluster.verify.spark import session
from minicluster.verify.whole import judge_whole


def _in_this_process(
    started: Any,
    named: Sequence[tuple[Path, str]],
    origins: Any,
    rules: Any,
    own: Any,
    limits: Any,
    on_progress: Any,
) -> Any:
    """What ``verify`` has Spark do, by its driver over whole runs."""
    sources = sources_of(named, limits)
    every = rules if own is None else (*rules, *own.rules)
    return verifying._in_this_process(sources, every, own, limits, on_progress)


@contextmanager
def without_spark() -> Iterator[None]:
    """``verify`` judges in this process, also where its caller names no engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verifying, "_in_spark", _in_this_process)
        patch.setattr(session, "warm_up", lambda **_: None)
        yield


def verified(*paths: Path, rules: Sequence[str] | None = None) -> Report:
    """The report on runs and logs, without Spark."""
    return verify(*paths, engine="process", rules=rules)


def judge_path(path: Path, name: str, rules: Sequence[Rule]) -> Judged:
    """One run or log as the driver in this process judges it."""
    return judge_whole(read_run(path, name), rules)


def judged(run: Path, *rule_ids: str) -> dict[str, tuple[int, list[str]]]:
    """Per rule the number of cases, and the messages of its findings."""
    done = judge_whole(read_run(run, run.name), [BY_ID[rule] for rule in rule_ids])
    assert not done.crashes, done.crashes
    assert not done.run.problems, done.run.problems
    return {
        rule: (tally.looked_at, [finding.message for finding in tally.findings])
        for rule, tally in done.tallies.items()
    }
