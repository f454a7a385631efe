"""The actions on users' programs inside the simulation; others take them as nodes."""

from __future__ import annotations

from typing import Literal

from minicluster.scenario.actions.action import Action
from minicluster.scenario.actions.arguments import Nodes, Program, Text
from minicluster.values import dataclass

Signal = Literal["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"]


@dataclass(frozen=True, slots=True)
class App(Action):
    """Start a program of one's own inside the simulated cluster, in virtual time.

    Shapes:  run: a coroutine function, or a plain one, which gets a thread; -> a handle.
    Errors:  UserError for a name that another app has, for a function that is not found, and for a
             cluster that is not simulated, or has listeners.
    """

    name: Text
    run: Program


@dataclass(frozen=True, slots=True)
class Terminate(Action):
    """Send a signal to apps, SIGTERM at first; one without a handler for it ends at once."""

    app: Nodes
    signal: Signal = "SIGTERM"
