"""Records in the log: the frame, the keys, the control records."""

from __future__ import annotations

import uuid

import pytest

from minicluster.protocol import ProtocolError, UnsupportedVersion
from minicluster.protocol.messages import VoteRequest
from minicluster.protocol.records import (
    CONTROL_CLASSES,
    RECORD_CLASSES,
    EndTxnMarker,
    FenceBrokerRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    NoOpRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VersionedRecord,
    VotersRecord,
    decode_control,
    decode_record,
    encode_control,
    encode_record,
)

KEYS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27]


def test_every_metadata_record_of_kafka_has_a_class() -> None:
    assert list(RECORD_CLASSES) == [*KEYS, 28]
    assert all(cls.kind == "metadata" for cls in RECORD_CLASSES.values())
    assert all(cls.api_key == key for key, cls in RECORD_CLASSES.items())


def test_every_record_in_every_version_survives_its_frame() -> None:
    for key, cls in RECORD_CLASSES.items():
        for version in cls.valid_versions:
            value = VersionedRecord(cls(), version)
            data = encode_record(value)
            assert data[:3] == bytes((1, key, version))
            assert decode_record(data) == value


def test_a_partition_change_has_the_bytes_that_kafka_writes() -> None:
    topic = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    change = PartitionChangeRecord(partition_id=3, topic_id=topic, isr=(1, 2), leader=2)
    assert encode_record(VersionedRecord(change, 0)).hex() == (
        "0105000000000300112233445566778899aabbccddeeff020009030000000100000002010400000002"
    )


def test_a_registration_keeps_its_nested_endpoints() -> None:
    endpoint = RegisterBrokerRecord.BrokerEndpoint(name="PLAIN", host="b1", port=9092)
    feature = RegisterBrokerRecord.BrokerFeature(
        name="metadata.version", min_supported_version=1, max_supported_version=30
    )
    record = RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=uuid.UUID(int=9),
        broker_epoch=12,
        end_points=(endpoint,),
        features=(feature,),
        rack="a",
        log_dirs=(uuid.UUID(int=1000),),
    )
    assert decode_record(encode_record(VersionedRecord(record, 3))).record == record
    with pytest.raises(UnsupportedVersion, match="log_dirs"):
        encode_record(VersionedRecord(record, 2))


def test_old_fencing_records_are_still_read() -> None:
    assert decode_record(bytes.fromhex("01070000000004000000000000000700")) == (
        VersionedRecord(FenceBrokerRecord(id=4, epoch=7), 0)
    )


def test_what_is_no_metadata_record_gets_no_frame() -> None:
    for other in (VoteRequest(), LeaderChangeMessage()):
        with pytest.raises(ProtocolError, match="it is not a metadata record"):
            encode_record(VersionedRecord(other, 0))


def test_control_records_carry_type_in_the_key_and_version_in_the_value() -> None:
    voter = VotersRecord.Voter(
        voter_id=101,
        voter_directory_id=uuid.UUID(int=5),
        endpoints=(VotersRecord.Endpoint(name="C", host="localhost", port=9093),),
        kraft_version_feature=VotersRecord.KRaftVersionFeature(
            min_supported_version=0, max_supported_version=1
        ),
    )
    cases = [
        (2, LeaderChangeMessage(leader_id=101, voters=(LeaderChangeMessage.Voter(voter_id=101),))),
        (3, SnapshotHeaderRecord(last_contained_log_timestamp=77)),
        (4, SnapshotFooterRecord()),
        (5, KRaftVersionRecord(kraft_version=1)),
        (6, VotersRecord(voters=(voter,))),
    ]
    for type_, record in cases:
        key, data = encode_control(VersionedRecord(record, 0))
        assert key == bytes((0, 0, 0, type_))
        assert data[:2] == b"\0\0"
        assert decode_control(key, data) == VersionedRecord(record, 0)
    assert sorted({*CONTROL_CLASSES}) == [0, 1, 2, 3, 4, 5, 6]


def test_a_leader_change_of_version_1_has_it_in_its_first_field() -> None:
    directory = uuid.UUID(int=1 << 100)
    voter = LeaderChangeMessage.Voter(voter_id=1, voter_directory_id=directory)
    record = LeaderChangeMessage(version=1, leader_id=1, voters=(voter,), granting_voters=(voter,))
    key, data = encode_control(VersionedRecord(record, 1))
    assert data[:2] == b"\0\x01"
    assert decode_control(key, data) == VersionedRecord(record, 1)


def test_a_transaction_marker_has_its_version_before_it() -> None:
    marker = decode_control(b"\0\0\0\x01", b"\0\0\0\0\0\x07")
    assert marker == VersionedRecord(EndTxnMarker(coordinator_epoch=7), 0)


def test_an_unknown_control_type_is_passed_over_and_a_short_key_refused() -> None:
    assert decode_control(b"\0\0\0\x63", b"\0\0") is None
    with pytest.raises(ProtocolError, match="3 bytes, not 4"):
        decode_control(b"\0\0\0", b"\0\0")
    with pytest.raises(ProtocolError, match="the value is too short"):
        decode_control(b"\0\0\0\x02", b"\0")
    with pytest.raises(ProtocolError, match="it is not a control record"):
        encode_control(VersionedRecord(NoOpRecord(), 0))
    with pytest.raises(ProtocolError, match="it is not a control record"):
        encode_control(VersionedRecord(EndTxnMarker(), 0))
