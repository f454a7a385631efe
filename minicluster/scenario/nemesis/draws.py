"""Chance of a drawn scenario, the shape of its cluster, and what its kinds of faults share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from msgspec import field

from minicluster.configs.views import broker_config, topic_default
from minicluster.durations import format_duration
from minicluster.scenario.scenario import FIRST_CONTROLLER
from minicluster.values import Value, dataclass

TOPICS = ("alpha", "beta")  # three replicas, of which two have to be in sync
LOSSY_TOPIC = "gamma"  # two replicas, and nothing that all of them acknowledge
REDRAWN = 0.3  # how many events a variation of a seed draws again
SHAPE = frozenset({"controllers", "brokers", "log dirs", "victim", "dynamic"})
Step = dict[str, Any]
Events = Iterator[tuple[int, Step]]  # (milliseconds after the event began, step)

LATE = format_duration(120_000)  # later than any sequence ends
WEEK_MS: int = topic_default("retention.ms")
QUICK_LAG_MS = 10_000  # of replica.lag.time.max.ms: an ISR shrinks during disturbances

MAY_FAIL = {"may_fail": True, "within": "2s"}
"""Arguments of a step that a disturbance may hold up."""


YES, NO = 0.0, math.nextafter(1.0, 0.0)  # fractions: a draw that is true, and one that is false


class Needs(Value, kw_only=True):
    """The needs of a planted fault: it acts in a scenario that has them.

    Shapes:  kinds: of disturbances, by their names. fixed: the fractions of draws, by theirs, such
             as ``{"clients": YES}``.
    """

    kinds: tuple[str, ...] = ()
    fixed: Mapping[str, float] = field(default_factory=dict)


NOTHING = Needs()


class Draws:
    """Chance of one seed; each draw has a name of its own.

    Shapes:  variation: numbers, one after the other; each draws some of the events again and leaves
             the others and the shape of the cluster as they are. needs: what is not left to chance.
    """

    def __init__(self, seed: int, variation: Sequence[int] = (), needs: Needs = NOTHING) -> None:
        self.needs = needs
        self._seed = seed
        self._variation = tuple(variation)
        self._prefixes: dict[str, str] = {}

    def fraction(self, name: str) -> float:
        """A number in [0, 1)."""
        if name in self.needs.fixed:
            return self.needs.fixed[name]
        return _hashed(f"{self._seed}/nemesis/{self._prefix(name)}{name}")

    def _prefix(self, name: str) -> str:
        """The last variation that draws the event of this name again, nothing if none does."""
        if not self._variation or name in SHAPE:
            return ""
        event = "/".join(name.split("/")[:2])
        if event not in self._prefixes:
            prefix = ""
            for count in range(1, len(self._variation) + 1):
                path = ".".join(map(str, self._variation[:count]))
                if _hashed(f"{self._seed}/varied/{path}/{event}") < REDRAWN:
                    prefix = f"{path}/"
            self._prefixes[event] = prefix
        return self._prefixes[event]

    def below(self, name: str, bound: int) -> int:
        """A whole number from 0 to below the bound."""
        return int(self.fraction(name) * bound)

    def between(self, name: str, low: int, high: int) -> int:
        """A whole number from low to high, rounded to two digits: people read it."""
        value = low + self.below(name, high - low + 1)
        step: int = 10 ** max(0, len(str(value)) - 2)
        return max(low, value // step * step)

    def flip(self, name: str, probability: float = 0.5) -> bool:
        """True with a probability."""
        return self.fraction(name) < probability

    def count(self, name: str, mean: float) -> int:
        """The number of events of a rate (Poisson, by Knuth's method)."""
        threshold, number = math.exp(-mean), 0
        product = self.fraction(f"{name}/0")
        while product > threshold:
            number += 1
            product *= self.fraction(f"{name}/{number}")
        return number


def _hashed(text: str) -> float:
    return int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "big") / (1 << 56)


