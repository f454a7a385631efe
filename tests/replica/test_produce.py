"""Produce: the refusals of a request and of a partition, and what the response has for each."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.java_order import topic_id_partition_hash
from minicluster.log import Record, RecordBatch, Records
from minicluster.log.batch import CONTROL_BIT, TRANSACTIONAL_BIT
from minicluster.log.format.compression import Codec
from minicluster.log.records import packed
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ProduceRequest
from minicluster.protocol.uuids import ZERO_UUID
from tests.replica.cluster import Cluster
from tests.replica.controller_by_heart import TOPIC_IDS

NEWEST = 13
TRANSACTIONAL = {"attributes": TRANSACTIONAL_BIT, "producer_id": 7, "producer_epoch": 0}


def batch(*timestamps: int, **header: Any) -> RecordBatch:
    records = [Record(i, t, b"k", b"v") for i, t in enumerate(timestamps or (0,))]
    return RecordBatch.of(records, leader_epoch=-1, **header)


def leading() -> Cluster:
    """Broker 1 has the only replica of orders-0."""
    cluster = Cluster()
    cluster.create_topic(replicas=(1,))
    return cluster


def send(
    cluster: Cluster,
    records: bytes | Records | None,
    version: int = NEWEST,
    *,
    broker: int = 1,
    topic: str = "orders",
    index: int = 0,
    client_id: str = "",
    **fields: Any,
) -> int:
    """Send one partition's records; the token."""
    kind = ProduceRequest
    data = kind.PartitionProduceData(index=index, records=records)
    names = {"topic_id": TOPIC_IDS.get(topic, ZERO_UUID)} if version >= 13 else {"name": topic}
    of_topic = kind.TopicProduceData(partition_data=(data,), **names)
    request = kind(**{"acks": 1, "timeout_ms": 1000, "topic_data": (of_topic,), **fields})
    return cluster.request(broker, request, version, client_id=client_id)


def result(cluster: Cluster, token: int) -> tuple[int, int, int, str | None]:
    data = cluster.produced(token)
    return data.error_code, data.base_offset, data.log_start_offset, data.error_message


def broken(at: int, *values: int) -> bytes:
    data = bytearray(batch().encoded)
    data[at : at + len(values)] = bytes(values)
    return bytes(data)


NONE, ONE = Records(()), Records((batch(),))
TWO, CONTROL = Records((batch(), batch())), Records((batch(attributes=CONTROL_BIT),))
ZSTD = packed(batch(), Codec.ZSTD).encoded
REFUSALS: list[tuple[str, Any, int, dict[str, Any], ErrorCode, int]] = [
    ("an unknown id", ONE, 13, {"topic": "none"}, ErrorCode.UNKNOWN_TOPIC_ID, -1),
    ("an unknown name", ONE, 12, {"topic": "none"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ("no such partition", ONE, 13, {"index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ("no batch", NONE, 13, {}, ErrorCode.INVALID_RECORD, -1),
    ("null", None, 13, {}, ErrorCode.INVALID_RECORD, -1),
    ("two batches", TWO, 13, {}, ErrorCode.INVALID_RECORD, -1),
    ("magic 1", broken(16, 1), 13, {}, ErrorCode.INVALID_RECORD, -1),
    ("zstd below version 7", ZSTD, 6, {}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1),
    ("other acks", ONE, 13, {"acks": 2}, ErrorCode.INVALID_REQUIRED_ACKS, -1),
    ("a control batch", CONTROL, 13, {}, ErrorCode.INVALID_RECORD, 3),
    ("another checksum", broken(60, 9), 13, {}, ErrorCode.CORRUPT_MESSAGE, -1),
    ("a base offset", broken(7, 1), 13, {}, ErrorCode.INVALID_RECORD, 3),
]


@pytest.mark.parametrize(
    ("records", "version", "fields", "error", "log_start"),
    [refusal[1:] for refusal in REFUSALS],
    ids=[refusal[0] for refusal in REFUSALS],
)
def test_each_refusal_of_a_partition(
    records: Any, version: int, fields: dict[str, Any], error: ErrorCode, log_start: int
) -> None:
    """The log start is in the response only where the log itself refused, and not as expected."""
    cluster = leading()
    send(cluster, Records((batch(1, 2, 3),)))
    cluster.partition(1).replica_log.maybe_increment_log_start_offset(3)
    token = send(cluster, records, version, **fields)
    assert result(cluster, token) == (error, -1, log_start, None)
    assert cluster.partition(1).log_end_offset == 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            broken(8, 0, 0, 0, 13),
            "Record size 13 is less than the minimum record overhead (14)",
        ),
        (broken(16, 3), "Invalid magic found in record: 3"),
        (broken(16, 0xFF), "Invalid magic found in record: -1"),
    ],
)
def test_bytes_that_are_no_batch_refuse_the_whole_request(data: bytes, message: str) -> None:
    cluster = leading()
    token = send(cluster, data)
    assert result(cluster, token) == (ErrorCode.CORRUPT_MESSAGE, -1, -1, message)


def test_an_incomplete_batch_is_none() -> None:
    cluster = leading()
    whole = batch().encoded
    assert cluster.produced(send(cluster, whole + whole[:-1])).base_offset == 0
    token = send(cluster, whole[:-1])
    assert cluster.produced(token).error_code == ErrorCode.INVALID_RECORD


def test_only_the_admin_client_appends_to_an_internal_topic() -> None:
    """Source: KafkaApis.handleProduceRequest (internalTopicsAllowed)."""
    cluster = Cluster()
    cluster.create_topic("__transaction_state", replicas=(1,))
    for client_id in ("", "app", "__admin_client_2"):
        refused = send(cluster, ONE, topic="__transaction_state", client_id=client_id)
        assert result(cluster, refused) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1, -1, None)
    taken = send(cluster, ONE, topic="__transaction_state", client_id="__admin_client")
    assert result(cluster, taken) == (ErrorCode.NONE, 0, 0, None)


