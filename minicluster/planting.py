"""Named steps of a rule, and the planted faults that wrap them.

A rule marks a function as a ``step``; the zoo (``minicluster.zoo``, one module per machine) names
the steps that a fault changes. The rule itself then reads as Kafka's, without a branch for faults::

    @step
    def may_join_isr(state: ClusterState, broker_id: int) -> bool: ...

    @plant(may_join_isr, "z01_no_eligibility_check")
    def _z01(original: Callable[..., bool], state: ClusterState, broker_id: int) -> bool:
        allowed = original(state, broker_id)
        if not allowed:
            state.hit("Z01")
        return True

**Invariant:** with no fault switched on, a step is its function (tests/house/test_planting.py).

A step is part of its rule: one that only returns what it was given would be a place for faults and
nothing to a reader. Where none fits, the rule's next larger part is the step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec, Protocol, TypeVar, TypeVarTuple

from minicluster.faults import Faults

P = ParamSpec("P")
Ts = TypeVarTuple("Ts")
R = TypeVar("R")


class Plantable(Protocol):
    """The first argument of a step: it holds the planted faults and counts the hits."""

    @property
    def faults(self) -> Faults:
        """The planted faults of this run."""

    def hit(self, zoo_id: str) -> None:
        """Count that a planted fault has changed what the machine did."""


class Planted:
    """The planted faults and their hits, as the first argument of a step without a machine."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.hits: list[str] = []

    def hit(self, zoo_id: str) -> None:
        """Count that a planted fault has changed what a step did."""
        self.hits.append(zoo_id)

    def take_hits(self) -> list[str]:
        """The zoo ids of the hits since the last time."""
        hits, self.hits = self.hits, []
        return hits


S = TypeVar("S", bound=Plantable)

PLANTED_AT: dict[str, list[Callable[..., Any]]] = {}
"""The steps that each switch is planted at; empty until the zoo is imported."""


def step(function: Callable[[S, *Ts], R]) -> Callable[[S, *Ts], R]:
    """Make a function a named step, which a planted fault may wrap or replace.

    Shapes:  a step takes its arguments by position.
    """
    planted: list[tuple[str, Callable[..., R]]] = []

    @wraps(function)
    def run(*arguments: *tuple[S, *Ts]) -> R:
        state = arguments[0]
        if not state.faults.is_any_on:
            return function(*arguments)
        if not PLANTED_AT:
            # Otherwise a run would be judged as one that survives its fault.
            raise RuntimeError("faults are on, but none is planted: import minicluster.zoo")
        call: Callable[..., R] = function
        for switch, fault in planted:
            if getattr(state.faults, switch):
                call = partial(fault, call)
        return call(*arguments)

    run.planted = planted  # type: ignore[attr-defined]
    return run


def plant(where: Callable[..., Any], switch: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register what a fault does at a step: it gets the original step first, then its arguments.

    Shapes:  switch is the name of a field of ``Faults``.
    Errors:  TypeError where the function is not a step, or the switch not a field of ``Faults``.
    """
    planted = getattr(where, "planted", None)
    if planted is None:
        raise TypeError(f"{where!r} is not a step")
    if not hasattr(Faults.NONE, switch):
        raise TypeError(f"Faults has no {switch}")

    def register(fault: Callable[P, R]) -> Callable[P, R]:
        planted.append((switch, fault))
        PLANTED_AT.setdefault(switch, []).append(where)
        return fault

    return register
