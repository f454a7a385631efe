"""Single disturbances: what each is, and how often it comes per minute.

Source:  Jepsen's nemesis packages, TigerBeetle's VOPR; the rates are per minute of cluster time.
"""

from __future__ import annotations

from minicluster.durations import format_duration
from minicluster.scenario.nemesis.draws import (
    TOPICS,
    Draws,
    Events,
    Kind,
    World,
    controller_ids,
    down,
    has_directories,
    is_dynamic,
    lasting,
    some_brokers,
    topic_of,
)


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
    topic = topic_of(draws, name)
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
    lost = "torn" if draws.flip(f"{name}/torn", 0.4) else "unflushed"
    yield 0, {"do": "bounce", "node": node, "lose_tail": lost, **down(draws, name)}


def _crash_controller(draws: Draws, name: str, world: World) -> Events:
    step = {"do": "bounce", "node": world.controller(draws, name), **down(draws, name)}
    if draws.flip(f"{name}/lossy"):
        step["lose_tail"] = "unflushed"
    yield 0, step


def _crash_controllers(draws: Draws, name: str, world: World) -> Events:
    """More of them than a quorum can spare, up to all."""
    crashed = ("majority(controllers)", "controllers")[draws.below(f"{name}/which", 2)]
    yield 0, {"do": "bounce", "node": crashed, "lose_tail": "unflushed", **down(draws, name)}


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
        directory = {"broker": broker, "directory": draws.below(f"{name}/dir", world.log_dirs)}
        yield 0, {"do": "fail_dir", **directory}
        after_ms = draws.between(f"{name}/down", 5_000, 30_000)
        yield after_ms, {"do": "repair_dir", **directory}
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


def _clock(draws: Draws, name: str, world: World) -> Events:
    """A clock jumps ahead, or goes at another rate for a while."""
    step: dict[str, object] = {"do": "clock_skew", "node": world.node(draws, name)}
    if draws.flip(f"{name}/jumps"):
        ahead_ms = draws.between(f"{name}/ahead", 100, 2 * world.session_ms)
        step["offset"] = format_duration(ahead_ms)
    if "offset" not in step or draws.flip(f"{name}/drifts"):
        slow = draws.flip(f"{name}/slow")
        fraction = draws.fraction(f"{name}/drift")
        step["drift"] = round(-0.1 - 0.7 * fraction if slow else 0.1 + 3 * fraction, 2)
        step |= lasting(draws, name, 2, 30)
    yield 0, step


def _compact(draws: Draws, name: str, world: World) -> Events:
    node = "controllers" if draws.flip(f"{name}/all") else world.controller(draws, name)
    yield 0, {"do": "snapshot", "node": node}
    yield 200, {"do": "compact", "node": node}


def _voter_leaves(draws: Draws, name: str, world: World) -> Events:
    """A controller stops voting, and votes again; with a new disk, perhaps."""
    if not world.dynamic:
        return
    node = {"node": f"controller({world.controllers - 1})"}
    options = {"may_fail": True, "within": "5s"}
    after_ms = 0
    if draws.flip(f"{name}/wiped", 0.4):
        yield 0, {"do": "wipe", **node}
        after_ms = draws.between(f"{name}/down", 500, 10_000)
        yield after_ms, {"do": "restart", **node}
    yield after_ms, {"do": "remove_voter", **node, **options}
    after_ms += draws.between(f"{name}/away", 100, 15_000)
    yield after_ms, {"do": "add_voter", **node, **options}


def _topic(draws: Draws, name: str, world: World) -> Events:
    """A topic comes, and perhaps goes."""
    topic = f"topic{name.rpartition('/')[2]}"
    options = {"may_fail": True, "within": "3s"}
    partitions = 1 + draws.below(f"{name}/partitions", 3)
    replicas = 1 + draws.below(f"{name}/replicas", 3)
    yield (
        0,
        {
            "do": "create_topic",
            "name": topic,
            "partitions": partitions,
            "replicas": replicas,
            **options,
        },
    )
    after_ms = draws.between(f"{name}/first life", 500, 8_000)
    if draws.flip(f"{name}/grows", 0.3):
        more = partitions + 1 + draws.below(f"{name}/more", 3)
        yield after_ms // 2, {"do": "add_partitions", "name": topic, "total": more, **options}
    if draws.flip(f"{name}/anew", 0.3):
        yield after_ms, {"do": "recreate_topic", "name": topic, **options}
    if draws.flip(f"{name}/again"):
        after_ms = draws.between(f"{name}/lives", 1_000, 20_000)
        yield after_ms, {"do": "delete_topic", "name": topic, **options}


def _reassign(draws: Draws, name: str, world: World) -> Events:
    """A partition moves to other brokers, two at least; another move or its end may overtake it."""
    topic = topic_of(draws, name)
    step = {"do": "reassign", "partitions": f"{topic}-0", "may_fail": True, "within": "3s"}
    yield 0, {**step, "replicas": _replicas(draws, f"{name}/first", world)}
    after_ms = draws.between(f"{name}/after", 100, 10_000)
    if draws.flip(f"{name}/cancelled", 0.3):
        yield after_ms, {**step, "replicas": None}
    elif draws.flip(f"{name}/overtaken", 0.4):
        yield after_ms, {**step, "replicas": _replicas(draws, f"{name}/second", world)}


def _replicas(draws: Draws, name: str, world: World) -> list[int]:
    """Two or three brokers, in any order."""
    count = min(world.brokers, 2 + draws.below(f"{name}/count", 2))
    return some_brokers(draws, name, world, count)


def _config(draws: Draws, name: str, world: World) -> Events:
    """The number of replicas that must be in sync changes; it never falls below two."""
    topic = topic_of(draws, name)
    step = {"do": "set_config", "topic": topic, "key": "min.insync.replicas"}
    value = 2 + draws.below(f"{name}/value", 2)
    yield 0, {**step, "value": value, "may_fail": True, "within": "3s"}


def _elect(draws: Draws, name: str, world: World) -> Events:
    partitions = [f"{topic}-0" for topic in TOPICS]
    yield 0, {"do": "elect", "partitions": partitions, "may_fail": True, "within": "3s"}


SINGLE = (
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
    Kind("shut down", 0.6, _shut_down),
    Kind("fail directory", 0.3, _fail_directory, has_directories),
    Kind("late metadata", 1.0, _late_metadata),
    Kind("slow disk", 0.5, _slow_disk),
    Kind("clock", 0.5, _clock),
    Kind("compact", 0.7, _compact),
    Kind("voter leaves", 1.0, _voter_leaves, is_dynamic),
    Kind("topic", 2.0, _topic),
    Kind("reassign", 0.7, _reassign),
    Kind("config", 0.5, _config),
    Kind("elect", 0.5, _elect),
)
# Those that leave something behind which a second one of the same kind may meet.
LASTING_EFFECTS = frozenset({"shut down", "fail directory", "compact", "voter leaves", "reassign"})
