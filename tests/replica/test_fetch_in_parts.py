"""A Fetch of many partitions is read in parts, and other requests come between them.

Its response is that of one step where nothing comes between. Where something does, the session and
its epoch are what they would be beside Kafka's threads.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicluster.effects import Continue, Effect, Respond, SetTimer
from minicluster.log import Record, RecordBatch, Records
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchRequest, ProduceRequest
from minicluster.protocol.messages.fetch import replica_state
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.machine import ReplicaManagerMachine
from minicluster.replica.requests import delayed_fetch, fetch, read_from_log
from tests.replica.memory_disk import MemoryDisk

TOPICS = {"a": uuid.UUID(int=0xA), "b": uuid.UUID(int=0xB)}
UNKNOWN = uuid.UUID(int=0xC)
DIRECTORY, OTHER, THIRD = (uuid.UUID(int=0xD0 + number) for number in (1, 2, 3))
PARTITIONS = 10  # of each topic
SIZE = 3  # of a part
VERSION = 17
FETCH_TIMER = "purgatory-fetch"
Place = tuple[str, int]
ALL: tuple[Place, ...] = tuple((name, index) for name in TOPICS for index in range(PARTITIONS))


def _records() -> list[Any]:
    """Broker 1 leads all; broker 2 follows in "b"."""
    records: list[Any] = [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        RegisterBrokerRecord(broker_id=1, broker_epoch=1, log_dirs=(DIRECTORY,), fenced=False),
        RegisterBrokerRecord(broker_id=2, broker_epoch=2, log_dirs=(OTHER,), fenced=False),
    ]
    for name, topic_id in TOPICS.items():
        replicas = (1, 2) if name == "b" else (1,)
        records.append(TopicRecord(name=name, topic_id=topic_id))
        records += (
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=(DIRECTORY, OTHER)[: len(replicas)],
            )
            for index in range(PARTITIONS)
        )
    return records


IMAGE = apply_all(MetadataImage.EMPTY, _records())


class Broker:
    """Broker 1, which carries the parts of a work out when it is told to."""

    def __init__(self) -> None:
        config = ReplicaManagerConfig(broker_id=1, dir_names={"/logs": DIRECTORY})
        self.manager = ReplicaManagerMachine(config, MemoryDisk(directory_ids=(DIRECTORY,)))
        self.now_ms = 1_000
        self.responses: dict[str, Any] = {}
        self.parts: deque[Continue] = deque()
        self.deadline_ms: int | None = None
        self.image = MetadataImage.EMPTY
        self.publish(IMAGE)

    def publish(self, image: MetadataImage) -> None:
        delta = MetadataDelta.between(self.image, image)
        self.image = image
        self.see(self.manager.on_metadata(delta, self.now_ms))

    def see(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Respond(token, response):
                    assert token not in self.responses, "a request gets one response"
                    self.responses[token] = response
                case Continue():
                    self.parts.append(effect)
                case SetTimer(name, at_ms) if name == FETCH_TIMER:
                    self.deadline_ms = at_ms

    def next_part(self) -> None:
        self.see(self.parts.popleft().next_part(self.now_ms))

    def carry_on(self) -> int:
        """Carry all parts out, and those that they lead to; -> how many."""
        count = 0
        while self.parts:
            self.next_part()
            count += 1
        return count

    def expire(self) -> None:
        """The fetches that wait reach their deadline."""
        assert self.deadline_ms is not None
        self.now_ms = self.deadline_ms
        self.see(self.manager.on_timer(FETCH_TIMER, self.now_ms))

    def produce(self, place: Place, value: bytes = b"x") -> None:
        batch = RecordBatch.of([Record(0, 0, None, value)], leader_epoch=-1)
        data = ProduceRequest.PartitionProduceData(index=place[1], records=Records((batch,)))
        topic = ProduceRequest.TopicProduceData(name=place[0], partition_data=(data,))
        request = ProduceRequest(acks=1, timeout_ms=1_000, topic_data=(topic,))
        self.see(self.manager.on_request("produce", request, 12, self.now_ms))
        [response] = self.responses.pop("produce").responses
        assert response.partition_responses[0].error_code == ErrorCode.NONE

    def send(self, token: str, request: FetchRequest) -> None:
        self.see(self.manager.on_request(token, request, VERSION, self.now_ms))

    def fetch(self, token: str, places: Iterable[Place] = ALL, **fields: Any) -> None:
        self.send(token, fetch_of(places, **fields))

    def fetched(self, token: str) -> dict[Place, tuple[int, int, int]]:
        """Of each partition of a response its error, high watermark, and bytes."""
        names = {topic_id: name for name, topic_id in TOPICS.items()}
        return {
            (names[topic.topic_id], data.partition_index): (
                data.error_code,
                data.high_watermark,
                data.records.size if data.records else 0,
            )
            for topic in self.responses[token].responses
            for data in topic.partitions
        }


def fetch_of(
    places: Iterable[Place],
    *,
    offsets: dict[Place, int] | None = None,
    partition_max_bytes: int = 1_000,
    follower: bool = False,
    **fields: Any,
) -> FetchRequest:
    """A fetch of partitions, neighbours of one topic in one entry, as they come."""
    topics: list[tuple[str, list[int]]] = []
    for name, index in places:
        if not topics or topics[-1][0] != name:
            topics.append((name, []))
        topics[-1][1].append(index)
    return FetchRequest(
        replica_state=replica_state(2, 2) if follower else replica_state(-1),
        topics=tuple(
            FetchRequest.FetchTopic(
                topic_id=TOPICS.get(name, UNKNOWN),
                partitions=tuple(
                    FetchRequest.FetchPartition(
                        partition=index,
                        fetch_offset=(offsets or {}).get((name, index), 0),
                        partition_max_bytes=partition_max_bytes,
                    )
                    for index in indexes
                ),
            )
            for name, indexes in topics
        ),
        **{"max_bytes": 10_000, "min_bytes": 1, "max_wait_ms": 0, "session_epoch": -1, **fields},
    )


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    fetch_in_parts_of(SIZE, monkeypatch)


def fetch_in_parts_of(size: int, patch: pytest.MonkeyPatch) -> None:
    """Have a fetch of more partitions handled in parts."""
    for module in (fetch, read_from_log, delayed_fetch):
        patch.setattr(module, "PARTITIONS_PER_PART", size)


# --- the same response as in one step -------------------------------------------------------------

NAMED = st.lists(
    st.tuples(st.sampled_from(["a", "b", "gone"]), st.integers(0, PARTITIONS)), max_size=30
)
REQUEST = st.fixed_dictionaries(
    {
        "places": NAMED,
        "offset": st.sampled_from([0, 1, 2, 9]),
        "partition_max_bytes": st.sampled_from([0, 80, 1_000]),
        "max_bytes": st.sampled_from([0, 150, 600, 10_000]),
        "min_bytes": st.sampled_from([0, 1, 300]),
        "max_wait_ms": st.sampled_from([0, 500]),
        "isolation_level": st.sampled_from([0, 1]),
        "follower": st.booleans(),
        "opens_session": st.sampled_from([-1, 0]),
        "later": st.lists(NAMED, max_size=3),
    }
)


def play(produced: list[Place], drawn: dict[str, Any]) -> list[Any]:
    """A drawn fetch, then fetches of its session; all of their responses."""
    broker = Broker()
    for place in produced:
        broker.produce(place)
    wanted = {
        "offsets": dict.fromkeys([*ALL], drawn["offset"]),
        "follower": drawn["follower"],
        **{
            name: drawn[name]
            for name in (
                "partition_max_bytes",
                "max_bytes",
                "min_bytes",
                "max_wait_ms",
                "isolation_level",
            )
        },
    }
    session_id, epoch = 0, drawn["opens_session"]
    for number, places in enumerate([drawn["places"], *drawn["later"]]):
        token = f"fetch {number}"
        broker.fetch(token, places, session_id=session_id, session_epoch=epoch, **wanted)
        broker.carry_on()
        if number == 0:  # it may wake the one that waits
            broker.produce(("a", 0))
            broker.carry_on()
        if token not in broker.responses:
            broker.expire()
            broker.carry_on()
        if number == 0:
            session_id = broker.responses[token].session_id
        epoch = epoch if session_id == 0 else number + 1
    return list(broker.responses.values())


@settings(deadline=None, max_examples=150)
@given(produced=st.lists(st.sampled_from(ALL), max_size=25), drawn=REQUEST)
def test_a_fetch_in_parts_gets_the_response_of_one_step(
    produced: list[Place], drawn: dict[str, Any]
) -> None:
    expected = play(produced, drawn)
    with pytest.MonkeyPatch.context() as patch:
        fetch_in_parts_of(SIZE, patch)
        assert play(produced, drawn) == expected


def test_a_fetch_of_few_partitions_is_one_step() -> None:
    broker = Broker()
    broker.fetch("fetch", ALL)
    assert not broker.parts
    assert "fetch" in broker.responses


# --- what comes between ---------------------------------------------------------------------------


def test_a_part_ends_by_the_effects_of_its_reads_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower's fetch moves high watermarks, by which requests of many partitions complete."""
    monkeypatch.setattr(read_from_log, "EFFECTS_PER_PART", SIZE)
    broker = Broker()
    places = [place for place in ALL if place[0] == "b"]
    for place in places:
        broker.produce(place)
    followed = dict.fromkeys(places, 1)
    begun = broker.manager.on_request(
        "follower", fetch_of(places, offsets=followed, follower=True), VERSION, broker.now_ms
    )
    counts = [len(begun)]
    broker.see(begun)
    while broker.parts:
        effects = broker.parts.popleft().next_part(broker.now_ms)
        counts.append(len(effects))
        broker.see(effects)
    assert len(counts) > len(places) // SIZE and max(counts) <= SIZE + 2  # Continue, the response
    for place in places:
        broker.fetch(str(place), [place])
        assert broker.fetched(str(place))[place][1] == 1