def test_transactional_records_need_a_transactional_id_and_a_coordinator() -> None:
    cluster = leading()
    records = Records((batch(**TRANSACTIONAL, base_sequence=0),))
    nobody = send(cluster, records)
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert result(cluster, nobody) == (refused, -1, -1, None)
    somebody = send(cluster, records, transactional_id="bank")
    assert result(cluster, somebody) == (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        -1,
        -1,
        "Unable to verify the partition has been added to the transaction. Underlying error: "
        "COORDINATOR_NOT_AVAILABLE",
    )
    missing = send(cluster, records, transactional_id="bank", index=9)
    assert cluster.produced(missing).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_record_errors_come_with_their_texts() -> None:
    cluster = leading()
    cluster.configure("orders", message_timestamp_before_max_ms="1000")
    cluster.advance(5000)
    now_ms = cluster.now_ms
    data = cluster.produced(send(cluster, Records((batch(now_ms, now_ms - 1001),))))
    assert (data.error_code, data.log_start_offset) == (ErrorCode.INVALID_TIMESTAMP, 0)
    assert data.error_message == "One or more records have been rejected due to invalid timestamp"
    assert [(e.batch_index, e.batch_index_error_message) for e in data.record_errors] == [
        (
            1,
            f"Timestamp {now_ms - 1001} of message with offset 1 is out of range. The timestamp "
            f"should be within [{now_ms - 1000}, {now_ms + 3_600_000}]",
        )
    ]


@pytest.mark.parametrize("append_time", [False, True])
def test_a_repeat_has_the_timestamp_of_its_batch_as_append_time(append_time: bool) -> None:
    """Also in a log with the producer's timestamps, as Kafka has it."""
    cluster = leading()
    if append_time:
        cluster.configure("orders", message_timestamp_type="LogAppendTime")
    records = Records((batch(5, 9, producer_id=7, producer_epoch=0, base_sequence=0),))
    first_ms = cluster.now_ms
    times = []
    for _ in range(2):
        data = cluster.produced(send(cluster, records))
        assert (data.error_code, data.base_offset) == (ErrorCode.NONE, 0)
        times.append(data.log_append_time_ms)
        cluster.advance(100)
    assert times == ([first_ms, first_ms] if append_time else [-1, 9])


def test_a_producer_finds_the_leader_in_the_refusal() -> None:
    """KIP-951: without another Metadata request."""
    cluster = Cluster()
    cluster.create_topic()
    for version in (9, 10, NEWEST):
        response = cluster.response(send(cluster, ONE, version, broker=2))
        data = response.responses[0].partition_responses[0]
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        leaders = [(n.node_id, n.host) for n in response.node_endpoints]
        found = version >= 10
        assert (data.current_leader.leader_id, leaders) == (
            (1, [(1, "host-1")]) if found else (-1, [])
        )


