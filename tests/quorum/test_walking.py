"""One, three and five voters elect, replicate, commit and survive a restart."""

from __future__ import annotations

import pytest

from tests.quorum.network import Network


def values(network: Network, node_id: int) -> list[bytes]:
    """The data records a node's state machine has seen, in order."""
    return [v for _, v in network.members[node_id].committed if v is not None]


def test_a_single_voter_leads_and_commits_at_once() -> None:
    network = Network([1])
    assert network.leaders() == [1]
    assert network.append(1, b"a", b"b") == 2
    assert network.members[1].up.high_watermark == 3
    assert values(network, 1) == [b"a", b"b"]
    assert network.members[1].leader_changes == [(1, 1)]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("voters", [3, 5])
def test_voters_elect_one_leader_and_observers_follow(voters: int, dynamic: bool) -> None:
    network = Network(range(1, voters + 1), [10, 11], seed=voters, dynamic=dynamic)
    leader = network.wait_for_leader()
    network.append(leader, b"a")
    network.append(leader, b"b", b"c")
    network.run_until(
        lambda: all(values(network, i) == [b"a", b"b", b"c"] for i in network.members)
    )
    ends = {m.up.log.end_offset for m in network.members.values()}
    marks = {m.up.high_watermark for m in network.members.values()}
    assert ends == marks and len(ends) == 1
    assert network.members[leader].leader_changes[-1] == (leader, network.members[leader].up.epoch)


@pytest.mark.parametrize("lossy", [False, True])
def test_a_restart_from_quorum_state_and_log_keeps_what_was_committed(lossy: bool) -> None:
    network = Network([1, 2, 3], [4], seed=9)
    leader = network.wait_for_leader()
    network.append(leader, b"a", b"b")
    network.run_until(lambda: all(values(network, i) == [b"a", b"b"] for i in network.members))
    epoch = network.members[leader].up.epoch
    for i in network.members:
        network.kill(i, lossy=lossy)
    for i in network.members:
        network.start(i)
    leader = network.wait_for_leader()
    assert network.members[leader].up.epoch > epoch
    network.append(leader, b"c")
    network.run_until(
        lambda: all(values(network, i) == [b"a", b"b", b"c"] for i in network.members)
    )


def test_an_idle_quorum_costs_only_parked_fetches() -> None:
    network = Network([1, 2, 3], [4], seed=2)
    network.wait_for_leader()
    network.advance(5_000)
    events = 0

    def count() -> None:
        nonlocal events
        events += 1

    network.after_step = count
    network.advance(60_000)
    # Three followers, two fetches a second each: request, response, and the leader's own timers.
    assert events < 60 * 3 * 2 * 5
