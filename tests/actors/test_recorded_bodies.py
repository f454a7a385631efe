"""Producers send any number of bytes; the record of the run keeps their number."""

from __future__ import annotations

import sys

from minicluster.actors.recording.bodies import bytes_about
from minicluster.actors.recording.exchange import Exchange
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.log import Record, RecordBatch, Records
from minicluster.protocol import messages as m
from minicluster.protocol.messages import FetchResponse, ProduceRequest

VERSION = 9


def batch(size: int) -> RecordBatch:
    return RecordBatch.of([Record(0, 0, None, b"x" * size)], leader_epoch=0)


def produce(records: bytes | Records) -> ProduceRequest:
    kind = ProduceRequest
    data = kind.PartitionProduceData(records=records)
    return kind(topic_data=(kind.TopicProduceData(name="orders", partition_data=(data,)),))


def fetched(size: int) -> FetchResponse:
    kind = FetchResponse
    data = kind.PartitionData(partition_index=0, records=Records((batch(size),)))
    return kind(responses=(kind.FetchableTopicResponse(topic="orders", partitions=(data,)),))


def recorded(fold_at_bytes: int) -> Recorder:
    """A recorder after 50 produces and fetches of a kilobyte."""
    recorder = Recorder("run", SimulatedRuntime())
    recorder.fold_at_bytes = fold_at_bytes
    for number in range(50):
        body = produce(batch(1000).encoded)
        exchange = Exchange(number, "Produce", VERSION, -2, 1, body, None, None, number, None)
        recorder.request(exchange, "")
        exchange = Exchange(number, "Fetch", VERSION, -2, 1, None, None, None, number, None)
        exchange.request, exchange.response = produce(b""), fetched(1000)
        recorder.event("response", exchange, (exchange.response, VERSION), "")
    return recorder


def held(recorder: Recorder) -> int:
    """The bytes of records in all messages that the recorder refers to."""
    messages = [e.request for e in recorder.exchanges]
    messages += [event[4][0] for event in (*recorder._events, *recorder._recent)]
    values = [
        data.records
        for message in messages
        if isinstance(message, ProduceRequest)
        for topic in message.topic_data
        for data in topic.partition_data
    ]
    return sum(len(value) for value in {id(v): v for v in values if isinstance(v, bytes)}.values())


def test_the_bytes_of_producers_are_bounded() -> None:
    assert held(recorded(fold_at_bytes=1 << 30)) > 50_000
    assert held(recorded(fold_at_bytes=5000)) < 6500


def test_a_bounded_record_has_the_same_rows() -> None:
    whole, bounded = recorded(fold_at_bytes=1 << 30), recorded(fold_at_bytes=5000)
    assert whole.trace_hash == bounded.trace_hash
    assert list(whole.table("rpc")) == list(bounded.table("rpc"))
    [first, *_] = bounded.table("rpc")
    size = batch(1000).size
    assert first["request"]["topicData"][0]["partitionData"] == [
        {"index": 0, "recordsSizeInBytes": size}
    ]
    assert f"records=<{size} bytes>" in "".join(
        repr(event[4][0]) for event in bounded._recent if event[2] == "request"
    )


def test_a_message_weighs_about_what_it_takes() -> None:
    kind = m.ListOffsetsRequest
    partitions = tuple(kind.ListOffsetsPartition(partition_index=n) for n in range(1_000))
    message = kind(topics=(kind.ListOffsetsTopic(name="orders", partitions=partitions),))
    taken = sum(map(sys.getsizeof, partitions))
    assert taken < bytes_about(message) < 3 * taken
    assert bytes_about(fetched(1_000_000)) < 1_000  # the log has its batches in any case
    assert bytes_about(object()) == 1
