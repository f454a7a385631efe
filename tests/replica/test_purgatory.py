"""Waiting operations complete exactly once: when they can, or at their deadline."""

from __future__ import annotations

import uuid

from minicluster.effects import Effect, Respond, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteRecordsRequest
from minicluster.replica.requests.purgatory import DelayedOperation, Purgatory
from tests.replica.cluster import Cluster

ONE, TWO = (uuid.UUID(int=1), 0), (uuid.UUID(int=2), 0)


class Waits(DelayedOperation):
    """Completes once it may; looks at the purgatory again while it does."""

    def __init__(self, story: Story, name: str, deadline_ms: int) -> None:
        self.story = story
        self.name = name
        self.deadline_ms = deadline_ms
        self.may = False

    def try_complete(self, now_ms: int) -> bool:
        return self.may

    def on_complete(self, now_ms: int) -> None:
        self.story.effects.append(Respond(self.name, now_ms))
        self.story.purgatory.check_and_complete(ONE, now_ms)


class Story:
    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.purgatory = Purgatory("p", self.effects)

    def watch(self, name: str, deadline_ms: int, *keys: tuple[uuid.UUID, int]) -> Waits:
        waits = Waits(self, name, deadline_ms)
        self.purgatory.watch(waits, keys or [ONE])
        return waits

    def take(self) -> list[Effect]:
        taken = self.effects[:]
        self.effects.clear()
        return taken


def test_an_operation_completes_once_whichever_of_its_partitions_moves() -> None:
    story = Story()
    waits = story.watch("a", 100, ONE, TWO, ONE)
    assert story.take() == [SetTimer("p", 100)]
    for key in (ONE, TWO):
        story.purgatory.check_and_complete(key, 1)
    assert story.take() == []
    waits.may = True
    for key in (TWO, ONE):
        story.purgatory.check_and_complete(key, 2)
    assert story.take() == [Respond("a", 2)]
    story.purgatory.on_timer(100)
    assert story.take() == []
    assert len(story.purgatory) == story.purgatory.watched(ONE) == 0


def test_a_shorter_wait_that_comes_later_moves_the_timer_up() -> None:
    story = Story()
    story.watch("long", 900)
    story.watch("short", 300)
    story.watch("middle", 500)
    assert story.take() == [SetTimer("p", 900), SetTimer("p", 300)]
    story.purgatory.on_timer(300)
    assert story.take() == [Respond("short", 300), SetTimer("p", 500)]


def test_a_timer_that_finds_everything_done_is_not_set_again() -> None:
    story = Story()
    story.watch("a", 100).may = True
    story.purgatory.check_and_complete(ONE, 1)
    story.take()
    story.purgatory.on_timer(100)
    assert story.take() == []
    story.watch("b", 400)
    assert story.take() == [SetTimer("p", 400)]


def test_all_that_is_due_completes_in_order_of_its_deadline() -> None:
    story = Story()
    for name, deadline_ms in (("c", 30), ("a", 10), ("b", 20)):
        story.watch(name, deadline_ms)
    story.take()
    story.purgatory.on_timer(1_000)
    assert story.take() == [Respond(name, 1_000) for name in "abc"]


def test_a_deletion_of_records_loses_a_replica_that_has_moved_away() -> None:
    """By ReplicaManager.getPartition there is none, whoever leads it by the metadata."""
    cluster = Cluster()
    for name in ("orders", "bills"):
        cluster.create_topic(name)
        cluster.produce(1, b"a", name=name)
    cluster.advance(10)
    kind = DeleteRecordsRequest
    partition = kind.DeleteRecordsPartition(partition_index=0, offset=1)
    topics = tuple(
        kind.DeleteRecordsTopic(name=name, partitions=(partition,)) for name in ("orders", "bills")
    )
    cluster.cuts |= {(2, 1), (3, 1)}
    token = cluster.request(1, kind(topics=topics, timeout_ms=60_000), 2)
    moved = {"replicas": (2, 3), "isr": (2, 3), "directories": (uuid.UUID(int=0xD001),) * 2}
    cluster.change("orders", leader=2, **moved)
    assert not cluster.has_response(token)
    cluster.cuts.clear()
    cluster.advance(40_000)
    errors = {t.name: t.partitions[0].error_code for t in cluster.response(token).topics}
    assert errors == {"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "bills": ErrorCode.NONE}
