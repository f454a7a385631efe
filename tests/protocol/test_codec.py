"""Promises of the codec about versions, tags, nulls and errors."""

from __future__ import annotations

import struct
import textwrap
import uuid

import pytest

from minicluster.protocol import ProtocolError, UnsupportedVersion, decode, decoder, encode, encoder
from minicluster.protocol import schema as s
from minicluster.protocol.messages import (
    AlterPartitionRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    ProduceRequest,
)
from minicluster.protocol.records import PartitionChangeRecord, PartitionRecord

TOPIC = uuid.UUID(int=7)


@s.message(kind="data", versions="0-3", flexible="1+")
class Sample(s.Message):
    """Fields of every kind of rule."""

    class Outer(s.Struct):
        inner: Sample.Inner = s.nested("Inner", "0+")
        maybe: Sample.Inner | None = s.nested("Inner", "0+", default=None, nullable="0+")

    class Inner(s.Struct):
        number: int = s.int16("0+", default=3)

    plain: int = s.int32("0+", default=0)
    ignored: int = s.int32("2+", default=5, ignorable=True)
    needed: int = s.int32("2+", default=5)
    text: str | None = s.string("0+", default="", nullable="1+")
    wide: int = s.int64("1+", default=-1, tag=300)
    first: str = s.string("1+", default="", tag=0)
    outer: Outer = s.nested("Outer", "3+")


@s.message(kind="data", versions="0", flexible="0+")
class Shown(s.Message):
    """The message whose code the compilers show at their head."""

    broker_id: int = s.int32("0+", default=0)
    epoch: int = s.int64("0+", default=0)
    isr: tuple[int, ...] = s.array("int32", "0+", default=())


def test_the_code_at_the_head_of_the_compilers_is_what_they_write() -> None:
    """The decoder's ends where its lines for tagged fields begin."""
    for module, source in (
        (encoder, encoder.encoder_source(Shown, 0)),
        (decoder, decoder.decoder_source(Shown, 0)),
    ):
        _, _, block = (module.__doc__ or "").partition("::\n\n")
        shown, _, _ = textwrap.dedent(block.partition("\n\n")[0]).partition("\n …")
        assert source.text.startswith(shown)
        assert len(shown.splitlines()) > 10


def test_a_message_without_such_a_field_rejects_it() -> None:
    with pytest.raises(TypeError, match="Unexpected keyword argument 'plane'"):
        Sample(plane=1)  # type: ignore[call-arg]


def test_an_unknown_tag_is_skipped() -> None:
    record = PartitionChangeRecord(partition_id=1, topic_id=TOPIC, leader=2)
    data = encode(record, 0)
    head, count, tags = data[:20], data[20], data[21:]
    assert count == 1
    more = head + bytes((3,)) + tags + b"\x40\x02zz" + b"\xac\x02\x00"
    assert decode(PartitionChangeRecord, more, 0) == record


def test_tags_are_written_in_ascending_order_whatever_the_declaration() -> None:
    data = encode(Sample(first="a", wide=7), 1)
    assert data.endswith(b"\x02" + b"\x00\x02\x02a" + b"\xac\x02\x08" + struct.pack(">q", 7))
    change = PartitionChangeRecord(directories=(TOPIC,), last_known_elr=(), isr=(1,))
    tags = encode(change, 2)[20:]
    assert tags[:2] == b"\x03\x00"
    assert tags.index(b"\x07\x01\x01") < tags.index(b"\x08\x11\x02")


def test_tags_are_read_in_any_order() -> None:
    first, second = b"\x00\x02\x02a", b"\xac\x02\x08" + struct.pack(">q", 7)
    body = struct.pack(">i", 0) + b"\x01" + b"\x02"
    wanted = Sample(first="a", wide=7)
    assert decode(Sample, body + first + second, 1) == wanted
    assert decode(Sample, body + second + first, 1) == wanted


