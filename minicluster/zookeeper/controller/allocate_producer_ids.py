"""AllocateProducerIds (api key 67, version 0): the next block of producer ids.

Versions: 0; from IBP 3.0 on, brokers below it write the znode themselves.
Source:   KIP-730; kafka.coordinator.transaction.ZkProducerIdManager.getNewProducerIdBlock.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from minicluster.zookeeper.controller.controller_api import ControllerApi
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.errors import FAILURES
from minicluster.zookeeper.controller.znode_access import expect_ok
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Code, GetData, SetData
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.cluster import (
    decode_producer_id_block,
    encode_producer_id_block,
)

PRODUCER_ID_BLOCK_SIZE = 1_000


def process_allocate_producer_ids(
    state: ControllerState, token: Any, request: AllocateProducerIdsRequest
) -> Process[None]:
    """Write the next block for the broker, and respond with it."""
    refusal = _refusal(state, request)
    if refusal is not None:
        state.respond(token, AllocateProducerIdsResponse(error_code=refusal))
        return
    try:
        first = yield from take_block(request.broker_id)
    except FAILURES:
        failed = AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        state.respond(token, failed)
        return
    allocated = AllocateProducerIdsResponse(
        producer_id_start=first, producer_id_len=PRODUCER_ID_BLOCK_SIZE
    )
    state.respond(token, allocated)


def take_block(broker: int) -> Process[int]:
    """Write the next block for a broker, once no other writer was faster; returns its first id.

    Errors:  ZooKeeperFailure; ProtocolError for a znode that cannot be read.
    Source:  kafka.coordinator.transaction.ZkProducerIdManager.getNewProducerIdBlock.
    """
    while True:
        (read,) = yield (GetData(paths.PRODUCER_ID_BLOCK),)
        data, stat = expect_ok(read).data_and_stat
        first = decode_producer_id_block(data)[1] + 1 if data else 0
        block = encode_producer_id_block(broker, first, first + PRODUCER_ID_BLOCK_SIZE - 1)
        (written,) = yield (SetData(paths.PRODUCER_ID_BLOCK, block, stat.version),)
        if expect_ok(written, Code.BADVERSION).ok:
            return first
        (current,) = yield (GetData(paths.PRODUCER_ID_BLOCK),)
        if current.data == block:  # the client of ZooKeeper has sent its write again
            return first


def allocate_producer_ids(broker: int) -> Process[AllocateProducerIdsResponse]:
    """Below IBP 3.0 a broker takes its block itself, and needs no controller for it."""
    try:
        first = yield from take_block(broker)
    except FAILURES:
        return AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    return AllocateProducerIdsResponse(
        producer_id_start=first, producer_id_len=PRODUCER_ID_BLOCK_SIZE
    )


def _refusal(state: ControllerState, request: AllocateProducerIdsRequest) -> ErrorCode | None:
    if not state.is_active:
        return ErrorCode.NOT_CONTROLLER
    known = state.context.broker_epochs.get(request.broker_id)
    if known is None:
        return ErrorCode.BROKER_ID_NOT_REGISTERED
    return None if known == request.broker_epoch else ErrorCode.STALE_BROKER_EPOCH


API = ControllerApi(
    AllocateProducerIdsRequest,
    lambda state, event: process_allocate_producer_ids(state, event.token, event.request),
)
