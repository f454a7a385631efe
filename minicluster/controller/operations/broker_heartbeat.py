"""BrokerHeartbeat (63): a broker stays alive, is unfenced, shuts down, or reports its directories.

Versions:  0-2.
           0: the metadata offset that the broker has read, and the wish to be fenced or to shut
              down (KIP-631).
           1: OfflineLogDirs; they count from metadata.version 3.7-IV2 on (KIP-858).
           2: CordonedLogDirs; they count from metadata.version 4.3-IV0 on (KIP-1066).

| the broker is | and | it becomes |
|---|---|---|
| fenced | wants to shut down | SHUTDOWN_NOW |
| fenced | has read its own registration, and does not want to be fenced | UNFENCED |
| unfenced | wants to be fenced | FENCED |
| unfenced | wants to shut down, and leads partitions | CONTROLLED_SHUTDOWN |
| unfenced | wants to shut down, and leads none | SHUTDOWN_NOW |
| in controlled shutdown | leads none, and all active brokers have read that | SHUTDOWN_NOW |
| any | has lost its last log directory | SHUTDOWN_NOW |

A broker is unfenced no earlier than it has read its registration: before that it would serve from
old metadata. It leaves no earlier than all others have read who took over: until then they would
fetch from it.
"""

from __future__ import annotations

from minicluster.controller.api import Call, ControllerApi
from minicluster.controller.broker_changes import (
    Records,
    broker_fenced,
    broker_in_controlled_shutdown,
    broker_unfenced,
    directories_cordoned,
    directories_offline,
)
from minicluster.controller.decision import Decision
from minicluster.controller.errors import Reason, Rejected
from minicluster.controller.state.broker_heartbeat_manager import (
    BrokerControlState,
    SetShutdownOffset,
    SoftChange,
    Touch,
)
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.cluster import BrokerRegistration
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from minicluster.security.acls import Operation
from minicluster.values import Value, replace


class BrokerHeartbeatReply(Value, kw_only=True):
    """The state of the broker; the response carries all of it but the controlled shutdown."""

    is_caught_up: bool
    is_fenced: bool
    in_controlled_shutdown: bool
    should_shut_down: bool


def broker_heartbeat(
    state: ClusterState, request: BrokerHeartbeatRequest, version: int, now_ms: int
) -> Decision:
    """Decide one heartbeat; its arrival has counted for the session already.

    Units:   offsets are those of the metadata log; a broker is caught up once it has read the
             record of its own registration.
    Errors:  Rejected with STALE_BROKER_EPOCH.
    Source:  KIP-631, KIP-841, KIP-858, KIP-1066; ReplicationControlManager.processBrokerHeartbeat.
    """
    broker = registered_sender(state, request)
    heartbeats = state.active_heartbeats()
    current = heartbeats.current_state(broker.id)
    following = next_state(state, broker, request)
    if _lost_last_directory(state, broker, request):
        following = BrokerControlState.SHUTDOWN_NOW
    soft: list[SoftChange] = [
        Touch(broker.id, following.is_fenced, request.current_metadata_offset)
    ]
    # By the offset of this decision's last record, so that the hand-over is below it: a broker that
    # has read up to there knows the new leaders. Only the first one counts; if it rose with each
    # heartbeat, nobody would ever have read that far.
    if following.in_controlled_shutdown:
        soft.append(SetShutdownOffset(broker.id))
    records = list(heartbeat_records(state, broker, request, current, following))
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


@step
def registered_sender(state: ClusterState, request: BrokerHeartbeatRequest) -> BrokerRegistration:
    """The sender's registration, which has the epoch of the request.

    Errors:  Rejected with STALE_BROKER_EPOCH, on which the broker registers again.
    """
    if state.image.cluster.broker(request.broker_id) is None:
        raise Rejected(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Receive a heartbeat from broker {request.broker_id} before registration",
            Reason.NOT_REGISTERED,
        )
    return state.check_broker_epoch(request.broker_id, request.broker_epoch)


@step
def next_state(
    state: ClusterState, broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> BrokerControlState:
    """The next state of the sender, as long as one of its log directories is online."""
    return state.active_heartbeats().next_state(
        broker.id,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        metadata_offset=request.current_metadata_offset,
        register_offset=broker.register_offset,
        has_leaderships=lambda: state.indexes.has_leaderships(broker.id),
    )


@step
def heartbeat_records(
    state: ClusterState,
    broker: BrokerRegistration,
    request: BrokerHeartbeatRequest,
    current: BrokerControlState,
    following: BrokerControlState,
) -> Records:
    """The records of a broker's new state, then those of its directories."""
    gates = state.gates.metadata_version
    # All directories that have failed since the broker started, in every heartbeat: those that the
    # registration does not have any more are skipped below, so a lost response costs nothing.
    offline = request.offline_log_dirs if gates.directory_assignment_supported else ()
    if following is not current:
        if following.is_fenced:
            yield from broker_fenced(state, broker)
        elif following.in_controlled_shutdown:
            yield from broker_in_controlled_shutdown(state, broker)
        else:
            yield from broker_unfenced(state, broker, offline)
    if not _lost_last_directory(state, broker, request):
        yield from directories_offline(state, broker, offline)
    if gates.cordoned_log_dirs_supported:
        yield from directories_cordoned(state, broker, request.cordoned_log_dirs)


def _lost_last_directory(
    state: ClusterState, broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> bool:
    """True when no directory is left: a registration without one means that it never had any."""
    if state.rules.last_offline_dir_is_kept or not broker.log_dirs:
        return False
    if not state.gates.metadata_version.directory_assignment_supported:
        return False
    return all(directory in request.offline_log_dirs for directory in broker.log_dirs)


def _decide(call: Call) -> Decision:
    decision = broker_heartbeat(*call.plain)
    reply: BrokerHeartbeatReply = decision.response
    response = BrokerHeartbeatResponse(
        is_caught_up=reply.is_caught_up,
        is_fenced=reply.is_fenced,
        should_shut_down=reply.should_shut_down,
    )
    return replace(decision, response=response)


API = ControllerApi(
    BrokerHeartbeatRequest,
    _decide,
    right=Operation.CLUSTER_ACTION,
)
