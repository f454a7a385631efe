"""Waiting operations end exactly once: when they can, or when their time is over."""

from __future__ import annotations

import uuid

from minicluster.effects import Effect, Respond, SetTimer
from minicluster.replica.requests.purgatory import DelayedOperation, Purgatory

ONE, TWO = (uuid.UUID(int=1), 0), (uuid.UUID(int=2), 0)


class Waits(DelayedOperation):
    """Completes once it is told that it may."""

    def __init__(self, name: str, deadline_ms: int) -> None:
        self.name = name
        self.deadline_ms = deadline_ms
        self.may = False

    def try_complete(self, now_ms: int) -> list[Effect] | None:
        return [Respond(self.name, "done")] if self.may else None

    def expire(self, now_ms: int) -> list[Effect]:
        return [Respond(self.name, "over")]


def test_an_operation_completes_once_whichever_of_its_partitions_moves() -> None:
    purgatory, waits = Purgatory("p"), Waits("a", 100)
    purgatory.watch(waits, [ONE, TWO, ONE])
    assert purgatory.check(1, [ONE, TWO]) == []
    waits.may = True
    assert purgatory.check(2, [TWO, ONE]) == [Respond("a", "done")]
    assert purgatory.on_timer(100) == []
    assert len(purgatory) == purgatory.watched(ONE) == 0


def test_a_shorter_wait_that_comes_later_moves_the_timer_up() -> None:
    purgatory = Purgatory("p")
    assert purgatory.watch(Waits("long", 900), [ONE]) == [SetTimer("p", 900)]
    assert purgatory.watch(Waits("short", 300), [ONE]) == [SetTimer("p", 300)]
    assert purgatory.watch(Waits("middle", 500), [ONE]) == []
    assert purgatory.on_timer(300) == [Respond("short", "over"), SetTimer("p", 500)]


def test_a_timer_that_finds_everything_done_is_not_set_again() -> None:
    purgatory, waits = Purgatory("p"), Waits("a", 100)
    purgatory.watch(waits, [ONE])
    waits.may = True
    purgatory.check(1, [ONE])
    assert purgatory.on_timer(100) == []
    assert purgatory.watch(Waits("b", 400), [ONE]) == [SetTimer("p", 400)]


def test_all_that_is_due_ends_in_order_of_its_time() -> None:
    purgatory = Purgatory("p")
    for name, deadline_ms in (("c", 30), ("a", 10), ("b", 20)):
        purgatory.watch(Waits(name, deadline_ms), [ONE])
    ended = purgatory.on_timer(1_000)
    assert ended == [Respond("a", "over"), Respond("b", "over"), Respond("c", "over")]
