"""Cases of quorum rules: for each a hand-written run that breaks it, and a near miss.

Controllers 101, 102 and 103 vote; each story has the flushes of each node in their order.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.verify.build import cluster
from tests.verify.build_run import RunBuilder

Case = Callable[[], RunBuilder]

VOTERS = "101@a,102@b,103@c"
FEWER = "101@a,102@b"
BESIDE_KAFKA = f"{VOTERS},3000@d"  # a controller in another process


class Story(RunBuilder):
    """A run, event by event; the log beside it holds none of them."""

    def __init__(self) -> None:
        super().__init__(cluster())

    def raft_event(self, kind: str, node: int = 101, *, life: int = 1, **values: object) -> Story:
        """One event of one node, in epoch 1 by default."""
        defaults = {"node": node, "incarnation": f"{node}-{life}", "kind": kind, "epoch": 1}
        self.row("raft_event", {**defaults, **values})
        return self

    def disk(self, node: int, end: int, **values: object) -> Story:
        """A node has flushed up to an offset (exclusive)."""
        return self.raft_event("flush", node, offset=end, **values)

    def committed(self, offset: int | None = None, node: int = 101, **values: object) -> Story:
        """A leader advances its high watermark."""
        return self.raft_event("hw", node, offset=offset, **{"voters": VOTERS, **values})


def leading() -> Story:
    """101 leads epoch 1 of three voters."""
    story = Story()
    for node in (101, 102, 103):
        story.raft_event("begin", node, epoch=0, offset=0)
    return story.raft_event("epoch").raft_event("elected", leader=101)


# --- E03, E05 -------------------------------------------------------------------------------------


def e03_two_elected() -> RunBuilder:
    """The second one wrote nothing, so no log shows it."""
    return leading().raft_event("elected", 102, leader=102)


def e03_near_elected() -> RunBuilder:
    return leading().raft_event("elected", 102, leader=102, epoch=2)


def e05_truncated() -> RunBuilder:
    """The record of 103 is gone; it differed from the one of this offset and epoch on 101."""
    story = (
        leading().raft_event("append", offset=7, crc=1).raft_event("append", 103, offset=7, crc=2)
    )
    return story.raft_event("truncate", 103, offset=7, epoch=1)


def e05_near_truncated() -> RunBuilder:
    """Another epoch's record at that offset; and the same record twice on one node."""
    story = (
        leading()
        .raft_event("append", offset=7, crc=1)
        .raft_event("append", 103, offset=7, crc=2, epoch=2)
    )
    story.raft_event("truncate", 103, offset=7, epoch=1)
    return story.raft_event("append", 103, offset=7, crc=1).raft_event(
        "append", 102, offset=7, crc=1
    )


# --- E06, E07 -------------------------------------------------------------------------------------


def e06_no_majority() -> RunBuilder:
    """102 has the records, but not on disk."""
    story = leading().disk(101, 5).raft_event("append", 102, offset=4).disk(102, 4)
    return story.committed(5)


def e06_no_majority_of_the_present_voters() -> RunBuilder:
    """103 has left the voters: what is on its disk counts no more."""
    return leading().disk(101, 5).disk(103, 5).committed(5, voters=FEWER)


def e06_no_majority_beside_kafka() -> RunBuilder:
    """Nothing is recorded of the disk of 3000; with it two of four voters have the records."""
    return leading().disk(101, 5).disk(102, 4).committed(5, voters=BESIDE_KAFKA)


def e06_cut_again() -> RunBuilder:
    return leading().disk(101, 5).disk(102, 5).disk(102, 3).committed(5)


def e06_leader_falls_behind() -> RunBuilder:
    """The leader of epoch 2 calls less committed than that of epoch 1 did."""
    story = leading().disk(101, 5).disk(102, 5).disk(103, 4).committed(5)
    story.raft_event("epoch", 103, epoch=2).raft_event("elected", 103, epoch=2, leader=103)
    return story.committed(4, 103, epoch=2)


def e06_ahead_of_the_leader() -> RunBuilder:
    story = leading().disk(101, 5).disk(102, 5).committed(5)
    return story.raft_event("hw", 103, offset=6)


def e06_near_majority_with_kafka() -> RunBuilder:
    """Nothing is recorded of the disk of 3000, which may have the records."""
    return leading().disk(101, 5).disk(102, 5).committed(5, voters=BESIDE_KAFKA)


def e06_near_majority() -> RunBuilder:
    """One of three is enough beside the leader; the third one's news comes later."""
    story = leading().disk(101, 5).disk(102, 5).committed(5).raft_event("hw", 102, offset=5)
    return story.disk(103, 5).raft_event("hw", 103, offset=4)


def e06_near_deposed() -> RunBuilder:
    """A deposed leader learns late of flushes from before the end of its epoch."""
    story = leading().disk(101, 5).disk(102, 5).disk(103, 5)
    story.raft_event("epoch", 102, epoch=2).raft_event("elected", 102, epoch=2, leader=102)
    story.disk(102, 7).disk(103, 7).committed(7, 102, epoch=2)
    return story.committed(5)


def e06_near_lost_disk() -> RunBuilder:
    """A flush on a disk that is lost counts: the leader cannot detect the loss."""
    story = leading().disk(101, 5).disk(102, 5)
    return story.raft_event("begin", 102, life=2, offset=0, epoch=0).committed(5)


