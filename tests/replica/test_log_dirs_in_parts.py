"""DescribeLogDirs of a broker with many logs is answered in parts."""

from __future__ import annotations

import pytest

from minicluster.protocol.messages import DescribeLogDirsRequest
from minicluster.replica.requests import log_dirs
from tests.replica.test_fetch_in_parts import ALL, Broker

VERSION = 5


def describe(broker: Broker, token: str) -> None:
    request = DescribeLogDirsRequest(topics=None)
    broker.see(broker.manager.on_request(token, request, VERSION, broker.now_ms))


def test_the_response_is_that_of_one_step_and_others_are_served_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Broker()
    describe(broker, "whole")
    monkeypatch.setattr(log_dirs, "LOGS_PER_PART", 3)
    describe(broker, "parts")
    assert "parts" not in broker.responses
    broker.fetch("other", [("a", 0)])
    # The logs are looked up, brought into the order of Kafka's map, and described.
    assert broker.carry_on() == len(ALL) // 3 + 1 + len(ALL) // 3
    assert broker.fetched("other").keys() == {("a", 0)}
    assert broker.responses["parts"] == broker.responses["whole"]
    [directory] = broker.responses["parts"].results
    assert sum(len(topic.partitions) for topic in directory.topics) == len(ALL)


def test_a_log_that_grows_meanwhile_has_the_size_of_its_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_dirs, "LOGS_PER_PART", 3)
    broker = Broker()
    describe(broker, "parts")
    for _ in range(len(ALL) // 3 + 1):
        broker.next_part()  # with the last one of these, three logs are described
    for place in ALL:
        broker.produce(place)
    broker.carry_on()
    [directory] = broker.responses["parts"].results
    sizes = [data.partition_size for topic in directory.topics for data in topic.partitions]
    assert sizes.count(0) == 3
