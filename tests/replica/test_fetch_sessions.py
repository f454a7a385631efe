"""Incremental fetch sessions (KIP-227): one client's requests, one after the other."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchRequest
from minicluster.replica.fetching.fetch_session import (
    EVICTION_MS,
    SHARDS,
    CachedPartition,
    FetchSessionCache,
    FetchSessionCacheShard,
    next_epoch,
    touch,
)
from tests.replica.cluster import Cluster
from tests.replica.controller_by_heart import TOPIC_IDS

ORDERS, BILLS = TOPIC_IDS["orders"], TOPIC_IDS["bills"]
UNKNOWN = uuid.UUID(int=0xF)
BY_ID, BY_NAME = 13, 12


class Client:
    """A consumer of broker 1 that goes on with the session that it was given."""

    def __init__(self, *topics: str) -> None:
        self.cluster = Cluster()
        for name in topics:
            self.cluster.create_topic(name)
        self.session_id = 0
        self.epoch = 0

    def fetch(
        self,
        offsets: dict[str, int] | None = None,
        *,
        forget: tuple[str, ...] = (),
        version: int = BY_ID,
        ids: dict[str, uuid.UUID] | None = None,
    ) -> Any:
        """Fetch, and take the epoch of the next request of the session."""
        known = {**TOPIC_IDS, **(ids or {})}
        request = FetchRequest(
            max_bytes=1 << 20,
            min_bytes=0,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=tuple(
                FetchRequest.FetchTopic(
                    topic=name,
                    topic_id=known[name],
                    partitions=(
                        FetchRequest.FetchPartition(fetch_offset=offset, partition_max_bytes=1000),
                    ),
                )
                for name, offset in (offsets or {}).items()
            ),
            forgotten_topics_data=tuple(
                FetchRequest.ForgottenTopic(topic=name, topic_id=known[name], partitions=(0,))
                for name in forget
            ),
        )
        response = self.cluster.response(self.cluster.request(1, request, version))
        if response.session_id:
            self.session_id = response.session_id
            self.epoch = next_epoch(self.epoch)
        return response

    def produce(self, name: str, value: bytes) -> None:
        self.cluster.produce(1, value, name=name)
        self.cluster.advance(1_000)  # a new topic waits for the end of the fetch in flight

    @property
    def open_sessions(self) -> int:
        """The sessions beside those of the followers."""
        shards = self.cluster.managers[1].state.fetch_sessions.shards
        return sum(not s.privileged for shard in shards for s in shard.sessions.values())


def partitions(response: Any) -> list[tuple[uuid.UUID, int, int]]:
    """(topic id, error, high watermark) of what a response has."""
    return [
        (topic.topic_id, data.error_code, data.high_watermark)
        for topic in response.responses
        for data in topic.partitions
    ]


def test_a_session_responds_with_what_has_changed() -> None:
    client = Client("orders", "bills")
    assert partitions(client.fetch({"orders": 0, "bills": 0})) == [(ORDERS, 0, 0), (BILLS, 0, 0)]
    assert partitions(client.fetch()) == []
    client.produce("bills", b"a")
    assert partitions(client.fetch()) == [(BILLS, 0, 1)]
    assert partitions(client.fetch()) == [(BILLS, 0, 1)]  # its records are still not fetched
    assert partitions(client.fetch({"bills": 1})) == []


def test_a_partition_with_records_goes_to_the_end_of_the_session() -> None:
    client = Client("orders", "bills")
    client.fetch({"orders": 0, "bills": 0})
    client.produce("orders", b"a")
    client.fetch()
    client.produce("bills", b"b")
    assert partitions(client.fetch()) == [(BILLS, 0, 1), (ORDERS, 0, 1)]


def test_a_partition_is_sent_again_after_an_error() -> None:
    client = Client("orders")
    client.produce("orders", b"a")
    client.fetch({"orders": 1})
    out_of_range = [(ORDERS, ErrorCode.OFFSET_OUT_OF_RANGE, -1)]
    assert partitions(client.fetch({"orders": 7})) == out_of_range
    assert partitions(client.fetch()) == out_of_range
    assert partitions(client.fetch({"orders": 1})) == [(ORDERS, 0, 1)]


def test_a_forgotten_partition_is_not_read_and_the_last_one_closes_the_session() -> None:
    client = Client("orders", "bills")
    client.fetch({"orders": 0, "bills": 0})
    client.produce("orders", b"a")
    assert partitions(client.fetch(forget=("orders",))) == []
    closed = client.fetch(forget=("bills",))
    assert (closed.session_id, closed.error_code, closed.responses) == (0, 0, ())
    assert client.open_sessions == 0
    assert client.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("shift", "version", "error"),
    [
        (1, BY_ID, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, BY_NAME, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (0, BY_NAME, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_session_goes_on_in_order_and_in_its_form(
    shift: int, version: int, error: ErrorCode
) -> None:
    client = Client("orders")
    client.fetch({"orders": 0})
    client.epoch += shift
    refused = client.fetch(version=version)
    assert (refused.error_code, refused.session_id, refused.responses) == (error, 0, ())
    client.epoch -= shift
    assert client.fetch().error_code == ErrorCode.NONE  # the session has not changed


def test_a_full_request_closes_the_session_that_it_names() -> None:
    client = Client("orders")
    client.fetch({"orders": 0})
    first, client.epoch = client.session_id, 0
    assert client.fetch({"orders": 0}).session_id not in (0, first)
    assert client.open_sessions == 1
    client.epoch = -1
    assert client.fetch({"orders": 0}).session_id == 0
    assert client.open_sessions == 0


def test_a_session_below_version_13_has_topics_by_name() -> None:
    client = Client("orders")
    client.fetch({"orders": 0}, version=BY_NAME)
    client.produce("orders", b"a")
    assert client.fetch(version=BY_NAME).responses[0].topic == "orders"


def test_an_unknown_id_is_known_to_the_session_once_the_topic_is_there() -> None:
    client = Client("orders")
    assert partitions(client.fetch({"orders": 0, "bills": 0})) == [
        (ORDERS, 0, 0),
        (BILLS, ErrorCode.UNKNOWN_TOPIC_ID, -1),
    ]
    client.cluster.create_topic("bills")
    assert partitions(client.fetch()) == [(BILLS, 0, 0)]


def test_a_topic_that_is_gone_or_made_anew_is_refused_in_the_session() -> None:
    client = Client("orders")
    client.fetch({"orders": 0})
    client.cluster.delete_topic()
    gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partitions(client.fetch()) == [(ORDERS, gone, -1)]
    TOPIC_IDS["orders"] = UNKNOWN
    try:
        client.cluster.create_topic("orders")
        assert partitions(client.fetch(ids={"orders": ORDERS})) == [
            (ORDERS, ErrorCode.INCONSISTENT_TOPIC_ID, -1)
        ]
    finally:
        TOPIC_IDS["orders"] = ORDERS


def test_an_earlier_incarnation_has_opened_other_sessions() -> None:
    one, other = FetchSessionCache(SHARDS, "inc-1"), FetchSessionCache(SHARDS, "inc-2")
    ids = [open_session(cache.next_shard(), 1) for cache in (one, other) for _ in range(SHARDS)]
    assert len(set(ids)) == 2 * SHARDS
    assert all(one.find(i) is not None for i in ids[:SHARDS])
    assert not any(one.find(i) for i in (*ids[SHARDS:], 0, -1, SHARDS * 0xFFFFFFF - 1))


def open_session(
    shard: FetchSessionCacheShard, size: int, *, follower: bool = False, now_ms: int = 0
) -> int:
    cached = {(ORDERS, i): CachedPartition("orders", ORDERS, None) for i in range(size)}
    sender = (2, 0) if follower else None
    return shard.create(cached, follower=sender, uses_topic_ids=True, now_ms=now_ms)


def test_a_full_cache_keeps_new_sessions_of_consumers_and_drops_them_for_followers() -> None:
    shard = FetchSessionCacheShard(0, 2, "seed")
    small, large = open_session(shard, 1), open_session(shard, 3)
    assert open_session(shard, 9) == 0
    follower = open_session(shard, 2, follower=True)
    assert set(shard.sessions) == {large, follower} and small != follower
    second = open_session(shard, 1, follower=True)
    assert set(shard.sessions) == {follower, second}
    assert open_session(shard, 9, follower=True) == 0  # no follower gives way to a younger one


def test_an_old_session_gives_way_to_one_that_is_not_smaller() -> None:
    shard = FetchSessionCacheShard(0, 1, "seed")
    old = open_session(shard, 3)
    touch(shard.sessions[old], EVICTION_MS + 1)
    assert open_session(shard, 2, now_ms=EVICTION_MS + 1) == 0
    assert open_session(shard, 4, now_ms=EVICTION_MS + 1) != 0
    assert old not in shard.sessions


def test_a_session_that_is_not_used_gives_way_to_any() -> None:
    shard = FetchSessionCacheShard(0, 1, "seed")
    follower = open_session(shard, 3, follower=True)
    assert open_session(shard, 1, now_ms=EVICTION_MS) == 0
    assert open_session(shard, 1, now_ms=EVICTION_MS + 1) != 0
    assert follower not in shard.sessions


def test_the_epoch_of_a_session_begins_anew_at_its_end() -> None:
    assert [next_epoch(e) for e in (-1, 0, 1, 0x7FFF_FFFF)] == [-1, 1, 2, 1]
