"""Judgement as the workers of Spark make it, in this process and without Spark.

Only the tests about Spark itself need its session; all others judge by the same functions here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify import Report, verify
from minicluster.verify.rules import BY_ID
from minicluster.verify.rules.model import finding_message
from minicluster.verify.spark import fold_job, long_logs, session
from minicluster.verify.spark.fold_job import Item, Judged, Task, _judge_one


@contextmanager
def without_spark() -> Iterator[None]:
    """Jobs are done in this process."""

    def each(
        spark: None, function: Callable[[bytes], bytes], items: Sequence[bytes]
    ) -> list[bytes]:
        return [function(item) for item in items]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_job, "in_workers", each)
        patch.setattr(long_logs, "in_workers", each)
        patch.setattr(session, "spark_for_jobs", lambda *_, **__: None)
        patch.setattr(session, "warm_up", lambda **_: None)
        yield


def verified(*paths: Path, rules: Sequence[str] | None = None) -> Report:
    """The report on runs and logs, without Spark."""
    with without_spark():
        return verify(*paths, rules=rules)


def judged(run: Path, *rule_ids: str) -> dict[str, tuple[int, list[str]]]:
    """Per rule the number of cases, and the messages of its findings."""
    rules = tuple(BY_ID[rule_id] for rule_id in rule_ids)
    done = _judge_one(Task(rules, DEFAULT_LIMITS).pickled(), Item(run, run.name).pickled())
    found: Judged | None = pickle.loads(done)
    assert found is not None, run
    assert not found.crashes, found.crashes
    assert not found.run.problems, found.run.problems
    result: dict[str, tuple[int, list[str]]] = {rule.id: (0, []) for rule in rules}
    for place, index, looked_at, _, rows in found.checks:
        rule = rules[place]
        check = rule.checks[index]
        cases, messages = result[rule.id]
        for offset, topic, partition, broker, old, new, number in rows:
            text = finding_message(
                check, offset=offset, topic=topic, partition=partition, broker=broker,
                old=old, new=new, number=number,
            )  # fmt: skip
            messages.append(text)
        result[rule.id] = (cases + (looked_at if check.counts else 0), messages)
    return result
