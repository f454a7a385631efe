"""One query per group: a pass that computes the group's view and judges all of its checks.

Planning costs more than rows do. So the two folds that everything builds on (partitions, brokers)
are computed once and kept, every group is one aggregate of counters over one view, and all groups
are one job. What a finding says is asked for in a second pass, over the checks that found any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from minicluster.verify.rules import (
    activity,
    broker,
    directory,
    log,
    partition,
    quorum_views,
    replica_views,
    topic,
    trace_views,
    transaction,
)
from minicluster.verify.rules.model import Check, Rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = tuple[Rule, Check]

# Computed once, kept, and read by many.
FOLDS: Mapping[str, str] = {
    "partition_states": partition.DERIVED.format(view=partition.VIEW),
    "broker_states": broker.VIEW,
}
# Written out where they are used; in an order in which each builds only on earlier ones.
_VIEWS: Mapping[str, str] = {
    "topic_states": topic.VIEW,
    "log_states": log.VIEW,
    "questions": activity.QUESTIONS,
    "activity_states": activity.VIEW,
    "directory_events": directory.EVENTS,
    "directory_states": directory.VIEW,
    "transaction_states": transaction.VIEW,
    "requests": trace_views.REQUESTS,
    "written": trace_views.WRITTEN,
    "effects": trace_views.EFFECTS,
    "proposals": trace_views.PROPOSALS,
    "atomic_requests": trace_views.ATOMIC,
    "proposed_members": trace_views.MEMBERS,
    "recoveries": trace_views.RECOVERIES,
    "elections": trace_views.ELECTIONS,
    "unfencings": trace_views.UNFENCINGS,
    "additions": trace_views.ADDITIONS,
    "commits": trace_views.COMMITS,
    "quorums": trace_views.QUORUMS,
    "replica_events": trace_views.REPLICAS,
    "applied_states": replica_views.APPLIED,
    "acting_replicas": replica_views.ACTING,
    "holders": replica_views.HOLDERS,
    "fetched_partitions": replica_views.FETCHES,
    "listed_offsets": replica_views.LISTED,
    "replica_logs": replica_views.REPLICA_LOGS,
    "replica_values": replica_views.REPLICA_VALUES,
    "raft_states": quorum_views.EVENTS,
    "raft_majorities": quorum_views.MAJORITIES,
    "raft_answers": quorum_views.ANSWERS,
    "voter_records": quorum_views.VOTER_RECORDS,
    "voter_views": quorum_views.VOTERS,
    "publications": trace_views.PUBLICATIONS,
    "snapshot_states": trace_views.SNAPSHOTS,
    "header_states": trace_views.HEADERS,
}
_SOURCE = {
    "partition": "partition_states",
    "broker": "broker_states",
    "topic": "topic_states",
    "log": "log_states",
    "activity": "activity_states",
    "directory": "directory_states",
    "transaction": "transaction_states",
    "requests": "requests",
    "proposals": "proposals",
    "atomic": "atomic_requests",
    "members": "proposed_members",
    "effects": "effects",
    "applied": "applied_states",
    "acting": "acting_replicas",
    "holders": "holders",
    "fetches": "fetched_partitions",
    "listed": "listed_offsets",
    "replica_logs": "replica_logs",
    "replica_values": "replica_values",
    "raft": "raft_states",
    "raft_majorities": "raft_majorities",
    "raft_answers": "raft_answers",
    "raft_voters": "voter_views",
    "recoveries": "recoveries",
    "elections": "elections",
    "unfencings": "unfencings",
    "additions": "additions",
    "quorums": "quorums",
    "replicas": "replica_events",
    "publications": "publications",
    "snapshots": "snapshot_states",
    "header": "header_states",
}
LOG_GROUPS = ("partition", "broker", "topic", "log", "activity", "directory", "transaction")

# Groups whose view is empty unless a table holds a row like this: table, column, value (no column:
# any row; no value: any list that is not empty). An empty view is planned at the price of a full.
_RARE: Mapping[str, tuple[str, str | None, Any]] = {
    "recoveries": ("partitions", "rec", 1),
    "directory": ("brokers", "log_dirs", None),
    "transaction": ("transactions", None, None),
    "snapshots": ("snapshots", None, None),
    "additions": ("partition_event", "kind", "isr_pending"),
    "listed": ("rpc", "api", "ListOffsets"),
    "proposals": ("rpc", "api", "AlterPartition"),
    "members": ("rpc", "api", "AlterPartition"),
    "effects": ("rpc", "api", "AlterPartition"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What one query says about one check in one run."""

    rule: Rule
    check: Check
    run: str
    looked_at: int
    not_promised: int
    findings: tuple[Any, ...] = ()


def needed_groups(rules: Iterable[Rule], *, with_trace: bool) -> list[str]:
    """The groups that the rules' checks stand in; those over a trace only if there is one."""
    named = dict.fromkeys(group for rule in rules for group in rule.groups)
    return [group for group in named if with_trace or group in LOG_GROUPS]


