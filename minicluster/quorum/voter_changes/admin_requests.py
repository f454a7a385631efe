"""The common steps of the requests by which an admin changes the voters.

Versions: AddRaftVoter 0-1, RemoveRaftVoter 0; both name no epoch, for an admin sends them to
          whichever node leads.
Source:   KIP-853; KafkaRaftClient.handleAddVoterRequest, handleRemoveVoterRequest.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from minicluster.quorum import message_epoch
from minicluster.quorum.requests import validation
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.voter_changes import messages

AdminRequest = AddRaftVoterRequest | RemoveRaftVoterRequest
AdminResponse = AddRaftVoterResponse | RemoveRaftVoterResponse


def validate(node: QuorumNode, request: AdminRequest, version: int) -> AdminResponse | None:
    """Refuse another cluster."""
    if validation.has_valid_cluster_id(node, request.cluster_id):
        return None
    message = messages.other_cluster(node, request.cluster_id)
    return respond(request, ErrorCode.INCONSISTENT_CLUSTER_ID, message)


def check_epoch(node: QuorumNode, request: AdminRequest, now_ms: int) -> ErrorCode | None:
    """The node leads, in whatever epoch."""
    return message_epoch.check_leader_request(node, None)


def refuse(
    node: QuorumNode, request: AdminRequest, version: int, error: ErrorCode
) -> AdminResponse:
    """Refuse to act as the leader."""
    return respond(request, error, "")


def respond(request: AdminRequest, error: ErrorCode, message: str) -> AdminResponse:
    """The response with an error and its message."""
    kind = AddRaftVoterResponse if type(request) is AddRaftVoterRequest else RemoveRaftVoterResponse
    return kind(error_code=int(error), error_message=message)
