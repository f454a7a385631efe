"""Planted faults beside the rule: a step, its wrapper, and the count of its hits."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

import minicluster.zoo  # noqa: F401  (plants the faults)
from minicluster import planting
from minicluster.actors.cluster.live_faults import LiveFaults
from minicluster.faults import Faults
from minicluster.planting import PLANTED_AT, plant, step
from tests.house.sources import module_of, nodes_of, sources


@dataclass
class State:
    faults: Faults
    hits: list[str] = field(default_factory=list)

    def hit(self, zoo_id: str) -> None:
        self.hits.append(zoo_id)


@step
def may_join(state: State, broker_id: int) -> bool:
    return broker_id < 10


@plant(may_join, "z01_no_eligibility_check")
def _z01(right: Callable[..., bool], state: State, broker_id: int) -> bool:
    if not right(state, broker_id):
        state.hit("Z01")
    return True


@plant(may_join, "z03_no_broker_epochs")
def _z03(right: Callable[..., bool], state: State, broker_id: int) -> bool:
    return right(state, broker_id - 1)


def test_without_a_fault_a_step_is_its_function() -> None:
    state = State(Faults.NONE)
    assert may_join(state, 9)
    assert not may_join(state, 10)
    assert state.hits == []


def test_a_planted_fault_wraps_the_step_and_counts_where_it_acted() -> None:
    state = State(Faults(z01_no_eligibility_check=True))
    assert may_join(state, 9)
    assert state.hits == []
    assert may_join(state, 10)
    assert state.hits == ["Z01"]


def test_a_fault_that_is_not_planted_changes_nothing() -> None:
    assert not may_join(State(Faults(z11_amending_bumps_epoch=True)), 10)


def test_two_faults_wrap_one_step() -> None:
    state = State(Faults(z01_no_eligibility_check=True, z03_no_broker_epochs=True))
    assert may_join(state, 10)
    assert may_join(state, 12)


def test_a_fault_of_a_running_cluster_acts_while_it_is_switched_on() -> None:
    faults = LiveFaults(Faults.NONE)
    state = State(faults)
    assert not faults.is_any_on
    assert not may_join(state, 10)
    faults.plant("Z01")
    faults.plant("Z11")
    assert may_join(state, 10)
    faults.plant("Z01", on=False)
    assert faults.is_any_on
    assert not may_join(state, 10)
    faults.plant("Z11", on=False)
    assert not faults.is_any_on


def test_a_fault_is_planted_at_a_step_and_has_a_name() -> None:
    with pytest.raises(TypeError, match="is not a step"):
        plant(len, "z01_no_eligibility_check")
    with pytest.raises(TypeError, match="has no z99"):
        plant(may_join, "z99")


def test_a_fault_that_nothing_plants_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run without the zoo would pass for one that survives its fault."""
    monkeypatch.setattr(planting, "PLANTED_AT", {})
    assert may_join(State(Faults.NONE), 9)
    with pytest.raises(RuntimeError, match="none is planted"):
        may_join(State(Faults(z01_no_eligibility_check=True)), 9)


def test_every_fault_is_planted() -> None:
    assert set(Faults.switches().values()) == set(PLANTED_AT)


def steps() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Each step of the machines, with the module that has it."""
    for path in sources("minicluster"):
        for node in nodes_of(path):
            decorators = getattr(node, "decorator_list", ())
            if isinstance(node, ast.FunctionDef) and "step" in map(ast.unparse, decorators):
                yield module_of(path), node


def test_every_step_has_a_fault() -> None:
    planted = {(at.__module__, at.__name__) for places in PLANTED_AT.values() for at in places}
    idle = [f"{module} {at.name}" for module, at in steps() if (module, at.name) not in planted]
    assert idle == []


def test_no_step_only_returns_what_it_was_given() -> None:
    """Such a step is a place for a fault and says nothing to a reader of the rule."""
    empty = []
    for module, at in steps():
        _, *body = at.body
        last = body[-1]
        returned = last.value if isinstance(last, ast.Return) else None
        if len(body) == 1 and isinstance(returned, ast.Name | ast.Constant):
            empty.append(f"{module} {at.name}")
    assert empty == []