def has_rows(group: str, tables: Mapping[str, pa.Table]) -> bool:
    """Whether a group's view can have any row."""
    table, column, value = _RARE.get(group, (None, None, None))
    if table is None or table not in tables:
        return True
    rows = tables[table]
    if column is None:
        return bool(rows.num_rows)
    if value is None:
        return bool(pc.any(pc.greater(pc.list_value_length(rows[column]), 0)).as_py())
    return bool(pc.any(pc.equal(rows[column], value)).as_py())


def items_of(rules: Iterable[Rule], group: str) -> list[Item]:
    """The checks that a group judges."""
    return [(rule, check) for rule in rules for check in rule.checks if check.group == group]


def prepare(spark: SparkSession, frames: Mapping[str, Any]) -> None:
    """Name the tables for SQL."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)


def compute_fold(spark: SparkSession, name: str) -> None:
    """Compute one of the folds that many views read, and keep it under its name."""
    spark.sql(FOLDS[name]).localCheckpoint().createOrReplaceTempView(name)


def reads_folds(group: str) -> bool:
    """Whether a group's view builds on a fold."""
    text = " ".join((_SOURCE[group], _with([group])))
    return any(fold in text for fold in FOLDS)


def collect(spark: SparkSession, rules: Iterable[Rule], groups: Iterable[str]) -> list[Answer]:
    """Judge all checks of the groups: one job for the counters, one more if any found something."""
    rules = tuple(rules)
    by_group = {group: items_of(rules, group) for group in groups}
    if not by_group:
        return []
    counted: dict[tuple[str, int, str], tuple[int, int]] = {}
    broken: dict[str, list[int]] = {}
    for row in _run(
        spark, [_counters(group, items) for group, items in by_group.items()], by_group
    ):
        for index in range(len(by_group[row.grp])):
            counted[row.grp, index, row.run] = (row.looked[index], row.skipped[index])
            if row.bad[index] and index not in broken.setdefault(row.grp, []):
                broken[row.grp].append(index)
    found: dict[tuple[str, int, str], list[Any]] = {}
    asked = [
        _findings(group, index, by_group[group][index])
        for group, indices in broken.items()
        for index in indices
    ]
    for row in _run(spark, asked, broken) if asked else ():
        found.setdefault((row.grp, row.item, row.run), []).append(row)
    return [
        Answer(*by_group[group][index], run, *counts, tuple(found.get((group, index, run), ())))
        for (group, index, run), counts in counted.items()
    ]


def _run(spark: SparkSession, queries: Sequence[str], groups: Iterable[str]) -> list[Any]:
    views = _with(groups)
    clause = f"with {views} " if views else ""
    return list(spark.sql(clause + " union all ".join(queries)).collect())


def _promise(rule: Rule, check: Check) -> str | None:
    """The SQL that says whether a row's promise holds, None if it always does."""
    if check.promised is not None:
        return check.promised
    level = rule.promised_from
    return None if level is None else f"mv >= {level}"


def _counters(group: str, items: Sequence[Item]) -> str:
    """Counts of what each check looked at, what was not promised, what is bad.

    Each condition is named once below the aggregate, so that it is parsed and planned once.
    """
    named: list[str] = []
    looked, skipped, bad = [], [], []
    for index, (rule, check) in enumerate(items):
        promise = _promise(rule, check)
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
    told = ", ".join(f"{column} as {name}" for column, name in zip(columns, names, strict=True))
    inner = f"select run, {', '.join(named)} from {_SOURCE[group]}"
    return f"select '{group}' as grp, run, {told} from ({inner}) group by run"


def _findings(group: str, index: int, item: Item) -> str:
    """The rows that break one check, with what a finding says of them."""
    rule, check = item
    promise = _promise(rule, check)
    held = "" if promise is None else f" and {promise}"
    return (
        f"select '{group}' as grp, {index} as item, run, cast({check.offset} as bigint) as offset, "
        f"cast({check.topic} as string) as topic, cast({check.partition} as int) as part, "
        f"cast({check.broker} as int) as broker, cast({check.old} as array<int>) as old, "
        f"cast({check.new} as array<int>) as new, cast({check.number} as bigint) as number "
        f"from {_SOURCE[group]} where ({check.when}){held} and ({check.bad})"
    )


def _with(groups: Iterable[str]) -> str:
    """The views of these groups and of those that they build on, in order of declaration."""
    needed: dict[str, None] = {}
    pending = [_SOURCE[group] for group in groups]
    while pending:
        view = pending.pop()
        if view in _VIEWS:
            needed[view] = None
            pending += [other for other in _VIEWS if other in _VIEWS[view] and other not in needed]
    return ", ".join(f"{view} as ({_VIEWS[view]})" for view in _VIEWS if view in needed)
