"""The frame around a coordinator's record: key and value each begin with a number of 16 bits.

The number before a key is the type of the record, the one before a value its version. A record
without value is a tombstone: it deletes what has its key.

Source:  CoordinatorRecordSerde, GroupCoordinatorRecordSerde.
"""

from __future__ import annotations

from collections.abc import Mapping

from minicluster.protocol.codec import decode, encode
from minicluster.protocol.coordinator_records import groups, transaction
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.schema import Message
from minicluster.values import Value

KeyAndValue = tuple[type[Message], type[Message]]


class CoordinatorRecord(Value):
    """One record: its key, and its value in a version; no value is a tombstone."""

    key: Message
    value: Message | None = None
    version: int = 0


def _by_type(*pairs: KeyAndValue) -> Mapping[int, KeyAndValue]:
    return {key.api_key: (key, value) for key, value in pairs}


GROUP_RECORDS = _by_type(
    (groups.LegacyOffsetCommitKey, groups.LegacyOffsetCommitValue),
    (groups.OffsetCommitKey, groups.OffsetCommitValue),
    (groups.GroupMetadataKey, groups.GroupMetadataValue),
    (groups.ConsumerGroupMetadataKey, groups.ConsumerGroupMetadataValue),
    (
        groups.ConsumerGroupPartitionMetadataKey,
        groups.ConsumerGroupPartitionMetadataValue,
    ),
    (
        groups.ConsumerGroupMemberMetadataKey,
        groups.ConsumerGroupMemberMetadataValue,
    ),
    (
        groups.ConsumerGroupTargetAssignmentMetadataKey,
        groups.ConsumerGroupTargetAssignmentMetadataValue,
    ),
    (
        groups.ConsumerGroupTargetAssignmentMemberKey,
        groups.ConsumerGroupTargetAssignmentMemberValue,
    ),
    (
        groups.ConsumerGroupCurrentMemberAssignmentKey,
        groups.ConsumerGroupCurrentMemberAssignmentValue,
    ),
    (
        groups.ConsumerGroupRegularExpressionKey,
        groups.ConsumerGroupRegularExpressionValue,
    ),
)
"""The records of ``__consumer_offsets`` by type."""

TRANSACTION_RECORDS = _by_type((transaction.TransactionLogKey, transaction.TransactionLogValue))
"""The records of ``__transaction_state`` by type."""


def encode_coordinator_record(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """The key and the value of a record in the log.

    Errors:  as ``encode``.
    """
    key = record.key.api_key.to_bytes(2, "big") + encode(record.key, 0)
    if record.value is None:
        return key, None
    return key, record.version.to_bytes(2, "big") + encode(record.value, record.version)


def decode_coordinator_record(
    types: Mapping[int, KeyAndValue], key: bytes | None, value: bytes | None
) -> CoordinatorRecord | None:
    """The record of a key and a value; None for a type that these records do not have.

    A newer release may have written it, so an unknown type is skipped.

    Errors:  ProtocolError for a missing or short key, an unknown version and damaged bytes.
    Source:  CoordinatorRecordSerde.deserialize.
    """
    if key is None or len(key) < 2:
        raise ProtocolError("coordinator record", "key", "no type", offset=0)
    pair = types.get(int.from_bytes(key[:2], "big", signed=True))
    if pair is None:
        return None
    key_class, value_class = pair
    decoded = decode(key_class, key[2:], 0)
    if value is None:
        return CoordinatorRecord(decoded)
    if len(value) < 2:
        raise ProtocolError(value_class.__name__, "version", "the value is too short", offset=0)
    version = int.from_bytes(value[:2], "big", signed=True)
    return CoordinatorRecord(decoded, decode(value_class, value[2:], version), version)
