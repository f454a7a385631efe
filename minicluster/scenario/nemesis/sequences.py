"""Sequences of disturbances: each makes harmful what the one before it left behind.

A fault that a single disturbance does not show needs a second one at the right moment: another
election before the first has settled, the crash of a new leader, a follower that lags then, links
that heal one by one. Their limits are those of the nemesis: the victim alone loses what it has not
flushed, and nothing lasting outlives the run.

Source:  the fault atlas: elections in a row, crashes of new leaders, swizzle, ring, bridge.
"""

from __future__ import annotations

from minicluster.durations import format_duration
from minicluster.scenario.nemesis.draws import (
    Draws,
    Events,
    Kind,
    Step,
    World,
    controller_ids,
    down,
    lasting,
    topic_of,
)


def _elections_in_a_row(draws: Draws, name: str, world: World) -> Events:
    """Leaders of one partition, or active controllers, fall before the next has settled."""
    leader = f"leader({topic_of(draws, name)}-0)"
    of_brokers = draws.flip(f"{name}/brokers", 0.6)
    after_ms = 0
    for n in range(2 + draws.below(f"{name}/count", 3)):
        if of_brokers:
            yield after_ms, {"do": "bounce", "node": leader, **down(draws, f"{name}/{n}")}
        else:
            yield after_ms, {"do": "resign"}
        after_ms += draws.between(f"{name}/{n}/gap", 50, 3_000)


def _new_leader_crashes(draws: Draws, name: str, world: World) -> Events:
    """A leader crashes, and the next leaders crash as soon as they lead."""
    leader = f"leader({topic_of(draws, name)}-0)"
    yield 0, {"do": "bounce", "node": leader, **down(draws, f"{name}/first")}
    after_ms = world.session_ms + draws.between(f"{name}/gap", 100, 3_000)
    for n in range(3):
        yield after_ms, {"do": "bounce", "node": leader, **down(draws, f"{name}/{n}")}
        after_ms += draws.between(f"{name}/{n}/gap", 100, 1_500)


def _victim_leads_and_crashes(draws: Draws, name: str, world: World) -> Events:
    """The victim is made a leader, and loses what it has not flushed, twice."""
    others = [n for n in range(1, world.brokers + 1) if n != world.victim]
    first = draws.below(f"{name}/first", len(others))
    replicas = [world.victim, others[first], others[(first + 1) % len(others)]]
    partition = f"{topic_of(draws, name)}-0"
    options = {"may_fail": True, "within": "3s"}
    yield 0, {"do": "reassign", "partitions": partition, "replicas": replicas, **options}
    after_ms = draws.between(f"{name}/moved", 1_000, 6_000)
    yield after_ms, {"do": "elect", "partitions": partition, **options}
    node: Step = {"do": "bounce", "node": f"broker({world.victim})"}
    for n in range(2):
        after_ms += draws.between(f"{name}/{n}/gap", 20, 2_000)
        down_ms = draws.between(f"{name}/{n}/down", 100, 2_000)
        lost = "torn" if draws.flip(f"{name}/{n}/torn") else "unflushed"
        yield after_ms, {**node, "lose_tail": lost, "down": format_duration(down_ms)}
        after_ms += down_ms


def _follower_lags_and_leads(draws: Draws, name: str, world: World) -> Events:
    """A follower fetches nothing for a while, then the leader falls as it begins again."""
    topic = topic_of(draws, name)
    leader, follower = f"leader({topic}-0)", f"follower({topic}-0)"
    lag_ms = draws.between(f"{name}/lag", 1_000, 9_000)
    cut = {"do": "cut", "src": follower, "dst": leader, "api": "Fetch"}
    yield 0, {**cut, "lasting": format_duration(lag_ms)}
    after_ms = lag_ms + draws.between(f"{name}/gap", 0, 400) - 200
    yield after_ms, {"do": "bounce", "node": leader, **down(draws, name)}


