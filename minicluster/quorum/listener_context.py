"""What the state machines are told: committed batches, snapshots, and who leads.

**Invariant:** a leader hears of itself only after it has consumed all that came before its epoch.

Source:  KafkaRaftClient.ListenerContext, pollListeners.
"""

from __future__ import annotations

from minicluster.quorum.effects import Commit, LeaderChange, LoadBootstrap, LoadSnapshot
from minicluster.quorum.state.epoch_state import ResignedState
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import ListenerContext, QuorumNode
from minicluster.quorum.state.raft_log import BOOTSTRAP_SNAPSHOT


def deliver(node: QuorumNode) -> None:
    """Bring every listener up to the high watermark, then to the present leader."""
    if not node.news:
        return
    node.news = False
    for name, listening in node.listeners.items():
        listening.is_new = False
        mark = node.role.high_watermark
        if mark is not None and node.faults.s18_publishes_uncommitted and not node.is_voter:
            if node.log.end_offset > mark:
                node.hit("S18")
            mark = node.log.end_offset
        if mark is not None:
            _catch_up(node, name, listening, mark)
        _tell(node, name, listening)


def tell_leader_change(node: QuorumNode) -> None:
    """Tell the listeners of another epoch, or of its leader."""
    for name, listening in node.listeners.items():
        if not listening.is_new:
            _tell(node, name, listening)


def _tell(node: QuorumNode, name: str, listening: ListenerContext) -> None:
    role = node.role
    if isinstance(role, ResignedState) or role.epoch < listening.told_epoch:
        return
    newer = role.epoch > listening.told_epoch
    named = role.leader_id is not None and listening.told_leader is None
    if not newer and not named:
        return
    if isinstance(role, LeaderState) and listening.next_offset <= role.epoch_start_offset:
        return
    listening.told_epoch, listening.told_leader = role.epoch, role.leader_id
    node.emit(LeaderChange(name, node.leader_id, role.epoch))


def _catch_up(node: QuorumNode, name: str, listening: ListenerContext, high_watermark: int) -> None:
    log = node.log
    snapshot_id = log.latest_snapshot
    if snapshot_id is not None and (
        not listening.has_consumed or listening.next_offset < log.start_offset
    ):
        content = log.log.snapshots[snapshot_id]
        if snapshot_id == BOOTSTRAP_SNAPSHOT:
            node.emit(LoadBootstrap(name, snapshot_id, content))
        else:
            node.emit(LoadSnapshot(name, snapshot_id, content))
        listening.next_offset = snapshot_id[0]
    listening.has_consumed = True
    if listening.next_offset < high_watermark:
        batches = log.log.read(listening.next_offset, until=high_watermark)
        if batches:
            listening.next_offset = batches[-1].next_offset
            node.emit(Commit(name, batches))
