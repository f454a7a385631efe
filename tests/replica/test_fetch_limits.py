"""The limits of a fetch, exact to the byte but for the first batch of all (KIP-74)."""

from __future__ import annotations

import pytest

from minicluster.log import Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchRequest, ListOffsetsRequest
from minicluster.protocol.uuids import ZERO_UUID
from tests.replica.cluster import Cluster
from tests.replica.controller_by_heart import TOPIC_IDS

LARGE = 1 << 20
READ_COMMITTED = 1


def with_batches(count: int) -> tuple[Cluster, int]:
    """Two topics with as many committed batches each, all of one size."""
    cluster = Cluster(1)
    for name in ("orders", "bills"):
        cluster.create_topic(name, replicas=(1,))
        for number in range(count):
            cluster.produce(1, b"%d" % number, name=name)
    return cluster, cluster.partition(1).log.batches[0].size


def fetch(cluster: Cluster, max_bytes: int, *partition_max_bytes: int) -> list[bytes]:
    """The bytes of a fetch of both topics, or of the first one."""
    request = FetchRequest(
        min_bytes=0,
        max_bytes=max_bytes,
        isolation_level=READ_COMMITTED,
        topics=tuple(
            FetchRequest.FetchTopic(
                topic_id=TOPIC_IDS[name],
                partitions=(FetchRequest.FetchPartition(partition_max_bytes=most),),
            )
            for name, most in zip(("orders", "bills"), partition_max_bytes, strict=False)
        ),
    )
    response = cluster.response(cluster.request(1, request, 18))
    return [bytes(data.records) for topic in response.responses for data in topic.partitions]


def test_a_batch_that_does_not_fit_is_cut_off() -> None:
    cluster, size = with_batches(3)
    whole = fetch(cluster, LARGE, LARGE)[0]
    assert len(whole) == 3 * size
    for most in (size, size + 1, 2 * size - 1, 2 * size, 2 * size + 12):
        assert fetch(cluster, LARGE, most)[0] == whole[:most]
        assert fetch(cluster, most, LARGE)[0] == whole[:most]
    cut = Records.of(whole[: 2 * size + 12])
    assert [batch.base_offset for batch in cut.batches] == [0, 1]


@pytest.mark.parametrize("most", [0, 1, 12, 60])
def test_the_first_batch_of_all_is_whole_and_no_other_exceeds_its_limit(most: int) -> None:
    cluster, size = with_batches(2)
    first, second = fetch(cluster, LARGE, most, most)
    assert (len(first), second) == (size, b"")
    first, second = fetch(cluster, most, LARGE, LARGE)
    assert (len(first), second) == (size, b"")


def test_the_limit_of_the_response_is_shared() -> None:
    cluster, size = with_batches(2)
    sizes = [len(data) for data in fetch(cluster, 3 * size + 1, LARGE, LARGE)]
    assert sizes == [2 * size, size + 1]
    sizes = [len(data) for data in fetch(cluster, 3 * size - 1, LARGE, LARGE)]
    assert sizes == [2 * size, 0]  # the first batch of a partition is whole or not there


def test_the_limit_of_the_broker_counts_as_well() -> None:
    cluster = Cluster(1, fetch_max_bytes=100)
    cluster.create_topic(replicas=(1,))
    for _ in range(3):
        cluster.produce(1, b"a")
    assert len(fetch(cluster, LARGE, LARGE)[0]) == 100


def test_a_negative_limit_is_an_error_where_there_is_something_to_read() -> None:
    cluster, _ = with_batches(1)
    request = FetchRequest(
        max_bytes=LARGE,
        topics=(
            FetchRequest.FetchTopic(
                topic_id=TOPIC_IDS["orders"],
                partitions=(FetchRequest.FetchPartition(partition_max_bytes=-1),),
            ),
        ),
    )
    data, _ = cluster.fetched(cluster.request(1, request, 13))
    assert data.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_read_ends_with_its_segment_and_does_not_wait_there() -> None:
    cluster = Cluster(1, static={"log.segment.bytes": "200"})
    cluster.create_topic(replicas=(1,))
    for number in range(5):
        cluster.produce(1, b"%d" % number)
    log = cluster.partition(1).log
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) > 1
    first = [batch for batch in log.batches if batch.base_offset < bases[1]]
    assert fetch(cluster, LARGE, LARGE)[0] == b"".join(batch.encoded for batch in first)
    waiting = cluster.consume(1, 0, wait_ms=10_000, min_bytes=LARGE)
    assert cluster.fetched(waiting)[1] == [b"%d" % number for number in range(len(first))]


