"""Sequences around a partition: its ISR, its leaders, and what they have of the metadata.

Each follows the bounds of the cluster: a follower that fetches nothing leaves the ISR after
``lag_ms``, a broker without heartbeats is fenced after ``session_ms``, a request that is lost is
given up after ``request_ms``.

Source:  KAFKA-13916, -14140, -14617, -15221, -13790, -12686, -6361, -7395.
"""

from __future__ import annotations

from minicluster.durations import format_duration
from minicluster.scenario.nemesis.draws import (
    LATE,
    LOSSY_TOPIC,
    MAY_FAIL,
    Draws,
    Events,
    Kind,
    Step,
    World,
    fixed_delay,
    for_ms,
    topic_of,
)


def _fenced_and_fetching(draws: Draws, name: str, world: World) -> Events:
    """A fenced follower catches up with a leader whose metadata is older than the fencing."""
    topic = topic_of(draws, name)
    leader, follower = f"leader({topic}-0)", f"follower({topic}-0)"
    fenced_ms = world.lag_ms + world.session_ms + draws.between(f"{name}/after", 500, 3_000)
    yield 0, {"do": "cut", "src": follower, "dst": leader, "api": "Fetch", **for_ms(fenced_ms)}
    until_ms = fenced_ms - world.lag_ms + world.request_ms + 5_000
    at_ms = world.lag_ms + draws.between(f"{name}/out", 200, 1_500)
    if draws.flip(f"{name}/late", 0.8):
        late = {"do": "publish_delay", "broker": leader, "delay": LATE}
        yield at_ms, {**late, **for_ms(until_ms)}
    yield at_ms + 100, {"do": "cut", "src": follower, "dst": "controllers", **for_ms(until_ms)}


def _restarted_while_proposed(draws: Draws, name: str, world: World) -> Events:
    """A follower loses its log while the proposal that takes it into the ISR is on its way."""
    leader, victim = f"leader({topic_of(draws, name)}-0)", f"broker({world.victim})"
    out_ms = world.lag_ms + draws.between(f"{name}/out", 500, 2_000)
    yield 0, {"do": "cut", "src": victim, "dst": "brokers", "api": "Fetch", **for_ms(out_ms)}
    slow_ms = world.session_ms + draws.between(f"{name}/slow", 500, 5_000)
    lasting_ms = world.request_ms + slow_ms + 5_000
    slow = {"do": "delay", "src": leader, "dst": "controllers", "api": "AlterPartition"}
    yield out_ms - 300, {**slow, **fixed_delay(slow_ms), **for_ms(lasting_ms)}
    back_ms = out_ms + draws.between(f"{name}/back", 100, min(world.request_ms, 6_000) + 1_000)
    down = format_duration(draws.between(f"{name}/down", 20, 1_500))
    yield back_ms, {"do": "bounce", "node": victim, "lose_tail": "unflushed", "down": down}


def _leads_again(draws: Draws, name: str, world: World) -> Events:
    """A leader is deposed and elected again while another follower lags."""
    topic = topic_of(draws, name)
    leader = f"leader({topic}-0)"
    away_ms = world.session_ms + draws.between(f"{name}/away", 500, 4_000)
    lagging = {"do": "cut", "src": f"follower({topic}-0, n=1)", "dst": "brokers", "api": "Fetch"}
    yield 0, {**lagging, **for_ms(away_ms + draws.between(f"{name}/lag", 2_000, 12_000))}
    load: Step = {"do": "produce", "topic": topic, "rate": 30, "acks": "1"}
    yield 100, {**load, **for_ms(away_ms + 4_000)}
    yield 200, {"do": "cut", "src": leader, "dst": "controllers", **for_ms(away_ms)}
    again_ms = away_ms + draws.between(f"{name}/again", 500, 5_000)
    yield again_ms, {"do": "elect", "partitions": f"{topic}-0", **MAY_FAIL}


def _leads_in_the_dark(draws: Draws, name: str, world: World) -> Events:
    """A leader without new metadata shrinks the ISR after the controller has changed it."""
    topic = topic_of(draws, name)
    leader, follower = f"leader({topic}-0)", f"follower({topic}-0)"
    dark_ms = world.lag_ms + draws.between(f"{name}/dark", 5_000, 15_000)
    yield 0, {"do": "publish_delay", "broker": leader, "delay": LATE, **for_ms(dark_ms)}
    at_ms = draws.between(f"{name}/change", 100, 2_000)
    lag_ms = world.lag_ms + 4_000
    lagging = {"do": "cut", "src": f"follower({topic}-0, n=1)", "dst": "brokers", "api": "Fetch"}
    yield at_ms, {**lagging, **for_ms(lag_ms)}
    down_ms = world.session_ms + draws.between(f"{name}/down", 500, 6_000)
    match draws.below(f"{name}/which", 3):
        case 0:
            yield at_ms, {"do": "bounce", "node": follower, "down": format_duration(down_ms)}
        case 1:
            silent = {"do": "cut", "src": leader, "dst": "controllers", "api": "BrokerHeartbeat"}
            yield at_ms, {**silent, **for_ms(down_ms)}
        case _:
            yield at_ms, {"do": "bounce", "node": follower, "down": format_duration(down_ms)}
            yield at_ms + down_ms, {"do": "elect", "partitions": f"{topic}-0", **MAY_FAIL}


