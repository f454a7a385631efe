"""Requests that name thousands of things: each thing costs what it does among few.

One of them was quadratic, and a single request held up its broker for half a minute.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.exchange import Sender
from minicluster.actors.network import Completion
from minicluster.actors.runtime.turns import Turns
from minicluster.protocol import messages as m

pytestmark = pytest.mark.benchmark(timer=time.process_time)

CLIENT = -9
FEW, MANY = 500, 4_000

_Offsets, _Fetch = m.ListOffsetsRequest, m.FetchRequest
_Commit, _Committed, _Configs = (
    m.OffsetCommitRequest,
    m.OffsetFetchRequest,
    m.DescribeConfigsRequest,
)
_Creation, _Deletion = m.CreateTopicsRequest, m.DeleteTopicsRequest
_Alteration, _Increment = m.AlterConfigsRequest, m.IncrementalAlterConfigsRequest
_Txn, _Produce, _Delete = m.AddPartitionsToTxnRequest, m.ProduceRequest, m.DeleteRecordsRequest

REQUESTS: dict[str, tuple[int, Callable[[range], Any]]] = {
    "Metadata": (
        12,
        lambda each: m.MetadataRequest(
            topics=tuple(m.MetadataRequest.MetadataRequestTopic(name=f"t{n}") for n in each),
            allow_auto_topic_creation=False,
        ),
    ),
    "ListOffsets": (
        7,
        lambda each: _Offsets(
            topics=tuple(
                _Offsets.ListOffsetsTopic(
                    name=f"t{n}", partitions=(_Offsets.ListOffsetsPartition(partition_index=0),)
                )
                for n in each
            )
        ),
    ),
    "Fetch": (
        11,
        lambda each: _Fetch(
            max_wait_ms=0,
            topics=(
                _Fetch.FetchTopic(
                    topic="t", partitions=tuple(_Fetch.FetchPartition(partition=n) for n in each)
                ),
            ),
        ),
    ),
    "OffsetFetch": (
        7,
        lambda each: _Committed(
            group_id="g",
            topics=(_Committed.OffsetFetchRequestTopic(name="t", partition_indexes=tuple(each)),),
        ),
    ),
    "OffsetCommit": (
        8,
        lambda each: _Commit(
            group_id="g",
            topics=tuple(
                _Commit.OffsetCommitRequestTopic(
                    name=f"t{n}", partitions=(_Commit.OffsetCommitRequestPartition(),)
                )
                for n in each
            ),
        ),
    ),
    "DescribeGroups": (5, lambda each: m.DescribeGroupsRequest(groups=tuple(map(str, each)))),
    "DescribeConfigs": (
        4,
        lambda each: _Configs(
            resources=tuple(
                _Configs.DescribeConfigsResource(resource_type=2, resource_name=f"t{n}")
                for n in each
            )
        ),
    ),
    "CreateTopics": (
        7,
        lambda each: _Creation(
            topics=tuple(_Creation.CreatableTopic(name=f"no name {n}") for n in each)
        ),
    ),
    "DeleteTopics": (
        6,
        lambda each: _Deletion(
            topics=tuple(_Deletion.DeleteTopicState(name=f"t{n}") for n in each)
        ),
    ),
    "AlterConfigs": (
        2,
        lambda each: _Alteration(
            resources=tuple(
                _Alteration.AlterConfigsResource(resource_type=2, resource_name=f"t{n}")
                for n in each
            )
        ),
    ),
    "IncrementalAlterConfigs": (
        1,
        lambda each: _Increment(
            resources=tuple(
                _Increment.AlterConfigsResource(resource_type=2, resource_name=f"t{n}")
                for n in each
            )
        ),
    ),
    "DeleteRecords": (
        2,
        lambda each: _Delete(
            topics=(
                _Delete.DeleteRecordsTopic(
                    name="t",
                    partitions=tuple(
                        _Delete.DeleteRecordsPartition(partition_index=n) for n in each
                    ),
                ),
            )
        ),
    ),
    "Produce": (
        9,
        lambda each: _Produce(
            acks=1,
            topic_data=(
                _Produce.TopicProduceData(
                    name="t",
                    partition_data=tuple(
                        _Produce.PartitionProduceData(index=n, records=b"") for n in each
                    ),
                ),
            ),
        ),
    ),
    "AddPartitionsToTxn": (
        3,
        lambda each: _Txn(
            v3_and_below_transactional_id="x",
            v3_and_below_topics=(
                _Txn.AddPartitionsToTxnTopic(name="t", partitions=tuple(each)),
            ),
        ),
    ),
}  # fmt: skip


class Client:
    """The sender of requests, which has the last response."""

    def __init__(self, cluster: MiniCluster) -> None:
        self.cluster = cluster
        self.completion: Completion | None = None

    def deliver(self, completion: Completion, /) -> None:
        self.completion = completion

    def seconds(self, request: Any, version: int) -> float:
        """The processor time until the response."""
        self.completion = None
        begun = time.process_time()
        inside(self.cluster).network.request(
            src=CLIENT,
            dst=1,
            body=request,
            version=version,
            caller=self,
            sender=Sender(connection=1),
        )
        self.cluster.wait_until(lambda: self.completion is not None)
        assert self.completion is not None and self.completion.failure is None
        return time.process_time() - begun


@pytest.mark.parametrize("api", REQUESTS)
def test_an_element_among_many_costs_what_it_does_among_few(benchmark: Any, api: str) -> None:
    version, request_of = REQUESTS[api]
    with MiniCluster(brokers=1, controllers=1, seed=1, online=False) as cluster:
        client = Client(cluster)
        client.seconds(request_of(range(1)), version)  # what is loaded at the first need
        few = min(client.seconds(request_of(range(FEW)), version) for _ in range(3)) / FEW
        many = benchmark.pedantic(
            lambda: client.seconds(request_of(range(MANY)), version) / MANY, rounds=1
        )
    benchmark.extra_info["microseconds"] = [round(1e6 * cost, 1) for cost in (few, many)]
    assert many / few < 3


@pytest.fixture
def steps_s(monkeypatch: pytest.MonkeyPatch) -> defaultdict[str, list[float]]:
    """The processor time of each step, by actor and message."""
    taken: defaultdict[str, list[float]] = defaultdict(list)
    take_step = Turns._step

    def timed(turns: Turns, inbox: Any) -> None:
        message = type(inbox.waiting[0]).__name__ if inbox.waiting else ""
        begun = time.process_time()
        take_step(turns, inbox)
        taken[f"{inbox.owner.name} {message}"].append(time.process_time() - begun)

    monkeypatch.setattr(Turns, "_step", timed)
    return taken


def _new_topics(each: range) -> m.CreateTopicsRequest:
    return _Creation(
        timeout_ms=60_000,
        topics=tuple(
            _Creation.CreatableTopic(name=f"n{n}", num_partitions=10, replication_factor=1)
            for n in each
        ),
    )


def test_a_topic_that_is_created_with_many_costs_what_it_does_with_few(
    benchmark: Any, steps_s: defaultdict[str, list[float]]
) -> None:
    """The controller decides one request; then the broker takes 8,000 new replicas."""

    def costs(first: int, count: int) -> list[float]:
        steps_s.clear()
        client.seconds(_new_topics(range(first, first + count)), 7)
        cluster.run_for("2s")
        steps = {name: sum(taken) for name, taken in steps_s.items()}
        taken = sum(steps_s["replica-manager-1 Published"])
        decided = sum(t for name, t in steps.items() if name.startswith("controller"))
        return [decided / count, taken / count]

    with MiniCluster(brokers=1, controllers=1, seed=1, online=False) as cluster:
        client = Client(cluster)
        costs(0, 10)  # what is loaded at the first need
        few = costs(1_000, 80)
        many = benchmark.pedantic(lambda: costs(2_000, 800), rounds=1)
    benchmark.extra_info["microseconds"] = [round(1e6 * cost) for cost in (*few, *many)]
    assert many[0] / few[0] < 2
    assert many[1] / few[1] < 2
