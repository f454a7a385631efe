"""A scenario from a seed for brokers on ZooKeeper, within what Kafka promised to survive there.

Sessions expire, brokers and the controller crash, shut down and are paused, links lose one kind of
request, partitions are reassigned, topics come and go. One topic elects unclean leaders; its
records are sent with acks=1, for nothing is promised about them. ZooKeeper itself keeps what it
has: a quorum of servers loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minicluster.durations import format_duration
from minicluster.scenario.nemesis.draws import (
    NOTHING,
    TOPICS,
    Draws,
    Events,
    Kind,
    Needs,
    Step,
    World,
    lasting,
    replicated_load,
)
from minicluster.scenario.nemesis.generating import (
    CHAOS_MS,
    FOCUSED_PER_MINUTE,
    KINDS,
    LIVENESS_BOUND,
    WARM_UP_MS,
)
from minicluster.scenario.reading import steps_of
from minicluster.scenario.scenario import Scenario
from minicluster.scenario.view import ZOOKEEPER_NODE
from minicluster.values import dataclass

UNCLEAN_TOPIC = "gamma"
LEVELS = ("2.6", "2.6", "2.6", "2.7-IV2", "2.7-IV2", "2.8", "3.0", "3.2", "3.4", "3.9", "3.9")
SESSION_MS = (4_000, 18_000)
_SHARED = (
    "isolate", "slow link", "clog", "crash broker", "crash victim", "pause", "shut down", "clock",
    "fail directory", "topic", "reassign", "config", "elect",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Brokers(World):
    """A cluster whose controller is a broker."""

    def node(self, draws: Draws, name: str) -> str:
        """A broker, or the active controller."""
        controls = draws.flip(f"{name}/kind", 0.3)
        return self.controller(draws, name) if controls else self.broker(draws, name)

    def controller(self, draws: Draws, name: str) -> str:
        """The broker that is the controller."""
        return "active_controller()"


def _session(draws: Draws, name: str, world: World) -> Events:
    """A broker loses ZooKeeper: shortly, or until its session has expired."""
    broker = world.node(draws, name)
    both = draws.flip(f"{name}/both", 0.6)
    step = {"do": "cut", "src": broker, "dst": ZOOKEEPER_NODE, "both": both}
    if not both and draws.flip(f"{name}/way"):
        step |= {"src": ZOOKEEPER_NODE, "dst": broker}
    yield 0, {**step, **lasting(draws, name, 1, 40)}


def _late_watches(draws: Draws, name: str, world: World) -> Events:
    """The watch events of a broker are late: a deposed controller continues for so long."""
    step = {"do": "cut", "src": ZOOKEEPER_NODE, "dst": world.controller(draws, name)}
    yield 0, {**step, "api": "ZooKeeperWatch", **lasting(draws, name, 1, 15)}
    if draws.flip(f"{name}/follows"):
        after_ms = draws.between(f"{name}/after", 100, 2_000)
        src = {"do": "cut", "src": world.broker(draws, name), "dst": ZOOKEEPER_NODE, "both": True}
        yield after_ms, {**src, **lasting(draws, f"{name}/session", 5, 30)}


def _cut_api(draws: Draws, name: str, world: World) -> Events:
    """One purpose of one link fails: fetches, ISR changes, the controller's requests."""
    topic = TOPICS[draws.below(f"{name}/topic", len(TOPICS))]
    leader, active = f"leader({topic}-0)", "active_controller()"
    links = (
        (f"follower({topic}-0)", leader, "Fetch"),
        (leader, active, "AlterPartition"),
        (active, leader, "AlterPartition"),
        (active, world.broker(draws, name), "LeaderAndIsr"),
        (active, world.broker(draws, name), "UpdateMetadata"),
        (active, world.broker(draws, name), "StopReplica"),
        (leader, ZOOKEEPER_NODE, "ZooKeeperOperation"),
    )
    src, dst, api = links[draws.below(f"{name}/link", len(links))]
    yield 0, {"do": "cut", "src": src, "dst": dst, "api": api, **lasting(draws, name, 2, 45)}


def _split(draws: Draws, name: str, world: World) -> Events:
    """A part of the brokers against the rest and ZooKeeper."""
    brokers = range(1, world.brokers + 1)
    away = [f"broker({broker})" for broker in brokers if draws.flip(f"{name}/in/{broker}")]
    rest = [f"broker({broker})" for broker in brokers if f"broker({broker})" not in away]
    if away and rest:
        groups = [away, [*rest, ZOOKEEPER_NODE]]
        yield 0, {"do": "partition", "groups": groups, **lasting(draws, name, 1, 30)}


def _crash_controller(draws: Draws, name: str, world: World) -> Events:
    down = format_duration(draws.between(f"{name}/down", 200, 20_000))
    yield 0, {"do": "bounce", "node": "active_controller()", "down": down}


def _shut_down_controller(draws: Draws, name: str, world: World) -> Events:
    yield 0, {"do": "controlled_shutdown", "node": "active_controller()"}
    after_ms = draws.between(f"{name}/down", 2_000, 20_000)
    # It may be another broker by now; the last step starts what is down.
    yield after_ms, {"do": "restart", "node": f"broker({1 + draws.below(name, world.brokers)})"}


def _slow_zookeeper(draws: Draws, name: str, world: World) -> Events:
    """ZooKeeper responds to nobody for a while: sessions of everybody may expire."""
    duration = format_duration(draws.between(f"{name}/lasting", 200, 8_000))
    yield 0, {"do": "pause", "node": ZOOKEEPER_NODE, "lasting": duration}