def test_a_tag_whose_size_is_not_its_fields_is_refused() -> None:
    body = struct.pack(">i", 0) + b"\x01" + b"\x01"
    with pytest.raises(ProtocolError, match=r"field first .*its size, 3 bytes"):
        decode(Sample, body + b"\x00\x03\x02aa", 1)


def test_a_tagged_field_at_its_default_is_not_written() -> None:
    assert encode(Sample(), 1) == b"\0\0\0\0\x01\x00"


def test_a_field_that_the_version_lacks_is_refused_unless_ignorable_or_at_its_default() -> None:
    assert encode(Sample(ignored=9), 1) == encode(Sample(), 1)
    with pytest.raises(UnsupportedVersion, match="Sample v1, field needed"):
        encode(Sample(needed=6), 1)
    with pytest.raises(UnsupportedVersion, match="Sample v0, field wide"):
        encode(Sample(wide=0), 0)
    assert decode(Sample, encode(Sample(), 0), 0) == Sample()


def test_a_null_that_the_version_cannot_carry_is_refused() -> None:
    assert decode(Sample, encode(Sample(text=None), 1), 1).text is None
    with pytest.raises(UnsupportedVersion, match="field text: this version cannot carry null"):
        encode(Sample(text=None), 0)
    with pytest.raises(ProtocolError, match=r"field topics .*must not be null"):
        decode(MetadataRequest, struct.pack(">i", -1), 0)
    with pytest.raises(ProtocolError, match="field topics: it must not be null"):
        encode(AlterPartitionRequest(topics=None), 3)  # type: ignore[arg-type]


def test_structures_may_be_null_and_have_defaults_of_their_own() -> None:
    assert Sample().outer.inner.number == 3
    outer = Sample.Outer(inner=Sample.Inner(number=4), maybe=Sample.Inner(number=5))
    for value in (Sample(), Sample(outer=outer)):
        assert decode(Sample, encode(value, 3), 3) == value
    with pytest.raises(UnsupportedVersion, match="field outer"):
        encode(Sample(outer=outer), 2)


@pytest.mark.parametrize("version", [-1, 4, 40_000])
def test_a_version_that_does_not_exist_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match=f"v{version}: no such version; it has 0 to 3"):
        encode(Sample(), version)
    with pytest.raises(UnsupportedVersion, match="no such version"):
        decode(Sample, b"", version)


