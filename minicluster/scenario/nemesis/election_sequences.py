"""Sequences around elections of the quorum: candidates that meet, an epoch that commits nothing.

Source:  KIP-595, KIP-630, KIP-996; KafkaRaftClient.
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
    has_quorum,
)


def _candidates_meet(draws: Draws, name: str, world: World) -> Events:
    """Controllers are candidates in one epoch, and a voter restarts between their requests.

    Nobody receives what it votes, so that both send their requests once more.
    """
    if world.controllers < 3:
        return
    votes: Step = {"src": "controllers", "dst": "controllers", "api": "Vote"}
    node = f"controller({draws.below(f'{name}/node', world.controllers)})"
    meet_ms = draws.between(f"{name}/meet", 100, 1_000)
    silent_ms = draws.between(f"{name}/silent", 100, 900)
    yield 0, {"do": "hold", **votes}
    yield 0, {"do": "cut", **votes, "src": node, **for_ms(meet_ms + silent_ms)}
    yield 10, {"do": "resign"}
    yield meet_ms, {"do": "release", **votes}
    after_ms = meet_ms
    for n in range(1 + draws.below(f"{name}/count", 3)):
        after_ms += draws.between(f"{name}/{n}/gap", 20, 400)
        down = format_duration(draws.between(f"{name}/{n}/down", 10, 60))
        yield after_ms, {"do": "bounce", "node": node, "down": down}


def _epoch_without_commit(draws: Draws, name: str, world: World) -> Events:
    """A leader commits nothing of its epoch, and comes back when the log begins above that.

    The others write a snapshot meanwhile, and drop what is before it once the next one leads.
    """
    if world.controllers < 3:
        return
    lasting_ms = draws.between(f"{name}/for", 2_500, 5_000)
    fetches: Step = {"do": "cut", "src": "controllers", "dst": "controllers", "api": "Fetch"}
    yield 0, {**fetches, **for_ms(lasting_ms)}
    yield 50, {"do": "resign"}
    alone_ms = draws.between(f"{name}/alone", 600, 1_800)
    back_ms = lasting_ms + draws.between(f"{name}/back", 4_000, 9_000)
    node = f"controller({draws.below(f'{name}/node', world.controllers)})"  # it leads, perhaps
    alone = {"do": "cut", "src": node, "dst": "controllers", "both": True}
    yield alone_ms, {**alone, **for_ms(back_ms - alone_ms)}
    yield lasting_ms - 400, {"do": "snapshot", "node": "controllers"}
    for at_ms in (lasting_ms + 2_500, back_ms - 200):
        yield at_ms, {"do": "compact", "node": "controllers"}


ELECTION_SEQUENCES = (
    Kind("candidates meet", 0.5, _candidates_meet, has_quorum),
    Kind("epoch without commit", 0.5, _epoch_without_commit, has_quorum),
)