def _heal_one_by_one(draws: Draws, name: str, world: World) -> Events:
    """A node loses all links, and they come back one after the other."""
    node = 1 + draws.below(f"{name}/node", world.brokers)
    if draws.flip(f"{name}/controller"):
        ids = controller_ids(world)
        node = ids[draws.below(f"{name}/which", len(ids))]
    others = [n for n in (*range(1, world.brokers + 1), *controller_ids(world)) if n != node]
    until_ms = draws.between(f"{name}/for", 2_000, 12_000)
    while others:
        other = others.pop(draws.below(f"{name}/{len(others)}", len(others)))
        while_cut = {"both": draws.flip(f"{name}/{other}/both", 0.7)}
        yield (
            0,
            {"do": "cut", "src": node, "dst": other, **while_cut,
             "lasting": format_duration(until_ms)},
        )  # fmt: skip
        until_ms += draws.between(f"{name}/{other}/more", 50, 3_000)


def _ring(draws: Draws, name: str, world: World) -> Events:
    """Each node reaches its neighbours alone, so that majorities overlap everywhere.

    Of controllers where there are five, else of brokers.
    """
    ids = controller_ids(world)
    if len(ids) < 5:
        ids = range(1, world.brokers + 1)
    if len(ids) < 4:
        return
    for place, node in enumerate(ids):
        for other in ids[place + 2 :]:
            if (place, other) != (0, ids[-1]):
                cut = {"do": "cut", "src": node, "dst": other, "both": True}
                yield 0, {**cut, **lasting(draws, name, 2, 20)}


def _bridge(draws: Draws, name: str, world: World) -> Events:
    """Two halves of the nodes, and one controller that reaches both."""
    ids = controller_ids(world)
    if len(ids) < 3:
        return
    bridge = ids[draws.below(f"{name}/bridge", len(ids))]
    nodes = [n for n in (*range(1, world.brokers + 1), *ids) if n != bridge]
    halves: tuple[list[int], list[int]] = ([], [])
    for node in nodes:
        halves[draws.below(f"{name}/{node}", 2)].append(node)
    if all(halves):
        groups = [list(half) for half in halves]
        yield 0, {"do": "partition", "groups": groups, **lasting(draws, name, 2, 20)}


def _swizzle(draws: Draws, name: str, world: World) -> Events:
    """Brokers pause or lose their links one after the other, and recover in another order."""
    links = draws.flip(f"{name}/links", 0.4)
    candidates = list(range(1, world.brokers + 1))
    after_ms, paused = 0, []
    for n in range(2 + draws.below(f"{name}/count", world.brokers - 1)):
        paused.append(candidates.pop(draws.below(f"{name}/{n}", len(candidates))))
        yield after_ms, _held(paused[-1]) if links else {"do": "pause", "node": paused[-1]}
        after_ms += draws.between(f"{name}/{n}/gap", 50, 2_000)
    while paused:
        node = paused.pop(draws.below(f"{name}/back/{len(paused)}", len(paused)))
        yield after_ms, _released(node) if links else {"do": "resume", "node": node}
        after_ms += draws.between(f"{name}/{node}/back", 50, 3_000)


def _held(node: int) -> Step:
    """All that a node sends waits."""
    return {"do": "hold", "src": node, "dst": "all"}


def _released(node: int) -> Step:
    return {"do": "release", "src": node, "dst": "all"}


def _reordered(draws: Draws, name: str, world: World) -> Events:
    """Messages of a node are overtaken, late and in bursts."""
    node = world.node(draws, name)
    while_ = lasting(draws, name, 2, 20)
    p = round(0.1 + 0.4 * draws.fraction(f"{name}/p"), 2)
    yield 0, {"do": "reorder", "src": node, "dst": "all", "p": p, **while_}
    if draws.flip(f"{name}/late"):
        mean = format_duration(draws.between(f"{name}/mean", 50, 1_500))
        yield 0, {"do": "delay", "src": node, "dst": "all", "mean": mean, **while_}


SEQUENCES = (
    Kind("elections in a row", 0.5, _elections_in_a_row),
    Kind("new leader crashes", 0.3, _new_leader_crashes),
    Kind("victim leads and crashes", 0.4, _victim_leads_and_crashes),
    Kind("follower lags and leads", 0.6, _follower_lags_and_leads),
    Kind("heal one by one", 0.3, _heal_one_by_one),
    Kind("ring", 0.3, _ring),
    Kind("bridge", 0.3, _bridge),
    Kind("swizzle", 0.3, _swizzle),
    Kind("reordered", 0.4, _reordered),
)
