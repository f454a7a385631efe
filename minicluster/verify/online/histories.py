"""The rules over whole histories of groups and transactions, at the end of a run.

These rules need what comes later: a commit that excuses an offset, the marker that ends a
transaction, the log of the last leader. Their SQL is computed over the rows of the trace in memory,
without Spark. A partition that has lost records promises nothing, as in the other rules. A doubt is
decided for the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any

from minicluster.trace import TABLES
from minicluster.verify.engine.checks import Held, Views
from minicluster.verify.rules import BY_ID, VIEWS
from minicluster.verify.rules.model import Finding
from minicluster.verify.tally import Tallies

Place = tuple[str, int]  # topic id as the trace has it, partition
Rows = Iterable[Mapping[str, Any]]

OF_GROUPS = ("H1", "H2")
OF_CONSUMERS = ("F7", "F12")
OF_WHOLE_GROUPS = ("F10",)
OF_PRODUCERS = ("H8",)
OF_TRANSFORMS = ("H9",)
OF_TRANSACTIONS = ("H3", "H4", "H5", "H6", "H7")
_LOSSES = "electable_replicas"  # a view of Spark's; here a table of the partitions that lost some


def rules_of_histories(client_records: Rows) -> tuple[str, ...]:
    """The rules that have something to judge in these rows, none where no client has a history."""
    kinds = {(row["f"], row["connection"] is None) for row in client_records}
    names = {name for name, _ in kinds}
    rules: list[str] = []
    if names & {"own", "committed"}:
        rules += OF_GROUPS
    if ("own", True) in kinds:
        rules += OF_CONSUMERS
        if not {("commit", False), ("pending", False)} & kinds:  # no user has set an offset
            rules += OF_WHOLE_GROUPS
    if "read" in names:
        rules += OF_PRODUCERS
    if ("pending", True) in kinds:
        rules += OF_TRANSFORMS
    if "init" in names:
        rules += OF_TRANSACTIONS
    return tuple(rules)


def tables_of_histories(rules: Collection[str]) -> tuple[str, ...]:
    """The tables of the trace that these rules read."""
    named = {table for rule in rules for table in BY_ID[rule].tables}
    return tuple(name for name in TABLES if name in named and name != "raft_event")


def judge_histories(
    run: str, rules: Collection[str], table: Callable[[str], Rows], lost: Collection[Place]
) -> list[Finding]:
    """The findings of these rules over a whole run.

    Shapes:  table: the rows of a trace table, in order; lost: partitions that have lost records.
    """
    views, columns = _views(), _columns()
    held: dict[str, list[tuple[Any, ...]]] = {name: [] for name in columns}
    for name in tables_of_histories(rules):
        names = columns[name][1:]
        held[name] = [(run, *map(row.get, names)) for row in table(name)]
    held[_LOSSES] = [(run, *place, True) for place in sorted(lost)]
    every = Held(views, held.__getitem__, held)
    tallies = Tallies()
    for rule_id in rules:
        rule = BY_ID[rule_id]
        for check in rule.checks:
            found = views.check(rule, check, every.rows(check.view))
            counts = found.looked_at, found.not_promised
            tallies.add_check(rule, check, run, counts, found.findings)
    return [finding for rule in rules for finding in tallies.of(rule, run).findings]


@cache
def _columns() -> dict[str, tuple[str, ...]]:
    """The columns of the tables; the first one is the run."""
    columns = {name: ("run", "vt", "seq", *TABLES[name]) for name in TABLES}
    return {**columns, _LOSSES: ("run", "topic_id", "part", "lossy")}


@cache
def _views() -> Views:
    """The views of all rules, each compiled on first use."""
    return Views(VIEWS, _columns())
