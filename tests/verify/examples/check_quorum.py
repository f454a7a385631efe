"""Examples of the rule in `quorum/check_quorum.py`."""

from __future__ import annotations

from minicluster.verify.quorum.check_quorum import a_leader_without_a_majority_resigns
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.log import cluster
from tests.verify.handwritten.run import RunBuilder

_VOTERS = "101,102,103"


def _fetched(story: RunBuilder, every_ms: int, *senders: int, until_ms: int = 12_000) -> RunBuilder:
    """Leader 101 appends each half second, and some controllers fetch from it now and then."""
    for node in (101, 102, 103):
        story.raft_event("voters", node, voters=_VOTERS, kraft_version=0)
    story.raft_event("elected", leader=101, seq=10)
    for at_ms in range(500, until_ms, 500):
        if at_ms % every_ms == 0:
            for sender in senders:
                story.rpc("Fetch", sender, handled_ms=at_ms)
        story.raft_event("append", offset=at_ms, seq=at_ms)
    return story


@breaks(a_leader_without_a_majority_resigns)
def e47_bad() -> RunBuilder:
    """Nobody fetches from leader 101 for eight seconds, and it appends all the same."""
    return _fetched(RunBuilder(cluster()), 20_000)


@breaks(a_leader_without_a_majority_resigns)
def e47_observers() -> RunBuilder:
    """Only brokers fetch from leader 101."""
    return _fetched(RunBuilder(cluster()), 500, 1, 2, 3)


@breaks(a_leader_without_a_majority_resigns)
def e47_one_of_five() -> RunBuilder:
    """Of five voters only 102 fetches from leader 101."""
    story = RunBuilder(cluster())
    for node in range(101, 106):
        story.raft_event("voters", node, voters="101,102,103,104,105", kraft_version=0)
    story.raft_event("elected", leader=101, seq=10)
    for at_ms in range(500, 9_000, 500):
        story.rpc("Fetch", 102, handled_ms=at_ms).raft_event("append", offset=at_ms, seq=at_ms)
    return story


@breaks(a_leader_without_a_majority_resigns)
def e47_shorter_timeout() -> RunBuilder:
    """102 fetches every four seconds, and the timeout is half a second."""
    config = {"controller.quorum.fetch.timeout.ms": 500}
    return _fetched(RunBuilder(cluster(), config=config), 4_000, 102)


@keeps(a_leader_without_a_majority_resigns)
def e47_near_longer_timeout() -> RunBuilder:
    """Nobody fetches for twelve seconds, and the timeout is ten."""
    config = {"controller.quorum.fetch.timeout.ms": "10s"}
    return _fetched(RunBuilder(cluster(), config=config), 20_000)


@keeps(a_leader_without_a_majority_resigns)
def e47_near() -> RunBuilder:
    """102 fetches from leader 101 every two seconds, and 103 never does."""
    return _fetched(RunBuilder(cluster()), 2_000, 102)


@keeps(a_leader_without_a_majority_resigns)
def e47_near_resigned() -> RunBuilder:
    """Nobody fetches from leader 101, which resigns after three seconds and is elected again after
    five."""
    story = _fetched(RunBuilder(cluster()), 20_000, until_ms=3_500).raft_event("resign", seq=3_000)
    for at_ms in range(3_500, 5_000, 500):
        story.raft_event("flush", offset=at_ms, seq=at_ms)
    story.raft_event("elected", epoch=2, leader=101, seq=5_000)
    return story.raft_event("append", epoch=2, offset=5_500, seq=5_500)


@keeps(a_leader_without_a_majority_resigns)
def e47_near_paused() -> RunBuilder:
    """Leader 101 is paused for ten seconds, appends what came meanwhile, and resigns."""
    story = _fetched(RunBuilder(cluster()), 500, 102, 103, until_ms=2_000)
    for offset in range(2_000, 2_010):
        story.raft_event("append", offset=offset, seq=10_000 + offset)
    return story.raft_event("resign", seq=12_100)


@keeps(a_leader_without_a_majority_resigns)
def e47_near_counted_twice() -> RunBuilder:
    """Of five voters 102 and 103 fetch after one second, and 102 after four: 103, which came last,
    counts with both (seed 501284). Leader 101 appends for seven seconds."""
    story = RunBuilder(cluster())
    for node in range(101, 106):
        story.raft_event("voters", node, voters="101,102,103,104,105", kraft_version=0)
    story.raft_event("elected", leader=101, seq=10)
    for at_ms in range(500, 7_000, 500):
        for sender in {1_000: (102, 103), 4_000: (102,)}.get(at_ms, ()):
            story.rpc("Fetch", sender, handled_ms=at_ms)
        story.raft_event("append", offset=at_ms, seq=at_ms)
    return story


@keeps(a_leader_without_a_majority_resigns)
def e47_near_waited_in_a_pause() -> RunBuilder:
    """The Fetch of 102 waits at leader 101, which is paused for two seconds, and counts again with
    the append that ends its wait (seed 500297)."""
    story = _fetched(RunBuilder(cluster()), 500, 102, until_ms=1_100)
    story.raft_event("append", offset=3_000, seq=3_000).rpc("Fetch", 102, handled_ms=1_100)
    for at_ms in (7_500, 8_600):
        story.raft_event("append", offset=at_ms, seq=at_ms)
    return story


@keeps(a_leader_without_a_majority_resigns)
def e47_near_kafka() -> RunBuilder:
    """A controller of Apache Kafka becomes a voter, and no Fetch of it is recorded."""
    story = _fetched(RunBuilder(cluster()), 500, 102, until_ms=2_000)
    story.raft_event("voters", voters=f"{_VOTERS},3000", kraft_version=1)
    for at_ms in range(2_500, 9_000, 500):
        story.raft_event("append", offset=at_ms, seq=at_ms)
    return story


@keeps(a_leader_without_a_majority_resigns)
def e47_near_voter_removed() -> RunBuilder:
    """103 fetches from leader 101 for five seconds and is removed; 102, which is cut off, fetches
    four seconds later (seed 501778)."""
    story = _fetched(RunBuilder(cluster()), 500, 103, until_ms=5_000)
    story.raft_event("voters", voters="101,102", kraft_version=1)
    for at_ms in range(5_500, 9_000, 500):
        story.raft_event("append", offset=at_ms, seq=at_ms)
    return story.rpc("Fetch", 102, handled_ms=9_000)
