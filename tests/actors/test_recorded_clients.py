"""Clients of an ordinary load: the recorder keeps small values of their requests, not the bodies.

A run shows the first 50,000 rows of its clients. Beyond them a Produce may still wait for its
followers: its response arrives when its body is long gone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster, trace
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.exchange import OWN_CLIENT, Exchange, Sender
from minicluster.actors.network import Completion
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.log import Record, RecordBatch
from minicluster.log.records import Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
)

VERSION = 9  # of a Produce, which names the topic
NAMED_FETCH = 12  # the last version of a Fetch that does
LARGE = 50_000  # bytes of an ordinary record


class Client:
    """One of Kafka's clients as the network sees it; it keeps the responses."""

    def __init__(self, cluster: MiniCluster, topic: str) -> None:
        self.cluster, self.topic = cluster, topic
        self.responses: list[Any] = []

    def deliver(self, completion: Completion) -> None:
        self.responses.append(completion.response)

    def send(self, values: list[bytes], *, part: int = 0, acks: int = -1) -> Exchange:
        """Send a batch to the leader of a partition."""
        return self.send_encoded(encoded(values), part=part, acks=acks)

    def send_encoded(self, records: bytes, *, part: int = 0, acks: int = -1) -> Exchange:
        return self._request(produce(self.topic, part, records, acks=acks), VERSION, part)

    def fetch(self, offset: int, *, part: int = 0) -> None:
        """Read a partition from an offset on."""
        partition = FetchRequest.FetchPartition(
            partition=part, fetch_offset=offset, partition_max_bytes=1_000_000
        )
        topic = FetchRequest.FetchTopic(topic=self.topic, partitions=(partition,))
        exchange = self._request(FetchRequest(topics=(topic,)), NAMED_FETCH, part)
        self.cluster.wait_until(lambda: not exchange.open)

    def _request(self, body: Any, version: int, part: int) -> Exchange:
        leader = inside(self.cluster).leader_id(self.topic, part)
        assert leader is not None
        return inside(self.cluster).network.request(
            src=OWN_CLIENT,
            dst=leader,
            body=body,
            version=version,
            caller=self,
            sender=Sender(client_id="app-1"),
        )

    def send_and_wait(self, values: list[bytes], *, part: int = 0, acks: int = -1) -> int:
        """Send a batch; its offset."""
        expected = len(self.responses) + 1
        self.send(values, part=part, acks=acks)
        self.cluster.wait_until(lambda: len(self.responses) >= expected, within="60s")
        [responded] = self.responses[-1].responses[0].partition_responses
        assert responded.error_code == ErrorCode.NONE
        return int(responded.base_offset)


def produce(topic: str, part: int, records: bytes, *, acks: int = -1) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=part, records=records)
    topic_data = ProduceRequest.TopicProduceData(name=topic, partition_data=(data,))
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=(topic_data,))


def encoded(values: list[bytes]) -> bytes:
    records = [Record(offset, 0, None, value) for offset, value in enumerate(values)]
    return RecordBatch.of(records, leader_epoch=-1).encoded