def _unclean(draws: Draws, name: str, world: World) -> Events:
    """The leader alone is in the ISR, crashes, and another replica leads without its records."""
    leader = f"leader({UNCLEAN_TOPIC}-0)"
    cut = {"do": "cut", "src": f"follower({UNCLEAN_TOPIC}-0)", "dst": leader, "api": "Fetch"}
    yield 0, {**cut, **lasting(draws, name, 10, 30)}
    after_ms = draws.between(f"{name}/after", 5_000, 20_000)
    down = format_duration(draws.between(f"{name}/down", 8_000, 25_000))
    yield after_ms, {"do": "bounce", "node": leader, "down": down}
    if draws.flip(f"{name}/requested"):
        step = {"do": "elect", "partitions": f"{UNCLEAN_TOPIC}-0", "election_type": "UNCLEAN"}
        yield after_ms + 7_000, {**step, "may_fail": True, "within": "3s"}


KINDS_ON_ZOOKEEPER = (
    *(kind for kind in KINDS if kind.name in _SHARED),
    Kind("session", 2.0, _session),
    Kind("late watches", 1.0, _late_watches),
    Kind("cut api", 1.5, _cut_api),
    Kind("split", 0.7, _split),
    Kind("crash controller", 0.7, _crash_controller),
    Kind("shut down controller", 0.3, _shut_down_controller),
    Kind("slow ZooKeeper", 0.3, _slow_zookeeper),
    Kind("unclean election", 0.7, _unclean),
)


def generate_on_zookeeper(
    seed: int,
    variation: Sequence[int] = (),
    needs: Needs = NOTHING,
    *,
    protocol: str | None = None,
) -> Scenario:
    """The scenario of a seed, or of a variation of it (``Draws``).

    Shapes:  needs: of a planted fault, which the scenario then has. protocol: an
             inter.broker.protocol.version, drawn where none is given.
    """
    draws = Draws(seed, variation, needs)
    world = _Brokers(
        brokers=(3, 3, 4, 5)[draws.below("brokers", 4)],
        controllers=0,
        log_dirs=2 if draws.flip("log dirs", 0.25) else 1,
        victim=1 + draws.below("victim", 3),
        dynamic=False,
    )
    drawn = LEVELS[draws.below("level", len(LEVELS))]
    chaos_ms = draws.between("chaos", *CHAOS_MS)
    events = [*_background(draws), *_disturbances(draws, world, chaos_ms)]
    events.sort(key=lambda event: event[0])  # stable: what was drawn first comes first
    steps: list[Step] = [*_load(draws)]
    steps += [{"at": format_duration(at_ms), **step} for at_ms, step in events]
    steps.append(
        {"at": format_duration(WARM_UP_MS + chaos_ms), "do": "liveness", "bound": LIVENESS_BOUND}
    )
    return Scenario(
        name="nemesis-on-zookeeper",
        description=f"drawn from seed {seed}",
        mode="zookeeper",
        inter_broker_protocol=protocol or drawn,
        brokers=world.brokers,
        seed=seed,
        config=_config_of(draws, world),
        steps=steps_of(steps, f"nemesis {seed}"),
    )


def _config_of(draws: Draws, world: World) -> dict[str, Any]:
    config: dict[str, Any] = {
        "zookeeper.session.timeout.ms": draws.between("session", *SESSION_MS),
        "replica.lag.time.max.ms": draws.between("lag", 2_000, 12_000),
    }
    if world.log_dirs > 1:
        config["log.dirs"] = ",".join(f"d{n}" for n in range(world.log_dirs))
    if draws.flip("rebalance"):
        interval_s = draws.between("rebalance/ms", 2_000, 30_000) // 1_000
        config["leader.imbalance.check.interval.seconds"] = interval_s
    return config


def _load(draws: Draws) -> Iterator[Step]:
    yield from replicated_load(draws)
    yield {"do": "create_topic", "name": UNCLEAN_TOPIC, "unclean": True}
    yield {"do": "produce", "topic": UNCLEAN_TOPIC, "rate": 2, "acks": "1"}


def _background(draws: Draws) -> Iterator[tuple[int, Step]]:
    """Faults of the links between brokers, all the time."""
    link: Step = {"src": "brokers", "dst": "brokers"}
    if draws.flip("loss"):
        p = round(0.1 * draws.fraction("loss/p"), 3)
        yield WARM_UP_MS, {"do": "loss", **link, "p": p}
    if draws.flip("delay"):
        mean = draws.between("delay/mean", 1, 50)
        yield WARM_UP_MS, {"do": "delay", "src": "all", "dst": "all", "mean": f"{mean}ms"}


def _disturbances(draws: Draws, world: World, chaos_ms: int) -> Iterator[tuple[int, Step]]:
    swarm = draws.flip("swarm")
    for kind in KINDS_ON_ZOOKEEPER:
        per_minute = kind.per_minute
        if swarm:
            is_in = draws.flip(f"{kind.name}/in")
            per_minute *= 3 * draws.fraction(f"{kind.name}/rate") if is_in else 0.0
        if kind.name in draws.needs.kinds:
            per_minute = max(per_minute, FOCUSED_PER_MINUTE)
        for n in range(draws.count(kind.name, per_minute * chaos_ms / 60_000)):
            name = f"{kind.name}/{n}"
            begins_ms = WARM_UP_MS + draws.below(f"{name}/at", chaos_ms) // 100 * 100
            for after_ms, step in kind.steps(draws, name, world):
                yield begins_ms + after_ms, step
