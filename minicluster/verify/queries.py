"""One query per group: a pass that computes the group's view and judges all of its checks.

Planning costs more than rows do, so every group is one aggregate over one view, and all groups are
one job. Each query gives one row per run: how many cases each check looked at, how many of them it
could not hold against the run because their metadata.version does not promise the rule, and the
findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minicluster.verify.rules import activity, broker, log, partition, topic, trace_views
from minicluster.verify.rules.model import Check, Rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = tuple[Rule, Check]

# Each group's view is a name; views may build on each other.
_VIEWS: Mapping[str, str] = {
    "partition_states": partition.DERIVED.format(view=partition.VIEW),
    "broker_states": broker.VIEW,
    "topic_states": topic.VIEW,
    "log_states": log.VIEW,
    "questions": activity.QUESTIONS,
    "activity_states": activity.VIEW,
    "requests": trace_views.REQUESTS,
    "written": trace_views.WRITTEN,
    "effects": trace_views.EFFECTS,
    "proposals": trace_views.PROPOSALS,
    "recoveries": trace_views.RECOVERIES,
    "unfencings": trace_views.UNFENCINGS,
    "additions": trace_views.ADDITIONS,
    "commits": trace_views.COMMITS,
    "quorums": trace_views.QUORUMS,
    "replicas_events": trace_views.REPLICAS,
    "publications": trace_views.PUBLICATIONS,
    "header_states": trace_views.HEADERS,
}
_SOURCE = {
    "partition": "partition_states",
    "broker": "broker_states",
    "topic": "topic_states",
    "log": "log_states",
    "activity": "activity_states",
    "requests": "requests",
    "proposals": "proposals",
    "recoveries": "recoveries",
    "unfencings": "unfencings",
    "additions": "additions",
    "quorums": "quorums",
    "replicas": "replicas_events",
    "publications": "publications",
    "header": "header_states",
}
LOG_GROUPS = ("partition", "broker", "topic", "log", "activity")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one query says about one check in one run."""

    rule: Rule
    check: Check
    run: str
    looked_at: int
    not_promised: int
    findings: tuple[Any, ...]


def items_of(rules: Iterable[Rule], group: str) -> list[Item]:
    """The checks that a group judges."""
    return [(rule, check) for rule in rules for check in rule.checks if check.group == group]


def group_query(group: str, items: list[Item], source: str | None = None) -> str:
    """The SQL of one group; the i-th counters and findings are the i-th item's."""
    looked, skipped, broken = [], [], []
    for index, (rule, check) in enumerate(items):
        promise = check.promised or (
            "true" if rule.promised_from is None else f"coalesce(mv, 99) >= {rule.promised_from}"
        )
        always = promise == "true"
        looked.append(f"count_if(({check.when}) and {promise})")
        skipped.append("0L" if always else f"count_if(({check.when}) and not ({promise}))")
        if check.bad == "false":
            continue
        broken.append(
            f"if(({check.when}) and {promise} and ({check.bad}), named_struct("
            f"'item', {index}, 'offset', cast({check.offset} as bigint), "
            f"'topic', cast({check.topic} as string), 'part', cast({check.partition} as int), "
            f"'broker', cast({check.broker} as int), "
            f"'old', cast({check.old} as array<int>), 'new', cast({check.new} as array<int>), "
            f"'number', cast({check.number} as bigint)), null)"
        )
    found = f"array_compact(array({', '.join(broken)}))"
    return (
        f"select '{group}' as grp, run, array({', '.join(looked)}) as looked, "
        f"array({', '.join(skipped)}) as skipped, "
        f"flatten(collect_list(case when size(found) > 0 then found end)) as findings "
        f"from (select *, {found} as found from {source or _SOURCE[group]}) group by run"
    )


def needed_groups(rules: Iterable[Rule], *, with_trace: bool) -> list[str]:
    """The groups that the rules' checks stand in; those over a trace only if there is one."""
    named = dict.fromkeys(group for rule in rules for group in rule.groups)
    return [group for group in named if with_trace or group in LOG_GROUPS]


def collect(
    spark: SparkSession,
    frames: Mapping[str, Any],
    rules: Iterable[Rule],
    groups: Iterable[str],
) -> list[Answer]:
    """Run the groups as one job."""
    rules = tuple(rules)
    by_group = {group: items_of(rules, group) for group in groups}
    if not by_group:
        return []
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    queries = " union all ".join(group_query(group, items) for group, items in by_group.items())
    answers = []
    for row in spark.sql(f"with {_with(by_group)} {queries}").collect():
        found: dict[int, list[Any]] = {}
        for one in row.findings:
            found.setdefault(one.item, []).append(one)
        for index, (rule, check) in enumerate(by_group[row.grp]):
            looked_at, skipped = row.looked[index], row.skipped[index]
            findings = tuple(found.get(index, ()))
            answers.append(Answer(rule, check, row.run, looked_at, skipped, findings))
    return answers


def _with(groups: Iterable[str]) -> str:
    """The views of these groups and of those that they build on, in order of declaration."""
    needed: dict[str, None] = {}
    pending = [_SOURCE[group] for group in groups]
    while pending:
        view = pending.pop()
        needed[view] = None
        pending += [other for other in _VIEWS if other in _VIEWS[view] and other not in needed]
    return ", ".join(f"{view} as ({_VIEWS[view]})" for view in _VIEWS if view in needed)
