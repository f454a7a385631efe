"""Sequences around clients: groups that begin at the start of a log, producers that fence another.

Source:  KIP-98, KIP-890; Jepsen's banks and producers of one transactional id.
"""

from __future__ import annotations

from minicluster.durations import format_duration
from minicluster.scenario.nemesis.draws import (
    Draws,
    Events,
    Kind,
    Step,
    World,
    for_ms,
    own_topic,
    topic_of,
)


def _has_clients(world: World) -> bool:
    return world.clients


def _reads_all_again(draws: Draws, name: str, world: World) -> Events:
    """A new group reads a log from its start when another leader has followed."""
    if not world.clients:
        return
    topic = topic_of(draws, name)
    after_ms = 0
    if draws.flip(f"{name}/elected", 0.7):
        down_ms = world.session_ms + draws.between(f"{name}/down", 500, 4_000)
        leader = {"do": "bounce", "node": f"leader({topic}-0)"}
        yield 0, {**leader, "down": format_duration(down_ms)}
        after_ms = world.session_ms + draws.between(f"{name}/after", 1_500, 4_000)
    isolation = "read_committed" if draws.flip(f"{name}/isolation", 0.8) else "read_uncommitted"
    group: Step = {"do": "consume", "topic": topic, "group": own_topic(name)}
    yield after_ms, {**group, "isolation": isolation}


def _fences_another(draws: Draws, name: str, world: World) -> Events:
    """Two producers of one transactional id, each in the middle of the other's transactions."""
    if not world.clients:
        return
    load: Step = {
        "do": "transaction",
        "topic": topic_of(draws, name),
        "transactional_id": own_topic(name),
    }
    load |= {"count": 10 + draws.below(f"{name}/count", 30), "abort_every": 3}
    lasting_ms = draws.between(f"{name}/for", 3_000, 10_000)
    for n, client in enumerate("ab"):
        rate = round(0.3 + draws.fraction(f"{name}/{client}/rate"), 2)
        pace = {"rate": rate, **for_ms(lasting_ms)}
        at_ms = n * draws.between(f"{name}/gap", 10, 500)
        yield at_ms, {**load, "client": own_topic(name, f"-{client}"), **pace}


CLIENT_SEQUENCES = (
    Kind("reads all again", 1.0, _reads_all_again, _has_clients),
    Kind("fences another", 1.0, _fences_another, _has_clients),
)