@pytest.mark.parametrize(
    ("message", "version", "field"),
    [
        (AlterPartitionRequest(broker_id=1 << 31), 3, "broker_id"),
        (AlterPartitionRequest(broker_epoch="1"), 3, "broker_epoch"),  # type: ignore[arg-type]
        (PartitionRecord(leader_epoch=1.5), 0, "leader_epoch"),  # type: ignore[arg-type]
        (PartitionRecord(topic_id=7), 0, "topic_id"),  # type: ignore[arg-type]
        (PartitionRecord(isr=(1, None)), 0, "isr"),  # type: ignore[arg-type]
        (PartitionRecord(isr=(1 << 40,) * 70), 0, "isr"),
        (PartitionRecord(directories=("a",)), 1, "directories"),  # type: ignore[arg-type]
        (PartitionChangeRecord(leader=1 << 40), 0, "leader"),
        (Sample(text=b"a"), 0, "text"),  # type: ignore[arg-type]
        (Sample(text="ü" * 16_384), 0, "text"),
        (Sample(text="\ud800"), 0, "text"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_that_does_not_fit_names_its_field(
    message: s.Message, version: int, field: str
) -> None:
    with pytest.raises(ProtocolError) as caught:
        encode(message, version)
    assert caught.value.field == field


def test_an_error_names_message_field_and_offset() -> None:
    partition = AlterPartitionRequest.PartitionData(new_isr=(1, 2, 3))
    topic = AlterPartitionRequest.TopicData(topic_id=TOPIC, partitions=(partition,))
    data = encode(AlterPartitionRequest(broker_id=1, topics=(topic,)), 2)
    isr_at = data.index(struct.pack(">iii", 1, 2, 3)) - 1
    broken = data[:isr_at] + b"\x7f" + data[isr_at + 1 :]
    with pytest.raises(ProtocolError) as caught:
        decode(AlterPartitionRequest, broken, 2)
    error = caught.value
    assert error.message == "AlterPartitionRequest v2"
    assert error.field == "topics.partitions.new_isr"
    assert error.offset == isr_at + 1
    assert str(error).startswith(
        "AlterPartitionRequest v2, field topics.partitions.new_isr at byte 39: 126 elements"
    )
    with pytest.raises(ProtocolError, match="field broker_epoch at byte 4: the buffer of 7 bytes"):
        decode(AlterPartitionRequest, data[:7], 2)


def test_a_rest_is_an_error_unless_it_is_allowed() -> None:
    data = encode(MetadataRequest(), 12) + b"\0\0\0"
    with pytest.raises(ProtocolError, match="3 bytes are left over"):
        decode(MetadataRequest, data, 12)
    assert decode(MetadataRequest, data, 12, rest_allowed=True) == MetadataRequest()


def test_records_may_be_any_object_that_has_bytes() -> None:
    class Batches:
        def __bytes__(self) -> bytes:
            return b"batches"

    for records in (b"batches", bytearray(b"batches"), memoryview(b"batches"), Batches()):
        partition = FetchResponse.PartitionData(records=records)
        response = FetchResponse(
            responses=(FetchResponse.FetchableTopicResponse(partitions=(partition,)),)
        )
        for version in (4, 12, 18):
            read = decode(FetchResponse, encode(response, version), version)
            assert read.responses[0].partitions[0].records == b"batches"
    bad = ProduceRequest.PartitionProduceData(records=5)
    with pytest.raises(ProtocolError, match="int is not bytes"):
        encode(
            ProduceRequest(topic_data=(ProduceRequest.TopicProduceData(partition_data=(bad,)),)), 9
        )


def test_one_class_serves_all_versions_of_alter_partition() -> None:
    states = tuple(
        AlterPartitionRequest.BrokerState(broker_id=n, broker_epoch=n + 100) for n in (1, 2)
    )
    new = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=101,
        topics=(
            AlterPartitionRequest.TopicData(
                topic_id=TOPIC,
                partitions=(AlterPartitionRequest.PartitionData(new_isr_with_epochs=states),),
            ),
        ),
    )
    assert decode(AlterPartitionRequest, encode(new, 3), 3) == new
    with pytest.raises(UnsupportedVersion, match=r"topics\.partitions\.new_isr_with_epochs"):
        encode(new, 2)


def test_the_broker_epoch_of_a_fetch_is_in_a_tag_with_a_structure() -> None:
    state = FetchRequest.ReplicaState(replica_id=2, replica_epoch=77)
    request = FetchRequest(replica_state=state, cluster_id="a")
    assert decode(FetchRequest, encode(request, 15), 15) == request
    with pytest.raises(UnsupportedVersion, match="replica_state"):
        encode(request, 14)


def test_a_finalized_feature_is_carried_where_kafka_puts_it() -> None:
    feature = ApiVersionsResponse.FinalizedFeatureKey(
        name="metadata.version", max_version_level=30, min_version_level=30
    )
    response = ApiVersionsResponse(finalized_features_epoch=9, finalized_features=(feature,))
    assert decode(ApiVersionsResponse, encode(response, 3), 3) == response
    assert encode(response, 0) == encode(ApiVersionsResponse(), 0)


def test_a_message_prints_as_the_call_that_makes_it() -> None:
    state = AlterPartitionRequest.BrokerState(broker_id=2)
    partition = AlterPartitionRequest.PartitionData(new_isr_with_epochs=(state,))
    assert repr(AlterPartitionRequest()) == "AlterPartitionRequest()"
    assert repr(partition) == (
        "AlterPartitionRequest.PartitionData("
        "new_isr_with_epochs=(AlterPartitionRequest.BrokerState(broker_id=2),))"
    )
    assert eval(repr(partition)) == partition