def test_an_ordinary_producer_of_large_records_passes_both_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's rows reach their limit; then records follow while a Produce waits."""
    monkeypatch.setattr(trace, "CLIENT_ROWS_MAX", 5_000)
    with MiniCluster(seed=3, controllers=1) as cluster:
        orders = cluster.create_topic("orders", partitions=2, min_isr=2)
        cluster.wait_until(lambda: orders[0].high_watermark == orders[1].high_watermark == 0)
        client = Client(cluster, "orders")
        small = [b"%d" % number for number in range(1_000)]
        for _ in range(trace.CLIENT_ROWS_MAX // len(small)):
            client.send_and_wait(small)
        cluster.hold(cluster.brokers, cluster.brokers, api="Fetch")
        client.send([b"w" * LARGE])
        sent = 0
        while sent <= 50 * LARGE:
            client.send_and_wait([b"x" * LARGE], part=1, acks=1)
            sent += LARGE
        before = len(client.responses)
        cluster.release()
        cluster.wait_until(lambda: len(client.responses) > before, within="30s")
        [responded] = client.responses[-1].responses[0].partition_responses
        assert responded.error_code == ErrorCode.NONE
        assert responded.base_offset == trace.CLIENT_ROWS_MAX
        judged: list[Any] = []
        monkeypatch.setattr(inside(cluster).live_checks, "on_response", judged.extend)
        client.fetch(trace.CLIENT_ROWS_MAX)
        rows = list(inside(cluster).recorder.table("client_record"))
        assert len(rows) == trace.CLIENT_ROWS_MAX
        assert [rows[0]["value"], rows[-1]["value"]] == ["0", "999"]
        late = [(row["f"], row["offset"], row["value"]) for row in judged]
        read = ("read", trace.CLIENT_ROWS_MAX, None)
        assert late == [("fetch", None, None), read], "the late response was not judged"
        assert not inside(cluster).recorder.problems
        left_out = inside(cluster).recorder.client_rows_left_out
        assert left_out == len(client.responses) - trace.CLIENT_ROWS_MAX // len(small)
        header = json.loads((cluster.save(tmp_path / "run") / "run.json").read_text())
        assert header["client_responses_left_out"] == left_out


def test_a_produce_that_waits_for_its_followers_has_its_rows() -> None:
    """They come in the order in which their requests end, with when they were received."""
    with MiniCluster(seed=3, controllers=1) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        cluster.wait_until(lambda: orders[0].high_watermark == 0)
        client = Client(cluster, "orders")
        cluster.hold(cluster.brokers, cluster.brokers, api="Fetch")
        waits = client.send([b"first", b"second"])
        client.send_and_wait([b"third"], acks=1)
        assert waits.open
        cluster.release()
        cluster.wait_until(lambda: not waits.open, within="30s")
        rows = [*inside(cluster).recorder.table("client_record")]
    assert [(row["offset"], row["value"]) for row in rows] == [
        (2, "third"),
        (0, "first"),
        (1, "second"),
    ]
    assert all(row["received_seq"] > row["resp_seq"] == row["seq"] for row in rows)


def test_no_row_keeps_the_records_of_a_produce() -> None:
    recorder = Recorder("run", SimulatedRuntime())
    body = produce("orders", 0, encoded([b"x" * LARGE, b"y" * 10]))
    row = recorder.request(of_client(1, "Produce", body), None)
    kept = row.request.topic_data[0].partition_data[0].records
    assert not isinstance(kept, bytes | Records) and len(kept) == len(
        encoded([b"x" * LARGE, b"y" * 10])
    )
    [[batch]] = recorder._sent[1].values()
    assert [len(value or "") < 200 for value in batch.values] == [True, True]


def test_a_client_that_got_its_response_before_that_was_recorded_has_received_it() -> None:
    """On threads a response arrives as it is sent."""
    recorder = Recorder("run", SimulatedRuntime())
    exchange = of_client(1, "Produce", produce("orders", 0, encoded([b"first"])))
    recorder.request(exchange, None)
    recorder.closed(exchange, None, is_own=True)
    kind = ProduceResponse
    data = kind.PartitionProduceResponse(index=0, base_offset=5)
    topic = kind.TopicProduceResponse(name="orders", partition_responses=(data,))
    recorder.response(exchange, kind(responses=(topic,)), "", None)
    [row] = recorder.table("client_record")
    assert (row["offset"], row["value"], row["received_seq"]) == (5, "first", 2)
    assert [row["completed_ms"] for row in recorder.table("rpc")] == [0]


def of_client(number: int, api: str, body: Any) -> Exchange:
    return Exchange(
        number, api, VERSION, -2, 1, body, sender=Sender(client_id="app-1", connection=7)
    )


@pytest.mark.parametrize("size", [0, 1, 1_024, 1_025, LARGE])
def test_a_long_value_is_a_digest_that_differs_from_others(size: int) -> None:
    from minicluster.actors.recording.values import VALUE_BYTES_MAX, value_text

    one, other = value_text(b"x" * size), value_text(b"x" * max(0, size - 1) + b"y")
    assert one != other
    assert len(one) <= max(VALUE_BYTES_MAX, 200)
    assert (one == "x" * size) is (size <= VALUE_BYTES_MAX)


def test_a_fetch_is_recorded_when_its_response_leaves() -> None:
    """Its batches are those of the leader's log, which may delete them."""
    recorder = Recorder("run", SimulatedRuntime())
    from minicluster.protocol.messages import FetchRequest

    exchange = of_client(1, "Fetch", FetchRequest())
    recorder.request(exchange, None)
    batch = RecordBatch.of([Record(0, 0, None, b"first")], leader_epoch=0)
    data = FetchResponse.PartitionData(
        partition_index=0, high_watermark=1, records=Records((batch,))
    )
    topic = FetchResponse.FetchableTopicResponse(topic="orders", partitions=(data,))
    recorder.response(exchange, FetchResponse(responses=(topic,)), "", None)
    found = [(row["f"], row["value"]) for row in recorder.table("client_record")]
    assert found == [("fetch", None), ("read", "first")]
