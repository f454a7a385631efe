"""A broker's use of the responses to its AlterReplicaState (KIP-589)."""

from __future__ import annotations

import uuid

import pytest

from minicluster.effects import Send, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages.kip_texts.kip_589 import (
    EVENT_OFFLINE,
    AlterReplicaStateRequest,
    AlterReplicaStateResponse,
)
from minicluster.replica.broker_context import BrokerContext, BrokerView
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.requests.purgatory import Key
from minicluster.replica.to_controller.replica_state_reports import (
    GATHER_MS,
    TIMER,
    ReplicaStateReports,
)

CONTROLLER, ANOTHER = 101, 102
ORDERS, OTHERS = uuid.UUID(int=0xA), uuid.UUID(int=0xB)


class Story:
    """A broker whose replicas go offline; the test is its clock and its controller."""

    def __init__(self) -> None:
        self.context = BrokerContext(ReplicaManagerConfig(broker_id=1))
        self.register(7)
        self.reports = ReplicaStateReports(self.context)
        self.now_ms = 0
        self.timer_ms: int | None = None
        self.sent: list[Send] = []
        self.controller(CONTROLLER)

    def register(self, epoch: int) -> None:
        """The broker has got this epoch."""
        self.context.view = BrokerView(epoch)

    def controller(self, controller_id: int) -> None:
        """Another controller is active."""
        self.reports.on_controller(controller_id, self.now_ms)
        self.see()

    def offline(self, lost: dict[Key, str]) -> None:
        """These replicas are offline."""
        self.reports.set_offline(lost, self.now_ms)
        self.see()

    def see(self) -> None:
        for effect in self.context.take_effects():
            if isinstance(effect, Send):
                self.sent.append(effect)
            elif isinstance(effect, SetTimer) and effect.name == TIMER:
                self.timer_ms = effect.at_ms

    def wake(self) -> int:
        """Let the time pass until the timer; how long that was."""
        assert self.timer_ms is not None
        waited_ms, self.now_ms, self.timer_ms = self.timer_ms - self.now_ms, self.timer_ms, None
        self.reports.on_timer(TIMER, self.now_ms)
        self.see()
        return waited_ms

    def take(self) -> AlterReplicaStateRequest:
        self.last = self.sent.pop()
        assert isinstance(self.last.request, AlterReplicaStateRequest)
        return self.last.request

    def respond(self, *reported: tuple[str, int, int], error: int = 0) -> None:
        kind = AlterReplicaStateResponse
        topics = tuple(
            kind.TopicData(
                topic=topic, partitions=(kind.PartitionData(partition_id=index, error_code=code),)
            )
            for topic, index, code in reported
        )
        response = kind(error_code=error, topics=topics)
        self.reports.on_response(self.last.correlation_id, response, self.now_ms)
        self.see()


def offline(story: Story) -> None:
    lost = {(ORDERS, 0): "orders", (ORDERS, 1): "orders", (OTHERS, 0): "others"}
    story.offline(lost)


def test_what_is_lost_is_gathered_and_reported_by_name_with_the_brokers_epoch() -> None:
    story = Story()
    offline(story)
    assert not story.sent
    assert story.wake() == GATHER_MS
    request = story.take()
    kind = AlterReplicaStateRequest
    assert (request.broker_id, request.broker_epoch, request.event_type) == (1, 7, EVENT_OFFLINE)
    assert request.topics == (
        kind.TopicData(
            topic="orders",
            partitions=(kind.PartitionData(partition_id=0), kind.PartitionData(partition_id=1)),
        ),
        kind.TopicData(topic="others", partitions=(kind.PartitionData(partition_id=0),)),
    )


@pytest.mark.parametrize(
    "error",
    [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 1 << 16],
)
def test_what_is_refused_is_reported_again_after_growing_pauses_with_the_epoch_of_then(
    error: int,
) -> None:
    story = Story()
    offline(story)
    story.wake()
    pauses = []
    for epoch in range(8, 17):
        story.take()
        story.respond(error=error)
        story.register(epoch)
        pauses.append(story.wake())
    assert pauses == [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]
    assert story.take().broker_epoch == 16


def test_what_a_response_leaves_out_is_reported_again_and_a_deleted_topic_is_not() -> None:
    story = Story()
    offline(story)
    story.wake()
    story.take()
    story.respond(("orders", 0, 0), ("others", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert story.reports.pending == ((ORDERS, 1),)
    story.wake()
    (topic,) = story.take().topics
    assert (topic.topic, [p.partition_id for p in topic.partitions]) == ("orders", [1])


def test_one_request_is_under_way_and_what_is_lost_meanwhile_follows() -> None:
    story = Story()
    story.offline({(ORDERS, 0): "orders"})
    story.wake()
    story.take()
    offline(story)
    story.wake()
    assert not story.sent
    story.respond(("orders", 0, 0))
    story.wake()
    assert len(story.take().topics) == 2


def test_a_response_of_a_controller_that_is_gone_completes_nothing() -> None:
    story = Story()
    story.offline({(ORDERS, 0): "orders"})
    story.wake()
    story.take()
    story.controller(ANOTHER)
    story.respond(("orders", 0, 0))
    assert story.reports.pending == ((ORDERS, 0),)
    story.wake()
    assert story.take() and story.last.to == ANOTHER
    story.respond(("orders", 0, 0))
    assert story.reports.pending == ()


def test_a_replica_that_is_gone_is_reported_no_more() -> None:
    story = Story()
    offline(story)
    story.offline({(OTHERS, 0): "others"})
    story.wake()
    assert [topic.topic for topic in story.take().topics] == ["others"]
