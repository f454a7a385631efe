"""BrokerHeartbeat (63): fencing, unfencing, controlled shutdown, failed and cordoned directories.

Versions:  0-2. OfflineLogDirs count from metadata.version 3.7-IV2 on, CordonedLogDirs from 4.3-IV0.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicluster.controller.deciding.broker_changes import (
    broker_fenced,
    broker_in_controlled_shutdown,
    broker_unfenced,
    directories_cordoned,
    directories_offline,
)
from minicluster.controller.deciding.decision import Decision
from minicluster.controller.errors import Refused
from minicluster.controller.state.broker_heartbeat_manager import (
    BrokerControlState,
    SetShutdownOffset,
    SoftChange,
    Touch,
)
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.cluster import BrokerRegistration
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import BrokerHeartbeatRequest
from minicluster.protocol.records import PartitionChangeRecord, VersionedRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatReply:
    """What the controller makes of a broker; the wire carries all but the controlled shutdown."""

    is_caught_up: bool
    is_fenced: bool
    in_controlled_shutdown: bool
    should_shut_down: bool


def broker_heartbeat(
    state: ClusterState, request: BrokerHeartbeatRequest, version: int, now_ms: int
) -> Decision:
    """Decide one heartbeat. The contact itself was noted when the request came in.

    Units:   a broker is caught up once it has read the record of its own registration.
    Errors:  Refused with STALE_BROKER_EPOCH.
    Source:  KIP-631, KIP-841, KIP-858, KIP-1066; ReplicationControlManager.processBrokerHeartbeat.
    """
    heartbeats = state.active_heartbeats()
    broker_id = request.broker_id
    if state.broker(broker_id) is None:
        raise Refused(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Receive a heartbeat from broker {broker_id} before registration",
        )
    broker = _registered(state, request)
    current = heartbeats.current_state(broker_id)
    following = heartbeats.next_state(
        broker_id,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        metadata_offset=request.current_metadata_offset,
        register_offset=broker.register_offset,
        has_leaderships=lambda: state.indexes.has_leaderships(broker_id),
    )
    gates = state.gates.metadata_version
    dirs = gates.directory_assignment_supported
    if dirs and _lost_last_directory(state, broker, request):
        following = BrokerControlState.SHUTDOWN_NOW
    records: list[VersionedRecord] = []
    if following is not current:
        if following.is_fenced:
            records += broker_fenced(state, broker)
        elif following.in_controlled_shutdown:
            records += broker_in_controlled_shutdown(state, broker)
        else:
            records += broker_unfenced(state, broker, request.offline_log_dirs if dirs else ())
    if dirs and not _lost_last_directory(state, broker, request):
        records += directories_offline(state, broker, request.offline_log_dirs)
    if gates.cordoned_log_dirs_supported:
        records += directories_cordoned(state, broker, request.cordoned_log_dirs)
    if state.faults.s29_heartbeat_changes_nothing:
        records += _no_ops(state, broker_id)
    soft: list[SoftChange] = [
        Touch(broker_id, following.is_fenced, request.current_metadata_offset)
    ]
    if following.in_controlled_shutdown:
        soft.append(SetShutdownOffset(broker_id))
    return Decision(
        records=tuple(records),
        response=BrokerHeartbeatReply(
            is_caught_up=request.current_metadata_offset >= broker.register_offset,
            is_fenced=following.is_fenced,
            in_controlled_shutdown=following.in_controlled_shutdown,
            should_shut_down=following.should_shut_down,
        ),
        soft=tuple(soft),
    )


def _registered(state: ClusterState, request: BrokerHeartbeatRequest) -> BrokerRegistration:
    """The sender's registration, which carries the epoch that the request names."""
    known = state.broker(request.broker_id)
    if (
        state.faults.s15_stale_heartbeat_counts
        and known is not None
        and request.broker_epoch < known.epoch
    ):
        state.hit("S15")
        return known
    return state.check_broker_epoch(request.broker_id, request.broker_epoch)


def _no_ops(state: ClusterState, broker_id: int) -> list[VersionedRecord]:
    """What a planted fault writes: the ISR as it is, of a partition that the broker leads."""
    for topic_id, index in state.indexes.in_isr(broker_id):
        partition = state.image.topics.partition(topic_id, index)
        if partition is not None and partition.leader == broker_id:
            state.hit("S29")
            change = PartitionChangeRecord(topic_id=topic_id, partition_id=index, isr=partition.isr)
            version = state.gates.metadata_version.partition_change_record_version
            return [VersionedRecord(change, version)]
    return []


def _lost_last_directory(
    state: ClusterState, broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> bool:
    """Whether no directory is left, which a registration cannot say: such a broker has to go."""
    if state.rules.last_offline_dir_is_kept or not broker.log_dirs:
        return False
    return all(directory in request.offline_log_dirs for directory in broker.log_dirs)
