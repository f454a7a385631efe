"""Requests of thousands of offsets: their group's coordinator carries a part out at a time.

Others of the same shard wait for the last part; what they read is the state before or after it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from minicluster.coordinator.group import sessions
from minicluster.coordinator.group.requests import offset_commit, offset_delete, offset_fetch
from minicluster.coordinator.group.state.offsets import Offsets
from minicluster.coordinator.runtime import parts, runtime
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from tests.coordinator.groups import Groups

PER_PART = 3
PARTITIONS = 10
_Commit, _Fetch, _Delete = m.OffsetCommitRequest, m.OffsetFetchRequest, m.OffsetDeleteRequest


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ELEMENTS_PER_PART", PER_PART)


@pytest.fixture
def groups() -> Groups:
    return Groups(a=PARTITIONS, b=PARTITIONS)


def commit_of(*topics: tuple[str, range], offset: int = 5, **fields: Any) -> Any:
    return _Commit(
        group_id="g",
        topics=tuple(
            _Commit.OffsetCommitRequestTopic(
                name=name,
                partitions=tuple(
                    _Commit.OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset
                    )
                    for index in indexes
                ),
            )
            for name, indexes in topics
        ),
        **fields,
    )


def fetch_of_all(*, stable: bool = False) -> Any:
    group = _Fetch.OffsetFetchRequestGroup(group_id="g", topics=None)
    return _Fetch(groups=(group,), require_stable=stable)


def fetched(response: Any) -> dict[tuple[str, int], int]:
    [group] = response.groups
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in group.topics
        for partition in topic.partitions
    }


def errors(response: Any) -> set[int]:
    return {partition.error_code for topic in response.topics for partition in topic.partitions}


# --- as if it was one part ------------------------------------------------------------------------


def _drawn(random: random.Random) -> tuple[Any, int]:
    """A request about some topics, of which some are not there, and a version of it."""
    names = ["a", "b", "nope"]
    topics = [(random.choice(names), range(random.randrange(14))) for _ in range(4)]
    kind = random.randrange(3)
    if kind == 0:
        metadata = random.choice(["", "x" * 5_000])
        request = commit_of(*topics, offset=random.randrange(9))
        return _with_metadata(request, metadata), random.choice([6, 8, 9])
    if kind == 1:
        version = random.choice([5, 7, 8])
        stable = version >= 7 and random.random() < 0.5
        if version < 8:
            named = tuple(
                _Fetch.OffsetFetchRequestTopic(name=name, partition_indexes=tuple(indexes))
                for name, indexes in topics
            )
            wanted = random.choice([None, named])
            return _Fetch(group_id="g", topics=wanted, require_stable=stable), version
        several = tuple(
            _Fetch.OffsetFetchRequestTopics(name=name, partition_indexes=tuple(indexes))
            for name, indexes in topics
        )
        each = (
            _Fetch.OffsetFetchRequestGroup(group_id=group_id, topics=random.choice([None, several]))
            for group_id in random.choices(["g", "h"], k=2)
        )
        return _Fetch(groups=tuple(each), require_stable=stable), version
    deleted = tuple(
        _Delete.OffsetDeleteRequestTopic(
            name=name,
            partitions=tuple(
                _Delete.OffsetDeleteRequestPartition(partition_index=index) for index in indexes
            ),
        )
        for name, indexes in topics
    )
    return _Delete(group_id=random.choice(["g", "h", ""]), topics=deleted), 0


def _with_metadata(request: Any, metadata: str) -> Any:
    topics = []
    for topic in request.topics:
        [*others, last] = topic.partitions or [None]
        if last is not None:
            last = _Commit.OffsetCommitRequestPartition(
                partition_index=last.partition_index,
                committed_offset=last.committed_offset,
                committed_metadata=metadata,
            )
            others.append(last)
        topics.append(_Commit.OffsetCommitRequestTopic(name=topic.name, partitions=tuple(others)))
    return _Commit(group_id=request.group_id, topics=tuple(topics))


@pytest.mark.parametrize("seed", range(12))
def test_responses_and_batches_are_those_of_one_part(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    def played(per_part: int) -> tuple[list[Any], list[bytes]]:
        monkeypatch.setattr(parts, "ELEMENTS_PER_PART", per_part)
        groups, drawn = Groups(a=PARTITIONS, b=PARTITIONS), random.Random(seed)
        responses = [groups.request(*_drawn(drawn)) for _ in range(12)]
        return responses, [batch.encoded for batch in groups.log.batches]

    assert played(PER_PART) == played(10_000)


# --- no part is long, and what comes between ------------------------------------------------------


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How often one of the functions that are called for each partition was called, by part."""
    calls = [0]

    def counted(place: Any, name: str) -> None:
        function: Callable[..., Any] = getattr(place, name)

        def count(*args: Any, **kwargs: Any) -> Any:
            calls[-1] += 1
            return function(*args, **kwargs)

        monkeypatch.setattr(place, name, count)

    counted(offset_commit, "offset_record")
    counted(offset_delete, "offset_record")
    counted(offset_fetch, "fetched_offset")
    counted(sessions, "offset_record")
    counted(runtime, "encode_coordinator_record")
    counted(Offsets, "replay")
    for response, name in (
        (m.OffsetCommitResponse, "OffsetCommitResponsePartition"),
        (m.OffsetDeleteResponse, "OffsetDeleteResponsePartition"),
    ):
        counted(response, name)
    yield calls