def _elections_without_fetches(draws: Draws, name: str, world: World) -> Events:
    """Two replicas lead in turn, and neither has what the other one wrote."""
    apart: Step = {"do": "cut", "src": 1, "dst": 2, "api": "Fetch", "both": True}
    load: Step = {"do": "produce", "topic": LOSSY_TOPIC, "rate": 20, "acks": "1"}
    at_ms, turns = 200, []
    for n in range(2 + draws.below(f"{name}/count", 3)):
        turns.append(at_ms)
        at_ms += draws.between(f"{name}/{n}/gap", 300, 2_000)
    yield 0, {**apart, **for_ms(at_ms)}
    yield 100, {**load, **for_ms(at_ms + 3_000)}
    partition = {"partitions": f"{LOSSY_TOPIC}-0", "may_fail": True, "within": "1s"}
    for n, turn_ms in enumerate(turns):
        replicas = [2, 1] if n % 2 == 0 else [1, 2]
        yield turn_ms, {"do": "reassign", "replicas": replicas, **partition}
        yield turn_ms + 100, {"do": "elect", **partition}


def _members_fall(draws: Draws, name: str, world: World) -> Events:
    """A replica is out of the ISR and alive when the members fall one after the other."""
    lossy = draws.flip(f"{name}/lossy", 0.5)
    topic = LOSSY_TOPIC if lossy else topic_of(draws, name)
    n = 0 if lossy else 1
    out_ms = world.lag_ms + draws.between(f"{name}/out", 500, 2_500)
    first_ms = world.session_ms + draws.between(f"{name}/first", 500, 3_000)
    down_ms = 2 * first_ms + draws.between(f"{name}/down", 1_000, 6_000)
    lagging = {"do": "cut", "src": f"follower({topic}-0, n={n})", "dst": "brokers", "api": "Fetch"}
    yield 0, {**lagging, **for_ms(out_ms + down_ms)}
    bounce: Step = {"do": "bounce", "node": f"leader({topic}-0)"}
    yield out_ms, {**bounce, "down": format_duration(down_ms)}
    if not lossy and draws.flip(f"{name}/second", 0.7):
        yield out_ms + first_ms, {**bounce, "down": format_duration(down_ms)}
        first_ms *= 2
    elect = {"do": "elect", "partitions": f"{topic}-0", **MAY_FAIL}
    yield out_ms + first_ms, elect
    if lossy and draws.flip(f"{name}/unclean", 0.6):
        yield out_ms + first_ms + 500, {**elect, "election_type": "UNCLEAN"}


def _slow_proposals(draws: Draws, name: str, world: World) -> Events:
    """The ISR of a partition under load changes while its proposals take seconds."""
    topic = topic_of(draws, name)
    leader, follower = f"leader({topic}-0)", f"follower({topic}-0)"
    out_ms = world.lag_ms + draws.between(f"{name}/out", 500, 3_000)
    slow_ms = draws.between(f"{name}/slow", 500, 6_000)
    lasting_ms = out_ms + world.request_ms + 2 * slow_ms
    slow = {"do": "delay", "src": leader, "dst": "controllers", "api": "AlterPartition"}
    yield 0, {**slow, **fixed_delay(slow_ms), **for_ms(lasting_ms)}
    yield 0, {"do": "cut", "src": follower, "dst": leader, "api": "Fetch", **for_ms(out_ms)}
    acks = "all" if draws.flip(f"{name}/acks", 0.6) else "1"
    load: Step = {"do": "produce", "topic": topic, "rate": 10, "acks": acks}
    yield 100, {**load, **for_ms(lasting_ms)}
    if draws.flip(f"{name}/lags", 0.6):  # what joins is behind by some records
        late = {"do": "delay", "src": follower, "dst": leader, "api": "Fetch"}
        late_ms = draws.between(f"{name}/late", 300, min(4_000, world.lag_ms // 2))
        yield out_ms + 200, {**late, **fixed_delay(late_ms), **for_ms(lasting_ms - out_ms)}


REPLICA_SEQUENCES = (
    Kind("fenced and fetching", 0.4, _fenced_and_fetching),
    Kind("restarted while proposed", 0.4, _restarted_while_proposed),
    Kind("leads again", 0.4, _leads_again),
    Kind("leads in the dark", 0.4, _leads_in_the_dark),
    Kind("elections without fetches", 0.4, _elections_without_fetches),
    Kind("members fall", 0.4, _members_fall),
    Kind("slow proposals", 0.4, _slow_proposals),
)
