"""Examples of the rules in `quorum/controller_logs.py`."""

from __future__ import annotations

from pathlib import Path

from minicluster.protocol import records as r
from minicluster.verify.quorum.controller_logs import (
    each_epoch_begins_with_its_leader_change,
    leader_epochs_do_not_decrease,
    log_offsets_have_no_gap,
    logs_match,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.examples.quorum import leading
from tests.verify.handwritten.log import V3_1, LogBuilder, change, cluster
from tests.verify.handwritten.run import RunBuilder, WithSnapshot, cut_log

_NO_OP = r.NoOpRecord()


@breaks(log_offsets_have_no_gap)
def e01_bad() -> LogBuilder:
    """A batch begins one offset above the end of the one before."""
    log = cluster()
    return log.op(_NO_OP, base=log.offset + 1)


@keeps(log_offsets_have_no_gap)
def e01_near() -> LogBuilder:
    """Batches of one record and of two follow each other without a gap."""
    return cluster().op(_NO_OP).op(_NO_OP, _NO_OP).op(_NO_OP)


@breaks(log_offsets_have_no_gap)
def e01_cut() -> RunBuilder:
    """A log begins above offset 0, and there is no snapshot."""
    return RunBuilder(cut_log(cluster(), keep_from=3))


@keeps(log_offsets_have_no_gap)
def e01_cut_near() -> RunBuilder:
    """A log begins above offset 0, one batch before the end of its snapshot."""
    return WithSnapshot(batches=4, kept=3)


@breaks(leader_epochs_do_not_decrease)
def e02_bad() -> LogBuilder:
    """A batch of epoch 3 follows the LeaderChange of epoch 4."""
    log = cluster().lead(102, epoch=4)
    log.epoch = 3
    return log.op(_NO_OP)


@keeps(leader_epochs_do_not_decrease)
def e02_near() -> LogBuilder:
    """A batch of epoch 4 follows the LeaderChange of epoch 4, and those of epoch 1 come before."""
    return cluster().lead(102, epoch=4).op(_NO_OP)


@breaks(each_epoch_begins_with_its_leader_change)
def e03_bad() -> LogBuilder:
    """Epoch 2 begins with a NoOpRecord."""
    log = cluster()
    log.epoch = 2
    return log.op(_NO_OP)


@keeps(each_epoch_begins_with_its_leader_change)
def e03_near_before_3_6() -> LogBuilder:
    """At metadata version 3.1, epoch 2 begins with a record of its leader's own."""
    log = cluster(mv=V3_1)
    log.epoch = 2
    return log.op(_NO_OP)


@breaks(each_epoch_begins_with_its_leader_change)
def e03_two_leaders() -> LogBuilder:
    """Epoch 2 has a LeaderChange of 102, and then two of 103."""
    return cluster().lead(102, epoch=2).op(_NO_OP).lead(103, epoch=2).lead(103, epoch=2)


@breaks(each_epoch_begins_with_its_leader_change)
def e03_two_elected() -> RunBuilder:
    """102 is elected in epoch 1, which 101 leads; it writes nothing, so no log shows it."""
    return leading().raft_event("elected", 102, leader=102)


@keeps(each_epoch_begins_with_its_leader_change)
def e03_near() -> LogBuilder:
    """Epochs 2 and 5 begin with their LeaderChange."""
    return cluster().lead(102, epoch=2).op(_NO_OP).lead(101, epoch=5)


@keeps(each_epoch_begins_with_its_leader_change)
def e03_near_elected() -> RunBuilder:
    """102 is elected in epoch 2, after 101 in epoch 1."""
    return leading().raft_event("elected", 102, leader=102, epoch=2)


class _TwoControllers(RunBuilder):
    """A run in which controller 102 has a log of its own."""

    other: LogBuilder

    def write(self, folder: Path) -> Path:
        super().write(folder)
        self.other.write(folder / "controller-102")
        return folder


@breaks(logs_match)
def e05_bad() -> RunBuilder:
    """Controllers 101 and 102 hold different records at one offset of epoch 1."""
    run = _TwoControllers(cluster().op(change((1, 2))))
    run.other = cluster().op(change((1, 3)))
    return run


@breaks(logs_match)
def e05_truncated() -> RunBuilder:
    """103 truncates its record at offset 7 of epoch 1, which differed from that of 101."""
    story = leading().raft_event("append", offset=7, crc=1)
    story.raft_event("append", 103, offset=7, crc=2)
    return story.raft_event("truncate", 103, offset=7, epoch=1)


@keeps(logs_match)
def e05_near() -> RunBuilder:
    """Controllers 101 and 102 hold different records at one offset, in epochs 1 and 2."""
    run = _TwoControllers(cluster().op(change((1, 2))))
    run.other = cluster().lead(102, epoch=2).op(change((1, 3)))
    return run


@keeps(logs_match)
def e05_near_truncated() -> RunBuilder:
    """103 truncates a record of epoch 2 at offset 7, and appends the one of epoch 1 that 101 and
    102 have."""
    story = leading().raft_event("append", offset=7, crc=1)
    story.raft_event("append", 103, offset=7, crc=2, epoch=2)
    story.raft_event("truncate", 103, offset=7, epoch=1)
    story.raft_event("append", 103, offset=7, crc=1)
    return story.raft_event("append", 102, offset=7, crc=1)
