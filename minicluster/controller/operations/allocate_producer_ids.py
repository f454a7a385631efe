"""AllocateProducerIds (67): a broker takes the next block of producer ids.

Versions:  0.
"""

from __future__ import annotations

from minicluster.controller.api import ControllerApi
from minicluster.controller.decision import Decision
from minicluster.controller.errors import Rejected
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from minicluster.protocol.records import ProducerIdsRecord, VersionedRecord
from minicluster.security.acls import Operation

PRODUCER_ID_BLOCK = 1_000
LONG_MAX = 2**63 - 1


def allocate_producer_ids(
    state: ClusterState, request: AllocateProducerIdsRequest, version: int, now_ms: int
) -> Decision:
    """Give a broker the next block of producer ids.

    Errors:  Rejected with STALE_BROKER_EPOCH; with UNKNOWN_SERVER_ERROR where no block is left.
    Source:  KIP-730; ProducerIdControlManager.generateNextProducerId.
    """
    state.check_broker_epoch(request.broker_id, request.broker_epoch)
    first = max(0, state.image.producer_ids.next_producer_id)
    if first > LONG_MAX - PRODUCER_ID_BLOCK:
        raise Rejected(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 "
            "type limit",
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + PRODUCER_ID_BLOCK,
    )
    return Decision(
        records=(VersionedRecord(record, 0),),
        response=AllocateProducerIdsResponse(
            producer_id_start=first, producer_id_len=PRODUCER_ID_BLOCK
        ),
    )


API = ControllerApi(
    AllocateProducerIdsRequest,
    lambda call: allocate_producer_ids(*call.plain),
    right=Operation.CLUSTER_ACTION,
)
