"""Changes of the voter set, decided by the leader (KIP-853).

AddRaftVoter:    0-1. Request the new voter's ApiVersions, then append the larger voter set.
                 v1: AckWhenCommitted, false for a response before the commit (auto-join).
RemoveRaftVoter: 0. Append the smaller voter set; a leader may remove itself.
UpdateRaftVoter: 0. A voter's endpoints and supported versions, sent by the voter itself.
kraft.version:   from 0 to 1, a control batch with the voters' directories.

Every replica uses the newest voter set in its log, committed or not: so the larger set already
counts for the commit of the record that holds it. That is safe as long as any majority of the old
set and any majority of the new one share a voter, which holds for sets that differ by one voter.
Hence one change at a time, each committed before the next begins; and the first only after the
leader has committed a record of its own epoch, since until then an earlier leader's uncommitted set
may lie in other logs (KIP-853; the known flaw of Raft's single-server changes).

The checks, in order; the first that fails is the response:

======  ==========================================================================================
any     INCONSISTENT_CLUSTER_ID; NOT_LEADER_OR_FOLLOWER (Update: the leader's epoch as well);
        INVALID_REQUEST without a directory id or, but for Remove, the quorum's listener
any     REQUEST_TIMED_OUT while a change is pending, or the high watermark is unknown
not     UNSUPPORTED_VERSION at kraft.version 0
Update
any     REQUEST_TIMED_OUT while the last voter set is not committed
Add     DUPLICATE_VOTER; then, of the new node's ApiVersions: INVALID_REQUEST if it does not support
        the kraft.version, REQUEST_TIMED_OUT if its log lags
Remove  VOTER_NOT_FOUND for another id or directory, or the last voter
Update  INVALID_REQUEST for a range without the kraft.version (one that cannot be, before all
        waits); VOTER_NOT_FOUND
======  ==========================================================================================

Add and remove come from an admin, to any node that leads, and name no epoch. Their end (commit,
time-out, loss of leadership) is in ``pending_voter_change``.

Source:  AddVoterHandler, RemoveVoterHandler, UpdateVoterHandler, KRaftVersionUpgrade;
         KafkaRaftClient.handleAddVoterRequest, handleRemoveVoterRequest, handleUpdateVoterRequest;
         LeaderState.maybeAppendUpgradedKRaftVersion.
"""

from __future__ import annotations

from typing import Any

from minicluster.metadata.metadata_version import KRAFT_VERSION
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from minicluster.protocol.records import KRaftVersionRecord
from minicluster.quorum import message_checks, pending_voter_change, wire
from minicluster.quorum import voter_messages as messages
from minicluster.quorum.errors import IllegalArgument, InvalidRequest, NotLeader
from minicluster.quorum.state.leader_state import (
    AddVoterHandlerState,
    LeaderState,
    RemoveVoterHandlerState,
)
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import (
    Endpoints,
    ReplicaKey,
    VersionRange,
    Voter,
    VoterSet,
    node_at,
)

API_VERSIONS_VERSION = 4
SOFTWARE_NAME = "apache-kafka-java"
SOFTWARE_VERSION = "4.3.0"

AdminRequest = AddRaftVoterRequest | RemoveRaftVoterRequest
AdminResponse = AddRaftVoterResponse | RemoveRaftVoterResponse
Rejection = tuple[ErrorCode, str]

# --- any change ---------------------------------------------------------------------------------


def validate_admin_request(
    node: QuorumNode, request: AdminRequest, version: int
) -> AdminResponse | None:
    """Reject another cluster."""
    if message_checks.has_valid_cluster_id(node, request.cluster_id):
        return None
    message = messages.other_cluster(node, request.cluster_id)
    return _respond(request, ErrorCode.INCONSISTENT_CLUSTER_ID, message)


def check_admin_epoch(node: QuorumNode, request: AdminRequest, now_ms: int) -> ErrorCode | None:
    """The node leads, in whatever epoch."""
    return message_checks.check_leader_request(node, None)


def admin_error_response(
    node: QuorumNode, request: AdminRequest, version: int, error: ErrorCode
) -> AdminResponse:
    """Reject to act as the leader."""
    return _respond(request, error, "")


def _respond(request: AdminRequest, error: ErrorCode, message: str) -> AdminResponse:
    """The response with an error and its message."""
    kind = AddRaftVoterResponse if type(request) is AddRaftVoterRequest else RemoveRaftVoterResponse
    return kind(error_code=int(error), error_message=message)