@pytest.mark.usefixtures("small_parts")
def test_another_clients_request_is_served_between_two_parts() -> None:
    broker = Broker()
    broker.produce(("b", 9))
    broker.fetch("large")
    broker.next_part()
    assert "large" not in broker.responses
    broker.fetch("small", [("a", 0)])
    assert broker.fetched("small") == {("a", 0): (0, 0, 0)}
    broker.carry_on()
    assert list(broker.fetched("large")) == list(ALL)


@pytest.mark.usefixtures("small_parts")
def test_high_watermarks_are_those_of_the_response_for_no_client_sees_one_go_back() -> None:
    """Partition a-0 is read; it grows, which another consumer is told before this one."""
    broker = Broker()
    broker.fetch("large", session_epoch=0)
    for _ in range(2 * len(ALL) // SIZE + 1):  # a-0 is read by then
        broker.next_part()
    broker.produce(("a", 0))
    broker.fetch("small", [("a", 0)])
    broker.carry_on()
    assert broker.fetched("small")[("a", 0)][1] == 1
    assert broker.fetched("large")[("a", 0)] == (0, 1, 0)


@pytest.mark.usefixtures("small_parts")
def test_a_session_is_continued_by_one_of_two_requests_of_an_epoch() -> None:
    broker = Broker()
    broker.fetch("opens", session_epoch=0)
    broker.carry_on()
    session_id = broker.responses["opens"].session_id
    broker.produce(("b", 9))
    again = {"session_id": session_id, "session_epoch": 1}
    broker.fetch("first", ALL[:7], **again)
    broker.fetch("second", (), **again)
    broker.carry_on()
    errors = {token: broker.responses[token].error_code for token in ("first", "second")}
    assert sorted(errors.values()) == [ErrorCode.NONE, ErrorCode.INVALID_FETCH_SESSION_EPOCH]


@pytest.mark.usefixtures("small_parts")
def test_a_session_that_is_closed_meanwhile_still_gets_its_response() -> None:
    broker = Broker()
    broker.fetch("opens", ALL, follower=True, session_epoch=0)
    broker.carry_on()
    session_id = broker.responses["opens"].session_id
    broker.produce(("b", 0))
    broker.fetch("continues", ALL, follower=True, session_id=session_id, session_epoch=1)
    broker.next_part()
    broker.fetch("closes", [("b", 0)], follower=True, session_id=session_id, session_epoch=0)
    broker.carry_on()
    assert broker.responses["continues"].error_code in (
        ErrorCode.NONE,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    )
    assert broker.responses["closes"].session_id not in (0, session_id)


@pytest.mark.usefixtures("small_parts")
def test_a_topic_that_is_deleted_meanwhile_is_not_there_when_its_turn_comes() -> None:
    broker = Broker()
    broker.fetch("large")
    for _ in range(len(ALL) // SIZE + 1):
        broker.next_part()
    broker.publish(apply_all(IMAGE, [RemoveTopicRecord(topic_id=TOPICS["b"])]))
    broker.carry_on()
    errors = {place: error for place, (error, _, _) in broker.fetched("large").items()}
    assert errors[("a", 0)] == ErrorCode.NONE
    assert errors[("b", 9)] in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


# --- large fetches that wait ----------------------------------------------------------------------


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("place", [("a", 0), ("a", 9)])
@pytest.mark.parametrize("parts", range(0, 36, 5))
def test_an_append_wakes_a_large_fetch_whatever_it_is_about(place: Place, parts: int) -> None:
    """While it is read, while it begins to watch its partitions, and later."""
    broker = Broker()
    broker.fetch("waits", max_wait_ms=500)
    for _ in range(parts):
        if broker.parts:
            broker.next_part()
    assert "waits" not in broker.responses
    broker.produce(place)
    broker.carry_on()
    assert broker.fetched("waits")[place][1] == 1
    assert not len(broker.manager.state.delayed.fetches)


@pytest.mark.usefixtures("small_parts")
def test_a_large_fetch_waits_for_so_many_bytes_of_all_partitions() -> None:
    broker = Broker()
    broker.fetch("waits", max_wait_ms=500, min_bytes=3 * 69)
    broker.carry_on()
    for place in ALL[4:6]:
        broker.produce(place)
    assert not broker.parts
    broker.produce(ALL[8])
    broker.carry_on()
    sizes = [size for _, _, size in broker.fetched("waits").values()]
    assert sum(map(bool, sizes)) == 3


@pytest.mark.usefixtures("small_parts")
def test_a_change_is_a_look_at_one_partition_of_a_large_fetch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Broker()
    broker.fetch("waits", max_wait_ms=500, min_bytes=5_000)
    broker.carry_on()
    looked_at: list[int] = []
    available = delayed_fetch.DelayedFetch._available

    def counted(self: Any, item: Any, offset: int, now_ms: int) -> int | None:
        looked_at.append(item.data.partition)
        return available(self, item, offset, now_ms)

    monkeypatch.setattr(delayed_fetch.DelayedFetch, "_available", counted)
    broker.produce(("a", 7))
    assert set(looked_at) == {7}
    assert len(looked_at) <= 2  # the append, and the high watermark


@pytest.mark.usefixtures("small_parts")
def test_a_large_fetch_ends_by_its_deadline_in_parts() -> None:
    broker = Broker()
    broker.fetch("waits", max_wait_ms=500)
    broker.carry_on()
    broker.expire()
    assert "waits" not in broker.responses
    assert broker.carry_on() > len(ALL) // SIZE
    assert list(broker.fetched("waits")) == list(ALL)


@pytest.mark.usefixtures("small_parts")
def test_a_followers_large_fetch_is_woken_by_a_partition_that_its_session_had_skipped() -> None:
    """Skipped while the fetch is read, and changed before it waits (sessions/skipped.py)."""
    followed = [place for place in ALL if place[0] == "b"]
    broker = Broker()
    broker.fetch("opens", followed, follower=True, session_epoch=0)
    broker.carry_on()
    session_id = broker.responses["opens"].session_id
    session = broker.manager.state.fetch_sessions.find(session_id)
    assert session is not None
    assert len(session.skipped) == PARTITIONS
    named = {"session_id": session_id, "session_epoch": 1, "follower": True, "max_wait_ms": 500}
    broker.fetch("waits", followed[:5], **named)
    broker.next_part()
    broker.next_part()
    assert session.skipped
    broker.produce(("b", 9))
    broker.carry_on()
    assert broker.fetched("waits") == {("b", 9): (0, 0, 69)}


def test_a_broker_that_changes_has_its_own_session_read_again() -> None:
    """The sessions of others need not be: their followers are what they were."""
    followed = [place for place in ALL if place[0] == "b"]
    broker = Broker()
    broker.fetch("opens", followed, follower=True, session_epoch=0)
    session = broker.manager.state.fetch_sessions.find(broker.responses["opens"].session_id)
    assert session is not None
    third = RegisterBrokerRecord(broker_id=3, broker_epoch=3, log_dirs=(THIRD,), fenced=False)
    broker.publish(apply_all(IMAGE, [third]))
    assert len(session.skipped) == PARTITIONS
    fenced = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=1)
    broker.publish(apply_all(broker.image, [fenced]))
    assert not session.skipped
