"""The parts that the responses to Vote, BeginQuorumEpoch and EndQuorumEpoch have in common."""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.quorum import wire
from minicluster.quorum.message_epoch import ResponseEpoch
from minicluster.quorum.state.node import QuorumNode


def epoch_of(node: QuorumNode, response: Any) -> ResponseEpoch | bool:
    """The leader and epoch of the voter; False for a response about another partition."""
    partition = wire.only_partition(response)
    if partition is None:
        return False
    leader_id = None if partition.leader_id < 0 else partition.leader_id
    return ResponseEpoch(
        ErrorCode.for_code(partition.error_code),
        leader_id,
        partition.leader_epoch,
        wire.response_endpoints(response, leader_id, node.listener_name),
    )


def has_error(response: Any) -> bool:
    """The voter refused the request for a reason that is not its epoch."""
    return bool(response.topics[0].partitions[0].error_code != ErrorCode.NONE)