def test_an_error_that_acks_0_cannot_carry_ends_the_connection() -> None:
    cluster = leading()
    for records, version, index, closes in (
        (ONE, 13, 0, False),
        (ONE, 13, 9, True),
        (Records((batch(**TRANSACTIONAL, base_sequence=0),)), 13, 0, True),
        (NONE, 3, 0, True),
    ):
        token = send(cluster, records, version, index=index, acks=0)
        assert (token in cluster.closed) == closes
        assert cluster.has_response(token) != closes


def test_of_a_partition_that_is_named_twice_the_last_records_count() -> None:
    cluster = leading()
    kind = ProduceRequest
    twice = tuple(
        kind.PartitionProduceData(records=Records((batch(*range(count)),))) for count in (1, 2)
    )
    topic = kind.TopicProduceData(topic_id=TOPIC_IDS["orders"], partition_data=twice)
    token = cluster.request(1, kind(acks=1, timeout_ms=9, topic_data=(topic,)), NEWEST)
    assert len(cluster.response(token).responses[0].partition_responses) == 1
    assert cluster.partition(1).log_end_offset == 2


def test_a_leaders_retention_is_followed_and_loses_nothing_for_a_follower_that_lags() -> None:
    """Each replica deletes below its own high watermark; followers begin where the leader does."""
    cluster = Cluster()
    cluster.create_topic()
    cluster.configure("orders", retention_ms="60000", segment_ms="1000")
    for second in range(5):
        send(cluster, Records((batch(cluster.now_ms),)), acks=-1)
        cluster.advance(2000 + second)
    cluster.cuts |= {(3, 1)}
    send(cluster, Records((batch(cluster.now_ms),)), acks=1)
    cluster.advance(600_000)
    starts = [cluster.partition(broker).log_start_offset for broker in (1, 2)]
    assert starts == [6, 6]
    cluster.cuts.clear()
    cluster.advance(60_000)
    assert cluster.partition(3).log_start_offset == 6
    assert [cluster.partition(broker).log_end_offset for broker in (1, 2, 3)] == [6, 6, 6]


def test_each_replica_compacts_its_own_log() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.configure("orders", cleanup_policy="compact", segment_ms="1000")
    for _ in range(6):
        send(cluster, Records((batch(cluster.now_ms),)), acks=-1)
        cluster.advance(5000)
    cluster.advance(60_000)
    for broker in (1, 2, 3):
        held = [r.offset for b in cluster.partition(broker).log.batches for r in b.records]
        assert held == [4, 5]
        assert cluster.partition(broker).log_start_offset == 0


