"""Below IBP 3.0 a broker takes its blocks of producer ids from ZooKeeper itself.

Source:  KIP-730; kafka.coordinator.transaction.ZkProducerIdManager.
"""

from __future__ import annotations

from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AllocateProducerIdsResponse
from minicluster.zookeeper.controller.errors import FAILURES
from minicluster.zookeeper.controller.process import Process
from minicluster.zookeeper.controller.processing.allocate_producer_ids import BLOCK, take_block


def allocate_producer_ids(broker: int) -> Process[AllocateProducerIdsResponse]:
    """Take a block, and respond in the place of the controller."""
    try:
        first = yield from take_block(broker)
    except FAILURES:
        return AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK)
