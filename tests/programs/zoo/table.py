"""The zoo: each fault, around which disturbances it is looked for, and where it was found."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of a program.

    Shapes:  name: its module in this folder. disturbances: words of the marker. seed: the first of
             1, 2, … that finds it, and the cluster's seed with it; drawn: its disturbances; left:
             how many it takes. shrunk: the steps of these, each with the time since the test began.
             survived: how many seeds, from 1 on, the repaired form has survived.
    """

    name: str
    disturbances: str = "kill pause cut bounce"
    seed: int
    cluster_seed: int
    drawn: int
    left: int
    shrunk: tuple[tuple[str, str, dict[str, Any]], ...]
    survived: int


def module_of(name: str) -> ModuleType:
    """The programs of a fault, and its test."""
    return import_module(f"tests.programs.zoo.{name}")


FAULTS = (
    Fault(
        name="early_commit",
        seed=4,
        cluster_seed=259523371,
        drawn=3,
        left=1,
        survived=25,
        shrunk=(("32s", "bounce", {"node": "app(two)", "down": "200ms"}),),
    ),
    Fault(
        name="position_commit",
        seed=4,
        cluster_seed=3497025115,
        drawn=3,
        left=2,
        survived=25,
        shrunk=(
            ("32s", "bounce", {"node": "app(two)", "down": "200ms"}),
            ("6s", "bounce", {"node": "broker(1)", "down": "1s"}),
        ),
    ),
    Fault(
        name="unflushed_state",
        seed=1,
        cluster_seed=4176017323,
        drawn=6,
        left=1,
        survived=25,
        shrunk=(("10s", "bounce", {"node": "app(one)", "down": "170ms"}),),
    ),
    Fault(
        name="zombie_write",
        seed=2,
        cluster_seed=1149723981,
        drawn=2,
        left=1,
        survived=60,
        shrunk=(("9s", "pause", {"node": "app(one)", "lasting": "8s"}),),
    ),
    Fault(
        name="skipping_reset",
        seed=1,
        cluster_seed=835064445,
        drawn=6,
        left=1,
        survived=60,
        shrunk=(("5s", "bounce", {"node": "app(one)", "down": "170ms"}),),
    ),
    Fault(
        name="reordering_retry",
        seed=3,
        cluster_seed=2359525893,
        drawn=5,
        left=1,
        survived=60,
        shrunk=(("2s", "bounce", {"node": "broker(2)", "down": "1s"}),),
    ),
    Fault(
        name="unfenced_transaction",
        seed=2,
        cluster_seed=811903262,
        drawn=2,
        left=1,
        survived=15,
        shrunk=(("9s", "pause", {"node": "app(one)", "lasting": "17s"}),),
    ),
    Fault(
        name="lost_wakeup",
        seed=1,
        cluster_seed=900008257,
        drawn=6,
        left=1,
        survived=50,
        shrunk=(("5s", "bounce", {"node": "app(one)", "down": "170ms"}),),
    ),
    Fault(
        name="early_shutdown",
        disturbances="terminate kill pause",
        seed=5,
        cluster_seed=1880000696,
        drawn=8,
        left=2,
        survived=25,
        shrunk=(
            ("1s", "bounce", {"node": "app(two)", "down": "340ms"}),
            ("15s", "terminate", {"app": "app(two)"}),
            ("23s", "restart", {"node": "app(two)"}),
        ),
    ),
)


def explored(seeds: int) -> list[Any]:
    """Each fault's name as a parameter, with the marker that explores it."""
    return [
        pytest.param(
            fault.name,
            marks=pytest.mark.mini_cluster_explore(
                seeds=seeds, disturbances=fault.disturbances, apps="one two", calm="40s"
            ),
        )
        for fault in FAULTS
    ]
