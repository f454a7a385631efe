"""Disturbances around users' programs: what happens to them, and to the brokers that they use.

Each draw hangs only on the seed, the number of the disturbance and its own name, so that one that
is left out changes no other. Each ends by itself: afterwards everything runs and is healed.

Source:  what a nemesis does to the nodes of a database, for its clients (Jepsen); rolling updates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minicluster.durations import format_duration, parse_duration_ms
from minicluster.errors import UserError, instead
from minicluster.scenario.nemesis.draws import Draws, Events, Kind, Step, World
from minicluster.values import Value, replace

DISTURBANCES_MAX = 8  # of a seed
TO_10_MS = 10
LASTING_MAX_MS = 60_000  # of a disturbance
_DURATIONS = ("lasting", "down", "mean")


class Disturbance(Value, kw_only=True):
    """One disturbance of a seed.

    Shapes:  number: which one of its seed; its draws hang on it. steps: of a scenario, each with
             the time after its begin.
    Units:   at_ms since the test's body began.
    """

    number: int
    kind: str
    at_ms: int
    steps: tuple[tuple[int, Step], ...]

    @property
    def ends_ms(self) -> int:
        """When all of it is over, since the body began."""
        return self.at_ms + max(after_ms + _lasting_ms(step) for after_ms, step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """The disturbance as plain values."""
        steps = [[after_ms, step] for after_ms, step in self.steps]
        return {"number": self.number, "kind": self.kind, "at_ms": self.at_ms, "steps": steps}

    @classmethod
    def of_dict(cls, value: dict[str, Any]) -> Disturbance:
        """The disturbance that ``to_dict`` has made plain."""
        steps = tuple((after_ms, step) for after_ms, step in value["steps"])
        return cls(**{**value, "steps": steps})


def _lasting_ms(step: Step) -> int:
    return max(parse_duration_ms(step[name]) if name in step else 0 for name in ("lasting", "down"))


def disturbances(
    seed: int, world: World, kinds: Sequence[Kind], begins_ms: int, lasts_ms: int
) -> tuple[Disturbance, ...]:
    """The disturbances of a seed, the earliest first.

    Units:   begins_ms, lasts_ms: the time in which they begin, since the test's body began.
    """
    draws = Draws(seed)
    fitting = [kind for kind in kinds if kind.fits(world)]
    drawn = []
    for number in range(1 + draws.below("count", DISTURBANCES_MAX) if fitting else 0):
        name = f"disturbance/{number}"
        kind = _kind(fitting, draws.fraction(f"{name}/kind"))
        at_ms = begins_ms + draws.below(f"{name}/at", max(1, lasts_ms)) // TO_10_MS * TO_10_MS
        steps = tuple(kind.steps(draws, name, world))
        drawn.append(Disturbance(number=number, kind=kind.name, at_ms=at_ms, steps=steps))
    return tuple(sorted(drawn, key=lambda each: (each.at_ms, each.number)))


def _kind(kinds: Sequence[Kind], fraction: float) -> Kind:
    """A kind at a place in all of their rates."""
    place = fraction * sum(kind.per_minute for kind in kinds)
    for kind in kinds:
        place -= kind.per_minute
        if place < 0:
            return kind
    return kinds[-1]


def kinds_of(words: str) -> tuple[Kind, ...]:
    """The kinds whose names begin with one of these words: ``kill pause cut bounce``.

    Errors:  UserError for a word that begins none.
    """
    known = list(dict.fromkeys(kind.name.split()[0] for kind in KINDS))
    for word in words.split():
        if word not in known:
            raise UserError(f"disturbances: unknown word {word!r}; {instead(word, known)}")
    return tuple(kind for kind in KINDS if kind.name.split()[0] in words.split())


def simpler(disturbance: Disturbance) -> Iterator[Disturbance]:
    """Simpler forms of a disturbance: at a full second, half as long."""
    if disturbance.at_ms % 1_000:
        yield replace(disturbance, at_ms=disturbance.at_ms // 1_000 * 1_000)
    for place, (after_ms, step) in enumerate(disturbance.steps):
        for name in _DURATIONS:
            value_ms = parse_duration_ms(step[name]) if name in step else 0
            if value_ms >= 2_000:
                half = format_duration(value_ms // 2_000 * 1_000)
                steps = list(disturbance.steps)
                steps[place] = after_ms, {**step, name: half}
                yield replace(disturbance, steps=tuple(steps))


def _duration(draws: Draws, name: str, low_ms: int, high_ms: int) -> str:
    """A duration of any order of magnitude: short ones meet races, long ones end sessions."""
    value = int(low_ms * (high_ms / low_ms) ** draws.fraction(name))
    digits = 10 ** max(0, len(str(value)) - 2)
    return format_duration(max(low_ms, value // digits * digits))


def _app(draws: Draws, name: str, world: World) -> str:
    return f"app({world.apps[draws.below(f'{name}/app', len(world.apps))]})"


def _broker(draws: Draws, name: str, world: World) -> str:
    """The leader of a partition, or any broker."""
    if world.partitions and draws.flip(f"{name}/leads"):
        of = world.partitions[draws.below(f"{name}/partition", len(world.partitions))]
        return f"leader({of})"
    ids = world.broker_ids or range(1, world.brokers + 1)
    return f"broker({ids[draws.below(f'{name}/broker', len(ids))]})"


def _kill_app(draws: Draws, name: str, world: World) -> Events:
    """SIGKILL, and a start a little later."""
    down = _duration(draws, f"{name}/down", 100, 10_000)
    yield 0, {"do": "bounce", "node": _app(draws, name, world), "down": down}


def _terminate_app(draws: Draws, name: str, world: World) -> Events:
    """SIGTERM, and a start later; what has not ended by then is killed."""
    app = _app(draws, name, world)
    yield 0, {"do": "terminate", "app": app}
    yield draws.between(f"{name}/down", 1_000, 10_000), {"do": "restart", "node": app}


def _pause_app(draws: Draws, name: str, world: World) -> Events:
    """SIGSTOP and SIGCONT: a garbage collection, a suspended machine, a zombie."""
    lasting = _duration(draws, f"{name}/lasting", 200, LASTING_MAX_MS)
    yield 0, {"do": "pause", "node": _app(draws, name, world), "lasting": lasting}


def _cut_app(draws: Draws, name: str, world: World) -> Events:
    """No packets between a program and one broker or all; or none in one direction."""
    app = _app(draws, name, world)
    others = "brokers" if draws.flip(f"{name}/all", 0.6) else _broker(draws, name, world)
    lasting = {"lasting": _duration(draws, f"{name}/lasting", 200, 30_000)}
    if draws.flip(f"{name}/both", 0.7):
        yield 0, {"do": "cut", "src": app, "dst": others, "both": True, **lasting}
    elif draws.flip(f"{name}/way"):
        yield 0, {"do": "cut", "src": app, "dst": others, **lasting}
    else:
        yield 0, {"do": "cut", "src": others, "dst": app, **lasting}


def _delay_app(draws: Draws, name: str, world: World) -> Events:
    """A program gets late what brokers send it."""
    mean = _duration(draws, f"{name}/mean", 50, 3_000)
    lasting = {"lasting": _duration(draws, f"{name}/lasting", 1_000, 30_000)}
    app = _app(draws, name, world)
    yield 0, {"do": "delay", "src": "brokers", "dst": app, "mean": mean, **lasting}


def _bounce_broker(draws: Draws, name: str, world: World) -> Events:
    down = _duration(draws, f"{name}/down", 500, 20_000)
    yield 0, {"do": "bounce", "node": _broker(draws, name, world), "down": down}


def _pause_broker(draws: Draws, name: str, world: World) -> Events:
    lasting = _duration(draws, f"{name}/lasting", 500, 20_000)
    yield 0, {"do": "pause", "node": _broker(draws, name, world), "lasting": lasting}


def _cut_broker(draws: Draws, name: str, world: World) -> Events:
    """No packets between a broker and anybody."""
    lasting = _duration(draws, f"{name}/lasting", 500, 20_000)
    yield 0, {"do": "isolate", "node": _broker(draws, name, world), "lasting": lasting}


def _has_apps(world: World) -> bool:
    return bool(world.apps)


KINDS = (
    Kind("kill app", 2.0, _kill_app, _has_apps),
    Kind("terminate app", 1.0, _terminate_app, _has_apps),
    Kind("pause app", 1.5, _pause_app, _has_apps),
    Kind("cut app", 1.0, _cut_app, _has_apps),
    Kind("delay app", 0.5, _delay_app, _has_apps),
    Kind("bounce broker", 1.0, _bounce_broker),
    Kind("pause broker", 0.3, _pause_broker),
    Kind("cut broker", 0.3, _cut_broker),
)
WORDS = "kill pause cut bounce"  # where nobody names others
