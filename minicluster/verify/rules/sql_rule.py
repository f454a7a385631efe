"""A rule in SQL over the views, which Spark plans: for people who know their promise as a query."""

from __future__ import annotations

from typing import Any

from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import NOTHING_HAPPENED, Rule

FINDING_COLUMNS = ("run", "offset", "topic", "partition", "broker", "message")


class SqlRule(Rule):
    """One promise as two queries.

    Shapes:  cases: its rows are what the rule looks at, each with the column ``run``. findings: its
             rows are violations, with ``run`` and ``message``, and ``offset``, ``topic``,
             ``partition``, ``broker`` where it has them.
    """

    def __init__(self, id: str, title: str, statement: str, cases: str, findings: str) -> None:
        super().__init__(id, title, "a rule of your own", Evidence.LOG, (), NOTHING_HAPPENED)
        self.statement = statement
        self.cases = cases
        self.findings = findings

    def __reduce__(self) -> tuple[Any, ...]:
        return SqlRule, (self.id, self.title, self.statement, self.cases, self.findings)


def sql_rule(id: str, title: str, *, promise: str = "", cases: str, findings: str) -> SqlRule:
    """Declare a rule in SQL over the views of docs/reference/views.md.

    ::

        lonely = sql_rule(
            "MY1",
            "No ISR has one member",
            cases="select run from isr_changes",
            findings=\"\"\"select run, offset, topic, partition, concat('ISR ', isr) as message
                from isr_changes where size(isr) = 1\"\"\",
        )
    """
    return SqlRule(id, title, promise or title, cases, findings)
