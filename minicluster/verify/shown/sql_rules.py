"""Rules of a user's own in SQL over the views: Spark plans them, and their sums come back.

All rules are one query, in which each view that they name is a common table expression: what a
session has under the names of views stays as it is. What comes back is a count for each run and
rule, and the findings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.errors import UserError
from minicluster.log.format.limits import ReadLimits
from minicluster.verify.judging import Tally
from minicluster.verify.model import Finding
from minicluster.verify.rules.sql_rule import FINDING_COLUMNS, SqlRule
from minicluster.verify.shown.declared import SHOWN_VIEWS
from minicluster.verify.shown.frames import Tables, mistake_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NEEDED = ("run", "message")
_PLACE = {"offset": ("bigint", "-1"), "topic": ("string", "''")}
_PLACE |= {"partition": ("int", "-1"), "broker": ("int", "-1")}


def judge_sql_rules(
    spark: SparkSession,
    paths: Sequence[Path | str],
    rules: Sequence[SqlRule],
    limits: ReadLimits,
    origins: Sequence[str | None] | None = None,
) -> dict[str, dict[str, Tally]]:
    """Judge runs and logs by rules in SQL.

    Shapes:  origins: the URIs of which the paths are copies on this machine. -> by run and rule:
             the cases and the findings, also of a run that has none.
    Errors:  UserError for a query that Spark does not understand, or without the columns it needs,
             and for a path that holds nothing to judge.
    """
    tables = Tables(spark, paths, limits, origins=origins)
    tallies = {run: {rule.id: Tally.empty() for rule in rules} for run in tables.runs}
    planned = [_planned(spark, tables, rule) for rule in rules]
    try:
        rows = _together(planned).collect() if planned else []
    except Exception as error:
        ids = ", ".join(rule.id for rule in rules)
        raise UserError(f"rules {ids}: {mistake_in(error)}") from None
    for row in rows:
        tally = tallies.setdefault(row["run"], {}).setdefault(row["rule"], Tally.empty())
        if row["cases"] is None:
            tally.findings.append(Finding(rule=row["rule"], **{n: row[n] for n in FINDING_COLUMNS}))
        else:
            tally.looked_at += row["cases"]
    for by_rule in tallies.values():
        for tally in by_rule.values():
            tally.findings.sort()
    return tallies


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    first, *others = frames
    for other in others:
        first = first.unionAll(other)
    return first


def _planned(spark: SparkSession, tables: Tables, rule: SqlRule) -> DataFrame:
    """The counts and findings of a rule as one query.

    Errors:  UserError with the first line of what Spark says.
    """
    text = f"{rule.cases} {rule.findings}"
    named = [view for view in SHOWN_VIEWS if re.search(rf"\b{view.name}\b", text)]
    views = "".join(f"{view.name} as ({tables.text(view)}), " for view in named)
    try:
        columns = spark.sql(f"with {views} x as ({rule.findings}\n) select * from x").columns
        if lacks := [name for name in _NEEDED if name not in columns]:
            raise UserError(f"rule {rule.id}: findings: there is no column {', '.join(lacks)}")
        place = ", ".join(
            f"coalesce(cast({name if name in columns else 'null'} as {kind}), {nowhere}) as {name}"
            for name, (kind, nowhere) in _PLACE.items()
        )
        return spark.sql(
            f"""with {views} minicluster_cases as ({rule.cases}
              ), minicluster_findings as ({rule.findings}
              )
            select {_text(rule.id)} as rule, run, count(*) as cases, cast(null as bigint) as offset,
              cast(null as string) as topic, cast(null as int) as partition,
              cast(null as int) as broker, cast(null as string) as message
              from minicluster_cases group by run
            union all select {_text(rule.id)}, run, null, {", ".join(_PLACE)}, message
              from (select run, {place}, coalesce(cast(message as string), {_text(rule.title)})
                as message from minicluster_findings)"""
        )
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"rule {rule.id}: {mistake_in(error)}") from None


def _text(value: Any) -> str:
    """A text as SQL has it."""
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
