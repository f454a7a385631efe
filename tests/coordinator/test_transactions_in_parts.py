"""Transactions of thousands of partitions: their coordinator carries a part out at a time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from minicluster.coordinator.runtime import parts
from minicluster.protocol import ErrorCode as E
from minicluster.protocol import messages as m
from tests.coordinator.transaction_bench import OTHER, OWN, Add, Bench, image

PER_PART = 3
PARTITIONS = 10
LED = {(name, index): OWN for name in ("t", "u") for index in range(PARTITIONS)}


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ELEMENTS_PER_PART", PER_PART)


@pytest.fixture
def bench() -> Bench:
    return Bench(leaders=LED)


def of_client(producer: tuple[int, int], *names: str, count: int = PARTITIONS) -> Any:
    return Add(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=tuple(
            Add.AddPartitionsToTxnTopic(name=name, partitions=tuple(range(count))) for name in names
        ),
    )


def of_broker(producer: tuple[int, int], *names: str, verify_only: bool = False) -> Any:
    return Add(
        transactions=(
            Add.AddPartitionsToTxnTransaction(
                transactional_id="x",
                producer_id=producer[0],
                producer_epoch=producer[1],
                verify_only=verify_only,
                topics=tuple(
                    Add.AddPartitionsToTxnTopic(name=name, partitions=tuple(range(PARTITIONS)))
                    for name in names
                ),
            ),
        )
    )


def errors(response: Any) -> list[int]:
    topics = response.results_by_topic_v3_and_below or [
        topic for of in response.results_by_transaction for topic in of.topic_results
    ]
    return [
        partition.partition_error_code
        for topic in topics
        for partition in topic.results_by_partition
    ]


@pytest.mark.parametrize("seed", range(8))
def test_responses_records_and_markers_are_those_of_one_part(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    def played(per_part: int) -> tuple[Any, ...]:
        monkeypatch.setattr(parts, "ELEMENTS_PER_PART", per_part)
        drawn, bench = random.Random(seed), Bench(leaders=LED)
        producer = bench.producer()
        for _ in range(12):
            names = drawn.choices(["t", "u", "nope"], [5, 5, 1], k=drawn.randrange(1, 4))
            kind = drawn.randrange(4)
            if kind == 0:
                bench.end(producer, version=3)
            elif kind == 1:
                bench.send(of_client(producer, *names, count=drawn.randrange(1, 14)), 3)
            else:
                bench.send(of_broker(producer, *names, verify_only=kind == 2), 5)
            bench.carry_all_on()
        return bench.given, [b.encoded for b in bench.log.batches], bench.written

    assert played(PER_PART) == played(10_000)


def test_no_part_names_more_than_a_part_of_the_partitions(
    small_parts: None, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record, which is one, is a part of its own."""
    calls = [0]
    kind = m.AddPartitionsToTxnResponse
    result = kind.AddPartitionsToTxnPartitionResult

    def counted(**fields: Any) -> Any:
        calls[-1] += 1
        return result(**fields)

    monkeypatch.setattr(kind, "AddPartitionsToTxnPartitionResult", counted)
    producer = bench.producer()
    requests = [
        (of_broker(producer, "t", "u", verify_only=True), 5),
        (of_broker(producer, "t", "nope"), 5),
        (of_client(producer, "t", "u"), 3),
    ]
    for request, version in requests:
        calls[:] = [0]
        token = bench.send(request, version)
        while bench.parts:
            calls.append(0)
            bench.carry_on()
        assert len(errors(bench.given[token])) == sum(calls) == 2 * PARTITIONS
        assert max(calls) <= PER_PART
        # Each partition is looked up, and then it gets its result.
        assert len(calls) >= 2 * (2 * PARTITIONS // PER_PART)


def test_other_transactions_come_between_and_the_same_one_is_in_transition(
    small_parts: None, bench: Bench
) -> None:
    producer, other = bench.producer(), bench.producer("y")
    large = bench.send(of_client(producer, "t"), 3)
    seen = set()
    while large not in bench.given:
        assert bench.add(other, ("t", 0), transactional_id="y") == E.NONE
        seen.add(bench.add(producer, ("u", 0)))
        bench.carry_on()
    assert set(errors(bench.given[large])) == {E.NONE}
    # Before the decision there is no transition that an addition could meet.
    assert seen == {E.NONE, E.CONCURRENT_TRANSACTIONS}
    assert {("u", 0), *((("t", n)) for n in range(PARTITIONS))} == set(
        bench.transaction().metadata.partitions
    )


def test_a_verification_sees_all_partitions_of_an_addition_or_none(
    small_parts: None, bench: Bench
) -> None:
    producer = bench.producer()
    large = bench.send(of_client(producer, "t"), 3)
    verifications = []
    while large not in bench.given:
        verifications.append(bench.send(of_broker(producer, "t", verify_only=True), 5))
        for _ in range(2):
            if bench.parts:
                bench.carry_on()
    bench.carry_all_on()
    outcomes = [set(errors(bench.given[token])) for token in verifications]
    assert all(len(outcome) == 1 for outcome in outcomes)
    assert {error for outcome in outcomes for error in outcome} <= {
        E.NONE,
        E.TRANSACTION_ABORTABLE,
    }
    after = bench.send(of_broker(producer, "t", verify_only=True), 5)
    bench.carry_all_on()
    assert set(errors(bench.given[after])) == {E.NONE}


@pytest.mark.parametrize("parts_before", range(12))
def test_a_coordinator_that_is_elected_elsewhere_in_the_midst_responds_once(
    small_parts: None, bench: Bench, parts_before: int
) -> None:
    producer = bench.producer()
    large = bench.send(of_client(producer, "t"), 3)
    for _ in range(parts_before):
        if bench.parts:
            bench.carry_on()
    was_there = large in bench.given
    bench.publish(image(LED, coordinator=OTHER, epoch=1))
    bench.carry_all_on()
    expected = {E.NONE} if was_there else {E.NONE, E.NOT_COORDINATOR}
    assert len(set(errors(bench.given[large]))) == 1
    assert set(errors(bench.given[large])) <= expected


def test_the_markers_of_many_partitions_go_to_their_leaders_with_one_request_each(
    small_parts: None,
) -> None:
    led = LED | {("u", index): OTHER for index in range(PARTITIONS)}
    bench = Bench(leaders=led, holds=True)
    producer = _initialized(bench)
    bench.send(of_client(producer, "t", "u"), 3)
    bench.carry_all_on()
    ended = bench.send(
        m.EndTxnRequest(
            transactional_id="x",
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=True,
        ),
        3,
    )
    assert ended not in bench.given
    bench.carry_all_on()
    assert bench.given[ended].error_code == E.NONE
    sent = {send.to: send.request.markers for send in bench.sends}
    named = {
        to: {(topic.name, index) for topic in marker.topics for index in topic.partition_indexes}
        for to, (marker,) in sent.items()
    }
    assert named == {
        OWN: {place for place in led if place[0] == "t"},
        OTHER: {place for place in led if place[0] == "u"},
    }
    bench.write_markers()
    bench.write_markers()
    bench.carry_all_on()
    assert bench.state() == "CompleteCommit"


def _initialized(bench: Bench) -> tuple[int, int]:
    response = bench.init()
    while response.error_code == E.COORDINATOR_LOAD_IN_PROGRESS:
        bench.allocate()
        response = bench.init()
    return response.producer_id, response.producer_epoch