def _has_default_listener(node: QuorumNode, endpoints: Endpoints) -> bool:
    """The voter has an endpoint of the listener that the quorum uses."""
    return node_at(0, endpoints, node.listener_name) is not None


def _reject_change(
    node: QuorumNode, role: LeaderState, now_ms: int, *, change: str | None
) -> Rejection | None:
    """Reject a change while another is not committed.

    Otherwise two sets that differ by two voters could each have a majority of its own, without a
    common voter. Nor may the leader have the last voter set before it has committed a record of its
    own epoch (KIP-853).

    Shapes:  ``change`` is adding or removing, which need kraft.version 1; None for an update.
    """
    if pending_voter_change.expire(node, role, now_ms):
        return ErrorCode.REQUEST_TIMED_OUT, messages.PREVIOUS_CHANGE
    if role.high_watermark is None:
        return ErrorCode.REQUEST_TIMED_OUT, messages.NO_HIGH_WATERMARK
    if change is not None and node.history.kraft_version == 0:
        return ErrorCode.UNSUPPORTED_VERSION, messages.static_voters(change, 0)
    offset = node.history.voters_offset
    if offset is not None and offset >= role.high_watermark:
        message = messages.uncommitted_voters(offset, role.high_watermark)
        return ErrorCode.REQUEST_TIMED_OUT, message
    return None


# --- AddRaftVoter -------------------------------------------------------------------------------


def handle_add(
    node: QuorumNode, request: AddRaftVoterRequest, version: int, token: Any, now_ms: int
) -> AdminResponse | None:
    """Begin to add a voter; the response comes later (None here) unless it is a rejection."""
    role = node.role
    assert isinstance(role, LeaderState)
    endpoints = wire.named_endpoints(request.listeners)
    key = ReplicaKey.of(request.voter_id, request.voter_directory_id)
    rejection = _reject_add(node, role, key, endpoints, now_ms)
    if rejection is not None:
        return _respond(request, *rejection)
    to = node_at(request.voter_id, endpoints, node.listener_name)
    assert to is not None
    if not node.requests.is_ready(to.id, now_ms):
        return _respond(request, ErrorCode.REQUEST_TIMED_OUT, messages.not_ready(key))
    api_versions = ApiVersionsRequest(
        client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
    )
    node.send(to, api_versions, API_VERSIONS_VERSION, now_ms)
    role.pending_add = AddVoterHandlerState(
        token=token,
        voter=key,
        endpoints=endpoints,
        ack_when_committed=request.ack_when_committed,
        deadline_ms=now_ms + node.settings.request_timeout_ms,
    )
    return None


def _reject_add(
    node: QuorumNode, role: LeaderState, key: ReplicaKey, endpoints: Any, now_ms: int
) -> Rejection | None:
    if not key.is_complete:
        error = message_checks.invalid(node, InvalidRequest.VOTER_WITHOUT_DIRECTORY)
        return error, "Add voter request didn't include a valid voter"
    if not _has_default_listener(node, endpoints):
        error = message_checks.invalid(node, InvalidRequest.LISTENER_MISSING)
        return error, messages.no_default_listener(endpoints, node.listener_name)
    rejection = _reject_change(node, role, now_ms, change="adding")
    voters = node.history.voters
    if rejection is None and voters.get(key.id) is not None:
        return ErrorCode.DUPLICATE_VOTER, messages.duplicate_voter(key, voters)
    return rejection


def on_api_versions(
    node: QuorumNode, node_id: int, response: ApiVersionsResponse, now_ms: int
) -> bool:
    """Continue a pending add: the new voter has named the levels that it supports."""
    error = ErrorCode.for_code(response.error_code)
    versions = next(
        (
            VersionRange(feature.min_version, feature.max_version)
            for feature in response.supported_features
            if feature.name == KRAFT_VERSION
        ),
        None,
    )
    return _append_new_voter(node, node_id, error, versions, now_ms)


def on_api_versions_error(node: QuorumNode, node_id: int, error: ErrorCode, now_ms: int) -> bool:
    """Fail a pending add: the new voter cannot be reached."""
    return _append_new_voter(node, node_id, error, None, now_ms)


