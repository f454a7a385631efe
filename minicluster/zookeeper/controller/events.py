"""The events that the controller processes one after another, and the watches that bring them.

Source:  kafka.controller.ControllerEvent.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.values import Value
from minicluster.zookeeper.server.watches import WatchEvent, WatchKind
from minicluster.zookeeper.znodes import paths


class ControllerEvent(Value):
    """The base of all events."""


class Startup(ControllerEvent):
    """The broker has registered: be a candidate."""


class ControllerChange(ControllerEvent):
    """Another broker may be the controller now."""


class Reelect(ControllerEvent):
    """There is no controller."""


class Expire(ControllerEvent):
    """The session of this broker has expired."""


class BrokerChange(ControllerEvent):
    """The znodes below /brokers/ids have changed."""


class BrokerModification(ControllerEvent):
    """The znode of a live broker has changed."""

    broker: int


class TopicChange(ControllerEvent):
    """The znodes below /brokers/topics have changed."""


class PartitionModification(ControllerEvent):
    """The znode of a topic has changed."""

    topic: str


class TopicDeletion(ControllerEvent):
    """The znodes below /admin/delete_topics have changed."""


class ZkReassignment(ControllerEvent):
    """A tool has written /admin/reassign_partitions."""


class ZkPreferredElection(ControllerEvent):
    """A tool has written /admin/preferred_replica_election."""


class ReassignmentIsrChange(ControllerEvent):
    """The leader of a partition that is reassigned has written its ISR (below IBP 2.7-IV2)."""

    partition: TopicPartition


class IsrChangeNotification(ControllerEvent):
    """Leaders have written ISRs (below IBP 2.7-IV2)."""


class LogDirEventNotification(ControllerEvent):
    """A broker has lost a log directory."""


class AutoPreferredElection(ControllerEvent):
    """It is time to look how many leaders are not the preferred ones."""


class UncleanElectionEnable(ControllerEvent):
    """The default, or a topic, allows unclean leaders from now on."""

    topic: str | None = None


class ControlResponse(ControllerEvent):
    """A broker has responded to LeaderAndIsr, StopReplica or UpdateMetadata."""

    broker: int
    request: Any
    response: Any


class RequestReceived(ControllerEvent):
    """A request of a broker or a client that the controller decides."""

    token: Any
    request: Any
    version: int
    received_ms: int


_OF_CHILDREN: dict[str, ControllerEvent] = {
    paths.BROKER_IDS: BrokerChange(),
    paths.TOPICS: TopicChange(),
    paths.DELETE_TOPICS: TopicDeletion(),
    paths.LOG_DIR_EVENT_NOTIFICATION: LogDirEventNotification(),
    paths.ISR_CHANGE_NOTIFICATION: IsrChangeNotification(),
}
_OF_CREATION: dict[str, ControllerEvent] = {
    paths.CONTROLLER: ControllerChange(),
    paths.REASSIGN_PARTITIONS: ZkReassignment(),
    paths.PREFERRED_REPLICA_ELECTION: ZkPreferredElection(),
}


def event_of(
    watched: WatchEvent, *, nodes: Container[str], children: Container[str]
) -> ControllerEvent | None:
    """The event of a watch, None if the znode is not handled any more, or not at such a change.

    Shapes:  nodes and children are the paths whose changes are handled, and those whose children's.
    Source:  the handlers in kafka.controller.KafkaController.
    """
    path = watched.path
    if watched.kind is WatchKind.NODE_CHILDREN_CHANGED:
        return _OF_CHILDREN.get(path) if path in children else None
    if path not in nodes:
        return None
    match watched.kind:
        case WatchKind.NODE_CREATED:
            return _OF_CREATION.get(path)
        case WatchKind.NODE_DELETED:
            return Reelect() if path == paths.CONTROLLER else None
    if path == paths.CONTROLLER:
        return ControllerChange()
    partition = paths.state_of(path)
    if partition is not None:
        return ReassignmentIsrChange(partition)
    parent, _, name = path.rpartition("/")
    if parent == paths.BROKER_IDS:
        return BrokerModification(int(name))
    return PartitionModification(name) if parent == paths.TOPICS else None