def _fetch_responded(reported: int) -> RunBuilder:
    """101 led epoch 1, is in epoch 2 by now, and responds to a fetch that waited."""
    story = leading().raft_event("elected", 102, leader=102).raft_event("epoch", epoch=2)
    leader = {"leaderId": 101, "leaderEpoch": reported}
    response = {"responses": [{"partitions": [{"currentLeader": leader}]}]}
    return story.rpc("Fetch", 103, response=json.dumps(response))


def e06_past_epoch() -> RunBuilder:
    return _fetch_responded(1)


def e06_near_epoch() -> RunBuilder:
    return _fetch_responded(2).disk(101, 5).disk(102, 5).committed(5)  # type: ignore[attr-defined]


def e07_other_records() -> RunBuilder:
    """The log of 103 is long enough, but its end is of an epoch before the committed one."""
    story = leading().raft_event("append", 103, offset=9, epoch=1)
    story.raft_event("epoch", epoch=2).raft_event("elected", epoch=2, leader=101)
    story.raft_event("append", offset=6, epoch=2).disk(101, 7).disk(102, 7).committed(7, epoch=2)
    return story.raft_event("elected", 103, epoch=3, leader=103)


def e07_after_a_snapshot() -> RunBuilder:
    """102 had more once, and begins anew with less."""
    story = leading().raft_event("append", 102, offset=9).disk(101, 10).disk(102, 10).committed(10)
    story.raft_event("begin", 102, life=2, offset=8, epoch=1)
    return story.raft_event("elected", 102, life=2, epoch=2, leader=102)


def e07_near_snapshot() -> RunBuilder:
    """103 has loaded a snapshot of all that is committed and has appended nothing since."""
    story = leading().disk(101, 10).disk(102, 10).committed(10)
    story.raft_event("append", 103, offset=3).raft_event("begin", 103, offset=10, epoch=1)
    return story.raft_event("elected", 103, epoch=2, leader=103)


# --- E43 ------------------------------------------------------------------------------------------


def _dynamic() -> Story:
    """101 starts with a checkpoint that names three voters."""
    story = Story().raft_event("begin", offset=0, epoch=0, voters=VOTERS, kraft_version=1)
    return story.raft_event("voters", epoch=0, voters=VOTERS, kraft_version=1).raft_event("epoch")


def e43_missed() -> RunBuilder:
    """Its log names other voters, and it goes on as before."""
    return _dynamic().raft_event("append", offset=4, voters=FEWER).raft_event("hw", offset=5)


def e43_not_set_back() -> RunBuilder:
    """The record that named them is truncated."""
    story = _dynamic().raft_event("append", offset=4, voters=FEWER)
    story.raft_event("voters", voters=FEWER, kraft_version=1)
    return story.raft_event("truncate", offset=4, epoch=1).raft_event("epoch", epoch=2)


def e43_restarted() -> RunBuilder:
    """The voters of one incarnation are no excuse for the next one."""
    story = _dynamic().raft_event("append", offset=4, voters=FEWER)
    story.raft_event("voters", voters=FEWER, kraft_version=1)
    story.raft_event("begin", life=2, offset=5, voters=FEWER, kraft_version=1)
    return story.raft_event("voters", life=2, voters=VOTERS, kraft_version=1)


def e43_version() -> RunBuilder:
    story = _dynamic()
    return story.raft_event("voters", voters=VOTERS, kraft_version=0)


def e43_near() -> RunBuilder:
    """Added, truncated, written anew, and taken from a snapshot: it follows at once."""
    story = _dynamic().raft_event("append", offset=4, voters=FEWER)
    story.raft_event("voters", voters=FEWER, kraft_version=1).raft_event("hw", offset=3)
    story.raft_event("truncate", offset=4, epoch=1).raft_event(
        "voters", voters=VOTERS, kraft_version=1
    )
    story.raft_event("epoch", epoch=2).raft_event("append", offset=6, epoch=2, voters=FEWER)
    story.raft_event("voters", epoch=2, voters=FEWER, kraft_version=1).raft_event(
        "hw", epoch=2, offset=7
    )
    story.raft_event("begin", offset=20, epoch=2, voters=VOTERS, kraft_version=1)
    return story.raft_event("voters", voters=VOTERS, kraft_version=1).raft_event(
        "hw", epoch=2, offset=20
    )


def e43_near_static() -> RunBuilder:
    """No record names the voters: then they are those of the configuration, at level 0."""
    story = Story().raft_event("begin", offset=0, epoch=0, kraft_version=0)
    return story.raft_event("voters", epoch=0, voters="101,102,103", kraft_version=0).raft_event(
        "epoch"
    )


BAD: dict[str, tuple[Case, ...]] = {
    "E05": (e05_truncated,),
    "E06": (
        e06_no_majority,
        e06_no_majority_of_the_present_voters,
        e06_no_majority_beside_kafka,
        e06_cut_again,
        e06_leader_falls_behind,
        e06_ahead_of_the_leader,
        e06_past_epoch,
    ),
    "E07": (e07_other_records, e07_after_a_snapshot),
    "E43": (e43_missed, e43_not_set_back, e43_restarted, e43_version),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "E05": (e05_near_truncated,),
    "E06": (
        e06_near_majority,
        e06_near_majority_with_kafka,
        e06_near_deposed,
        e06_near_lost_disk,
        e06_near_epoch,
    ),
    "E07": (e07_near_snapshot,),
    "E43": (e43_near, e43_near_static),
}
# The part of a log rule that only a trace shows.
TRACED_BAD: dict[str, tuple[Case, ...]] = {"E03": (e03_two_elected,)}
TRACED_NEAR: dict[str, tuple[Case, ...]] = {"E03": (e03_near_elected,)}
