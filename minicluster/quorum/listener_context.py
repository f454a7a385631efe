"""The listeners of the log: they get committed batches, snapshots, and the leader.

**Invariant:** a leader is notified of itself only after it has consumed all that came before its
epoch: it must not act on a state that misses what earlier leaders committed.

Source:  KafkaRaftClient.ListenerContext, updateListenersProgress, maybeFireLeaderChange.
"""

from __future__ import annotations

from minicluster.planting import step
from minicluster.quorum.effects import Commit, LeaderChange, LoadBootstrap, LoadSnapshot
from minicluster.quorum.state.epoch_state import ResignedState
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import ListenerContext, QuorumNode
from minicluster.quorum.state.raft_log import BOOTSTRAP_SNAPSHOT


def update_listeners(node: QuorumNode) -> None:
    """Bring every listener, once it is behind, up to the high watermark and the present leader."""
    node.listeners_behind = False
    for name, context in node.listeners.items():
        context.is_new = False
        if node.role.high_watermark is not None:
            update(node, name, context, node.role.high_watermark)
        _maybe_notify(node, name, context)


def on_leader_change(node: QuorumNode) -> None:
    """Notify the listeners of another epoch, or of its leader."""
    for name, context in node.listeners.items():
        if not context.is_new:
            _maybe_notify(node, name, context)


def _maybe_notify(node: QuorumNode, name: str, context: ListenerContext) -> None:
    """Notify a listener of a leader that is news; of a resignation it learns with the next epoch.

    Source:  ListenerContext.maybeFireLeaderChange.
    """
    role = node.role
    if isinstance(role, ResignedState) or role.epoch < context.notified_epoch:
        return
    is_newer = role.epoch > context.notified_epoch
    is_now_known = role.leader_id is not None and context.notified_leader is None
    if not is_newer and not is_now_known:
        return
    # Up to and with the first record of its own epoch: then all of the earlier epochs is committed,
    # and the listener has it.
    if isinstance(role, LeaderState) and context.next_offset <= role.epoch_start_offset:
        return
    context.notified_epoch, context.notified_leader = role.epoch, role.leader_id
    node.emit(LeaderChange(name, node.leader_id, role.epoch))


@step
def update(node: QuorumNode, name: str, context: ListenerContext, end_offset: int) -> None:
    """Load the newest snapshot where the log lacks the listener's next offset, then commit.

    Source:  KafkaRaftClient.updateListenersProgress; ListenerContext.fireHandleSnapshot,
             fireHandleCommit.
    """
    # At first always from a snapshot, if there is one, though the log may reach further back: it is
    # shorter. Later only where the log has been cleaned, or replaced, past the listener's place.
    log = node.log
    snapshot_id = log.latest_snapshot
    if snapshot_id is not None and (
        not context.has_consumed or context.next_offset < log.start_offset
    ):
        content = log.log.snapshots[snapshot_id]
        if snapshot_id == BOOTSTRAP_SNAPSHOT:
            node.emit(LoadBootstrap(name, snapshot_id, content))
        else:
            node.emit(LoadSnapshot(name, snapshot_id, content))
        context.next_offset = snapshot_id[0]
    context.has_consumed = True
    if context.next_offset < end_offset:
        batches = log.log.read(context.next_offset, until=end_offset)
        if batches:
            context.next_offset = batches[-1].next_offset
            node.emit(Commit(name, batches))