def _append_new_voter(
    node: QuorumNode, node_id: int, error: ErrorCode, versions: VersionRange | None, now_ms: int
) -> bool:
    """Append the larger voter set, or reject it; -> the request to the voter has succeeded.

    The leader adds only a voter that has caught up within the hour: beside one that lags, the
    failure of another could leave the quorum without a majority that can commit.
    """
    role = node.role
    # The add may have timed out, or its leader may be deposed, while the new voter was asked.
    change = role.pending_add if isinstance(role, LeaderState) else None
    if change is None or change.voter.id != node_id or change.last_offset is not None:
        return True
    assert isinstance(role, LeaderState)
    voters = None
    if versions is not None:
        voter = Voter(key=change.voter, endpoints=change.endpoints, versions=versions)
        voters = node.history.voters.add(voter)
    rejection: Rejection | None = None
    if error is not ErrorCode.NONE:
        rejection = ErrorCode.REQUEST_TIMED_OUT, messages.api_versions_error(error.name)
    elif versions is None or not versions.holds(node.history.kraft_version):
        message = messages.unsupported_version(change.voter, versions, node.history.kraft_version)
        rejection = message_checks.invalid(node, InvalidRequest.KRAFT_VERSION_UNSUPPORTED), message
    elif not role.is_caught_up(change.voter, now_ms):
        rejection = ErrorCode.REQUEST_TIMED_OUT, messages.lagging(change.voter)
    elif voters is None:
        message = messages.duplicate_voter(change.voter, node.history.voters)
        rejection = ErrorCode.DUPLICATE_VOTER, message
    if rejection is not None:
        role.pending_add = None
        pending_voter_change.complete_add(node, change, *rejection)
        return error is ErrorCode.NONE
    assert voters is not None
    change.last_offset = role.accumulator.append_control((voters.to_record(),), now_ms)
    if not change.ack_when_committed:
        pending_voter_change.complete_add(node, change, ErrorCode.NONE, None)
    return True


# --- RemoveRaftVoter ----------------------------------------------------------------------------


def handle_remove(
    node: QuorumNode, request: RemoveRaftVoterRequest, version: int, token: Any, now_ms: int
) -> AdminResponse | None:
    """Append the smaller voter set; the response comes with its commit (None here)."""
    role = node.role
    assert isinstance(role, LeaderState)
    key = ReplicaKey.of(request.voter_id, request.voter_directory_id)
    if not key.is_complete:
        error = message_checks.invalid(node, InvalidRequest.VOTER_WITHOUT_DIRECTORY)
        return _respond(request, error, "Remove voter request didn't include a valid voter")
    rejection = _reject_change(node, role, now_ms, change="removing")
    if rejection is not None:
        return _respond(request, *rejection)
    voters = node.history.voters.remove(key)
    if voters is None:
        message = messages.cannot_remove(key, node.history.voters)
        return _respond(request, ErrorCode.VOTER_NOT_FOUND, message)
    role.pending_remove = RemoveVoterHandlerState(
        token=token,
        last_offset=role.accumulator.append_control((voters.to_record(),), now_ms),
        deadline_ms=now_ms + node.settings.request_timeout_ms,
    )
    return None


# --- UpdateRaftVoter ----------------------------------------------------------------------------


def validate_update(
    node: QuorumNode, request: UpdateRaftVoterRequest, version: int
) -> UpdateRaftVoterResponse | None:
    """Reject another cluster."""
    if message_checks.has_valid_cluster_id(node, request.cluster_id):
        return None
    return respond_to_update(node, request, version, ErrorCode.INCONSISTENT_CLUSTER_ID)


def check_update_epoch(
    node: QuorumNode, request: UpdateRaftVoterRequest, now_ms: int
) -> ErrorCode | None:
    """The epoch of the leader that the voter follows."""
    return message_checks.check_leader_request(node, request.current_leader_epoch)


def respond_to_update(
    node: QuorumNode, request: UpdateRaftVoterRequest, version: int, error: ErrorCode
) -> UpdateRaftVoterResponse:
    """The response with an error or none, and with the leader that this node has learnt of."""
    leader = node.leader_node
    return UpdateRaftVoterResponse(
        error_code=int(error),
        current_leader=UpdateRaftVoterResponse.CurrentLeader(
            leader_id=node.leader_id,
            leader_epoch=node.epoch,
            host="" if leader is None else leader.host,
            port=0 if leader is None else leader.port,
        ),
    )


def handle_update(
    node: QuorumNode, request: UpdateRaftVoterRequest, version: int, token: Any, now_ms: int
) -> UpdateRaftVoterResponse:
    """Replace the voter's entry: by a record or, with kraft.version 0, in memory.

    In memory it is what the upgrade of kraft.version writes, which needs every voter's directory.
    """
    error = _update(node, request, now_ms)
    return respond_to_update(node, request, version, error)


