"""Judgement as the workers of Spark make it, in this process and without Spark.

Only the tests about Spark itself need its session; all others judge by the same functions here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify import Report, verify
from minicluster.verify.rules import BY_ID
from minicluster.verify.rules.model import finding_message
from minicluster.verify.spark import session
from minicluster.verify.spark.fold_job import Item, Judged, Task, _judge_one


class _Items:
    """A data set of this process, as far as jobs need one."""

    def __init__(self, items: Iterable[bytes]) -> None:
        self._items = list(items)

    def map(self, function: Callable[[bytes], bytes]) -> _Items:
        return _Items(map(function, self._items))

    def collect(self) -> list[bytes]:
        return self._items


class _Context:
    """A context of Spark without Spark."""

    master = "local"
    defaultParallelism = 2

    def parallelize(self, items: list[bytes], slices: int) -> _Items:
        assert slices > 0
        return _Items(items)

    def setJobGroup(self, group: str, description: str) -> None:
        """Nothing runs elsewhere that could be watched."""

    def setLocalProperty(self, key: str, value: str | None) -> None:
        """Likewise."""


@contextmanager
def without_spark() -> Iterator[None]:
    """Jobs are done in this process."""
    here = SimpleNamespace(_jsc=None, sparkContext=_Context())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "spark_for_jobs", lambda *_, **__: here)
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
