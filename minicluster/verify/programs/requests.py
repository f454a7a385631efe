"""The requests of users' programs, each with the process that sent it."""

from __future__ import annotations

from collections.abc import Iterable

from minicluster.values import Value
from minicluster.verify.evidence.run_header import ProgramLife, ProgramRun
from minicluster.verify.exchange.exchange import Exchange


class Process(Value):
    """A process of a program."""

    program: str
    number: int
    life: ProgramLife

    @property
    def text(self) -> str:
        """The program; of a later process with its number."""
        return self.program if self.number == 1 else f"{self.program} (process {self.number})"


class Asked(Value):
    """A request of a program, and by whom; ``handled``: the event of its handling."""

    process: Process
    api: str
    handled: int | None


class Processes:
    """The processes of programs.

    Shapes:  by_id: their requests, by number. last_error: that a broker has told each.
    """

    def __init__(self, programs: Iterable[ProgramRun]) -> None:
        self._of_node = {
            program.node: [
                Process(program.name, number, life) for number, life in enumerate(program.lives, 1)
            ]
            for program in programs
        }
        self.every = [one for several in self._of_node.values() for one in several]
        self.by_id: dict[int, Asked] = {}
        self.last_error: dict[Process, str] = {}

    def on_exchange(self, exchange: Exchange) -> Process | None:
        """An exchange that has ended -> the process that has sent the request, if one has."""
        before = [
            process
            for process in self._of_node.get(exchange.sender, ())
            if process.life.started_ms <= (exchange.sent_ms or 0)
        ]
        if not before:
            return None
        process, api = before[-1], exchange.api
        self.by_id[exchange.id] = Asked(process, api, exchange.handle_seq)
        if exchange.error not in (None, "NONE") and not exchange.has_other_answer:
            said = f"{api} was answered {exchange.error} by broker {exchange.receiver}"
            self.last_error[process] = said
        return process
