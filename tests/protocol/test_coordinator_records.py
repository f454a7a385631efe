"""Records of coordinators in Kafka's own bytes, where they differ from those of messages."""

from __future__ import annotations

import pytest

from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.protocol.coordinator_records.framing import (
    decode_coordinator_record,
    encode_coordinator_record,
)
from minicluster.protocol.coordinator_records.groups import ConsumerGroupMemberMetadataValue

KEY = b"\0\5\0\1g\0\1m"
FIELDS = b"\0\0\0\0\2c\x0b/127.0.0.1\2\7orders\1\0\0\x13\x88\0"
OF_CONSUMER_PROTOCOL = FIELDS + b"\1\0\1\0"
"""A member without the classic protocol: the tagged structure is null, which is one byte, 0."""
WITHOUT_TAG = FIELDS + b"\0"
"""What Kafka reads as a structure of defaults, and so as a member of the classic protocol."""


@pytest.mark.parametrize("value", [OF_CONSUMER_PROTOCOL, WITHOUT_TAG])
def test_the_metadata_of_a_member_has_the_bytes_of_kafka(value: bytes) -> None:
    """Source: ConsumerGroupMemberMetadataValue.read, write."""
    record = decode_coordinator_record(GroupShard.record_types, KEY, value)
    assert record is not None
    assert isinstance(record.value, ConsumerGroupMemberMetadataValue)
    assert encode_coordinator_record(record) == (KEY, value)
    classic = record.value.classic_member_metadata
    assert (classic is None) == (value is OF_CONSUMER_PROTOCOL)
