"""The wait of a fetch: min_bytes or max_wait_ms, exact to the byte and the millisecond."""

from __future__ import annotations

import pytest

from tests.replica.cluster import Cluster


def committed(*values: bytes) -> tuple[Cluster, int]:
    """A topic that holds a committed batch per value, all of one size."""
    cluster = Cluster()
    cluster.create_topic()
    for value in values:
        cluster.produce(1, value)
        cluster.advance(10)
    sizes = {batch.size for batch in cluster.partition(1).log.batches}
    assert cluster.partition(1).high_watermark == len(values) and len(sizes) == 1
    return cluster, sizes.pop()


def test_a_fetch_that_finds_just_enough_bytes_completes_at_once() -> None:
    cluster, size = committed(b"a")
    enough = cluster.consume(1, 0, wait_ms=1_000, min_bytes=size)
    assert cluster.fetched(enough)[1] == [b"a"]
    waiting = cluster.consume(1, 0, wait_ms=1_000, min_bytes=size + 1)
    assert not cluster.has_response(waiting)


def test_a_waiting_fetch_completes_when_there_are_enough_bytes_and_not_before() -> None:
    cluster, size = committed(b"a")
    waiting = cluster.consume(1, 0, wait_ms=10_000, min_bytes=3 * size)
    cluster.produce(1, b"b")
    cluster.advance(10)
    assert cluster.partition(1).high_watermark == 2 and not cluster.has_response(waiting)
    cluster.produce(1, b"c")
    cluster.advance(10)
    assert cluster.fetched(waiting)[1] == [b"a", b"b", b"c"]


def test_a_fetch_whose_bytes_do_not_come_ends_with_those_that_there_are() -> None:
    cluster, size = committed(b"a")
    waiting = cluster.consume(1, 0, wait_ms=700, min_bytes=2 * size)
    cluster.advance(699)
    assert not cluster.has_response(waiting)
    cluster.advance(1)
    assert cluster.fetched(waiting)[1] == [b"a"]


def test_a_fetch_that_does_not_want_to_wait_completes_with_nothing_at_once() -> None:
    cluster, _ = committed(b"a")
    assert cluster.fetched(cluster.consume(1, 1, wait_ms=0))[1] == []


@pytest.mark.parametrize(
    ("least", "most", "ends_early"), [(1, 0, False), (100, 99, False), (100, 100, True)]
)
def test_of_a_partition_no_more_bytes_count_than_its_limit_has(
    least: int, most: int, ends_early: bool
) -> None:
    """A batch that does not fit counts as far as it does (DelayedFetch.tryComplete)."""
    cluster, size = committed(b"a")
    assert size < 99 < 2 * size
    waiting = cluster.consume(1, 1, wait_ms=1_000, min_bytes=least, partition_max_bytes=most)
    for value in (b"b", b"c", b"d"):
        cluster.produce(1, value)
    cluster.advance(10)
    assert cluster.has_response(waiting) is ends_early
    cluster.advance(1_000)
    assert cluster.fetched(waiting)[1][:1] == [b"b"]
