"""A broker's registration, heartbeats and controlled shutdown, one event at a time."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from minicluster.broker.lifecycle import (
    BrokerLifecycle,
    BrokerRegistered,
    BrokerState,
    BrokerStateChanged,
    LifecycleConfig,
)
from minicluster.effects import Effect, Send, SetTimer
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from minicluster.protocol.records import FeatureLevelRecord, RegisterBrokerRecord
from minicluster.rules import Rules
from tests.driving import Driving

CONTROLLER, OTHER_CONTROLLER = 101, 102
DIRECTORY = uuid.UUID(int=0x500)


class Story(Driving):
    """One broker on a clock of its own; its sends wait for a response."""

    def __init__(self, rules: Rules = Rules.KAFKA_4_3, **config: Any) -> None:
        super().__init__(now_ms=1_000)
        self.sent: list[Send] = []
        self.states: list[BrokerState] = []
        self.reasons: list[str] = []
        self.epochs: list[int] = []
        self.broker = BrokerLifecycle(
            LifecycleConfig(
                broker_id=1, incarnation_id=uuid.UUID(int=7), **{"log_dirs": (DIRECTORY,), **config}
            ),
            rules=rules,
        )

    def see(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, SetTimer):
                self.timers[effect.name] = effect.at_ms
            elif isinstance(effect, Send):
                self.sent.append(effect)
            elif isinstance(effect, BrokerStateChanged):
                self.states.append(effect.state)
                self.reasons.append(effect.reason)
            elif isinstance(effect, BrokerRegistered):
                self.epochs.append(effect.broker_epoch)
            else:
                self.timers.pop(effect.name, None)  # type: ignore[attr-defined]

    def on_timer(self, timer: str) -> None:
        self.see(self.broker.on_timer(timer, self.now_ms))

    def take(self) -> Any:
        """The one request that was sent."""
        assert len(self.sent) == 1, self.sent
        self.last = self.sent.pop()
        return self.last.request

    def respond(self, response: Any) -> None:
        self.see(self.broker.on_response(self.last.correlation_id, response, self.now_ms))

    def heartbeat(self, **response: Any) -> BrokerHeartbeatRequest:
        request = self.take()
        assert isinstance(request, BrokerHeartbeatRequest)
        self.respond(BrokerHeartbeatResponse(**response))
        return request

    def register(self, broker_epoch: int = 5) -> BrokerRegistrationRequest:
        self.see(self.broker.start(self.now_ms))
        self.see(self.broker.channel.on_controller(CONTROLLER, self.now_ms))
        request = self.take()
        assert isinstance(request, BrokerRegistrationRequest)
        self.respond(BrokerRegistrationResponse(broker_epoch=broker_epoch))
        return request

    def run(self) -> None:
        """Bring the broker to RUNNING."""
        self.register()
        self.heartbeat(is_caught_up=True, is_fenced=True)
        self.advance(10)
        self.heartbeat(is_caught_up=True, is_fenced=True)
        self.see(self.broker.set_ready_to_unfence(self.now_ms))
        self.heartbeat(is_caught_up=True, is_fenced=False)
        assert self.broker.state is BrokerState.RUNNING


def test_a_broker_registers_catches_up_is_unfenced_and_runs() -> None:
    story = Story(previous_broker_epoch=3, features={"metadata.version": (7, 30)})
    request = story.register(broker_epoch=42)

    assert (request.broker_id, request.previous_broker_epoch) == (1, 3)
    assert request.log_dirs == (DIRECTORY,)
    assert [f.name for f in request.features] == ["metadata.version"]
    assert story.epochs == [42]

    first = story.heartbeat(is_caught_up=False)
    assert (first.broker_epoch, first.current_metadata_offset, first.want_fence) == (42, -1, True)
    assert story.timers["lifecycle-communication"] == story.now_ms + 10

    story.broker.on_metadata_offset(50)
    story.advance(10)
    assert story.heartbeat(is_caught_up=True).current_metadata_offset == 50
    assert story.states == [BrokerState.STARTING, BrokerState.RECOVERY]

    story.see(story.broker.set_ready_to_unfence(story.now_ms))
    assert not story.heartbeat(is_caught_up=True, is_fenced=False).want_fence
    assert story.states[-1] is BrokerState.RUNNING
    assert story.timers == {"lifecycle-communication": story.now_ms + 2_000}


@pytest.mark.parametrize("stage", ["not started", "registering", "catching up", "running"])
def test_a_broker_stops_from_any_state_and_never_comes_back(stage: str) -> None:
    """Its life has one end: another incarnation begins another one."""
    story = Story()
    if stage == "registering":
        story.see(story.broker.start(story.now_ms))
    elif stage == "catching up":
        story.register()
    elif stage == "running":
        story.run()
    story.see(story.broker.shut_down("enough", story.now_ms))
    assert (story.states[-1], story.reasons[-1]) == (BrokerState.SHUTTING_DOWN, "enough")
    before = list(story.states)
    story.see(story.broker.start(story.now_ms))
    story.see(story.broker.begin_controlled_shutdown(story.now_ms))
    story.see(story.broker.shut_down("once more", story.now_ms))
    story.advance(600_000)
    assert story.states == before


def test_a_running_broker_heartbeats_every_two_seconds() -> None:
    story = Story()
    story.run()
    for _ in range(3):
        story.advance(1_999)
        assert not story.sent
        story.advance(1)
        story.heartbeat(is_caught_up=True, is_fenced=False)


def test_a_running_broker_that_is_fenced_goes_on_and_stays_running() -> None:
    story = Story()
    story.run()
    story.advance(2_000)
    story.heartbeat(is_caught_up=True, is_fenced=True)
    assert story.broker.state is BrokerState.RUNNING
    assert story.broker.is_fenced
    story.advance(2_000)
    assert not story.heartbeat(is_caught_up=True, is_fenced=False).want_fence


def test_E36_controlled_shutdown_is_requested_until_the_controller_grants_it() -> None:
    story = Story()
    story.run()
    story.see(story.broker.begin_controlled_shutdown(story.now_ms))

    assert story.heartbeat(is_fenced=False).want_shut_down
    story.advance(50)
    assert story.heartbeat(is_fenced=False).want_shut_down
    story.advance(1_999)
    assert not story.sent, "after the first response it is the usual interval again"
    story.advance(1)
    story.heartbeat(is_fenced=True, should_shut_down=True)

    assert story.states[1:] == [
        BrokerState.RECOVERY,
        BrokerState.RUNNING,
        BrokerState.PENDING_CONTROLLED_SHUTDOWN,
        BrokerState.SHUTTING_DOWN,
    ]
    assert story.timers == {}
    story.advance(10_000)
    assert not story.sent


def test_a_shutdown_wish_during_a_heartbeat_waits_for_its_response_and_then_leaves_at_once() -> (
    None
):
    story = Story()
    story.run()
    story.advance(2_000)
    story.see(story.broker.begin_controlled_shutdown(story.now_ms))
    story.heartbeat(is_fenced=False)
    assert story.take().want_shut_down


def test_a_broker_that_never_ran_shuts_down_without_a_request() -> None:
    story = Story()
    story.register()
    story.see(story.broker.begin_controlled_shutdown(story.now_ms))
    assert story.states[-1] is BrokerState.SHUTTING_DOWN


def test_a_refused_registration_is_tried_again_after_the_heartbeat_interval() -> None:
    story = Story()
    story.see(story.broker.start(story.now_ms))
    story.see(story.broker.channel.on_controller(CONTROLLER, story.now_ms))
    story.take()
    story.respond(BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION))
    story.advance(1_999)
    assert not story.sent
    story.advance(1)
    assert isinstance(story.take(), BrokerRegistrationRequest)


def test_after_a_failure_nothing_leaves_at_once() -> None:
    story = Story()
    story.run()
    story.advance(2_000)
    story.take()
    story.see(story.broker.set_ready_to_unfence(story.now_ms))
    story.respond(BrokerHeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    story.advance(1_999)
    assert not story.sent
    story.advance(1)
    assert isinstance(story.take(), BrokerHeartbeatRequest)


def test_with_the_rules_of_3_9_retries_back_off() -> None:
    story = Story(Rules.KAFKA_3_9)
    story.run()
    story.advance(2_000)
    waits = []
    for _ in range(8):
        story.take()
        story.respond(BrokerHeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
        waits.append(story.timers["lifecycle-communication"] - story.now_ms)
        story.advance(waits[-1])
    assert waits == [100, 200, 400, 800, 1_600, 3_200, 6_400, 9_000]


def test_a_broker_that_cannot_register_within_a_minute_gives_up() -> None:
    story = Story()
    story.see(story.broker.start(story.now_ms))
    story.advance(59_999)
    assert story.states == [BrokerState.STARTING]
    story.advance(1)
    assert story.states[-1] is BrokerState.SHUTTING_DOWN
    assert "register" in story.reasons[-1]


def test_without_a_controller_nothing_leaves_and_the_first_one_named_gets_it() -> None:
    story = Story()
    story.see(story.broker.start(story.now_ms))
    story.advance(3_000)
    assert not story.sent
    story.see(story.broker.channel.on_controller(OTHER_CONTROLLER, story.now_ms))
    story.take()
    assert story.last.to == OTHER_CONTROLLER


def test_not_controller_sends_the_same_request_to_the_next_controller() -> None:
    story = Story()
    story.run()
    story.advance(2_000)
    first = story.take()
    story.respond(BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER))
    assert not story.sent
    story.see(story.broker.channel.on_controller(OTHER_CONTROLLER, story.now_ms))
    assert story.take() is first
    assert story.last.to == OTHER_CONTROLLER


def test_the_same_controller_gets_the_request_again_a_little_later() -> None:
    story = Story()
    story.run()
    story.advance(2_000)
    first = story.take()
    story.respond(BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER))
    story.advance(99)
    assert not story.sent
    story.advance(1)
    assert story.take() is first


def test_a_heartbeat_that_finds_no_controller_for_half_a_session_counts_as_failed() -> None:
    story = Story()
    story.run()
    story.see(story.broker.channel.on_controller(None, story.now_ms))
    story.advance(2_000 + 4_499)
    assert not story.sent
    story.advance(1)
    assert story.timers == {"lifecycle-communication": story.now_ms + 2_000}


def test_a_response_that_comes_twice_counts_once() -> None:
    story = Story()
    story.run()
    story.advance(2_000)
    story.heartbeat(is_fenced=False)
    story.respond(BrokerHeartbeatResponse(is_fenced=True))
    assert not story.broker.is_fenced


def test_offline_directories_are_reported_in_every_heartbeat() -> None:
    story = Story()
    story.run()
    story.see(story.broker.propagate_directory_failure(DIRECTORY, story.now_ms))
    assert story.heartbeat(is_fenced=False).offline_log_dirs == (DIRECTORY,)
    story.advance(2_000)
    assert story.heartbeat(is_fenced=False).offline_log_dirs == (DIRECTORY,)
    story.advance(60_000)
    assert story.broker.state is BrokerState.RUNNING


def test_a_directory_failure_that_cannot_be_reported_stops_the_broker() -> None:
    story = Story()
    story.run()
    story.see(story.broker.channel.on_controller(None, story.now_ms))
    story.see(story.broker.propagate_directory_failure(DIRECTORY, story.now_ms))
    story.advance(29_999)
    assert story.broker.state is BrokerState.RUNNING
    story.advance(1)
    assert story.broker.state is BrokerState.SHUTTING_DOWN
    assert str(DIRECTORY) in story.reasons[-1]


def test_an_amended_registration_keeps_the_incarnation() -> None:
    story = Story()
    story.run()
    story.see(story.broker.register_again(story.now_ms))
    again = story.take()
    assert isinstance(again, BrokerRegistrationRequest)
    assert again.incarnation_id == uuid.UUID(int=7)
    story.respond(BrokerRegistrationResponse(broker_epoch=5))
    assert isinstance(story.take(), BrokerHeartbeatRequest)


def test_a_registration_names_all_directories_of_the_process_in_the_order_of_signed_ids() -> None:
    high = uuid.UUID(int=0x9 << 124)
    story = Story(log_dirs=(DIRECTORY, high))
    story.run()
    story.see(story.broker.propagate_directory_failure(DIRECTORY, story.now_ms))
    story.heartbeat(is_fenced=False)
    story.see(story.broker.register_again(story.now_ms))
    assert story.take().log_dirs == (high, DIRECTORY)


def test_a_broker_registers_again_once_the_metadata_wants_its_directories() -> None:
    story = Story()
    story.run()
    own = RegisterBrokerRecord(
        broker_id=1, broker_epoch=5, incarnation_id=uuid.UUID(int=7), fenced=False
    )
    old = apply_all(MetadataImage.EMPTY, [_level(16), own])
    assert story.broker.on_metadata(old, story.now_ms) == []
    story.see(story.broker.on_metadata(apply_all(old, [_level(17)]), story.now_ms))
    assert story.take().log_dirs == (DIRECTORY,)


def _level(level: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name="metadata.version", feature_level=level)
