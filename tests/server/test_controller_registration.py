"""A controller registers once, again for a new incarnation, and retries by its timer alone."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from minicluster.effects import Send, SetTimer
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.protocol import ErrorCode
from minicluster.protocol import records as r
from minicluster.protocol.messages import ControllerRegistrationResponse
from minicluster.server.controller_registration import (
    RETRY_TIMER,
    ControllerRegistrationConfig,
    ControllerRegistrationManager,
)

OWN, OTHER = UUID(int=7), UUID(int=8)


def image_with(*records: Any, level: int = 30) -> MetadataImage:
    image = MetadataImage.EMPTY
    for record in (r.FeatureLevelRecord(name="metadata.version", feature_level=level), *records):
        image = apply(image, record)
    return image


def manager() -> ControllerRegistrationManager:
    config = ControllerRegistrationConfig(
        node_id=101, incarnation_id=OWN, listeners=(), features={"metadata.version": (7, 30)}
    )
    found = ControllerRegistrationManager(config)
    found.channel.on_controller(102, 0)
    return found


def sends(effects: list[Any]) -> list[Send]:
    return [effect for effect in effects if isinstance(effect, Send)]


def test_it_registers_once_the_metadata_version_allows_it() -> None:
    machine = manager()
    assert not sends(machine.on_metadata(image_with(level=14), 10))
    [sent] = sends(machine.on_metadata(image_with(level=15), 20))
    assert (sent.to, sent.request.controller_id) == (102, 101)
    assert sent.request.incarnation_id == OWN


def test_other_changes_send_nothing_between_response_and_record() -> None:
    machine = manager()
    image = image_with()
    [sent] = sends(machine.on_metadata(image, 20))
    machine.on_response(sent.correlation_id, ControllerRegistrationResponse(), 25)
    other = apply(image, r.TopicRecord(name="orders", topic_id=UUID(int=3)))
    assert not machine.on_metadata(other, 30)
    own = apply(other, r.RegisterControllerRecord(controller_id=101, incarnation_id=OWN))
    assert not machine.on_metadata(own, 40)


def test_another_incarnation_in_the_log_is_replaced() -> None:
    machine = manager()
    record = r.RegisterControllerRecord(controller_id=101, incarnation_id=OTHER)
    assert sends(machine.on_metadata(image_with(record), 20))


def test_a_refusal_is_retried_after_a_growing_while() -> None:
    machine = manager()
    image = image_with()
    effects, waits = machine.on_metadata(image, 0), []
    for _ in range(3):
        [sent] = sends(effects)
        refusal = ControllerRegistrationResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        ended = machine.on_response(sent.correlation_id, refusal, 1_000)
        [timer] = [e for e in ended if isinstance(e, SetTimer) and e.name == RETRY_TIMER]
        waits.append(timer.at_ms - 1_000)
        topic = r.TopicRecord(name="orders", topic_id=UUID(int=3))
        assert not machine.on_metadata(apply(image, topic), 1_010)
        effects = machine.on_timer(RETRY_TIMER, timer.at_ms)
    assert waits == [100, 200, 400]
