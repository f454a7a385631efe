"""WriteTxnMarkers for many partitions: their leader appends a part of the markers at a time."""

from __future__ import annotations

from typing import Any, cast

import pytest

from minicluster.coordinator import write_txn_markers
from minicluster.coordinator.write_txn_markers import handle_write_txn_markers
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import WriteTxnMarkersRequest
from tests.replica.test_fetch_in_parts import ALL, PARTITIONS, Broker

OF_GROUPS = cast(Any, None)  # no marker is for __consumer_offsets
UNKNOWN = ("unknown", 0)


def write(broker: Broker, token: str, producer_id: int) -> None:
    """Commit a transaction in all partitions of "a", and in one that is not there."""
    kind = WriteTxnMarkersRequest
    topics = {"a": tuple(range(PARTITIONS)), UNKNOWN[0]: (UNKNOWN[1],)}
    marker = kind.WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=0,
        transaction_result=True,
        coordinator_epoch=0,
        topics=tuple(
            kind.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in topics.items()
        ),
    )
    state = broker.manager.state
    request = kind(markers=(marker,))
    handle_write_txn_markers(state, OF_GROUPS, token, request, broker.now_ms)
    broker.see(broker.manager.end_of_input(broker.now_ms))


def errors(broker: Broker, token: str) -> dict[tuple[str, int], int]:
    [marker] = broker.responses[token].markers
    return {
        (topic.name, data.partition_index): data.error_code
        for topic in marker.topics
        for data in topic.partitions
    }


def ends(broker: Broker) -> list[int]:
    """The log ends of "a"."""
    partitions = broker.manager.state.partitions
    [topic_id] = {key[0] for key, partition in partitions.items() if partition.topic == "a"}
    return [partitions[topic_id, index].log_end_offset for index in range(PARTITIONS)]


def test_the_response_comes_with_the_last_part_and_others_are_served_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Broker()
    write(broker, "whole", 7)
    assert ends(broker) == [1] * PARTITIONS
    monkeypatch.setattr(write_txn_markers, "PARTITIONS_PER_PART", 3)
    write(broker, "parts", 8)
    assert ends(broker) == [2] * 3 + [1] * (PARTITIONS - 3)
    broker.produce(("a", PARTITIONS - 1))
    broker.carry_on()
    assert ends(broker) == [2] * (PARTITIONS - 1) + [3]
    assert errors(broker, "parts") == errors(broker, "whole")
    assert errors(broker, "parts") == {
        **{place: ErrorCode.NONE for place in ALL if place[0] == "a"},
        UNKNOWN: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_producer_has_one_result_whatever_the_number_of_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each part is appended by itself; the first must not respond for all."""
    monkeypatch.setattr(write_txn_markers, "PARTITIONS_PER_PART", 1)
    broker = Broker()
    write(broker, "parts", 8)
    assert broker.responses == {}
    assert broker.carry_on() == PARTITIONS + 1
    assert len(errors(broker, "parts")) == PARTITIONS + 1
