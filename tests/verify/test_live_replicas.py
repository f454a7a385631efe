"""What is judged of replicas while a cluster runs takes bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from minicluster.verify.judging import Judge
from minicluster.verify.model import FROM_ELR
from minicluster.verify.partition.driver import GONE_MAX, Partitions
from minicluster.verify.partition.setting import Setting
from minicluster.verify.rules.every import BY_ID

RULES = [BY_ID[name] for name in ("B2", "B6", "B7", "B8", "B10", "E27", "F8", "F14", "F16")]


class Live:
    """The folds of replicas as a running cluster gives them its rows."""

    def __init__(self) -> None:
        self.judge = Judge("run", RULES)
        setting = Setting(lambda place: True, FROM_ELR)
        self.partitions = Partitions(self.judge, setting, gone_max=GONE_MAX)

    def take(self, row: Mapping[str, Any]) -> None:
        event = {name: value for name, value in row.items() if value is not None}
        self.partitions.on_event(event)


def topic_life(number: int) -> list[dict[str, Any]]:
    """A partition with one replica is created, written to and deleted."""
    first = 10 * number
    common = {"topic": "orders", "topic_id": f"topic-{number}", "part": 0, "broker": 1}
    state = {"incarnation": "1-1", "leader_epoch": 0, "partition_epoch": 0, "isr": [1]}
    leads = {**common, **state, "maximal_isr": [1], "min_isr": 1, "follower_leos": "{}"}
    return [
        {**leads, "seq": first, "kind": "become_leader", "leo": 0, "hw_new": 0},
        {**leads, "seq": first + 1, "kind": "append", "leo": 1, "offset": 0, "epochs": [0, 0]},
        {**leads, "seq": first + 2, "kind": "hw", "leo": 1, "hw_old": 0, "hw_new": 1},
        {**common, "incarnation": "1-1", "seq": first + 3, "kind": "delete"},
    ]


def size_of(value: Any, seen: set[int]) -> int:
    """The bytes of an object and of all that it refers to."""
    if id(value) in seen or isinstance(value, type | Judge) or callable(value):
        return 0
    seen.add(id(value))
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = [*value, *value.values()]
    elif isinstance(value, list | tuple | set):
        parts = [*value]
    else:
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        parts = [getattr(value, name, None) for name in (*slots, *getattr(value, "__dict__", ()))]
    return sys.getsizeof(value) + sum(size_of(part, seen) for part in parts)


def test_topics_that_come_and_go_cost_no_memory() -> None:
    live = Live()
    sizes: list[int] = []
    for number in range(6_000):
        for row in topic_life(number):
            live.take(row)
        if number in (2_000, 5_999):
            sizes.append(size_of(live.partitions, set()))

    assert live.judge.tally("E27").looked_at == 6_000
    assert sizes[1] < 1.05 * sizes[0]
