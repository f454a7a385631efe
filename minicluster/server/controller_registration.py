"""The registration of a controller with the active one (KIP-919).

A controller registers its endpoints and features once the metadata.version allows it, and again
when the metadata log gets another incarnation of it, or none. Other changes of the image send no
request: one that failed waits for its timer.

Source:  ControllerRegistrationManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from minicluster.channel.backoff import ExponentialBackoff
from minicluster.channel.controller_channel import (
    ControllerChannel,
    CorrelationIds,
)
from minicluster.effects import Effect, SetTimer
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from minicluster.values import Value

RETRY_TIMER = "controller-registration"
BACKOFF = ExponentialBackoff(100, 120_000)


class ControllerRegistrationConfig(Value, kw_only=True):
    """One incarnation of a controller, as it registers."""

    node_id: int
    incarnation_id: UUID
    listeners: tuple[ControllerRegistrationRequest.Listener, ...]
    features: Mapping[str, tuple[int, int]]


class ControllerRegistrationManager:
    """The machine.

    Inputs:  ``on_metadata``, ``on_response``, ``on_failure``, ``on_timer``, and
             ``channel.on_controller``.
    Effects: Send (to the active controller), SetTimer and CancelTimer.
    """

    def __init__(self, config: ControllerRegistrationConfig) -> None:
        self._config = config
        self.channel = ControllerChannel(name="controller-registration", ids=CorrelationIds())
        self._version: MetadataVersion | None = None
        self._registered: UUID | None = None  # the incarnation that the log has of this node
        self._pending = False
        self._failures = 0

    def on_metadata(self, image: MetadataImage, now_ms: int) -> list[Effect]:
        """A newer image is committed."""
        before = self._version, self._registered
        registration = image.cluster.controllers.get(self._config.node_id)
        self._version = image.features.metadata_version
        self._registered = None if registration is None else registration.incarnation_id
        if (self._version, self._registered) == before:
            return []
        return self._maybe_register(now_ms)

    def on_response(
        self, correlation_id: int, response: ControllerRegistrationResponse, now_ms: int
    ) -> list[Effect]:
        """The active controller responded."""
        return self._complete(self.channel.on_response(correlation_id, response, now_ms), now_ms)

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """No response will come; the channel sends the request again."""
        return self._complete(self.channel.on_failure(correlation_id, now_ms), now_ms)

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """A timer fired; other names than this machine's are ignored."""
        if name == RETRY_TIMER:
            return self._maybe_register(now_ms)
        if name == self.channel.timer:
            return self._complete(self.channel.on_timer(now_ms), now_ms)
        return []

    def _maybe_register(self, now_ms: int) -> list[Effect]:
        version = self._version
        supported = version is not None and version.controller_registration_supported
        is_registered = self._registered == self._config.incarnation_id
        if self._pending or not supported or is_registered:
            return []
        self._pending = True
        config = self._config
        request = ControllerRegistrationRequest(
            controller_id=config.node_id,
            incarnation_id=config.incarnation_id,
            listeners=config.listeners,
            features=tuple(
                ControllerRegistrationRequest.Feature(
                    name=name, min_supported_version=low, max_supported_version=high
                )
                for name, (low, high) in config.features.items()
            ),
        )
        return self.channel.submit(None, request, request.latest_version, now_ms)

    def _complete(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        for completed in self.channel.take_ended():
            self._pending = False
            response = completed.response
            if response is not None and response.error_code == ErrorCode.NONE:
                self._failures = 0
            else:
                wait_ms = BACKOFF.backoff_ms(self._failures)
                self._failures += 1
                effects.append(SetTimer(RETRY_TIMER, now_ms + wait_ms))
        return effects
