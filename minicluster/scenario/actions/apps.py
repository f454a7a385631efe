"""The actions on users' programs inside the simulation; others take them as nodes."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

from minicluster.scenario.actions.action import Action
from minicluster.scenario.actions.arguments import Hosts, Nodes, Program, Text
from minicluster.values import dataclass

Signal = Literal["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"]


@dataclass(frozen=True, slots=True)
class App(Action):
    """Start a program of one's own inside the simulated cluster, in virtual time.

    Arguments:  run: a coroutine function, or a plain one, which gets a thread. user: whose its
                connections are that do not log in, such as alice. allow_real: hosts outside of the
                simulation; such a run does not repeat from its seed.
    Returns: its handle.
    Errors:  UserError for a name that another app has, for a function that is not found, and for a
             cluster that is not simulated, or has listeners.
    """

    name: Text
    run: Program
    _: KW_ONLY
    user: Text | None = None
    allow_real: Hosts = ()


@dataclass(frozen=True, slots=True)
class Terminate(Action):
    """Send a signal to apps, SIGTERM at first; one without a handler for it ends at once."""

    app: Nodes
    signal: Signal = "SIGTERM"
