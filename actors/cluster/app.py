"""The handle of a user's program inside the simulated cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minicluster.actors.cluster.actions import processes
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.scenario.actions.apps import Signal
from minicluster.scenario.actions.arguments import Duration

if TYPE_CHECKING:
    from minicluster.actors.programs.program import Program


class App:
    """A program inside the simulated cluster, running or not.

    It is a node of the network, and of the vocabulary: ``app(orders-1)``.
    """

    __slots__ = {
        "_cluster": "",
        "id": "The number by which selectors know it.",
        "name": "Its name.",
    }

    def __init__(self, cluster: ClusterRoles, program: Program) -> None:
        self._cluster = cluster
        self.id = program.node
        self.name = program.name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, App):
            return False
        return (other.id, other._cluster) == (self.id, self._cluster)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"app {self.name}"

    @property
    def _program(self) -> Program:
        assert self._cluster.programs is not None
        return self._cluster.programs.by_name[self.name]

    @property
    def is_running(self) -> bool:
        """True while its process runs; a paused process runs."""
        return self._program.is_running

    @property
    def error(self) -> BaseException | None:
        """The error with which it has ended; None while it runs, and for any other end.

        An error that the test has read is its own affair, as that of a task in asyncio; one that
        nobody has read breaks rule P5 when the test ends.
        """
        program = self._program
        if program.error is not None:
            program.current.error_read = True
        return program.error

    @property
    def result(self) -> Any:
        """The value that its function has returned."""
        return self._program.current.result

    def kill(self) -> None:
        """End its process at once (SIGKILL): no line of it runs any more, no ``finally``."""
        processes.kill(self._cluster, self)

    def pause(self, *, lasting: Duration | None = None) -> None:
        """Stop its steps (SIGSTOP), for a while or until it is resumed; its connections stay."""
        processes.pause(self._cluster, self, lasting=lasting)

    def resume(self) -> None:
        """Let it continue after a pause (SIGCONT)."""
        processes.resume(self._cluster, self)

    def restart(self) -> None:
        """Start it again, as a new process; one that runs is killed first."""
        processes.restart(self._cluster, self)

    def terminate(self, signal: Signal = "SIGTERM") -> None:
        """Send it a signal: its handler is called.

        One without a handler ends it at once, as it would; but SIGINT cancels its main task, as
        ``asyncio.run`` has it.
        """
        processes.terminate(self._cluster, self, signal)
