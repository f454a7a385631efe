"""AddOffsetsToTxn (api key 25): a transaction takes in a group's offsets.

Versions: 0-4, flexible from 3.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: PRODUCER_FENCED is a possible error (KIP-588).
    3: flexible.
    4: TRANSACTION_ABORTABLE is a possible error (KIP-890).
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=25, kind="request", versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(s.Message):
    transactional_id: str = s.string("0+", default="", entity="transactionalId")
    producer_id: int = s.int64("0+", default=0, entity="producerId")
    producer_epoch: int = s.int16("0+", default=0)
    group_id: str = s.string("0+", default="", entity="groupId")


@s.message(api_key=25, kind="response", versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)


API = api(
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    kafka_3_9="0-4",
    kafka_4_3="0-4",
)