@pytest.mark.parametrize(
    ("request_of", "version", "least"),
    [
        # The record of each offset, its bytes, its place in the state, and that in the response.
        (commit_of(("a", range(PARTITIONS)), ("b", range(PARTITIONS))), 8, 8 * PARTITIONS),
        (commit_of(("nope", range(PARTITIONS))), 8, PARTITIONS),
        (fetch_of_all(), 8, 2 * PARTITIONS),
        (fetch_of_all(stable=True), 8, 2 * PARTITIONS),
        (
            _Delete(
                group_id="g",
                topics=(
                    _Delete.OffsetDeleteRequestTopic(
                        name="a",
                        partitions=tuple(
                            _Delete.OffsetDeleteRequestPartition(partition_index=n)
                            for n in range(PARTITIONS)
                        ),
                    ),
                ),
            ),
            0,
            4 * PARTITIONS,
        ),
    ],
)
def test_no_part_does_more_than_a_part_of_the_partitions(
    small_parts: None, groups: Groups, work: list[int], request_of: Any, version: int, least: int
) -> None:
    groups.request(commit_of(("a", range(PARTITIONS)), ("b", range(PARTITIONS))), 8)
    work[:] = [0]
    token = groups.send(request_of, version)
    while groups.parts:
        work.append(0)
        groups.carry_on()
    assert token in groups.responses
    assert sum(work) >= least
    assert max(work) <= 2 * PER_PART  # the end of one loop, and the begin of the next one


def test_offsets_expire_in_parts(small_parts: None, groups: Groups, work: list[int]) -> None:
    """GroupCoordinatorShard.cleanupGroupMetadata: one event, whatever its group has."""
    topics = ("a", range(PARTITIONS)), ("b", range(PARTITIONS))
    groups.request(commit_of(*topics, retention_time_ms=1), 4)
    work[:] = [0]
    groups.advance(600_000)
    token = groups.send(fetch_of_all(), 8)
    while groups.parts:
        assert token not in groups.responses
        work.append(0)
        groups.carry_on()
    assert fetched(groups.responses[token]) == {}
    assert sum(work) >= 6 * PARTITIONS  # a record, its bytes, and its place, of each
    assert max(work) <= 2 * PER_PART


