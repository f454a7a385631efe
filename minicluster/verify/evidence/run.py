"""A run as the rules judge it: logs, the committed log and its operations, trace, header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import field

from minicluster.log.batch import RecordBatch
from minicluster.log.committed_log import NodeLog, Start
from minicluster.log.errors import UnknownState
from minicluster.rules import Rules
from minicluster.values import Value, replace
from minicluster.verify.evidence.run_header import RunHeader
from minicluster.verify.model import Evidence
from minicluster.zookeeper.log.columns import COLUMNS, OPERATIONS
from minicluster.zookeeper.log.reader import Named


class Problem(Value, kw_only=True):
    """Evidence that is damaged, or missing where the run should have it."""

    evidence: Evidence
    why: str
    table: str | None = None
    partial: bool = False  # the structure of the log can still be judged


class Extent(Value, kw_only=True):
    """The size of a run: committed records or ZooKeeper's operations, their offsets, logs."""

    records: int
    first_offset: int
    end_offset: int
    logs: int


class Run(Value, kw_only=True):
    """The evidence of one run; a plain metadata log is a run without header and trace."""

    name: str
    path: Path
    header: RunHeader | None
    nodes: tuple[NodeLog, ...]
    committed: tuple[RecordBatch, ...]
    start: Start | None
    uncommitted: int  # records on some log that were never committed
    lost: bool = False  # too few logs are whole for a majority: the committed log is uncertain
    trace: dict[str, Path] = field(default_factory=dict)
    znodes: tuple[Named, ...] = ()  # the log of ZooKeeper as rows
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    known_extent: Extent | None = None  # of a run without its contents

    @property
    def foldable(self) -> bool:
        """The state from which its committed log begins is recorded."""
        return self.start is not None or self.on_zookeeper or self.extent.first_offset == 0

    def check_state(self) -> None:
        """Reject a run whose state, as of its end, cannot be known.

        Errors:  UnknownState with the file and the place.
        """
        if self.on_zookeeper:
            return
        of_log = [problem for problem in self.problems if problem.evidence is Evidence.LOG]
        begins = bool(self.committed) or self.start is not None
        if self.lost or not self.foldable or not begins:
            why = f"{self.path}: no committed record and no snapshot"
            raise UnknownState(of_log[0].why if of_log else why)

    @property
    def is_run(self) -> bool:
        """It was played by minicluster: it has a header and a trace."""
        return self.header is not None

    @property
    def on_zookeeper(self) -> bool:
        """It was played on ZooKeeper: it has znodes in place of a metadata log."""
        return self.header is not None and self.header.protocol is not None

    def znode_rows(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of one table of ZooKeeper's log, by the names of its columns."""
        for name, row in self.znodes:
            if name == table:
                yield dict(zip(COLUMNS[table], row, strict=True))

    @property
    def rules(self) -> Rules | None:
        """The rules that it was played by, None where they are not recorded."""
        return None if self.header is None else self.header.rules

    @property
    def extent(self) -> Extent:
        """The size of the run."""
        if self.known_extent is not None:
            return self.known_extent
        if self.on_zookeeper:
            zxids = [row["offset"] for row in self.znode_rows(OPERATIONS)] or [0]
            return Extent(
                records=len(zxids), first_offset=zxids[0], end_offset=zxids[-1] + 1, logs=1
            )
        return Extent(
            records=sum(batch.count for batch in self.committed),
            first_offset=self.committed[0].base_offset if self.committed else 0,
            end_offset=self.committed[-1].next_offset if self.committed else 0,
            logs=len(self.nodes),
        )


def without_contents(run: Run) -> Run:
    """The run as a verdict needs it, without its logs and tables."""
    return replace(
        run,
        nodes=(),
        committed=(),
        start=None,
        trace={},
        znodes=(),
        known_extent=run.extent,
    )
