"""The requests of a follower about itself: UpdateRaftVoter, and those by which it joins.

Source:  KIP-853 and, in 4.3, auto-join (KIP-1186); KafkaRaftClient.shouldSendUpdateVoteRequest,
         shouldSendAddOrRemoveVoterRequest, buildUpdateVoterRequest, buildAddVoterRequest.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from minicluster.quorum.state.epoch_state import FollowerState
from minicluster.quorum.state.node import QuorumNode

UPDATE_VOTER_VERSION = 0
ADD_VOTER_VERSION = 1
REMOVE_VOTER_VERSION = 0


def maybe_send_update_voter(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    """Send this voter's endpoints and versions where the leader has others, or none.

    Shapes:  -> the wait until the next try; None if there is nothing to send.
    """
    if node.history.kraft_version > 0:
        is_due = node.history.voters.needs_update(node.own)
    else:
        is_due = not role.has_updated_leader
    if not is_due:
        role.reset_update_voter_period(node.settings.update_voter_period_ms, now_ms)
        return None
    versions = node.own.versions
    request = UpdateRaftVoterRequest(
        cluster_id=node.cluster_id,
        current_leader_epoch=role.epoch,
        voter_id=node.key.id,
        voter_directory_id=node.key.wire_directory_id,
        listeners=tuple(
            UpdateRaftVoterRequest.Listener(name=e.name, host=e.host, port=e.port)
            for e in node.own.endpoints
        ),
        kraft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
            min_supported_version=versions.min, max_supported_version=versions.max
        ),
    )
    return _send_to_leader(node, role, request, UPDATE_VOTER_VERSION, now_ms)


def auto_joins(node: QuorumNode) -> bool:
    """This observer is a controller that adds itself to the voters."""
    return node.settings.auto_join and node.can_become_voter and node.history.kraft_version > 0


def maybe_send_add_or_remove_voter(
    node: QuorumNode, role: FollowerState, now_ms: int
) -> int | None:
    """Request to become a voter; first the removal of an entry with another directory.

    That entry is this node's own from before its disk was lost: it can never vote again.
    """
    entry = node.history.voters.get(node.key.id)
    request: Any
    if entry is not None:
        request = RemoveRaftVoterRequest(
            cluster_id=node.cluster_id,
            voter_id=entry.key.id,
            voter_directory_id=entry.key.wire_directory_id,
        )
        return _send_to_leader(node, role, request, REMOVE_VOTER_VERSION, now_ms)
    request = AddRaftVoterRequest(
        cluster_id=node.cluster_id,
        timeout_ms=node.settings.request_timeout_ms,
        voter_id=node.key.id,
        voter_directory_id=node.key.wire_directory_id,
        listeners=tuple(
            AddRaftVoterRequest.Listener(name=e.name, host=e.host, port=e.port)
            for e in node.own.endpoints
        ),
        ack_when_committed=False,
    )
    return _send_to_leader(node, role, request, ADD_VOTER_VERSION, now_ms)


def _send_to_leader(
    node: QuorumNode, role: FollowerState, request: Any, version: int, now_ms: int
) -> int | None:
    leader = node.leader_node
    if leader is None:
        return None
    if node.requests.is_ready(leader.id, now_ms):
        node.send(leader, request, version, now_ms)
        role.reset_update_voter_period(node.settings.update_voter_period_ms, now_ms)
    return node.requests.wait_ms(leader.id, now_ms)