def test_a_producer_that_has_not_written_for_a_day_may_begin_anew() -> None:
    cluster = leading()
    numbered = {"producer_id": 7, "producer_epoch": 0}
    send(cluster, Records((batch(cluster.now_ms, **numbered, base_sequence=0),)))
    gap = Records((batch(cluster.now_ms, **numbered, base_sequence=8),))
    refused = cluster.produced(send(cluster, gap))
    assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    cluster.advance(86_400_000 + 600_000)
    assert cluster.produced(send(cluster, gap)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("is_good_first", [False, True])
def test_a_partition_that_comes_twice_is_appended_and_refused(
    is_good_first: bool, version: int
) -> None:
    """KafkaApis.handleProduceRequest: the refusal replaces the result of the append."""
    cluster = leading()
    kind = ProduceRequest
    twice = (ONE, TWO) if is_good_first else (TWO, ONE)
    data = tuple(kind.PartitionProduceData(index=0, records=records) for records in twice)
    names = {"topic_id": TOPIC_IDS["orders"]} if version >= 13 else {"name": "orders"}
    topic = kind.TopicProduceData(partition_data=data, **names)
    token = cluster.request(1, kind(acks=-1, timeout_ms=1_000, topic_data=(topic,)), version)
    partitions = cluster.response(token).responses[0].partition_responses
    assert [p.error_code for p in partitions] == [ErrorCode.INVALID_RECORD]
    assert cluster.partition(1).log_end_offset == 1


def test_transactional_records_that_come_first_count_though_others_replace_them() -> None:
    """RequestUtils.hasTransactionalRecords looks at everything that the request has."""
    cluster = leading()
    kind = ProduceRequest
    transactional = Records((batch(**TRANSACTIONAL, base_sequence=0),))
    data = tuple(kind.PartitionProduceData(index=0, records=r) for r in (transactional, ONE))
    topic = kind.TopicProduceData(topic_id=TOPIC_IDS["orders"], partition_data=data)
    token = cluster.request(1, kind(acks=1, timeout_ms=1_000, topic_data=(topic,)), NEWEST)
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert result(cluster, token)[0] == refused


def cut_to(size: int, attributes: int = 0) -> bytes:
    """The first bytes of a batch, with a length of its own."""
    data = bytearray(batch().encoded[:size])
    data[8:12] = (size - 12).to_bytes(4, "big")
    data[22] = attributes
    return bytes(data)


@pytest.mark.parametrize(
    ("records", "version", "error"),
    [
        (cut_to(26), 13, ErrorCode.UNKNOWN_SERVER_ERROR),
        (cut_to(50), 13, ErrorCode.UNKNOWN_SERVER_ERROR),
        (cut_to(51), 13, ErrorCode.CORRUPT_MESSAGE),
        (cut_to(60), 13, ErrorCode.CORRUPT_MESSAGE),
        (cut_to(50, Codec.ZSTD), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (cut_to(50) * 2, 13, ErrorCode.INVALID_RECORD),
        (cut_to(50) + batch().encoded, 13, ErrorCode.INVALID_RECORD),
        (batch().encoded + cut_to(50), 13, ErrorCode.INVALID_RECORD),
        (cut_to(61, 7), 6, ErrorCode.UNKNOWN_SERVER_ERROR),
        (cut_to(61, 7), 7, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_a_batch_without_a_whole_header_fails_where_kafka_looks_at_it(
    records: bytes, version: int, error: ErrorCode
) -> None:
    """UNKNOWN_SERVER_ERROR is that of the whole request: another partition is not appended to."""
    cluster = leading()
    cluster.create_topic("bills", replicas=(1,))
    kind = ProduceRequest
    topics = tuple(
        kind.TopicProduceData(
            **({"topic_id": TOPIC_IDS[name]} if version >= 13 else {"name": name}),
            partition_data=(kind.PartitionProduceData(index=0, records=data),),
        )
        for name, data in (("bills", ONE), ("orders", records))
    )
    token = cluster.request(1, kind(acks=1, timeout_ms=1_000, topic_data=topics), version)
    errors = {
        topic.name or next(n for n, i in TOPIC_IDS.items() if i == topic.topic_id): p.error_code
        for topic in cluster.response(token).responses
        for p in topic.partition_responses
    }
    whole = error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert errors == {"orders": error, "bills": error if whole else ErrorCode.NONE}
    assert cluster.partition(1, "bills").log_end_offset == (0 if whole else 1)


def test_a_short_batch_that_is_transactional_needs_a_transactional_id() -> None:
    cluster = leading()
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert result(cluster, send(cluster, cut_to(60, TRANSACTIONAL_BIT)))[0] == refused


@pytest.mark.parametrize("version", [12, 13])
def test_a_request_that_is_refused_lists_each_partition_once_in_the_order_of_a_map(
    version: int,
) -> None:
    """ProduceRequest.getErrorResponse has them from a java.util.HashMap."""
    cluster = leading()
    kind = ProduceRequest
    named = {"topic_id": TOPIC_IDS["orders"]} if version >= 13 else {"name": "orders"}
    transactional = Records((batch(**TRANSACTIONAL, base_sequence=0),))
    topics = tuple(
        kind.TopicProduceData(
            **named,
            partition_data=(kind.PartitionProduceData(index=index, records=transactional),),
        )
        for index in (3, 0, 40, 0)
    )
    request = kind(acks=1, timeout_ms=1_000, topic_data=topics)
    (topic,) = cluster.response(cluster.request(1, request, version)).responses
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert {p.error_code for p in topic.partition_responses} == {refused}
    found = [p.index for p in topic.partition_responses]
    key = (TOPIC_IDS["orders"], "") if version >= 13 else (ZERO_UUID, "orders")
    buckets = [_bucket(topic_id_partition_hash((*key, index))) for index in found]
    assert sorted(found) == [0, 3, 40] and buckets == sorted(buckets)


def _bucket(hash_code: int) -> int:
    """The place in a java.util.HashMap of 16."""
    return (hash_code ^ hash_code >> 16) & 15
