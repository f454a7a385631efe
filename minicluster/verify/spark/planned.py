"""The checks of a view as queries that Spark plans.

By them the oracle of the tests judges every view of runs, and ``long.user_rules`` the rules of a
user's over long logs, since Spark sorts and keeps on disk what its memory does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from minicluster.verify.engine.checks import promise_of
from minicluster.verify.rules.model import Check, Rule
from minicluster.verify.tally import Tallies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = tuple[Rule, Check]
# What is quicker for small data is slower for many rows.
FOR_MANY_ROWS = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


def judge_view(
    spark: SparkSession, view: str, items: Sequence[Item], tallies: Tallies, run: str | None = None
) -> None:
    """Judge the checks of a view: one job for the counters, one for each check that is broken.

    Shapes:  run: whose rows they are; None where a column of the view names it.
    """
    broken: set[int] = set()
    column = "run" if run is None else "'' as run"
    for row in spark.sql(_counters(view, items, column)).collect():
        name = row.run if run is None else run
        for index, (rule, check) in enumerate(items):
            counts = row.looked[index], row.skipped[index]
            tallies.add_check(rule, check, name, counts, ())
            if row.bad[index]:
                broken.add(index)
    for index in sorted(broken):
        rule, check = items[index]
        for row in spark.sql(_findings(view, rule, check, column)).collect():
            name = row.run if run is None else run
            tallies.add_check(rule, check, name, (0, 0), [tuple(row)[1:]])


def _counters(view: str, items: Sequence[Item], run: str) -> str:
    """Counts of the rows that each check judges, that are not promised, that are bad.

    Each condition is named once below the aggregate, so that it is parsed and planned once.
    """
    named = list(_conditions(items))
    looked, skipped, bad = [], [], []
    for index, (rule, check) in enumerate(items):
        looked.append(f"count_if(w{index})")
        skipped.append("0L" if promise_of(rule, check) is None else f"count_if(s{index})")
        bad.append("0L" if check.bad == "false" else f"count_if(w{index} and b{index})")
    columns = (f"array({', '.join(counters)})" for counters in (looked, skipped, bad))
    names = ("looked", "skipped", "bad")
    counts = ", ".join(f"{column} as {name}" for column, name in zip(columns, names, strict=True))
    inner = f"select {run}, {', '.join(named)} from {view}"
    return f"select run, {counts} from ({inner}) group by run"


def _conditions(items: Sequence[Item]) -> Iterator[str]:
    for index, (rule, check) in enumerate(items):
        promise = promise_of(rule, check)
        held = "" if promise is None else f" and {promise}"
        yield f"({check.when}){held} as w{index}"
        if promise is not None:
            yield f"({check.when}) and not {promise} as s{index}"
        if check.bad != "false":
            yield f"({check.bad}) as b{index}"


def _findings(view: str, rule: Rule, check: Check, run: str) -> str:
    """The rows that break one check, with the columns of a finding."""
    promise = promise_of(rule, check)
    held = "" if promise is None else f" and {promise}"
    return (
        f"select {run}, cast({check.offset} as bigint) as offset, "
        f"cast({check.topic} as string) as topic, cast({check.partition} as int) as part, "
        f"cast({check.broker} as int) as broker, cast({check.old} as array<int>) as old, "
        f"cast({check.new} as array<int>) as new, cast({check.number} as bigint) as number "
        f"from {view} where ({check.when}){held} and ({check.bad})"
    )