def _update(node: QuorumNode, request: UpdateRaftVoterRequest, now_ms: int) -> ErrorCode:
    role = node.role
    assert isinstance(role, LeaderState)
    key = ReplicaKey.of(request.voter_id, request.voter_directory_id)
    endpoints = wire.named_endpoints(request.listeners)
    feature = request.kraft_version_feature
    versions = VersionRange(feature.min_supported_version, feature.max_supported_version)
    if not key.is_complete:
        return message_checks.invalid(node, InvalidRequest.VOTER_WITHOUT_DIRECTORY)
    if not _has_default_listener(node, endpoints):
        return message_checks.invalid(node, InvalidRequest.LISTENER_MISSING)
    # Before the wait for another change: otherwise the voter would repeat what can never be valid.
    if not 0 <= versions.min <= versions.max:
        return message_checks.invalid(node, InvalidRequest.IMPOSSIBLE_VERSIONS)
    rejection = _reject_change(node, role, now_ms, change=None)
    if rejection is not None:
        return rejection[0]
    if node.history.kraft_version == 0 and role.upgraded_version is not None:
        return ErrorCode.REQUEST_TIMED_OUT
    # After that wait: only then is the kraft.version committed. Otherwise the voter could be
    # rejected for a level that is truncated later.
    if not versions.holds(node.history.kraft_version):
        return message_checks.invalid(node, InvalidRequest.KRAFT_VERSION_UNSUPPORTED)
    voter = Voter(key=key, endpoints=endpoints, versions=versions)
    is_static = node.history.kraft_version == 0
    voters = node.history.voters.update(voter, by_id=is_static)
    if voters is None:
        return ErrorCode.VOTER_NOT_FOUND
    if key.id == node.key.id:
        return message_checks.contradiction(node, InvalidRequest.UPDATE_OF_OWN_ID)
    if is_static:
        role.reported_voters[key.id] = voter
    else:
        role.accumulator.append_control((voters.to_record(),), now_ms)
    role.on_contact(key, now_ms)
    return ErrorCode.NONE


# --- kraft.version ------------------------------------------------------------------------------


def upgrade_kraft_version(
    node: QuorumNode, epoch: int, version: int, now_ms: int, *, validate_only: bool
) -> bool:
    """Append the new level and the voters, each with what its UpdateRaftVoter has named.

    Errors:  NotLeader off the leader or for a past epoch; IllegalArgument for an epoch to come, a
             second upgrade to another level, a downgrade, a level that some voter does not support,
             or for which its UpdateRaftVoter is missing.
    """
    role = node.role
    if not isinstance(role, LeaderState) or epoch < role.epoch:
        raise NotLeader(f"kraft.version: node {node.key.id} does not lead epoch {epoch}")
    if epoch > role.epoch:
        raise IllegalArgument(f"kraft.version: epoch {epoch} is above the leader's {role.epoch}")
    present = node.history.kraft_version
    if role.upgraded_version is not None:
        if role.upgraded_version == version:
            return False
        raise IllegalArgument(
            f"kraft.version: an upgrade to {role.upgraded_version} came before that to {version}"
        )
    if version == present:
        return False
    if version < present:
        raise IllegalArgument(f"kraft.version: {version} is below {present}: no downgrade")
    voters = _reported_voters(node, role)
    if not voters_support(node, version):
        raise IllegalArgument(
            f"Invalid upgrade of kraft.version to KRAFT_VERSION_{version} because not all of the "
            "voters support it"
        )
    if not validate_only:
        record = KRaftVersionRecord(version=0, kraft_version=version)
        role.accumulator.append_control((record, VoterSet.of(voters).to_record()), now_ms)
        role.upgraded_version = version
    return True


def voters_support(node: QuorumNode, version: int) -> bool:
    """Every voter has told this leader that it supports a kraft.version, with its directory."""
    role = node.role
    return isinstance(role, LeaderState) and all(
        voter.key.directory_id is not None and voter.versions.holds(version)
        for voter in _reported_voters(node, role)
    )


def _reported_voters(node: QuorumNode, role: LeaderState) -> list[Voter]:
    """The voters, with the directory and versions that their UpdateRaftVoter has named."""
    return [
        node.own if voter.key.id == node.key.id else role.reported_voters.get(voter.key.id, voter)
        for voter in node.history.voters.voters
    ]
