"""What a test writes into records, and what it reads of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.play.player import play
from minicluster.errors import UserError
from minicluster.scenario import parse_scenario
from minicluster.scenario.actions.topics import Produce

NO_TEXT = b"\xff\xfe"


def test_what_is_produced_is_consumed(mini_cluster: MiniCluster) -> None:
    orders = mini_cluster.create_topic("orders")
    sent = mini_cluster.produce(
        orders,
        values=[b"tea", NO_TEXT, None],
        keys=["one", "two", "one"],
        headers=[{"trace": b"\x01", "empty": None}, None, [("a", "1"), ("a", "2")]],
        timestamps=[3, 2, 1],
    )
    assert [record.offset for record in sent] == [0, 1, 2]
    assert [record.value for record in sent] == [b"tea", NO_TEXT, None]
    read = mini_cluster.consume(orders, count=3)
    assert [(r.offset, r.key, r.value, r.timestamp) for r in read] == [
        (0, b"one", b"tea", 3),
        (1, b"two", NO_TEXT, 2),
        (2, b"one", None, 1),
    ]
    assert [record.headers for record in read] == [
        (("trace", b"\x01"), ("empty", None)),
        (),
        (("a", b"1"), ("a", b"2")),
    ]


def test_one_key_and_one_header_are_those_of_every_record(mini_cluster: MiniCluster) -> None:
    orders = mini_cluster.create_topic("orders")
    mini_cluster.produce(orders, count=2, keys=b"k", headers={"v": "1"}, timestamps=7, batch=2)
    mini_cluster.produce(orders, rate=1, lasting=1, keys="k")
    first, second, third = mini_cluster.consume(orders, count=3)
    assert (first.value, second.value, third.value) == (b"orders-0/1", b"orders-0/2", b"orders-0/3")
    assert {r.key for r in (first, second, third)} == {b"k"}
    assert first.headers == second.headers == (("v", b"1"),) and third.headers == ()
    assert first.timestamp == second.timestamp == 7 < third.timestamp


def test_the_same_value_twice_is_no_duplicate(mini_cluster: MiniCluster) -> None:
    """F11 and the online checks know a record by the value that the client made for it."""
    orders = mini_cluster.create_topic("orders")
    mini_cluster.produce(orders, values=["a", "a", "a"], idempotent=True)
    mini_cluster.produce(orders, values="a")
    assert [r.value for r in mini_cluster.consume(orders, count=4)] == [b"a"] * 4
    mini_cluster.verify(engine="process").assert_valid()


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"values": ["a"], "count": 2}, "count is 2, and values has 1"),
        ({"values": ["a", "b"], "keys": ["k"]}, "values has 2, and keys has 1"),
        ({"values": [1.5, object()]}, "is not text, bytes or null"),
        ({"values": {"base64": "!"}}, "'!' is not base64"),
        ({"values": ["a"], "rate": 1}, "values does not go with a rate"),
        ({"headers": 5}, "headers: 5 is not names and values"),
        ({"timestamps": "now"}, "'now' is not a whole number"),
    ],
)
def test_a_slip_is_one_line(mini_cluster: MiniCluster, how: Any, expected: str) -> None:
    mini_cluster.create_topic("orders")
    with pytest.raises(UserError, match=expected) as refused:
        mini_cluster.produce("orders", **how)
    assert "\n" not in str(refused.value)


STORY = """
name: a poison pill and a tombstone
cluster: {brokers: 1, controllers: 1, seed: 3}
steps:
  - {do: create_topic, name: orders, replicas: 1}
  - {do: produce, topic: orders, values: [tea, {base64: //4=}, null], keys: k, headers: {a: 1}}
"""


def test_a_scenario_writes_what_no_text_holds(tmp_path: Path) -> None:
    scenario = parse_scenario(STORY)
    [_, step] = scenario.steps
    assert isinstance(step.action, Produce)
    assert step.action.given == {
        "topic": "orders",
        "values": ["tea", {"base64": "//4="}, None],
        "keys": "k",
        "headers": {"a": "1"},
    }
    held: list[Any] = []
    played = play(
        scenario,
        runs=tmp_path,
        at_end=lambda cluster: held.extend(
            (record.key, record.value, record.headers)
            for batch in cluster.disks[1].logs["orders-0"].batches
            for record in batch.records
        ),
    )
    assert played.failure is None
    assert held == [(b"k", value, (("a", b"1"),)) for value in (b"tea", NO_TEXT, None)]
