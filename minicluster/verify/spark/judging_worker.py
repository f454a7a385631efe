"""The worker's side: the rules over the runs whose rows a task gets, one after the other.

They are judged as in one process (``whole``): a log as its batches come, a run with its trace read
whole from its folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
from msgspec.structs import asdict

from minicluster.errors import UserError
from minicluster.log.format.limits import ReadLimits
from minicluster.values import Value
from minicluster.verify.evidence.reading import header_of
from minicluster.verify.evidence.run import Extent, Problem, Run
from minicluster.verify.histories.traced_run import History
from minicluster.verify.judged import Judged
from minicluster.verify.judging import Tally
from minicluster.verify.log_rows import Rejected, StreamedRun
from minicluster.verify.model import Evidence
from minicluster.verify.rules.own_rules import OwnRules
from minicluster.verify.rules.rule import Rule
from minicluster.verify.spark.log_source import by_run
from minicluster.verify.whole import judge_rows_of

RESULT = pa.schema(
    {
        "run": pa.string(),
        "kind": pa.string(),  # run, rejected, crash, count, exempt, finding
        "rule": pa.string(),
        "offset": pa.int64(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "broker": pa.int32(),
        "event": pa.int64(),
        "earlier": pa.int64(),
        "request": pa.int64(),
        "message": pa.string(),  # of a finding; why something is exempt or crashed; a run as JSON
        "looked_at": pa.int64(),
        "not_promised": pa.int64(),
    }
)
COUNTS = ("looked_at", "not_promised")
_PLACE = ("offset", "topic", "partition", "broker", "event", "earlier", "request")
FINDING = ("run", "rule", *_PLACE, "message")


class Task(Value):
    """The rules and limits of workers; Spark sends them with the function that they run.

    Shapes:  rules: of this package, which go by name. own_rules: those of a user's file, which a
             worker cannot import, by their fields.
    """

    rules: tuple[Rule, ...]
    own_rules: tuple[Mapping[str, Any], ...] = ()
    own_histories: tuple[History, ...] = ()

    @classmethod
    def of(cls, rules: Iterable[Rule], own: OwnRules | None = None) -> Task:
        """The task of some rules, and of those of a user's file."""
        if own is None:
            return cls(tuple(rules))
        _send_by_value(own.module)
        return cls(tuple(rules), tuple(map(vars, own.in_python)), own.histories)

    @property
    def every_rule(self) -> tuple[Rule, ...]:
        """All rules."""
        return (*self.rules, *map(_rule_of, self.own_rules))


def _send_by_value(module: ModuleType) -> None:
    from pyspark import cloudpickle

    by_value: Any = cloudpickle
    by_value.register_pickle_by_value(module)


def _rule_of(fields: Mapping[str, Any]) -> Rule:
    rule = Rule.__new__(Rule)
    vars(rule).update(fields)
    return rule


def judge_rows(
    task: Task, limits: ReadLimits, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Judge the runs whose rows these are.

    Shapes:  rows of ``log_source.SCHEMA``, in order -> rows of ``RESULT``.
    """
    rules = task.every_rule
    for name, rows in by_run(batches):
        try:
            judged = judge_rows_of(StreamedRun(name, rows, limits), rules, task.own_histories)
        except (Rejected, UserError) as error:
            result: Iterable[Mapping[str, Any]] = [{"kind": "rejected", "message": str(error)}]
        else:
            result = _rows_of(judged)
        yield pa.RecordBatch.from_pylist([{"run": name, **row} for row in result], RESULT)


def _rows_of(judged: Judged) -> Iterator[Mapping[str, Any]]:
    run = judged.run
    about = {
        "problems": [asdict(problem) for problem in run.problems],
        "notes": run.notes,
        "lost": run.lost,
        "uncommitted": run.uncommitted,
        "extent": asdict(run.extent),
    }
    yield {"kind": "run", "message": json.dumps(about)}
    for rule, why in judged.crashes.items():
        yield {"kind": "crash", "rule": rule, "message": why}
    for rule, tally in judged.tallies.items():
        yield from _rows_of_rule(rule, tally)


def _rows_of_rule(rule: str, tally: Tally) -> Iterator[Mapping[str, Any]]:
    if tally.looked_at or tally.not_promised:
        counts = {"looked_at": tally.looked_at, "not_promised": tally.not_promised}
        yield {"kind": "count", "rule": rule, **counts}
    for why, times in tally.exempt.items():
        yield {"kind": "exempt", "rule": rule, "message": why, "looked_at": times}
    for finding in sorted(set(tally.findings)):
        place = {name: getattr(finding, name) for name in _PLACE}
        yield {"kind": "finding", "rule": rule, "message": finding.message, **place}


def run_of(name: str, path: Path, limits: ReadLimits, message: str) -> Run:
    """A run without its contents, as the row of its kind tells it."""
    about: dict[str, Any] = json.loads(message)
    problems = (
        Problem(**{**problem, "evidence": Evidence(problem["evidence"])})
        for problem in about["problems"]
    )
    return Run(
        name=name,
        path=path,
        header=header_of(path, limits),
        nodes=(),
        committed=(),
        start=None,
        uncommitted=about["uncommitted"],
        lost=about["lost"],
        problems=tuple(problems),
        notes=tuple(about["notes"]),
        known_extent=Extent(**about["extent"]),
    )
