"""The cases that the quorum's comments work with numbers come out as they say."""

from __future__ import annotations

from minicluster.log.batch import Record, RecordBatch
from minicluster.log.log import Log
from minicluster.quorum.state.raft_log import VALID, Position, RaftLog, Validation


def log_of(epochs: str) -> RaftLog:
    """A log with a record for each epoch."""
    log = Log()
    for offset, epoch in enumerate(map(int, epochs.split())):
        log.append(RecordBatch.of([Record(offset, 0, None, b"x")], leader_epoch=epoch))
    return RaftLog(log)


def test_a_divergence_takes_a_round_for_an_epoch() -> None:
    """The head of ``replication``."""
    leader, follower = log_of("1 1 3 3 3 3 6 6 6"), log_of("1 1 2 2 2 4 4 4")
    rounds = []
    while (verdict := leader.validate(follower.end_offset, follower.last_epoch)) is not VALID:
        rounds.append((follower.end_offset, follower.last_epoch, verdict))
        follower.log.truncate(follower.truncation_offset(verdict.epoch, verdict.end_offset))
    assert rounds == [
        (8, 4, Validation(Position.DIVERGING, 6, 3)),
        (5, 2, Validation(Position.DIVERGING, 2, 1)),
    ]
    assert (follower.end_offset, follower.last_epoch) == (2, 1)
