"""Producers send any number of bytes; the record of the run keeps their number."""

from __future__ import annotations

import sys

from minicluster.actors.exchange import Exchange
from minicluster.actors.recording.bodies import bytes_about
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.log import Record, RecordBatch, Records
from minicluster.protocol import messages as m
from minicluster.protocol.messages import FetchRequest, FetchResponse, ProduceRequest

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


def test_no_row_keeps_record_batches() -> None:
    """Their sizes are there, and neither a producer's bytes nor batches of a log."""
    recorder = Recorder("run", SimulatedRuntime())
    sent = [("Produce", produce(batch(1000).encoded), object()), ("Fetch", None, fetched(1000))]
    for number, (api, request, response) in enumerate(sent):
        exchange = Exchange(number, api, VERSION, -2, 1, request or FetchRequest())
        recorder.request(exchange, None)
        recorder.response(exchange, response, "", None)
    size = batch(1000).size
    produced, read = recorder.exchanges
    [data] = produced.request.topic_data[0].partition_data
    assert repr(data.records) == f"<{size} bytes>"
    [part] = read.response.responses[0].partitions
    assert repr(part.records) == f"<{size} bytes>"
    [first, _] = recorder.table("rpc")
    assert first["request"]["topicData"][0]["partitionData"] == [
        {"index": 0, "recordsSizeInBytes": size}
    ]


def test_a_message_weighs_about_what_it_takes() -> None:
    kind = m.ListOffsetsRequest
    partitions = tuple(kind.ListOffsetsPartition(partition_index=n) for n in range(1_000))
    message = kind(topics=(kind.ListOffsetsTopic(name="orders", partitions=partitions),))
    taken = sum(map(sys.getsizeof, partitions))
    assert taken < bytes_about(message) < 3 * taken
    assert bytes_about(fetched(1_000_000)) < 1_000  # the log has its batches in any case
    assert bytes_about(object()) == 1