def test_a_partition_that_is_listed_twice_is_an_invalid_request() -> None:
    """A topic without partitions has no result (4.3: ReplicaManager.fetchOffset)."""
    cluster, _ = with_batches(1)
    kind = ListOffsetsRequest
    wanted = kind.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = kind.ListOffsetsTopic(name="orders", partitions=(wanted, wanted))
    request = kind(replica_id=-1, topics=(topic, kind.ListOffsetsTopic(name="bills")))
    response = cluster.response(cluster.request(1, request, 7))
    assert [(t.name, len(t.partitions)) for t in response.topics] == [("orders", 1)]
    assert response.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST


def test_an_unknown_isolation_level_refuses_the_whole_request() -> None:
    """IsolationLevel.forId throws; a fetch without a known partition does not come to it."""
    cluster, _ = with_batches(1)
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    for name, error in (("orders", unknown), ("none", ErrorCode.NONE)):
        topic = FetchRequest.FetchTopic(
            topic_id=TOPIC_IDS.get(name, ZERO_UUID), partitions=(FetchRequest.FetchPartition(),)
        )
        request = FetchRequest(isolation_level=2, topics=(topic,))
        assert cluster.response(cluster.request(1, request, 18)).error_code == error
    partition = ListOffsetsRequest.ListOffsetsPartition(timestamp=-1)
    topics = (ListOffsetsRequest.ListOffsetsTopic(name="none", partitions=(partition,)),)
    request = ListOffsetsRequest(isolation_level=2, topics=topics)
    response = cluster.response(cluster.request(1, request, 11))
    assert [p.error_code for topic in response.topics for p in topic.partitions] == [unknown]
    nothing = ListOffsetsRequest(isolation_level=2)
    assert cluster.response(cluster.request(1, nothing, 11)).topics == ()


@pytest.mark.parametrize(("epoch", "error"), [(-2, 0), (0, 74), (1, 0), (2, 75)])
def test_any_negative_leader_epoch_of_a_fetch_is_none(epoch: int, error: int) -> None:
    """FetchRequest.optionalEpoch, where ListOffsets takes -1 alone for none."""
    cluster = Cluster(1)
    cluster.create_topic(replicas=(1,))
    cluster.change(leader=1)
    assert cluster.partition(1).leader_epoch == 1
    wanted = FetchRequest.FetchPartition(current_leader_epoch=epoch, last_fetched_epoch=-2)
    topic = FetchRequest.FetchTopic(topic_id=TOPIC_IDS["orders"], partitions=(wanted,))
    response = cluster.response(cluster.request(1, FetchRequest(topics=(topic,)), 18))
    assert response.responses[0].partitions[0].error_code == error


@pytest.mark.parametrize(
    ("session_id", "error"),
    [(0x7FFFFFF7, 70), (0x7FFFFFF8, -1), (-5, 70), (-0xFFFFFFF, -1), (-0xFFFFFFE, 70)],
)
def test_a_session_id_in_no_shard_breaks_the_fetch(session_id: int, error: int) -> None:
    """FetchSessionCache.getCacheShard: eight shards of Integer.MAX_VALUE / 8 ids."""
    cluster, _ = with_batches(1)
    request = FetchRequest(session_id=session_id, session_epoch=1)
    response = cluster.response(cluster.request(1, request, 18))
    assert response.error_code == error
    whole = FetchRequest(session_id=session_id, session_epoch=-1)
    response = cluster.response(cluster.request(1, whole, 18))
    assert response.error_code == (-1 if error == -1 else 0)
