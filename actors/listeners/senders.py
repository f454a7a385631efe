"""The node that a request comes from, as the request names it: Kafka's brokers and controllers."""

from __future__ import annotations

from typing import Any

from minicluster.protocol import messages as m

_REPLICA_STATE_FROM = 15
_OF_BROKERS = (
    m.BrokerRegistrationRequest,
    m.BrokerHeartbeatRequest,
    m.AlterPartitionRequest,
    m.AllocateProducerIdsRequest,
    m.AssignReplicasToDirsRequest,
)
_OF_REPLICAS = (m.FetchSnapshotRequest, m.ListOffsetsRequest, m.OffsetForLeaderEpochRequest)
_OF_LEADERS = (m.BeginQuorumEpochRequest, m.EndQuorumEpochRequest)
_OF_FORWARDING = (m.EnvelopeRequest,)


def sending_node(request: Any, version: int, client_id: str) -> int | None:
    """The id of the node that sends a request, None for a client's."""
    node_id = _named(request, version, client_id)
    return node_id if node_id is not None and node_id >= 0 else None


def _named(request: Any, version: int, client_id: str) -> int | None:
    named: int | None = None
    if isinstance(request, m.FetchRequest):
        in_state = version >= _REPLICA_STATE_FROM
        named = request.replica_state.replica_id if in_state else request.replica_id
    elif isinstance(request, _OF_REPLICAS):
        named = request.replica_id
    elif isinstance(request, _OF_BROKERS):
        named = request.broker_id
    elif isinstance(request, m.ControllerRegistrationRequest):
        named = request.controller_id
    elif isinstance(request, m.UpdateRaftVoterRequest):
        named = request.voter_id
    elif isinstance(request, m.VoteRequest):
        named = request.topics[0].partitions[0].replica_id if _has_partition(request) else None
    elif isinstance(request, _OF_LEADERS):
        named = request.topics[0].partitions[0].leader_id if _has_partition(request) else None
    elif isinstance(request, _OF_FORWARDING) and client_id.isdecimal() and client_id.isascii():
        named = int(client_id)  # a broker's channels have its id
    return named


def _has_partition(request: Any) -> bool:
    return bool(request.topics and request.topics[0].partitions)
