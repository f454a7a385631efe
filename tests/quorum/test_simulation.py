"""Rows I87, I88, I89, I92 and I93: Kafka's own simulation properties, and a quorum under chaos.

Every invariant of ``tests.quorum.checks`` is watched at every effect. The quick suite plays a few
seeds; the ``slow`` one plays 100 of each row and 1,000 of chaos.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from minicluster.quorum.settings import QuorumSettings
from tests.quorum.chaos import Chaos
from tests.quorum.network import Network

QUICK = range(5)
SETTINGS = QuorumSettings(
    fetch_timeout_ms=3_000,
    election_backoff_max_ms=50,
    request_timeout_ms=3_000,
    append_linger_ms=0,
)


def quorum(seed: int, voters: tuple[int, int], observers: tuple[int, int]) -> Network:
    """A quorum of a drawn size whose leaders write a record every few milliseconds."""
    rng = random.Random(f"row {seed}")
    size = rng.randint(*voters)
    watching = rng.randint(*observers)
    network = Network(
        range(1, size + 1),
        range(11, 11 + watching),
        seed=seed,
        settings=SETTINGS,
        dynamic=rng.random() < 0.5,
    )

    def write() -> None:
        for leader in network.leaders():
            if network.members[leader].up.is_running:
                network.append(leader, b"%d" % network.now_ms)
        network.at(network.now_ms + rng.randint(3, 8), write)

    network.at(0, write)
    return network


def running(network: Network) -> list[int]:
    return [i for i, member in network.members.items() if member.machine is not None]


def reached(network: Network, mark: int) -> Callable[[], bool]:
    """A condition: the high watermark of every running node has reached the mark."""
    return lambda: all(network.members[i].up.high_watermark >= mark for i in running(network))


def highest(network: Network) -> int:
    return max(network.members[i].up.high_watermark for i in running(network))


def initial_leader(seed: int) -> None:
    network = quorum(seed, (1, 5), (0, 5))
    network.run_until(network.has_leader)
    network.run_until(reached(network, 10))
    network.checks.on_rest(network)


def leader_failure(seed: int) -> None:
    network = quorum(seed, (3, 5), (0, 3))
    network.run_until(network.has_leader)
    network.run_until(reached(network, 10))
    leader = network.leader()
    if seed % 2:
        network.kill(leader, lossy=bool(seed % 4 == 1))
    else:
        machine = network.members[leader].up
        machine.shutdown(500, network.now_ms)
        network.do(leader, machine.poll(network.now_ms))
        network.run_until(lambda: not machine.is_running)
        network.kill(leader)
    network.run_until(reached(network, 20))
    mark = highest(network)
    network.start(leader)
    network.run_until(reached(network, mark + 10))
    network.checks.on_rest(network)


def all_nodes_killed(seed: int) -> None:
    network = quorum(seed, (1, 5), (0, 3))
    network.run_until(network.has_leader)
    network.run_until(reached(network, 10))
    mark = highest(network)
    for node in running(network):
        network.kill(node, lossy=bool(seed % 2))
    voters = list(network.voter_ids)
    network.random.shuffle(voters)
    for node in voters[: len(voters) // 2 + 1]:
        network.start(node)
    network.run_until(reached(network, mark + 10))
    network.checks.on_rest(network)


def back_to_back_failures(seed: int) -> None:
    network = quorum(seed, (3, 5), (0, 3))
    network.run_until(network.has_leader)
    first = network.leader()
    network.isolate(first)
    network.run_until(lambda: network.leader() not in (-1, first))
    second = network.leader()
    network.heal()
    network.isolate(second)
    mark = max(network.members[i].up.high_watermark for i in network.voter_ids)
    others = [i for i in network.members if i != second]
    network.run_until(
        lambda: all(network.members[i].up.high_watermark >= mark + 10 for i in others)
    )
    network.checks.on_rest(network)


def lost_disk(seed: int) -> None:
    """Static voters: a wiped node comes back under the same key, as if it had forgotten.

    With that a vote can be given twice and a committed record be lost; only one leader per epoch
    is watched here, and that the quorum goes on.
    """
    rng = random.Random(f"lost {seed}")
    network = Network(range(1, rng.randint(3, 5) + 1), seed=seed, settings=SETTINGS)
    network.run_until(network.has_leader)
    network.append(network.leader(), *(b"%d" % i for i in range(10)))
    network.run_until(reached(network, 10))
    node = rng.choice(list(network.voter_ids))
    network.kill(node)
    network.wipe(node)
    network.run_until(lambda: network.leader() not in (-1, node) and network.has_leader())
    mark = highest(network)
    network.start(node)
    network.run_until(lambda: network.leader() >= 0)
    network.append(network.leader(), *(b"%d" % i for i in range(10)))
    network.run_until(reached(network, mark + 10))


ROWS = {
    "i87": initial_leader,
    "i88": leader_failure,
    "i89": all_nodes_killed,
    "i92": back_to_back_failures,
    "i93": lost_disk,
}


@pytest.mark.parametrize("seed", QUICK)
@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_kafkas_simulation_holds(row: str, seed: int) -> None:
    ROWS[row](seed)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_kafkas_simulation_holds_over_100_seeds(row: str) -> None:
    for seed in range(100):
        ROWS[row](seed)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("seed", QUICK)
def test_five_voters_under_chaos_keep_every_promise_and_heal(seed: int, dynamic: bool) -> None:
    story = Chaos(seed, dynamic=dynamic).run(10_000)
    assert story.elections > 0 and story.committed > 20


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_bytes_carry_all_that_the_machines_need(dynamic: bool) -> None:
    plain = Chaos(5, dynamic=dynamic, write_ms=(50, 200)).run(8_000)
    assert Chaos(5, dynamic=dynamic, write_ms=(50, 200), wire=True).run(8_000) == plain


@pytest.mark.slow
def test_a_thousand_seeds_of_chaos_keep_every_promise_and_heal() -> None:
    elections = sum(
        Chaos(seed, dynamic=bool(seed % 2), write_ms=(50, 300)).run(15_000).elections
        for seed in range(1_000)
    )
    assert elections > 3_000


def test_the_same_seed_is_the_same_story() -> None:
    assert Chaos(3).run(6_000) == Chaos(3).run(6_000)
    assert Chaos(3).run(6_000) != Chaos(4).run(6_000)
