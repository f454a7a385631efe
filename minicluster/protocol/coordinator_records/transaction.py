"""The transaction log in ``__transaction_state``.

Versions: TransactionLogKey 0, TransactionLogValue 0-1: 1 is flexible, and its tags hold the
          producer ids and the epochs of KIP-890.
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(api_key=0, kind="coordinator-key", versions="0", flexible="none")
class TransactionLogKey(s.Message):
    """The key of a transactional id."""

    transactional_id: str = s.string("0", default="")


@s.message(api_key=0, kind="coordinator-value", versions="0-1", flexible="1+")
class TransactionLogValue(s.Message):
    """The state of a transactional id; none: it has expired."""

    class PartitionsSchema(s.Struct):
        topic: str = s.string("0+", default="")
        partition_ids: tuple[int, ...] = s.array("int32", "0+", default=())

    producer_id: int = s.int64("0+", default=0)
    previous_producer_id: int = s.int64("1+", default=-1, tag=0)
    next_producer_id: int = s.int64("1+", default=-1, tag=1)
    producer_epoch: int = s.int16("0+", default=0)
    next_producer_epoch: int = s.int16("1+", default=-1, tag=3)
    transaction_timeout_ms: int = s.int32("0+", default=0)
    transaction_status: int = s.int8("0+", default=0)
    transaction_partitions: tuple[PartitionsSchema, ...] | None = s.array(
        "PartitionsSchema", "0+", default=(), nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = s.int64("0+", default=0)
    transaction_start_timestamp_ms: int = s.int64("0+", default=0)
    client_transaction_version: int = s.int16("1+", default=0, tag=2)