def seed_text(seed: int, variation: Sequence[int]) -> str:
    """A seed as people write it: 7, or 7.2 for its second variation."""
    return ".".join(map(str, (seed, *variation)))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The shape of a seed's cluster.

    Shapes: apps: the names of users' programs; partitions: of topics that they use (orders-0);
             broker_ids: where they are not the numbers from 1.
    Units:  session_ms, lag_ms, request_ms set the pace of what follows from a disturbance.
    """

    brokers: int
    controllers: int
    log_dirs: int
    victim: int  # the broker whose crashes take what it has not flushed
    dynamic: bool  # kraft.version 1: the last controller may leave the voters
    clients: bool = False  # groups and transactions
    apps: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    broker_ids: tuple[int, ...] = ()
    session_ms: int = broker_config("broker.session.timeout.ms")
    lag_ms: int = broker_config("replica.lag.time.max.ms")
    request_ms: int = broker_config("request.timeout.ms")

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
        drawn = draws.below(f"{name}/broker", self.brokers + len(roles))
        return roles[drawn] if drawn < len(roles) else f"broker({drawn - len(roles) + 1})"

    def controller(self, draws: Draws, name: str) -> str:
        """Any controller, the active one more often than others."""
        drawn = draws.below(f"{name}/controller", 2 * self.controllers)
        return f"controller({drawn})" if drawn < self.controllers else "active_controller()"


def any_world(world: World) -> bool:
    """True for every cluster."""
    return True


def is_quick(world: World) -> bool:
    """True for a cluster whose ISRs shrink during disturbances."""
    return world.lag_ms <= QUICK_LAG_MS


def has_directories(world: World) -> bool:
    """True for brokers with several log directories."""
    return world.log_dirs > 1


def has_quorum(world: World) -> bool:
    """True where a controller may be lost."""
    return world.controllers >= 3


def is_dynamic(world: World) -> bool:
    """True where voters change."""
    return world.dynamic


class Kind(Value):
    """One kind of fault: how often per minute, what one such event is, and where it changes any."""

    name: str
    per_minute: float
    steps: Callable[[Draws, str, World], Events]
    fits: Callable[[World], bool] = any_world


def controller_ids(world: World) -> range:
    """The ids of all controllers."""
    return range(FIRST_CONTROLLER, FIRST_CONTROLLER + world.controllers)


def lasting(draws: Draws, name: str, low_s: int, high_s: int) -> Step:
    """The duration of a fault, drawn."""
    lasting_ms = draws.between(f"{name}/lasting", 1_000 * low_s, 1_000 * high_s)
    return {"lasting": format_duration(lasting_ms)}


def down(draws: Draws, name: str) -> Step:
    """The time for which a node is down."""
    return {"down": format_duration(draws.between(f"{name}/down", 200, 20_000))}


def topic_of(draws: Draws, name: str) -> str:
    """One of the topics with three replicas."""
    return TOPICS[draws.below(f"{name}/topic", len(TOPICS))]


def some_brokers(draws: Draws, name: str, world: World, count: int) -> list[int]:
    """So many different brokers, in any order."""
    candidates = list(range(1, world.brokers + 1))
    return [candidates.pop(draws.below(f"{name}/{n}", len(candidates))) for n in range(count)]


def own_topic(name: str, letter: str = "") -> str:
    """The name of a topic of one event alone."""
    return f"{name.replace(' ', '-').replace('/', '-')}{letter}"


def for_ms(milliseconds: int) -> Step:
    """The duration of a fault, given."""
    return {"lasting": format_duration(milliseconds)}


def fixed_delay(milliseconds: int) -> Step:
    """A delay that is the same for each message."""
    text = format_duration(milliseconds)
    return {"mean": text, "minimum": text}


def replicated_load(draws: Draws) -> Iterator[Step]:
    """The topics with three replicas, and a producer of each of their partitions."""
    for index, topic in enumerate(TOPICS):
        partitions = 1 + 2 * index
        yield {"do": "create_topic", "name": topic, "partitions": partitions, "min_isr": 2}
        for partition in range(partitions):
            rate = 1 + draws.below(f"rate/{topic}/{partition}", 10)
            acks = "all" if draws.flip(f"acks/{topic}/{partition}", 0.8) else "1"
            step = {"do": "produce", "topic": topic, "rate": rate, "acks": acks}
            yield {**step, "partition": partition}
