"""The event of each watch. Source:  the handlers in kafka.controller.KafkaController."""

from __future__ import annotations

from minicluster.zookeeper.controller import events as e
from minicluster.zookeeper.controller.state.controller_state import ControllerState
from minicluster.zookeeper.server.state.watches import WatchEvent, WatchKind
from minicluster.zookeeper.znodes import paths

_OF_CHILDREN: dict[str, e.ControllerEvent] = {
    paths.BROKER_IDS: e.BrokerChange(),
    paths.TOPICS: e.TopicChange(),
    paths.DELETE_TOPICS: e.TopicDeletion(),
    paths.LOG_DIR_EVENT_NOTIFICATION: e.LogDirEventNotification(),
    paths.ISR_CHANGE_NOTIFICATION: e.IsrChangeNotification(),
}
_OF_CREATION: dict[str, e.ControllerEvent] = {
    paths.CONTROLLER: e.ControllerChange(),
    paths.REASSIGN_PARTITIONS: e.ZkReassignment(),
    paths.PREFERRED_REPLICA_ELECTION: e.ZkPreferredElection(),
}


def event_of(state: ControllerState, watched: WatchEvent) -> e.ControllerEvent | None:
    """The event of a watch, None if the znode is not handled any more, or not at such a change."""
    path = watched.path
    if watched.kind is WatchKind.NODE_CHILDREN_CHANGED:
        return _OF_CHILDREN.get(path) if path in state.watched_children else None
    if path not in state.watched_nodes:
        return None
    match watched.kind:
        case WatchKind.NODE_CREATED:
            return _OF_CREATION.get(path)
        case WatchKind.NODE_DELETED:
            return e.Reelect() if path == paths.CONTROLLER else None
    if path == paths.CONTROLLER:
        return e.ControllerChange()
    partition = paths.state_of(path)
    if partition is not None:
        return e.ReassignmentIsrChange(partition)
    parent, _, name = path.rpartition("/")
    if parent == paths.BROKER_IDS:
        return e.BrokerModification(int(name))
    return e.PartitionModification(name) if parent == paths.TOPICS else None
