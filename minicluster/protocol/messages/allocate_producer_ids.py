"""AllocateProducerIds (api key 67): a block of producer ids for a broker, from the controller.

KIP-730.

Versions: 0, all flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=67, kind="request", versions="0", flexible="0+")
class AllocateProducerIdsRequest(s.Message):
    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    broker_epoch: int = s.int64("0+", default=-1)


@s.message(api_key=67, kind="response", versions="0", flexible="0+")
class AllocateProducerIdsResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    producer_id_start: int = s.int64("0+", default=0, entity="producerId")
    producer_id_len: int = s.int32("0+", default=0)


API = api(
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    forwardable=True,
)
