"""The small language of selectors and conditions, on a cluster that is a table."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from minicluster.scenario import ScenarioError, holds, select
from minicluster.scenario.expression import parse


class Clients:
    """Two that have sent a request."""

    ids = (-2, -3)

    def node(self, client_id: str) -> int:
        return {"app-1": -2, "my app": -3}.get(client_id, -4)


@dataclass
class Table:
    """Three brokers, three controllers; orders-0 on 1,2,3 led by 2 with 2,3 in sync."""

    broker_ids: tuple[int, ...] = (1, 2, 3)
    controller_ids: tuple[int, ...] = (101, 102, 103)
    clients: Clients = field(default_factory=Clients)
    active_controller_id: int | None = 102
    fenced_brokers: tuple[int, ...] = (1,)
    draws: list[tuple[str, int]] = field(default_factory=list)

    def replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        if (topic, partition) not in (("orders", 0), ("eu.orders-7", 1)):
            raise ScenarioError(f"there is no partition {topic}-{partition}")
        return (1, 2, 3)

    def isr(self, topic: str, partition: int) -> tuple[int, ...]:
        return self.replicas(topic, partition)[1:]

    def leader(self, topic: str, partition: int) -> int:
        return 2 if topic == "orders" else -1

    def leader_epoch(self, topic: str, partition: int) -> int:
        return 4

    def partition_epoch(self, topic: str, partition: int) -> int:
        return 9

    def reassigning(self, topic: str, partition: int) -> bool:
        return False

    def recovering(self, topic: str, partition: int) -> bool:
        return False

    def high_watermark(self, topic: str, partition: int) -> int:
        return 17

    def fenced(self, broker: int) -> bool:
        return broker in self.fenced_brokers

    def rack(self, broker: int) -> str | None:
        return None if broker == 1 else "ab"[broker % 2]

    def in_controlled_shutdown(self, broker: int) -> bool:
        return broker == 3

    def running(self, node: int) -> bool:
        return node != 1

    def choose(self, key: str, bound: int) -> int:
        self.draws.append((key, bound))
        return bound - 1


@pytest.mark.parametrize(
    ("selector", "nodes"),
    [
        ("broker(3)", (3,)),
        ("controller(0)", (101,)),
        ("controller(103)", (103,)),
        ("active_controller()", (102,)),
        ("leader(orders-0)", (2,)),
        ("leader(eu.orders-7-1)", ()),
        ("follower(orders-0)", (1,)),
        ("follower(orders-0, n=1)", (3,)),
        ("follower(orders-0, n=2)", ()),
        ("followers(orders-0)", (1, 3)),
        ("isr(orders-0)", (2, 3)),
        ("controllers", (101, 102, 103)),
        ("all", (1, 2, 3, 101, 102, 103)),
        ("[broker(1), controllers]", (1, 101, 102, 103)),
        ("majority(controllers)", (102, 103)),
        ("minority(controllers)", (103,)),
        ("2", (2,)),
        ("clients", (-2, -3)),
        ("client(app-1)", (-2,)),
        ("[client('my app'), brokers]", (-3, 1, 2, 3)),
        ('client("comes later")', (-4,)),
    ],
)
def test_a_selector_names_nodes(selector: str, nodes: tuple[int, ...]) -> None:
    assert select(selector, Table()) == nodes


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ("isr(orders-0) == 2", True),
        ("isr(orders-0) == [3, 2]", True),
        ("isr(orders-0) == replicas(orders-0)", False),
        ("fully_in_sync(orders-0)", False),
        ("leader(orders-0) == broker(2)", True),
        ("leader(eu.orders-7-1) == none", True),
        ("leader(orders-0) != none and fenced(broker(1))", True),
        ("follower(orders-0) in isr(orders-0)", False),
        ("follower(orders-0) not in isr(orders-0)", True),
        ("not fenced(broker(1)) or leader_epoch(orders-0) >= 4", True),
        ("unfenced(brokers)", False),
        ("unfenced([2, 3])", True),
        ("high_watermark(orders-0) < 17", False),
        ("client(app-1) in clients and client(other) not in clients", True),
        ("running(brokers) or recovering(orders-0)", False),
        ("(in_controlled_shutdown(broker(3)))", True),
    ],
)
def test_a_condition_holds_or_not(condition: str, truth: bool) -> None:
    assert holds(condition, Table()) is truth


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "something is missing"),
        ("isr(orders-0", "',' is missing"),
        ("isr(orders-0) == ", "something is missing"),
        ("isr(orders-0) 2", "'2' is too much"),
        ("leader{orders}", "'{' means nothing"),
        ("and", "in the wrong place"),
    ],
)
def test_a_slip_is_shown_where_it_is(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("broker(9)", "there is no such broker; brokers are 1, 2, 3"),
        ("controller(7)", "number from 0 to 2"),
        ("client()", "client() takes a client.id such as app-1, not 0 arguments"),
        ("client([1])", "client() takes a client.id such as app-1"),
        ("'app-1'", "is text, which client() and app() take"),
        ("chief(orders-0)", "known: active_controller"),
        ("leader(orders)", "topic-index"),
        ("isr(nothing-3)", "no partition nothing-3"),
        ("everybody", "unknown selector 'everybody'"),
        ("active_controller", "written with parentheses, as active_controller()"),
        ("kontrollers", "did you mean controllers?"),
        ("fenced(broker(1))", "a condition, not a selector"),
        ("55", "there is no node 55"),
    ],
)
def test_a_selector_that_names_nothing_lists_what_there_is(selector: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        select(selector, Table())
    assert message in str(caught.value)


def test_a_choice_hangs_only_on_the_seed_and_its_key() -> None:
    table = Table()
    select("one(brokers)", table)
    assert table.draws == [("one/0", 3)]
