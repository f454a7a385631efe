"""A scenario from a seed: disturbances within what Kafka promises to survive, then ``liveness``.

Half of the seeds are a swarm: each kind of fault is in or out, and its rate is drawn. The other
half has every kind at its usual rate. All is drawn before anything runs, and each draw hangs only
on the seed and its own name, so that a random run and a script are the same kind of thing and a
step that is left out changes no other.

Limits of the disturbances (the fault atlas): one broker alone, always the same, may lose what
it has not flushed, and topics want two in-sync replicas, so no acknowledged record has its last
copies lost; controllers flush before anything counts, so each may lose its tail; one of three or
more controllers may leave the voters, and lose its disk, where voters can change; no lasting fault
outlives the run.

Source:  FoundationDB's swarm testing, TigerBeetle's VOPR, Jepsen's nemesis packages; the rates
         are per minute of cluster time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minicluster.durations import format_duration
from minicluster.scenario.nemesis.draws import (
    TOPICS,
    Draws,
    Events,
    Kind,
    Step,
    World,
    controller_ids,
    down,
    lasting,
)
from minicluster.scenario.nemesis.sequences import SEQUENCES
from minicluster.scenario.reading import steps_of
from minicluster.scenario.scenario import Scenario

WARM_UP_MS = 3_000
CHAOS_MS = (20_000, 90_000)
LIVENESS_BOUND = "180s"
CLIENTS = 0.3  # how many seeds have groups and transactions
SLOW_NETWORKS = 0.1  # how many seeds have delays beyond a session


def _isolate(draws: Draws, name: str, world: World) -> Events:
    yield 0, {"do": "isolate", "node": world.node(draws, name), **lasting(draws, name, 1, 30)}


def _split(draws: Draws, name: str, world: World) -> Events:
    """A part of all nodes against the rest, in both directions or in one."""
    some = [draws.flip(f"{name}/in/{n}") for n in range(world.brokers + world.controllers)]
    nodes = [
        *(f"broker({n})" for n in range(1, world.brokers + 1)),
        *(f"controller({n})" for n in range(world.controllers)),
    ]
    groups = [
        [node for node, inside in zip(nodes, some, strict=True) if inside],
        [node for node, inside in zip(nodes, some, strict=True) if not inside],
    ]
    if all(groups):
        symmetric = draws.flip(f"{name}/symmetric", 0.6)
        yield (
            0,
            {
                "do": "partition",
                "groups": groups,
                "symmetric": symmetric,
                **lasting(draws, name, 1, 30),
            },
        )


def _split_voters(draws: Draws, name: str, world: World) -> Events:
    """The active controller against the others, or all brokers against one controller."""
    both = draws.flip(f"{name}/both")
    src, dst = "active_controller()", "controllers"
    if draws.flip(f"{name}/way"):
        src, dst = dst, src
    yield (
        0,
        {"do": "cut", "src": src, "dst": dst, "both": both, **lasting(draws, name, 1, 30)},
    )


def _cut_api(draws: Draws, name: str, world: World) -> Events:
    """One purpose of one link fails: fetches, heartbeats, ISR changes."""
    topic = TOPICS[draws.below(f"{name}/topic", len(TOPICS))]
    links = (
        (f"follower({topic}-0)", f"leader({topic}-0)", "Fetch"),
        (world.broker(draws, name), "controllers", "BrokerHeartbeat"),
        (f"leader({topic}-0)", "controllers", "AlterPartition"),
        ("controllers", f"leader({topic}-0)", "AlterPartition"),
        (world.broker(draws, name), "controllers", "Fetch"),
    )
    src, dst, api = links[draws.below(f"{name}/link", len(links))]
    yield (
        0,
        {"do": "cut", "src": src, "dst": dst, "api": api, **lasting(draws, name, 2, 45)},
    )


def _slow_link(draws: Draws, name: str, world: World) -> Events:
    mean = format_duration(draws.between(f"{name}/mean", 100, 3_000))
    src, dst = world.node(draws, f"{name}/src"), world.node(draws, f"{name}/dst")
    yield (
        0,
        {"do": "delay", "src": src, "dst": dst, "mean": mean, **lasting(draws, name, 2, 30)},
    )


def _clog(draws: Draws, name: str, world: World) -> Events:
    """A link keeps everything for a while and lets it go at once."""
    nodes = [*range(1, world.brokers + 1), *controller_ids(world)]
    src = nodes[draws.below(f"{name}/src", len(nodes))]
    dst = nodes[draws.below(f"{name}/dst", len(nodes))]
    if src != dst:
        yield 0, {"do": "hold", "src": src, "dst": dst}
        yield draws.between(f"{name}/for", 200, 5_000), {"do": "release", "src": src, "dst": dst}


def _crash_broker(draws: Draws, name: str, world: World) -> Events:
    yield 0, {"do": "bounce", "node": world.broker(draws, name), **down(draws, name)}


def _crash_victim(draws: Draws, name: str, world: World) -> Events:
    node = f"broker({world.victim})"
    yield 0, {"do": "bounce", "node": node, "lose_tail": "unflushed", **down(draws, name)}


def _crash_controller(draws: Draws, name: str, world: World) -> Events:
    step = {"do": "bounce", "node": world.controller(draws, name), **down(draws, name)}
    if draws.flip(f"{name}/lossy"):
        step["lose_tail"] = "unflushed"
    yield 0, step


def _crash_controllers(draws: Draws, name: str, world: World) -> Events:
    """More of them than a quorum can spare, up to all."""
    which = ("majority(controllers)", "controllers")[draws.below(f"{name}/which", 2)]
    yield 0, {"do": "bounce", "node": which, "lose_tail": "unflushed", **down(draws, name)}


def _resign(draws: Draws, name: str, world: World) -> Events:
    yield 0, {"do": "resign"}


def _pause(draws: Draws, name: str, world: World) -> Events:
    while_ = format_duration(draws.between(f"{name}/lasting", 500, 20_000))
    yield 0, {"do": "pause", "node": world.node(draws, name), "lasting": while_}


def _shut_down(draws: Draws, name: str, world: World) -> Events:
    node = f"broker({1 + draws.below(f'{name}/broker', world.brokers)})"
    yield 0, {"do": "controlled_shutdown", "node": node}
    yield draws.between(f"{name}/down", 2_000, 20_000), {"do": "restart", "node": node}


def _fail_directory(draws: Draws, name: str, world: World) -> Events:
    if world.log_dirs > 1:
        broker = f"broker({1 + draws.below(f'{name}/broker', world.brokers)})"
        which = {"broker": broker, "dir": draws.below(f"{name}/dir", world.log_dirs)}
        yield 0, {"do": "fail_dir", **which}
        after_ms = draws.between(f"{name}/down", 5_000, 30_000)
        yield after_ms, {"do": "repair_dir", **which}
        yield after_ms + 1_000, {"do": "restart", "node": broker}


def _late_metadata(draws: Draws, name: str, world: World) -> Events:
    delay = format_duration(draws.between(f"{name}/delay", 100, 5_000))
    broker = world.broker(draws, name)
    yield (
        0,
        {"do": "publish_delay", "broker": broker, "delay": delay, **lasting(draws, name, 2, 20)},
    )


def _slow_disk(draws: Draws, name: str, world: World) -> Events:
    node = world.controller(draws, name)
    delay = format_duration(draws.between(f"{name}/delay", 10, 800))
    yield 0, {"do": "slow_disk", "node": node, "delay": delay, **lasting(draws, name, 2, 20)}


def _compact(draws: Draws, name: str, world: World) -> Events:
    node = "controllers" if draws.flip(f"{name}/all") else world.controller(draws, name)
    yield 0, {"do": "snapshot", "node": node}
    yield 200, {"do": "compact", "node": node}


def _voter_leaves(draws: Draws, name: str, world: World) -> Events:
    """A controller stops voting, and votes again; with a new disk, perhaps."""
    if not world.dynamic:
        return
    node = {"node": f"controller({world.controllers - 1})"}
    given = {"may_fail": True, "within": "5s"}
    after_ms = 0
    if draws.flip(f"{name}/wiped", 0.4):
        yield 0, {"do": "wipe", **node}
        after_ms = draws.between(f"{name}/down", 500, 10_000)
        yield after_ms, {"do": "restart", **node}
    yield after_ms, {"do": "remove_voter", **node, **given}
    after_ms += draws.between(f"{name}/away", 100, 15_000)
    yield after_ms, {"do": "add_voter", **node, **given}


def _topic(draws: Draws, name: str, world: World) -> Events:
    """A topic comes, and perhaps goes."""
    topic = f"topic{name.rpartition('/')[2]}"
    given = {"may_fail": True, "within": "3s"}
    partitions = 1 + draws.below(f"{name}/partitions", 3)
    replicas = 1 + draws.below(f"{name}/replicas", 3)
    yield (
        0,
        {
            "do": "create_topic",
            "name": topic,
            "partitions": partitions,
            "replicas": replicas,
            **given,
        },
    )
    after_ms = draws.between(f"{name}/first life", 500, 8_000)
    if draws.flip(f"{name}/grows", 0.3):
        more = partitions + 1 + draws.below(f"{name}/more", 3)
        yield after_ms // 2, {"do": "add_partitions", "name": topic, "total": more, **given}
    if draws.flip(f"{name}/anew", 0.3):
        yield after_ms, {"do": "recreate_topic", "name": topic, **given}
    if draws.flip(f"{name}/again"):
        after_ms = draws.between(f"{name}/lives", 1_000, 20_000)
        yield after_ms, {"do": "delete_topic", "name": topic, **given}


def _reassign(draws: Draws, name: str, world: World) -> Events:
    """A partition moves to other brokers, two at least; another move or its end may overtake it."""
    topic = TOPICS[draws.below(f"{name}/topic", len(TOPICS))]
    step = {"do": "reassign", "partitions": f"{topic}-0", "may_fail": True, "within": "3s"}
    yield 0, {**step, "replicas": _some_brokers(draws, f"{name}/first", world)}
    after_ms = draws.between(f"{name}/after", 100, 10_000)
    if draws.flip(f"{name}/cancelled", 0.3):
        yield after_ms, {**step, "replicas": None}
    elif draws.flip(f"{name}/overtaken", 0.4):
        yield after_ms, {**step, "replicas": _some_brokers(draws, f"{name}/second", world)}


def _some_brokers(draws: Draws, name: str, world: World) -> list[int]:
    """Two or three brokers, in any order."""
    left = list(range(1, world.brokers + 1))
    count = min(len(left), 2 + draws.below(f"{name}/count", 2))
    return [left.pop(draws.below(f"{name}/{n}", len(left))) for n in range(count)]


def _config(draws: Draws, name: str, world: World) -> Events:
    """The number of replicas that must be in sync changes; it never falls below two."""
    topic = TOPICS[draws.below(f"{name}/topic", len(TOPICS))]
    step = {"do": "set_config", "topic": topic, "key": "min.insync.replicas"}
    value = 2 + draws.below(f"{name}/value", 2)
    yield 0, {**step, "value": value, "may_fail": True, "within": "3s"}


def _elect(draws: Draws, name: str, world: World) -> Events:
    partitions = [f"{topic}-0" for topic in TOPICS]
    yield 0, {"do": "elect", "partitions": partitions, "may_fail": True, "within": "3s"}


KINDS = (
    Kind("isolate", 1.0, _isolate),
    Kind("split", 1.0, _split),
    Kind("split voters", 0.5, _split_voters),
    Kind("cut api", 1.0, _cut_api),
    Kind("slow link", 1.0, _slow_link),
    Kind("clog", 2.0, _clog),
    Kind("crash broker", 0.5, _crash_broker),
    Kind("crash victim", 0.5, _crash_victim),
    Kind("crash controller", 0.3, _crash_controller),
    Kind("crash controllers", 0.1, _crash_controllers),
    Kind("resign", 0.3, _resign),
    Kind("pause", 0.5, _pause),
    Kind("shut down", 0.3, _shut_down),
    Kind("fail directory", 0.3, _fail_directory),
    Kind("late metadata", 1.0, _late_metadata),
    Kind("slow disk", 0.5, _slow_disk),
    Kind("compact", 0.7, _compact),
    Kind("voter leaves", 1.0, _voter_leaves),
    Kind("topic", 2.0, _topic),
    Kind("reassign", 0.7, _reassign),
    Kind("config", 0.5, _config),
    Kind("elect", 0.5, _elect),
    *SEQUENCES,
)


def generate(seed: int) -> Scenario:
    """The scenario of a seed."""
    draws = Draws(seed)
    controllers = (1, 3, 3, 3, 5)[draws.below("controllers", 5)]
    world = World(
        brokers=(3, 3, 4, 5)[draws.below("brokers", 4)],
        controllers=controllers,
        log_dirs=2 if draws.flip("log dirs", 0.25) else 1,
        victim=1 + draws.below("victim", 3),
        dynamic=controllers >= 3 and draws.flip("dynamic", 0.3),
    )
    chaos_ms = draws.between("chaos", *CHAOS_MS)
    events = [*_background(draws), *_disturbances(draws, world, chaos_ms)]
    events.sort(key=lambda event: event[0])  # stable: what was drawn first comes first
    steps: list[Step] = [*_load(draws), *_clients(draws)]
    steps += [{"at": format_duration(at_ms), **step} for at_ms, step in events]
    steps.append(
        {"at": format_duration(WARM_UP_MS + chaos_ms), "do": "liveness", "bound": LIVENESS_BOUND}
    )
    return Scenario(
        name="nemesis",
        description=f"drawn from seed {seed}",
        controllers=world.controllers,
        brokers=world.brokers,
        seed=seed,
        config=_config_of(draws, world),
        steps=steps_of(steps, f"nemesis {seed}"),
    )


def _config_of(draws: Draws, world: World) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if world.log_dirs > 1:
        config["log.dirs"] = ",".join(f"d{n}" for n in range(world.log_dirs))
    if _has_clients(draws):  # what a group commits has to be on two brokers
        config["min.insync.replicas"] = 2
        config["offsets.topic.num.partitions"] = 2
        config["transaction.state.log.num.partitions"] = 2
    if world.dynamic:
        config["kraft.version"] = 1
        config["controller.quorum.auto.join.enable"] = draws.flip("auto join")
    if draws.flip("elr off", 0.25):
        config["eligible.leader.replicas.enable"] = False
    if draws.flip("snapshots"):
        size = draws.between("snapshots/bytes", 1_000, 20_000)
        config["metadata.log.max.record.bytes.between.snapshots"] = size
        if draws.flip("retention"):
            config["metadata.max.retention.bytes"] = 3 * size
    return config


def _load(draws: Draws) -> Iterator[Step]:
    for index, topic in enumerate(TOPICS):
        partitions = 1 + 2 * index
        yield {"do": "create_topic", "name": topic, "partitions": partitions, "min_isr": 2}
        for partition in range(partitions):
            rate = 1 + draws.below(f"rate/{topic}/{partition}", 10)
            acks = "all" if draws.flip(f"acks/{topic}/{partition}", 0.8) else "1"
            step = {"do": "produce", "topic": topic, "rate": rate, "acks": acks}
            yield {**step, "partition": partition}


def _has_clients(draws: Draws) -> bool:
    return draws.flip("clients", CLIENTS)


def _clients(draws: Draws) -> Iterator[Step]:
    """A group, and producers that write transactions, of which some are aborted."""
    if not _has_clients(draws):
        return
    for n in range(1 + draws.below("clients/producers", 2)):
        step = {"do": "transaction", "topic": TOPICS[n], "id": f"t{n}", "rate": 1}
        yield {**step, "count": 2, "abort_every": 2 + draws.below(f"clients/aborts/{n}", 3)}
    isolation = "read_committed" if draws.flip("clients/isolation", 0.7) else "read_uncommitted"
    protocol = "consumer" if draws.flip("clients/protocol") else "classic"
    members = 1 + draws.below("clients/members", 4)
    for topic in TOPICS:
        step = {"do": "consume", "topic": topic, "group": f"of-{topic}", "isolation": isolation}
        yield {**step, "members": members, "protocol": protocol}


def _background(draws: Draws) -> Iterator[tuple[int, Step]]:
    """Faults of every link, all the time."""
    link: Step = {"src": "all", "dst": "all"}
    for kind in ("loss", "duplicate"):
        if draws.flip(kind):
            p = round(0.1 * draws.fraction(f"{kind}/p"), 3)
            yield WARM_UP_MS, {"do": kind, **link, "p": p}
    if draws.flip("delay"):
        slow = draws.flip("delay/slow", SLOW_NETWORKS)
        mean = draws.between("delay/mean", 100, 1_000) if slow else draws.between("d/mean", 1, 50)
        yield WARM_UP_MS, {"do": "delay", **link, "mean": format_duration(mean)}


def _disturbances(draws: Draws, world: World, chaos_ms: int) -> Iterator[tuple[int, Step]]:
    swarm = draws.flip("swarm")
    for kind in KINDS:
        if swarm and not draws.flip(f"{kind.name}/in"):
            continue
        factor = 3 * draws.fraction(f"{kind.name}/rate") if swarm else 1.0
        for n in range(draws.count(kind.name, factor * kind.per_minute * chaos_ms / 60_000)):
            name = f"{kind.name}/{n}"
            begins_ms = WARM_UP_MS + draws.below(f"{name}/at", chaos_ms) // 100 * 100
            for after_ms, step in kind.steps(draws, name, world):
                yield begins_ms + after_ms, step
