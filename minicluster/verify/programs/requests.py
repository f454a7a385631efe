"""The requests of users' programs, each with the process that sent it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.values import dataclass
from minicluster.verify.evidence.run_header import ProgramLife
from minicluster.verify.histories.traced_run import Row, TracedRun


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a program."""

    program: str
    number: int
    life: ProgramLife

    @property
    def text(self) -> str:
        """The program; of a later process with its number."""
        return self.program if self.number == 1 else f"{self.program} (process {self.number})"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a program, and by whom; ``handled``: the event of its handling."""

    process: Process
    api: str
    handled: int | None


class ProgramRequests:
    """The requests of users' programs, each with the process that sent it."""

    def __init__(self, run: TracedRun) -> None:
        self._processes: dict[int, list[Process]] = {
            app.node: [Process(app.name, number, life) for number, life in enumerate(app.lives, 1)]
            for app in run.header.apps
        }
        self.processes = [one for several in self._processes.values() for one in several]
        self.by_id: dict[int, Asked] = {}
        self.last_error: dict[Process, str] = {}
        for row in self.rows(run):
            process = self.process_of(row)
            if process is None:
                continue
            self.by_id[row["id"]] = Asked(process, row["api"], row["handle_seq"])
            if row["error"] not in (None, "NONE") and row["answer"] is None:
                said = f"{row['api']} was answered {row['error']} by broker {row['dst']}"
                self.last_error[process] = said

    def rows(self, run: TracedRun) -> Iterator[Row]:
        """The rows of ``rpc`` that programs sent."""
        return (row for row in run.rows("rpc") if row["src"] in self._processes)

    def process_of(self, row: Row) -> Process | None:
        """The process that sent a request."""
        before = [
            process
            for process in self._processes.get(row["src"], ())
            if process.life.started_ms <= (row["sent_ms"] or 0)
        ]
        return before[-1] if before else None


def program_requests(run: TracedRun) -> ProgramRequests:
    """Context: the requests of users' programs."""
    return ProgramRequests(run)


def body(row: Row, column: str) -> Mapping[str, Any]:
    """A request or response as its table has it: a text on disk, the value itself in memory."""
    value = row[column]
    read = json.loads(value) if isinstance(value, str) else value
    return read if isinstance(read, Mapping) else {}