def test_offsets_of_many_groups_expire_in_parts(
    small_parts: None, groups: Groups, work: list[int]
) -> None:
    """Groups count as well as offsets: thousands of small ones are no short step either."""
    for number in range(PARTITIONS):
        request = commit_of(("a", range(1)), retention_time_ms=1)
        groups.request(replace(request, group_id=f"g{number}"), 4)
    work[:] = [0]
    groups.advance(600_000)
    token = groups.send(m.ListGroupsRequest(), 4)
    while groups.parts:
        work.append(0)
        groups.carry_on()
    assert groups.responses[token].groups == ()
    assert sum(work) >= 3 * PARTITIONS
    assert max(work) <= 3 * PER_PART  # tombstones of groups have bytes as well


def test_a_fetch_sees_a_commit_as_a_whole(small_parts: None, groups: Groups) -> None:
    everything = ("a", range(PARTITIONS)), ("b", range(PARTITIONS))
    groups.request(commit_of(*everything, offset=1), 8)
    commit = groups.send(commit_of(*everything, offset=2), 8)
    seen = set()
    fetches = []
    while commit not in groups.responses:
        fetches.append(groups.send(fetch_of_all(), 8))
        groups.carry_on()
    groups.advance(0)
    assert len(fetches) > 4 * len(everything)
    for fetch in fetches:
        offsets = fetched(groups.responses[fetch])
        assert len(offsets) == 2 * PARTITIONS
        seen |= set(offsets.values())
        assert len(set(offsets.values())) == 1
    assert seen == {2}, "a fetch that comes in the midst is behind the commit"


def test_events_of_a_shard_keep_their_order(small_parts: None, groups: Groups) -> None:
    """Else the offset that was committed last would be overwritten by the one before it."""
    large = groups.send(commit_of(("a", range(PARTITIONS)), offset=1), 8)
    small = groups.send(commit_of(("a", range(1)), offset=2), 8)
    assert small not in groups.responses
    groups.advance(0)
    assert list(groups.responses)[-2:] == [large, small]
    assert fetched(groups.request(fetch_of_all(), 8))["a", 0] == 2


def test_groups_are_listed_and_described_behind_the_event_in_progress(
    small_parts: None, groups: Groups
) -> None:
    large = groups.send(commit_of(("a", range(PARTITIONS))), 8)
    listing = groups.send(m.ListGroupsRequest(), 4)
    describing = groups.send(m.DescribeGroupsRequest(groups=("h", "g")), 5)
    assert not {large, listing, describing} & groups.responses.keys()
    groups.advance(0)
    assert [group.group_id for group in groups.responses[listing].groups] == ["g"]
    described = {group.group_id: group for group in groups.responses[describing].groups}
    assert (described["g"].group_state, described["h"].group_state) == ("Empty", "Dead")


def test_a_topic_that_is_deleted_in_the_midst_of_a_commit_loses_its_offsets(
    small_parts: None, groups: Groups
) -> None:
    large = groups.send(commit_of(("a", range(PARTITIONS)), ("b", range(1))), 8)
    groups.delete_topic("a")
    groups.advance(0)
    assert errors(groups.responses[large]) == {ErrorCode.NONE}
    assert fetched(groups.request(fetch_of_all(), 8)) == {("b", 0): 5}


def test_a_large_request_without_a_group_is_rejected_for_each_partition(
    small_parts: None, groups: Groups
) -> None:
    response = groups.request(
        commit_of(("a", range(PARTITIONS)), generation_id_or_member_epoch=3), 8
    )
    assert errors(response) == {ErrorCode.ILLEGAL_GENERATION}
    [topic] = response.topics
    assert [partition.partition_index for partition in topic.partitions] == [*range(PARTITIONS)]


def test_an_append_that_fails_after_all_parts_leaves_nothing(
    small_parts: None, groups: Groups
) -> None:
    groups.log.refusal = ErrorCode.MESSAGE_TOO_LARGE
    response = groups.request(commit_of(("a", range(PARTITIONS)), ("nope", range(2))), 8)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(response) == {ErrorCode.UNKNOWN_SERVER_ERROR, unknown}
    assert [len(topic.partitions) for topic in response.topics] == [2, PARTITIONS]
    groups.log.refusal = None
    assert fetched(groups.request(fetch_of_all(), 8)) == {}
