"""Chance of a drawn scenario, the shape of its cluster, and what its kinds of faults share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any

from minicluster.durations import format_duration
from minicluster.lazy_dataclass import dataclass
from minicluster.scenario.scenario import FIRST_CONTROLLER

TOPICS = ("alpha", "beta")
Step = dict[str, Any]
Events = Iterator[tuple[int, Step]]  # (milliseconds after the event began, step)


class Draws:
    """Chance of one seed; each draw has a name of its own."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def fraction(self, name: str) -> float:
        """A number in [0, 1)."""
        text = f"{self._seed}/nemesis/{name}".encode()
        return int.from_bytes(blake2b(text, digest_size=7).digest(), "big") / (1 << 56)

    def below(self, name: str, bound: int) -> int:
        """A whole number from 0 to below the bound."""
        return int(self.fraction(name) * bound)

    def between(self, name: str, low: int, high: int) -> int:
        """A whole number from low to high, rounded to two digits: people read it."""
        value = low + self.below(name, high - low + 1)
        step: int = 10 ** max(0, len(str(value)) - 2)
        return max(low, value // step * step)

    def flip(self, name: str, p: float = 0.5) -> bool:
        """True with a probability."""
        return self.fraction(name) < p

    def count(self, name: str, mean: float) -> int:
        """The number of events of a rate (Poisson)."""
        left, n = math.exp(-mean), 0
        product = self.fraction(f"{name}/0")
        while product > left:
            n += 1
            product *= self.fraction(f"{name}/{n}")
        return n


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The shape of a seed's cluster."""

    brokers: int
    controllers: int
    log_dirs: int
    victim: int  # the broker whose crashes take what it has not flushed
    dynamic: bool  # kraft.version 1: the last controller may leave the voters

    def node(self, draws: Draws, name: str) -> str:
        """Any node, by its id or its role."""
        return (
            self.broker(draws, name)
            if draws.flip(f"{name}/kind", 0.6)
            else self.controller(draws, name)
        )

    def broker(self, draws: Draws, name: str) -> str:
        """Any broker."""
        topic = TOPICS[draws.below(f"{name}/topic", len(TOPICS))]
        roles = (f"leader({topic}-0)", f"follower({topic}-0)")
        which = draws.below(f"{name}/broker", self.brokers + len(roles))
        return roles[which] if which < len(roles) else f"broker({which - len(roles) + 1})"

    def controller(self, draws: Draws, name: str) -> str:
        """Any controller, the active one more often than others."""
        which = draws.below(f"{name}/controller", 2 * self.controllers)
        return f"controller({which})" if which < self.controllers else "active_controller()"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault: how often per minute, and what one such event is."""

    name: str
    per_minute: float
    steps: Callable[[Draws, str, World], Events]


def controller_ids(world: World) -> range:
    """The ids of all controllers."""
    return range(FIRST_CONTROLLER, FIRST_CONTROLLER + world.controllers)


def lasting(draws: Draws, name: str, low_s: int, high_s: int) -> Step:
    """How long a fault lasts."""
    lasting_ms = draws.between(f"{name}/lasting", 1_000 * low_s, 1_000 * high_s)
    return {"lasting": format_duration(lasting_ms)}


def down(draws: Draws, name: str) -> Step:
    """How long a node is down."""
    return {"down": format_duration(draws.between(f"{name}/down", 200, 20_000))}
