"""The effects of the quorum machine, beside ``minicluster.effects.Send`` and ``Respond``.

The order of a returned list is the order in which things happened: a vote is persisted before the
response that grants it leaves.
"""

from __future__ import annotations

from minicluster.effects import Effect, Send
from minicluster.log.batch import RecordBatch
from minicluster.log.log import SnapshotId
from minicluster.log.quorum_state import QuorumState
from minicluster.quorum.errors import InvalidRequest, VoteRejection
from minicluster.quorum.state.voters import VoterSet


class SendTo(Send):
    """A request to a node at an address; ``to`` is a bootstrap id where only that is known."""

    host: str = ""
    port: int = 0


class Persist(Effect):
    """Write the quorum-state file, flushed, before anything that follows leaves the node."""

    state: QuorumState


class Voted(Effect):
    """This node's vote of an epoch, its own candidacy included; ``Persist`` has come before."""

    epoch: int
    candidate_id: int


class VoteRejected(Effect):
    """This node has not granted a vote, or a pre-vote, of its present epoch.

    Source:  the log lines "Rejecting Vote request … since …" of EpochState.canGrantVote.
    """

    epoch: int
    candidate_id: int
    pre_vote: bool
    reason: VoteRejection


class RequestInvalid(Effect):
    """This node has responded INVALID_REQUEST, a code with many reasons."""

    reason: InvalidRequest


class Appended(Effect):
    """The machine has appended a batch to its log (its own as leader, or the leader's)."""

    batch: RecordBatch


class Began(Effect):
    """The node has started with its log, which ends there; all of it is on disk."""

    end_offset: int
    last_epoch: int


class Flushed(Effect):
    """Everything below an offset is on disk now; lower than before only after a truncation."""

    end_offset: int


class Truncated(Effect):
    """The machine has truncated its log to an offset."""

    end_offset: int
    last_epoch: int = 0  # of what is left


class VotersChanged(Effect):
    """The voter set or kraft.version as last read from the log, committed or not."""

    voters: VoterSet
    kraft_version: int


class SnapshotInstalled(Effect):
    """The log is empty and begins where a downloaded snapshot ends."""

    snapshot_id: SnapshotId


class HighWatermarkChanged(Effect):
    """The high watermark of this node has advanced: what is below it is committed.

    Shapes:  ``voters`` are those of which a majority holds it; None on a follower.
    """

    high_watermark: int
    voters: VoterSet | None = None


class Deposed(Effect):
    """This node does not lead the epoch any more: it resigned, or learnt of a higher epoch."""

    epoch: int


class ListenerEffect(Effect):
    """A call to a listener; the first one registered is called ""."""

    listener: str


class Commit(ListenerEffect):
    """Committed batches, control batches among them, contiguous with those before."""

    batches: tuple[RecordBatch, ...]


class LoadSnapshot(ListenerEffect):
    """The listener starts over from a snapshot; commits continue at its end offset."""

    snapshot_id: SnapshotId
    content: bytes


class LoadBootstrap(ListenerEffect):
    """The log begins with a bootstrap checkpoint, 0-0; its data records are the listener's."""

    snapshot_id: SnapshotId
    content: bytes


class LeaderChange(ListenerEffect):
    """Another epoch, or its leader became known; -1 means none is known.

    A leader is notified of itself only when it has consumed everything before its own epoch.
    """

    leader_id: int
    epoch: int


class ShutDown(Effect):
    """The graceful shutdown has ended; the machine takes no more inputs."""

    timed_out: bool
