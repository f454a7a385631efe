"""Judges ZooKeeper's transaction log, line by line, by the conditions that Spark reads.

A rule's conditions are compiled once in a process; each row of a line is judged as it comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.verify.engine.checks import Held, Views, sources_of
from minicluster.verify.rules import VIEWS, ZNODE_RULES, ZNODE_VIEWS
from minicluster.verify.rules.model import Finding
from minicluster.verify.tally import Tallies
from minicluster.verify.zookeeper.columns import COLUMNS
from minicluster.verify.zookeeper.reader import Line, Named, ZnodeLogReader

_VIEW_OF = {source: name for name in ZNODE_VIEWS for source in sources_of(VIEWS[name])}
_CHECKS = {
    name: [(rule, check) for rule in ZNODE_RULES for check in rule.checks if check.view == name]
    for name in (*ZNODE_VIEWS, None)
}


def _held(table: str, row: tuple[Any, ...]) -> Held:
    """One row of a table, and what views make of it."""
    return Held(_views(), lambda _: [], {table: [row]})


@cache
def _views() -> Views:
    return Views(VIEWS, {name: tuple(columns) for name, columns in COLUMNS.items()})


class ZnodeChecker:
    """All rules over one log.

    Shapes:  members_checked and left_out as ``ZnodeLogReader`` has them; a finding's offset is the
             zxid.
    """

    def __init__(
        self,
        protocol: InterBrokerProtocol,
        *,
        run: str = "online",
        members_checked: bool = True,
        left_out: Iterable[str] = (),
    ) -> None:
        self.findings: list[Finding] = []
        self._run = run
        self._tallies = Tallies()
        self._reader = ZnodeLogReader(
            protocol, run=run, members_checked=members_checked, left_out=left_out
        )

    @property
    def looked_at(self) -> Mapping[str, int]:
        """The cases of each rule."""
        return {rule.id: self._tallies.of(rule.id, self._run).looked_at for rule in ZNODE_RULES}

    def on_line(self, line: Line) -> list[Finding]:
        """Judge one line; returns what is new."""
        return self._judge(self._reader.take(line))

    def end(self, now_ms: int) -> list[Finding]:
        """The log has ended at a time; returns what is new."""
        return self._judge(self._reader.end(now_ms))

    def _judge(self, rows: Iterable[Named]) -> list[Finding]:
        new: list[Finding] = []
        for table, row in rows:
            view = _VIEW_OF.get(table)
            seen = [] if view is None else _held(table, row).rows(view)
            for rule, check in _CHECKS.get(view, ()) if seen else ():
                found = _views().check(rule, check, seen)
                held = len(self._tallies.of(rule.id, self._run).findings)
                counts = (found.looked_at, found.not_promised)
                self._tallies.add_check(rule, check, self._run, counts, found.findings)
                new += self._tallies.of(rule.id, self._run).findings[held:]
        self.findings += new
        return new
