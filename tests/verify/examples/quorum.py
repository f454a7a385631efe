"""Examples of the rules in `quorum/quorum.py`."""

from __future__ import annotations

from typing import Any, Self

from minicluster.protocol import records as r
from minicluster.verify.quorum.quorum import (
    an_elected_leader_holds_what_is_committed,
    an_epochs_first_commit_is_its_own,
    nodes_use_the_voters_of_their_log,
    one_vote_per_epoch,
    responses_have_the_epoch_of_their_node,
    the_high_watermark_is_held_by_a_majority,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.log import cluster
from tests.verify.handwritten.run import RunBuilder, as_json

_NO_OP = r.NoOpRecord()
_VOTERS = "101@a,102@b,103@c"
_FEWER = "101@a,102@b"
_BESIDE_KAFKA = f"{_VOTERS},3000@d"  # a controller of Apache Kafka, in another process


class _Story(RunBuilder):
    """A run of controllers 101, 102 and 103, event by event; the log beside it holds none of them.

    The events of each node, its flushes too, are in their order.
    """

    def __init__(self) -> None:
        super().__init__(cluster())

    def disk(self, node: int, end: int) -> Self:
        """A node has flushed up to an offset (exclusive)."""
        return self.raft_event("flush", node, offset=end)

    def committed(self, offset: int | None = None, node: int = 101, **values: Any) -> Self:
        """A leader advances its high watermark."""
        return self.raft_event("hw", node, offset=offset, **{"voters": _VOTERS, **values})


def leading() -> _Story:
    """101 leads epoch 1 of three voters."""
    story = _Story()
    for node in (101, 102, 103):
        story.raft_event("begin", node, epoch=0, offset=0)
    return story.raft_event("epoch").raft_event("elected", leader=101)


@breaks(one_vote_per_epoch)
def e04_bad() -> RunBuilder:
    """Controller 101 votes for 102 in epoch 1, restarts, and votes for 103 in epoch 1."""
    return _Story().raft_event("voted", voted_for=102).raft_event("voted", life=2, voted_for=103)


@keeps(one_vote_per_epoch)
def e04_near() -> RunBuilder:
    """Controller 101 votes for 102 twice in epoch 1 and for 103 in epoch 2; 103 votes for itself in
    epoch 1."""
    story = _Story().raft_event("voted", voted_for=102).raft_event("voted", voted_for=102)
    return story.raft_event("voted", epoch=2, voted_for=103).raft_event("voted", 103, voted_for=103)


@breaks(the_high_watermark_is_held_by_a_majority)
def e06_bad() -> RunBuilder:
    """Controller 101 moves its high watermark back from 5 to 4."""
    return _Story().raft_event("hw", offset=5).raft_event("hw", offset=4)


@breaks(the_high_watermark_is_held_by_a_majority)
def e06_no_majority() -> RunBuilder:
    """Leader 101 commits up to 5; of three voters only it has flushed that, and 102 has appended
    it."""
    story = leading().disk(101, 5).raft_event("append", 102, offset=4).disk(102, 4)
    return story.committed(5)


@breaks(the_high_watermark_is_held_by_a_majority)
def e06_no_majority_of_the_present_voters() -> RunBuilder:
    """Leader 101 commits up to 5, which 103 has flushed as well; but the voters are 101 and 102."""
    return leading().disk(101, 5).disk(103, 5).committed(5, voters=_FEWER)


@breaks(the_high_watermark_is_held_by_a_majority)
def e06_no_majority_beside_kafka() -> RunBuilder:
    """Leader 101 commits up to 5, and with 3000, whose disk is not recorded, two of four voters may
    have it."""
    return leading().disk(101, 5).disk(102, 4).committed(5, voters=_BESIDE_KAFKA)


@breaks(the_high_watermark_is_held_by_a_majority)
def e06_cut_again() -> RunBuilder:
    """Leader 101 commits up to 5, which 102 had flushed and has truncated to 3."""
    return leading().disk(101, 5).disk(102, 5).disk(102, 3).committed(5)


@breaks(the_high_watermark_is_held_by_a_majority)
def e06_leader_falls_behind() -> RunBuilder:
    """The leader of epoch 1 commits up to 5, and that of epoch 2 has high watermark 4."""
    story = leading().disk(101, 5).disk(102, 5).disk(103, 4).committed(5)
    story.raft_event("epoch", 103, epoch=2).raft_event("elected", 103, epoch=2, leader=103)
    return story.committed(4, 103, epoch=2)


@breaks(the_high_watermark_is_held_by_a_majority)
def e06_ahead_of_the_leader() -> RunBuilder:
    """Leader 101 commits up to 5, and 103 has high watermark 6."""
    story = leading().disk(101, 5).disk(102, 5).committed(5)
    return story.raft_event("hw", 103, offset=6)


@keeps(the_high_watermark_is_held_by_a_majority)
def e06_near() -> RunBuilder:
    """Controller 102, and a new incarnation of 101, begin below the high watermark 5 of 101."""
    story = _Story().raft_event("hw", offset=4).raft_event("hw", offset=5)
    return story.raft_event("hw", 102, offset=3).raft_event("hw", life=2, offset=2)


@keeps(the_high_watermark_is_held_by_a_majority)
def e06_near_majority() -> RunBuilder:
    """Leader 101 and one of the other two have flushed up to 5; the third hears of it later."""
    story = leading().disk(101, 5).disk(102, 5).committed(5).raft_event("hw", 102, offset=5)
    return story.disk(103, 5).raft_event("hw", 103, offset=4)


@keeps(the_high_watermark_is_held_by_a_majority)
def e06_near_majority_with_kafka() -> RunBuilder:
    """101 and 102 of four voters have flushed up to 5, and 3000, whose disk is not recorded, may
    have."""
    return leading().disk(101, 5).disk(102, 5).committed(5, voters=_BESIDE_KAFKA)


@keeps(the_high_watermark_is_held_by_a_majority)
def e06_near_deposed() -> RunBuilder:
    """102 leads epoch 2 and commits up to 7; only then 101, deposed, learns of flushes up to 5."""
    story = leading().disk(101, 5).disk(102, 5).disk(103, 5)
    story.raft_event("epoch", 102, epoch=2).raft_event("elected", 102, epoch=2, leader=102)
    story.disk(102, 7).disk(103, 7).committed(7, 102, epoch=2)
    return story.committed(5)


@keeps(the_high_watermark_is_held_by_a_majority)
def e06_near_lost_disk() -> RunBuilder:
    """102 has flushed up to 5 and loses its disk, which leader 101 cannot detect."""
    story = leading().disk(101, 5).disk(102, 5)
    return story.raft_event("begin", 102, life=2, offset=0, epoch=0).committed(5)


def _elected(log_end: int) -> RunBuilder:
    """101 leads with high watermark 6; then 102, whose log ends somewhere, is elected."""
    story = _Story().raft_event("elected", leader=101).raft_event("append", offset=9)
    story.raft_event("append", 102, offset=log_end - 1).raft_event("hw", offset=6)
    return story.raft_event("elected", 102, epoch=2, leader=102)


@breaks(an_elected_leader_holds_what_is_committed)
def e07_bad() -> RunBuilder:
    """The high watermark is 6, and controller 102 is elected with a log that ends at 5."""
    return _elected(5)


@breaks(an_elected_leader_holds_what_is_committed)
def e07_other_records() -> RunBuilder:
    """103 is elected with a log that is long enough, but ends in an epoch before the committed
    one."""
    story = leading().raft_event("append", 103, offset=9, epoch=1)
    story.raft_event("epoch", epoch=2).raft_event("elected", epoch=2, leader=101)
    story.raft_event("append", offset=6, epoch=2).disk(101, 7).disk(102, 7).committed(7, epoch=2)
    return story.raft_event("elected", 103, epoch=3, leader=103)


@breaks(an_elected_leader_holds_what_is_committed)
def e07_after_a_snapshot() -> RunBuilder:
    """Ten records are committed; 102, which had them, begins again with eight and is elected."""
    story = leading().raft_event("append", 102, offset=9).disk(101, 10).disk(102, 10).committed(10)
    story.raft_event("begin", 102, life=2, offset=8, epoch=1)
    return story.raft_event("elected", 102, life=2, epoch=2, leader=102)


@keeps(an_elected_leader_holds_what_is_committed)
def e07_near() -> RunBuilder:
    """The high watermark is 6, and controller 102 is elected with a log that ends at 6."""
    return _elected(6)


@keeps(an_elected_leader_holds_what_is_committed)
def e07_near_snapshot() -> RunBuilder:
    """103 is elected; it has loaded a snapshot of all that is committed and appended nothing
    since."""
    story = leading().disk(101, 10).disk(102, 10).committed(10)
    story.raft_event("append", 103, offset=3).raft_event("begin", 103, offset=10, epoch=1)
    return story.raft_event("elected", 103, epoch=2, leader=103)


def _second_epoch(committed: int) -> RunBuilder:
    """The leader of epoch 2 advances its high watermark so far beyond the start of the epoch."""
    story = _Story()
    start = story.log.offset
    story.log.lead(101, epoch=2).op(_NO_OP)
    story.raft_event("elected", epoch=2, leader=101)
    return story.raft_event("hw", epoch=2, offset=start + committed)


@breaks(an_epochs_first_commit_is_its_own)
def e08_bad() -> RunBuilder:
    """The leader of epoch 2 advances its high watermark to the offset of its LeaderChange."""
    return _second_epoch(0)


@keeps(an_epochs_first_commit_is_its_own)
def e08_near() -> RunBuilder:
    """The leader of epoch 2 advances its high watermark past its LeaderChange."""
    return _second_epoch(1)


def _dynamic() -> _Story:
    """101 starts with a checkpoint that names three voters."""
    story = _Story().raft_event("begin", offset=0, epoch=0, voters=_VOTERS, kraft_version=1)
    return story.raft_event("voters", epoch=0, voters=_VOTERS, kraft_version=1).raft_event("epoch")


@breaks(nodes_use_the_voters_of_their_log)
def e43_missed() -> RunBuilder:
    """The log of 101 names voters 101 and 102, and 101 still uses 103 as well."""
    return _dynamic().raft_event("append", offset=4, voters=_FEWER).raft_event("hw", offset=5)


@breaks(nodes_use_the_voters_of_their_log)
def e43_not_set_back() -> RunBuilder:
    """The record that named voters 101 and 102 is truncated, and 101 still uses them."""
    story = _dynamic().raft_event("append", offset=4, voters=_FEWER)
    story.raft_event("voters", voters=_FEWER, kraft_version=1)
    return story.raft_event("truncate", offset=4, epoch=1).raft_event("epoch", epoch=2)


@breaks(nodes_use_the_voters_of_their_log)
def e43_restarted() -> RunBuilder:
    """101 restarts with a log that names voters 101 and 102, and uses 103 as well."""
    story = _dynamic().raft_event("append", offset=4, voters=_FEWER)
    story.raft_event("voters", voters=_FEWER, kraft_version=1)
    story.raft_event("begin", life=2, offset=5, voters=_FEWER, kraft_version=1)
    return story.raft_event("voters", life=2, voters=_VOTERS, kraft_version=1)


@breaks(nodes_use_the_voters_of_their_log)
def e43_version() -> RunBuilder:
    """101 uses kraft.version 0, and its log has 1."""
    story = _dynamic()
    return story.raft_event("voters", voters=_VOTERS, kraft_version=0)


@keeps(nodes_use_the_voters_of_their_log)
def e43_near() -> RunBuilder:
    """Voters are written, truncated, written again, and taken from a snapshot: 101 follows at
    once."""
    story = _dynamic().raft_event("append", offset=4, voters=_FEWER)
    story.raft_event("voters", voters=_FEWER, kraft_version=1).raft_event("hw", offset=3)
    story.raft_event("truncate", offset=4, epoch=1)
    story.raft_event("voters", voters=_VOTERS, kraft_version=1)
    story.raft_event("epoch", epoch=2).raft_event("append", offset=6, epoch=2, voters=_FEWER)
    story.raft_event("voters", epoch=2, voters=_FEWER, kraft_version=1)
    story.raft_event("hw", epoch=2, offset=7)
    story.raft_event("begin", offset=20, epoch=2, voters=_VOTERS, kraft_version=1)
    story.raft_event("voters", voters=_VOTERS, kraft_version=1)
    return story.raft_event("hw", epoch=2, offset=20)


@keeps(nodes_use_the_voters_of_their_log)
def e43_near_static() -> RunBuilder:
    """No record names the voters, and 101 uses those of its configuration at kraft.version 0."""
    story = _Story().raft_event("begin", offset=0, epoch=0, kraft_version=0)
    story.raft_event("voters", epoch=0, voters="101,102,103", kraft_version=0)
    return story.raft_event("epoch")


def _fetch_responded(reported: int) -> _Story:
    """101 led epoch 1, is in epoch 2 by now, and responds to a fetch that waited."""
    story = leading().raft_event("elected", 102, leader=102).raft_event("epoch", epoch=2)
    leader = {"leaderId": 101, "leaderEpoch": reported}
    response = {"responses": [{"partitions": [{"currentLeader": leader}]}]}
    return story.rpc("Fetch", 103, response=as_json(response))


@breaks(responses_have_the_epoch_of_their_node)
def e45_bad() -> RunBuilder:
    """101 has led epoch 1, is in epoch 2, and responds to a Fetch with epoch 1."""
    return _fetch_responded(1)


@keeps(responses_have_the_epoch_of_their_node)
def e45_near() -> RunBuilder:
    """101 has led epoch 1, is in epoch 2, and responds to a Fetch with epoch 2."""
    return _fetch_responded(2)
