"""Sequences around the quorum: elections, decisions that are not committed, voters that leave.

Source:  KAFKA-10527, -15489; KIP-595, KIP-853, KIP-996; the faults of Kafka 4.3.0's quorum.
"""

from __future__ import annotations

from minicluster.durations import format_duration
from minicluster.scenario.nemesis.draws import (
    TOPICS,
    WEEK_MS,
    Draws,
    Events,
    Kind,
    Step,
    World,
    controller_ids,
    for_ms,
    has_quorum,
    is_dynamic,
)

ACTIVE = "active_controller()"
VOTERS_MAY_FAIL = {"may_fail": True, "within": "5s"}


def _decisions(draws: Draws, name: str, count: int, within: str) -> list[Step]:
    """Requests that make the active controller append records, committed or not."""
    return [
        {
            "do": "set_config",
            "topic": TOPICS[draws.below(f"{name}/{n}/topic", len(TOPICS))],
            "key": "retention.ms",
            "value": WEEK_MS + draws.below(f"{name}/{n}/value", 1_000),
            "may_fail": True,
            "within": within,
        }
        for n in range(count)
    ]


def _decides_in_vain(draws: Draws, name: str, world: World) -> Events:
    """A controller appends what it cannot commit, is deposed, and meets what the next one wrote."""
    ids = controller_ids(world)
    if len(ids) < 3:
        return
    apart_ms = draws.between(f"{name}/apart", 3_000, 9_000)
    yield 0, {"do": "cut", "src": ACTIVE, "dst": "controllers", "both": True, **for_ms(apart_ms)}
    after_ms = 50
    for step in _decisions(draws, name, 2 + draws.below(f"{name}/count", 5), "200ms"):
        yield after_ms, step
        after_ms += 250
    if world.dynamic and draws.flip(f"{name}/voter", 0.6):
        node = {"node": f"controller({world.controllers - 1})"}
        leaves_ms = after_ms + draws.between(f"{name}/leaves", 1_500, 4_000)
        yield leaves_ms, {"do": "remove_voter", **node, **VOTERS_MAY_FAIL}
        back_ms = max(leaves_ms + 1_000, apart_ms) + draws.between(f"{name}/back", 500, 5_000)
        yield back_ms, {"do": "add_voter", **node, **VOTERS_MAY_FAIL}
    else:
        yield apart_ms - 500, _decisions(draws, f"{name}/next", 1, "400ms")[0]


def _restarts_at_once(draws: Draws, name: str, world: World) -> Events:
    """The active controller loses what it has not flushed, and is back before anyone else leads."""
    slow = {"do": "slow_disk", "node": ACTIVE, **for_ms(draws.between(f"{name}/for", 500, 3_000))}
    yield 0, {**slow, "delay": format_duration(draws.between(f"{name}/slow", 50, 700))}
    after_ms = 50
    for step in _decisions(draws, name, 1 + draws.below(f"{name}/count", 2), "100ms"):
        yield after_ms, step
        after_ms += 120
    bounce: Step = {"do": "bounce", "node": ACTIVE, "lose_tail": "unflushed"}
    for n in range(1 + draws.below(f"{name}/times", 2)):
        after_ms += draws.between(f"{name}/{n}/gap", 10, 400)
        yield after_ms, {**bounce, "down": format_duration(draws.between(f"{name}/{n}", 10, 300))}
        after_ms += 400


def _voters_restart(draws: Draws, name: str, world: World) -> Events:
    """Voters restart in the middle of an election."""
    ids = controller_ids(world)
    yield 0, {"do": "resign"}
    after_ms = 0
    for n in range(2 + draws.below(f"{name}/count", 4)):
        after_ms += draws.between(f"{name}/{n}/gap", 10, 900)
        node = f"controller({draws.below(f'{name}/{n}/node', len(ids))})"
        step: Step = {"do": "bounce", "node": node}
        if draws.flip(f"{name}/{n}/lossy"):
            step["lose_tail"] = "torn" if draws.flip(f"{name}/{n}/torn") else "unflushed"
        down_ms = draws.between(f"{name}/{n}/down", 10, 400)
        yield after_ms, {**step, "down": format_duration(down_ms)}


def _lagging_candidate(draws: Draws, name: str, world: World) -> Events:
    """A voter that lags is there when the active controller falls, and others are slow."""
    ids = controller_ids(world)
    if len(ids) < 3:
        return
    lagging = ids[draws.below(f"{name}/lagging", len(ids))]
    slow = ids[(ids.index(lagging) + 1 + draws.below(f"{name}/slow", len(ids) - 1)) % len(ids)]
    lag_ms = draws.between(f"{name}/lag", 1_000, 4_000)
    yield 0, {"do": "isolate", "node": lagging, **for_ms(lag_ms)}
    after_ms = 200
    for step in _decisions(draws, name, 1 + draws.below(f"{name}/count", 3), "300ms"):
        yield after_ms, step
        after_ms += 350
    falls_ms = max(after_ms, lag_ms - draws.between(f"{name}/falls", 100, 900))
    slow_ms = draws.between(f"{name}/slow for", 500, 3_000)
    yield falls_ms, {"do": "pause", "node": slow, **for_ms(slow_ms)}
    down_ms = draws.between(f"{name}/down", 2_000, 6_000)
    yield falls_ms + 10, {"do": "bounce", "node": ACTIVE, "down": format_duration(down_ms)}


def _receives_and_cannot_send(draws: Draws, name: str, world: World) -> Events:
    """Fetches wait at a leader whose epoch ends, and who does not learn of the next leader."""
    if world.controllers < 3:
        return
    lasting = for_ms(draws.between(f"{name}/for", 2_500, 7_000))
    yield 0, {"do": "cut", "src": ACTIVE, "dst": "controllers", **lasting}
    no_begin = {"do": "cut", "src": "controllers", "dst": ACTIVE, "api": "BeginQuorumEpoch"}
    yield 0, {**no_begin, **lasting}


def _late_acknowledgement(draws: Draws, name: str, world: World) -> Events:
    """A voter acknowledges the start of an epoch after it was removed."""
    if not world.dynamic:
        return
    last = f"controller({world.controllers - 1})"
    hold: Step = {"do": "hold", "api": "BeginQuorumEpoch"}
    links = (("controllers", last), (last, "controllers"))
    for src, dst in links:
        yield 0, {**hold, "src": src, "dst": dst}
    yield 100, {"do": "bounce", "node": ACTIVE, "down": "3s"}
    leaves_ms = draws.between(f"{name}/leaves", 4_000, 8_000)
    yield leaves_ms, {"do": "remove_voter", "node": last, **VOTERS_MAY_FAIL}
    late_ms = leaves_ms + draws.between(f"{name}/late", 50, 800)
    for src, dst in links:
        yield late_ms, {"do": "release", "src": src, "dst": dst, "api": "BeginQuorumEpoch"}
    back_ms = late_ms + draws.between(f"{name}/back", 1_000, 6_000)
    yield back_ms, {"do": "add_voter", "node": last, **VOTERS_MAY_FAIL}


CONTROLLER_SEQUENCES = (
    Kind("decides in vain", 0.4, _decides_in_vain, has_quorum),
    Kind("restarts at once", 0.4, _restarts_at_once),
    Kind("voters restart", 0.4, _voters_restart),
    Kind("lagging candidate", 0.4, _lagging_candidate, has_quorum),
    Kind("receives and cannot send", 0.3, _receives_and_cannot_send, has_quorum),
    Kind("late acknowledgement", 0.5, _late_acknowledgement, is_dynamic),
)
