"""The longest step of a node for large requests and large changes of metadata.

    python -m tests.bench.longest_steps [NAME…]

Another client's request waits for one step at most. Of each work, in milliseconds of the processor:
the longest step, all of its steps, and which step was the longest. docs/reference/speed.md has the
figures.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import thread_time
from typing import Any

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.exchange import Exchange, Sender
from minicluster.actors.network import Completion
from minicluster.actors.recording.columns import load_arrow
from minicluster.actors.runtime.turns import Turns
from minicluster.actors.serve.serving import TRACE_BYTES
from minicluster.protocol import messages as m

CLIENT = -9
TOPICS, PARTITIONS = 3, 9_000
UNKNOWN = 45_000
SINK = "metadata-sink"  # of the live rules: nobody's request waits for it

Step = tuple[float, str]  # seconds of the processor, and what it was
Work = Callable[["Bench"], None]


@contextmanager
def watched_steps() -> Iterator[list[Step]]:
    """The steps of simulated actors."""
    steps: list[Step] = []
    take_step = Turns._step

    def timed(turns: Turns, inbox: Any) -> None:
        message = inbox.waiting[0] if inbox.waiting else None
        exchange = getattr(message, "exchange", None)
        what = "" if exchange is None else f" {exchange.api}"
        begun = thread_time()
        take_step(turns, inbox)
        taken = thread_time() - begun
        steps.append((taken, f"{inbox.owner.name} {type(message).__name__}{what}"))

    Turns._step = timed  # type: ignore[method-assign]
    try:
        yield steps
    finally:
        Turns._step = take_step  # type: ignore[method-assign]


class Bench:
    """A cluster and a client of its broker 1."""

    def __init__(self, cluster: MiniCluster, steps: list[Step]) -> None:
        self.cluster, self.steps = cluster, steps
        self.completion: Completion | None = None
        self.connection = 1

    def deliver(self, completion: Completion, /) -> None:
        """Take a response."""
        self.completion = completion

    def left(self, exchange: Exchange, /) -> None:
        """Take that a node is done with a request."""

    def request(self, body: Any, version: int, dst: int = 1) -> Any:
        """Send a request and wait for its response."""
        self.completion = None
        inside(self.cluster).network.request(
            src=CLIENT,
            dst=dst,
            body=body,
            version=version,
            caller=self,
            sender=Sender(connection=self.connection),
        )
        self.cluster.wait_until(lambda: self.completion is not None, within="60s")
        assert self.completion is not None and self.completion.failure is None
        return self.completion.response

    def longest(self, work: Callable[[], Any], of: str = "") -> tuple[float, float, str]:
        """The longest step, the sum, and the name of the longest."""
        inside(self.cluster).recorder._client_rows_made = 0  # as if it was the first one
        self.steps.clear()
        work()
        own = [step for step in self.steps if of in step[1] and not step[1].startswith(SINK)]
        longest_s, name = max(own)
        return longest_s, sum(taken for taken, _ in own), name

    def show(self, title: str, work: Callable[[], Any], of: str = "", rounds: int = 3) -> None:
        """Print a line of the table."""
        longest_s, sum_s, name = min(self.longest(work, of) for _ in range(rounds))
        print(f"{title:<58} {1e3 * longest_s:>7.0f} {1e3 * sum_s:>7.0f}  {name}", flush=True)


def create(bench: Bench, names: Iterable[str], partitions: int, replicas: int = 1) -> list[Any]:
    """Create topics, one request each; -> their ids."""
    ids = []
    for name in names:
        topic = m.CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replicas
        )
        created = bench.request(m.CreateTopicsRequest(timeout_ms=60_000, topics=(topic,)), 7)
        ids.append(created.topics[0].topic_id)
        bench.cluster.run_for("2s")
    return ids


def full_fetch(ids: Iterable[uuid.UUID], count: int, **fields: Any) -> m.FetchRequest:
    """A fetch of partitions of topics by id."""
    kind = m.FetchRequest
    return kind(
        topics=tuple(
            kind.FetchTopic(
                topic_id=topic_id,
                partitions=tuple(
                    kind.FetchPartition(partition=n, partition_max_bytes=1_000_000)
                    for n in range(count)
                ),
            )
            for topic_id in ids
        ),
        **fields,
    )


def on_one_broker() -> None:
    """Requests to a broker that leads 27,000 partitions."""
    with (
        watched_steps() as steps,
        MiniCluster(brokers=1, controllers=1, seed=1) as cluster,
    ):
        bench = Bench(cluster, steps)
        ids = create(bench, [f"t{n}" for n in range(TOPICS)], PARTITIONS)
        names = [f"t{n}" for n in range(TOPICS)]
        all_of = TOPICS * PARTITIONS
        bench.show(
            f"Fetch of {all_of} by a consumer, no session",
            lambda: bench.request(full_fetch(ids, PARTITIONS, session_epoch=-1), 13),
        )
        bench.show(
            f"Fetch of {all_of} by a consumer, a session's first",
            lambda: bench.request(full_fetch(ids, PARTITIONS, session_epoch=0), 13),
        )
        bench.show(
            f"Fetch of {all_of} by a consumer, waiting 100 ms",
            lambda: bench.request(
                full_fetch(ids, PARTITIONS, session_epoch=0, max_wait_ms=100, min_bytes=1), 13
            ),
        )
        opened = bench.request(full_fetch(ids, PARTITIONS, session_epoch=0), 13)
        epoch = iter(range(1, 99))
        bench.show(
            f"Fetch of a session of {all_of}, nothing new",
            lambda: bench.request(
                m.FetchRequest(session_id=opened.session_id, session_epoch=next(epoch)), 13
            ),
        )
        bench.show(
            f"Fetch of a session of {all_of}, nothing new, waiting",
            lambda: bench.request(
                m.FetchRequest(
                    session_id=opened.session_id,
                    session_epoch=next(epoch),
                    max_wait_ms=100,
                    min_bytes=1,
                ),
                13,
            ),
        )
        bench.show(
            f"Fetch of a session of {all_of}, all named again",
            lambda: bench.request(
                full_fetch(
                    ids, PARTITIONS, session_id=opened.session_id, session_epoch=next(epoch)
                ),
                13,
            ),
        )
        bench.show(
            f"Fetch of {UNKNOWN} unknown partitions",
            lambda: bench.request(full_fetch([uuid.UUID(int=7)], UNKNOWN, session_epoch=-1), 13),
        )
        bench.show(
            f"Metadata of all {all_of}, the first",
            lambda: bench.request(m.MetadataRequest(topics=None), 12),
            rounds=1,
        )
        bench.show(
            f"Metadata of all {all_of}, another",
            lambda: bench.request(m.MetadataRequest(topics=None), 12),
        )
        bench.show(
            "DescribeTopicPartitions of all",
            lambda: bench.request(
                m.DescribeTopicPartitionsRequest(response_partition_limit=10_000), 0
            ),
        )
        unknown = tuple(f"u{n}" for n in range(UNKNOWN))
        offsets = m.ListOffsetsRequest
        bench.show(
            f"ListOffsets of {UNKNOWN} unknown topics",
            lambda: bench.request(
                offsets(
                    topics=tuple(
                        offsets.ListOffsetsTopic(
                            name=name,
                            partitions=(offsets.ListOffsetsPartition(partition_index=0),),
                        )
                        for name in unknown
                    )
                ),
                7,
            ),
        )
        bench.show(
            f"ListOffsets of {all_of}",
            lambda: bench.request(
                offsets(
                    topics=tuple(
                        offsets.ListOffsetsTopic(
                            name=name,
                            partitions=tuple(
                                offsets.ListOffsetsPartition(partition_index=n, timestamp=-1)
                                for n in range(PARTITIONS)
                            ),
                        )
                        for name in names
                    )
                ),
                7,
            ),
        )
        records = m.DeleteRecordsRequest
        bench.show(
            f"DeleteRecords of {all_of}",
            lambda: bench.request(
                records(
                    timeout_ms=60_000,
                    topics=tuple(
                        records.DeleteRecordsTopic(
                            name=name,
                            partitions=tuple(
                                records.DeleteRecordsPartition(partition_index=n, offset=0)
                                for n in range(PARTITIONS)
                            ),
                        )
                        for name in names
                    ),
                ),
                2,
            ),
        )
        configs = m.DescribeConfigsRequest
        bench.show(
            "DescribeConfigs of 9,000 topics",
            lambda: bench.request(
                configs(
                    resources=tuple(
                        configs.DescribeConfigsResource(resource_type=2, resource_name=f"t{n % 3}")
                        for n in range(9_000)
                    )
                ),
                4,
            ),
            rounds=1,
        )
        bench.show(
            "Metadata of 45,000 unknown topics",
            lambda: bench.request(
                m.MetadataRequest(
                    topics=tuple(
                        m.MetadataRequest.MetadataRequestTopic(name=name) for name in unknown
                    ),
                    allow_auto_topic_creation=False,
                ),
                12,
            ),
        )
        every = m.DescribeLogDirsRequest(topics=None)
        bench.show("DescribeLogDirs of all", lambda: bench.request(every, 4))
        groups(bench, names, unknown)
        transactions(bench, names, unknown)


def groups(bench: Bench, names: list[str], unknown: tuple[str, ...]) -> None:
    """Offsets of groups."""
    all_of = TOPICS * PARTITIONS
    found = m.FindCoordinatorRequest
    bench.request(found(key_type=0, coordinator_keys=("g",)), 4)
    bench.cluster.run_for("5s")
    commit = m.OffsetCommitRequest

    def committed(topics: Iterable[str], indexes: range) -> Any:
        return bench.request(
            commit(
                group_id="g",
                topics=tuple(
                    commit.OffsetCommitRequestTopic(
                        name=name,
                        partitions=tuple(
                            commit.OffsetCommitRequestPartition(
                                partition_index=n, committed_offset=5
                            )
                            for n in indexes
                        ),
                    )
                    for name in topics
                ),
            ),
            8,
        )

    bench.show("OffsetCommit of 1", lambda: committed(names[:1], range(1)))
    # Some more are too large a batch for `__consumer_offsets`.
    bench.show(f"OffsetCommit of {PARTITIONS}", lambda: committed(names[:1], range(PARTITIONS)))
    bench.show(f"OffsetCommit of {UNKNOWN} unknown topics", lambda: committed(unknown, range(1)))
    fetch = m.OffsetFetchRequest
    bench.show(
        f"OffsetFetch of all of a group with {PARTITIONS}",
        lambda: bench.request(
            fetch(groups=(fetch.OffsetFetchRequestGroup(group_id="g", topics=None),)), 8
        ),
    )
    bench.show(
        f"OffsetFetch of {all_of} by name",
        lambda: bench.request(
            fetch(
                groups=(
                    fetch.OffsetFetchRequestGroup(
                        group_id="g",
                        topics=tuple(
                            fetch.OffsetFetchRequestTopics(
                                name=name, partition_indexes=tuple(range(PARTITIONS))
                            )
                            for name in names
                        ),
                    ),
                )
            ),
            8,
        ),
    )
    delete = m.OffsetDeleteRequest
    bench.show(
        f"OffsetDelete of {all_of}",
        lambda: bench.request(
            delete(
                group_id="g",
                topics=tuple(
                    delete.OffsetDeleteRequestTopic(
                        name=name,
                        partitions=tuple(
                            delete.OffsetDeleteRequestPartition(partition_index=n)
                            for n in range(PARTITIONS)
                        ),
                    )
                    for name in names
                ),
            ),
            0,
        ),
        rounds=1,
    )


def transactions(bench: Bench, names: list[str], unknown: tuple[str, ...]) -> None:
    """Partitions of transactions."""
    all_of = TOPICS * PARTITIONS
    bench.request(m.FindCoordinatorRequest(key_type=1, coordinator_keys=("x",)), 4)
    bench.cluster.run_for("5s")
    init = m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    producer = bench.request(init, 4)
    while producer.error_code:  # the coordinator loads its partition
        bench.cluster.run_for("1s")
        producer = bench.request(init, 4)
    add = m.AddPartitionsToTxnRequest

    def added(topics: Iterable[str], indexes: range) -> Any:
        return bench.request(
            add(
                v3_and_below_transactional_id="x",
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.producer_epoch,
                v3_and_below_topics=tuple(
                    add.AddPartitionsToTxnTopic(name=name, partitions=tuple(indexes))
                    for name in topics
                ),
            ),
            3,
        )

    bench.show(f"AddPartitionsToTxn of {UNKNOWN} unknown", lambda: added(unknown, range(1)))
    bench.show(f"AddPartitionsToTxn of {all_of}", lambda: added(names, range(PARTITIONS)), rounds=1)
    bench.show(
        f"AddPartitionsToTxn of {all_of} again", lambda: added(names, range(PARTITIONS)), rounds=1
    )

    def verified() -> Any:
        return bench.request(
            add(
                transactions=(
                    add.AddPartitionsToTxnTransaction(
                        transactional_id="x",
                        producer_id=producer.producer_id,
                        producer_epoch=producer.producer_epoch,
                        verify_only=True,
                        topics=tuple(
                            add.AddPartitionsToTxnTopic(
                                name=name, partitions=tuple(range(PARTITIONS))
                            )
                            for name in names
                        ),
                    ),
                )
            ),
            5,
        )

    bench.show(f"AddPartitionsToTxn, verification of {all_of}", verified)
    commit = m.TxnOffsetCommitRequest
    bench.show(
        f"TxnOffsetCommit of {all_of}",
        lambda: bench.request(
            commit(
                transactional_id="x",
                group_id="g",
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                topics=tuple(
                    commit.TxnOffsetCommitRequestTopic(
                        name=name,
                        partitions=tuple(
                            commit.TxnOffsetCommitRequestPartition(
                                partition_index=n, committed_offset=5
                            )
                            for n in range(PARTITIONS)
                        ),
                    )
                    for name in names
                ),
            ),
            3,
        ),
    )
    bench.show(
        f"EndTxn of {all_of}",
        lambda: (
            bench.request(
                m.EndTxnRequest(
                    transactional_id="x",
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    committed=True,
                ),
                3,
            ),
            bench.cluster.run_for("3s"),
        ),
        rounds=1,
    )


def metadata() -> None:
    """Changes of thousands of replicas, as the brokers take them."""
    with (
        watched_steps() as steps,
        MiniCluster(brokers=3, controllers=1, seed=1) as cluster,
    ):
        bench = Bench(cluster, steps)
        show = bench.show
        tables = inside(cluster).recorder.tables  # none is written: what the nodes do by themselves
        tables.rows_in_memory, tables.bytes_in_memory = 10**9, 10**12
        for of in ("replica-manager-1", "publisher-1", "broker-1"):
            names = iter(f"{of}-{n}" for n in range(99))
            show(
                f"one topic with 9,000 x 1: {of}",
                lambda names=names: create(bench, [next(names)], 9_000),
                of,
                rounds=1,
            )
        names = iter(f"r{n}" for n in range(99))
        show(
            "9,000 x 3: replica manager",
            lambda: create(bench, [next(names)], 9_000, 3),
            "replica-manager",
            rounds=1,
        )
        show(
            "9,000 x 3 deleted",
            lambda: (
                bench.request(
                    m.DeleteTopicsRequest(
                        timeout_ms=60_000,
                        topics=(m.DeleteTopicsRequest.DeleteTopicState(name="r0"),),
                    ),
                    6,
                ),
                cluster.run_for("3s"),
            ),
            "replica-manager",
            rounds=1,
        )
        create(bench, ("s0", "s1", "s2"), 9_000, 3)
        one_is_killed_and_started(bench, "replica-manager")


def with_the_trace() -> None:
    """The same changes in a cluster that records as `serve` does; the steps of all nodes."""
    with (
        watched_steps() as steps,
        MiniCluster(brokers=3, controllers=1, seed=1) as cluster,
    ):
        bench = Bench(cluster, steps)
        inside(cluster).recorder.bound_for_hours(TRACE_BYTES)
        names = ("s0", "s1", "s2")
        bench.show("27,000 x 3 in 3 requests", lambda: create(bench, names, 9_000, 3), rounds=1)
        one_is_killed_and_started(bench)
        assert not inside(cluster).recorder.problems


def one_is_killed_and_started(bench: Bench, of: str = "") -> None:
    """A broker leaves all ISRs and joins them again."""
    cluster = bench.cluster
    bench.show(
        "broker 3 killed",
        lambda: (cluster.kill(cluster.node(3)), cluster.run_for("20s")),
        of,
        rounds=1,
    )
    bench.show(
        "broker 3 started",
        lambda: (cluster.restart(cluster.node(3)), cluster.run_for("20s")),
        of,
        rounds=1,
    )


WORKS = {"one": on_one_broker, "metadata": metadata, "trace": with_the_trace}


def main() -> int:
    """Print the table."""
    load_arrow()  # as `serve` does, before its clients come
    print(f"{'milliseconds of the processor':<58} {'longest':>7} {'sum':>7}")
    for name in sys.argv[1:] or WORKS:
        WORKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
