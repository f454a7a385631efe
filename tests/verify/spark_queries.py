"""One query per view: a pass that computes the view's rows and judges all of its checks.

Planning costs more than rows do. So the two folds that everything builds on (partitions, brokers)
are computed once and kept, every view is one aggregate of counters, and many views are one job. A
second job collects the findings, over the checks that have any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.engine.checks import promise_of, sources_of
from minicluster.verify.rules import LOG_VIEWS, VIEWS
from minicluster.verify.rules.model import Check, Rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = tuple[Rule, Check]
FOLDS = ("partition_states", "broker_states")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check in one run: rows judged, rows that are not promised, rows that break the rule."""

    rule: Rule
    check: Check
    run: str
    looked_at: int
    not_promised: int
    findings: tuple[Any, ...] = ()


def needed_views(rules: Iterable[Rule], *, with_trace: bool) -> list[str]:
    """The views of the rules' checks; those over a trace only if there is one."""
    named = dict.fromkeys(view for rule in rules for view in rule.views)
    return [view for view in named if with_trace or view in LOG_VIEWS]


def items_of(rules: Iterable[Rule], view: str) -> list[Item]:
    """The checks that read a view."""
    return [(rule, check) for rule in rules for check in rule.checks if check.view == view]


def prepare(spark: SparkSession, frames: Mapping[str, Any]) -> None:
    """Name the tables for SQL."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)


def compute_fold(spark: SparkSession, name: str) -> None:
    """Compute a fold that many views read, and keep it under its name."""
    spark.sql(VIEWS[name].sql).localCheckpoint().createOrReplaceTempView(name)


def reads_folds(view: str) -> bool:
    """A view is a fold or builds on one."""
    return any(name in FOLDS for name in _with_sources([view]))


def collect(
    spark: SparkSession, rules: Iterable[Rule], views: Iterable[str], *, few: bool
) -> list[CheckResult]:
    """Judge all checks of the views: one job for the counters, one more if any check is broken.

    Shapes:  ``few``: the rows are so few that each job is one task.
    """
    rules = tuple(rules)
    by_view = {view: items_of(rules, view) for view in views}
    if not by_view:
        return []
    counted: dict[tuple[str, int, str], tuple[int, int]] = {}
    broken: dict[str, list[int]] = {}
    counters = [_counters(view, items) for view, items in by_view.items()]
    for row in _run(spark, counters, by_view, few):
        for index in range(len(by_view[row.name])):
            counted[row.name, index, row.run] = (row.looked[index], row.skipped[index])
            if row.bad[index] and index not in broken.setdefault(row.name, []):
                broken[row.name].append(index)
    found: dict[tuple[str, int, str], list[Any]] = {}
    queries = [
        _findings(view, index, by_view[view][index])
        for view, indices in broken.items()
        for index in indices
    ]
    for row in _run(spark, queries, broken, few) if queries else ():
        columns = tuple(row)[3:]  # after name, item and run
        found.setdefault((row.name, row.item, row.run), []).append(columns)
    return [
        CheckResult(*by_view[view][index], run, *counts, tuple(found.get((view, index, run), ())))
        for (view, index, run), counts in counted.items()
    ]


def _run(spark: SparkSession, queries: Sequence[str], views: Iterable[str], few: bool) -> list[Any]:
    named = [name for name in _with_sources(views) if name not in FOLDS]
    clause = ", ".join(f"{name} as ({VIEWS[name].sql})" for name in named)
    frame = spark.sql((f"with {clause} " if clause else "") + " union all ".join(queries))
    # Each task unpacks the whole plan, whichever query of the union it computes.
    return list((frame.coalesce(1) if few else frame).collect())


def _counters(view: str, items: Sequence[Item]) -> str:
    """Counts of the rows that each check judges, that are not promised, that are bad.

    Each condition is named once below the aggregate, so that it is parsed and planned once.
    """
    named: list[str] = []
    looked, skipped, bad = [], [], []
    for index, (rule, check) in enumerate(items):
        promise = promise_of(rule, check)
        held = "" if promise is None else f" and {promise}"
        named.append(f"({check.when}){held} as w{index}")
        looked.append(f"count_if(w{index})")
        skipped.append("0L" if promise is None else f"count_if(s{index})")
        if promise is not None:
            named.append(f"({check.when}) and not {promise} as s{index}")
        if check.bad == "false":
            bad.append("0L")
        else:
            named.append(f"({check.bad}) as b{index}")
            bad.append(f"count_if(w{index} and b{index})")
    columns = (f"array({', '.join(counters)})" for counters in (looked, skipped, bad))
    names = ("looked", "skipped", "bad")
    counts = ", ".join(f"{column} as {name}" for column, name in zip(columns, names, strict=True))
    inner = f"select run, {', '.join(named)} from {view}"
    return f"select '{view}' as name, run, {counts} from ({inner}) group by run"


def _findings(view: str, index: int, item: Item) -> str:
    """The rows that break one check, with the columns of a finding."""
    rule, check = item
    promise = promise_of(rule, check)
    held = "" if promise is None else f" and {promise}"
    return (
        f"select '{view}' as name, {index} as item, run, cast({check.offset} as bigint) as offset, "
        f"cast({check.topic} as string) as topic, cast({check.partition} as int) as part, "
        f"cast({check.broker} as int) as broker, cast({check.old} as array<int>) as old, "
        f"cast({check.new} as array<int>) as new, cast({check.number} as bigint) as number "
        f"from {view} where ({check.when}){held} and ({check.bad})"
    )


def _with_sources(views: Iterable[str]) -> list[str]:
    """These views and those that they build on, each after its sources."""
    ordered: dict[str, None] = {}

    def add(name: str) -> None:
        if name in ordered:
            return
        if name not in FOLDS:
            for source in sources_of(VIEWS[name]):
                if source in VIEWS:
                    add(source)
        ordered[name] = None

    for view in views:
        add(view)
    return list(ordered)
