"""A broker's life in the eyes of the controller: registration, heartbeats, controlled shutdown.

    NOT_RUNNING -> STARTING -> RECOVERY -> RUNNING -> PENDING_CONTROLLED_SHUTDOWN -> SHUTTING_DOWN

| state | the broker sends | until a response says |
|---|---|---|
| STARTING | BrokerRegistration, then WantFence heartbeats | that it has read its registration |
| RECOVERY | the same until an image is published | that it is unfenced |
| RUNNING | heartbeats | |
| PENDING_… | heartbeats with WantShutDown | ShouldShutDown: it leads nothing, and all know that |

One request is under way at a time. A registration that fails is repeated until
initial.broker.registration.timeout.ms have passed; after a quick restart it is rejected until the
session of the incarnation before has run out.

A shutdown that no controller grants within five minutes ends without it.

A log directory that has failed is named in every heartbeat until one with it was acknowledged. The
broker stops if that takes too long: the controller would leave it leader of partitions whose log it
has lost (KIP-858).

Leaves out: authentication, migration from ZooKeeper.
Source:  KIP-631, KIP-841, KIP-858; BrokerLifecycleManager.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from minicluster.channel.backoff import ExponentialBackoff
from minicluster.channel.controller_channel import (
    ControllerChannel,
    CorrelationIds,
)
from minicluster.configs.views import broker_config
from minicluster.effects import CancelTimer, Effect, SetTimer
from minicluster.faults import Faults
from minicluster.metadata.cordoned import cordoned_directories
from minicluster.metadata.image.directory_id import java_order
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.api import highest_version
from minicluster.protocol.messages import BrokerHeartbeatRequest, BrokerRegistrationRequest
from minicluster.rules import Rules
from minicluster.values import dataclass

CAUGHT_UP_DELAY_MS = 10
SHUTDOWN_DELAY_MS = 50
SHUTDOWN_LIMIT_MS = 5 * 60_000  # a process waits so long for the controller (KafkaBroker.shutdown)
BACKOFF_FIRST_MS = 100

COMMUNICATION = "lifecycle-communication"
REGISTRATION_DEADLINE = "lifecycle-registration-deadline"
DIRECTORY_DEADLINE = "lifecycle-directory-deadline"
SHUTDOWN_DEADLINE = "lifecycle-shutdown-deadline"


class BrokerState(enum.IntEnum):
    """Kafka's numbers (org.apache.kafka.metadata.BrokerState)."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


S = BrokerState
VALID_PREVIOUS_STATES: Mapping[BrokerState, frozenset[BrokerState]] = {
    S.NOT_RUNNING: frozenset(),
    S.STARTING: frozenset({S.NOT_RUNNING}),
    S.RECOVERY: frozenset({S.STARTING}),
    S.RUNNING: frozenset({S.RECOVERY}),
    S.PENDING_CONTROLLED_SHUTDOWN: frozenset({S.RUNNING}),
    # At once from any state: by its shell, or for it was not registered, or not heard, in time.
    S.SHUTTING_DOWN: frozenset(S) - {S.SHUTTING_DOWN},
}


class BrokerStateChanged(Effect):
    """The broker entered a state.

    RECOVERY means that its metadata has caught up: the shell may now install its publishers and
    then call ``set_ready_to_unfence``. SHUTTING_DOWN means that the process should end.
    """

    state: BrokerState
    reason: str = ""


class BrokerRegistered(Effect):
    """The controller gave this incarnation a broker epoch; all its requests carry it from now."""

    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleConfig:
    """The registration of a broker, and its periods."""

    broker_id: int
    incarnation_id: uuid.UUID
    cluster_id: str = ""
    listeners: tuple[BrokerRegistrationRequest.Listener, ...] = ()
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rack: str | None = None
    log_dirs: tuple[uuid.UUID, ...] = ()
    dir_names: Mapping[str, uuid.UUID] = field(default_factory=dict)  # as log.dirs names them
    cordoned_log_dirs: str = ""  # of the properties file
    previous_broker_epoch: int = -1
    heartbeat_interval_ms: int = broker_config("broker.heartbeat.interval.ms")
    session_timeout_ms: int = broker_config("broker.session.timeout.ms")
    initial_registration_timeout_ms: int = broker_config("initial.broker.registration.timeout.ms")
    log_dir_failure_timeout_ms: int = broker_config("log.dir.failure.timeout.ms")
    registration_version: int | None = None  # None: the highest of this release
    heartbeat_version: int | None = None
    continued_epoch: int = -1  # of a registration that the incarnation has already; -1: none


class BrokerLifecycle:
    """The machine. Inputs: ``start``, ``on_metadata_offset``, ``on_response``, ``on_failure``,
    ``on_timer``, ``channel.on_controller``, and the wishes below. All but the offset return
    effects: Send (to the active controller), SetTimer, CancelTimer, BrokerRegistered,
    BrokerStateChanged.

    Units:   ``metadata_offset`` is the last metadata offset applied, -1 for none.
    """

    def __init__(
        self,
        config: LifecycleConfig,
        *,
        ids: CorrelationIds | None = None,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
    ) -> None:
        self.config = config
        self.rules = rules
        self.faults = faults
        self.state = BrokerState.NOT_RUNNING
        self.broker_epoch = -1
        self.metadata_offset = -1
        self.ready_to_unfence = False
        self.registered = False
        self.is_fenced = True
        self.offline_dirs: dict[uuid.UUID, bool] = {}  # directory -> the controller has it
        self.cordoned_dirs: tuple[uuid.UUID, ...] | None = None
        self._dir_deadlines: dict[uuid.UUID, int] = {}
        self._ever_registered = False
        self._got_shutdown_response = False
        self._shuts_down_once_running = False
        self._communicating = False
        self._next_immediate = False
        self._failures = 0
        self.channel = ControllerChannel(
            name="lifecycle",
            ids=ids or CorrelationIds(),
            retry_timeout_ms=config.session_timeout_ms // 2,
        )

    # -- wishes of the shell ---------------------------------------------------------------

    def start(self, now_ms: int) -> list[Effect]:
        """Begin to register; an incarnation that the log has unfenced only sends heartbeats."""
        if self.state is not BrokerState.NOT_RUNNING:
            return []
        if self.config.continued_epoch >= 0:
            self.ready_to_unfence = True
            return [
                *self._enter(BrokerState.STARTING),
                *self._registration_done(self.config.continued_epoch, now_ms),
            ]
        deadline_ms = now_ms + self.config.initial_registration_timeout_ms
        effects = self._enter(BrokerState.STARTING)
        effects.append(SetTimer(REGISTRATION_DEADLINE, deadline_ms))
        return effects + self._communicate(now_ms)

    def set_ready_to_unfence(self, now_ms: int) -> list[Effect]:
        """The broker has published its first image and can serve."""
        self.ready_to_unfence = True
        return self._schedule(0, now_ms)

    def begin_controlled_shutdown(self, now_ms: int) -> list[Effect]:
        """Request the controller to move leaderships away; before it runs, a broker just stops.

        An incarnation that continues has run before: its shutdown begins once it has caught up.

        Source:  BrokerServer.shutdown, BrokerLifecycleManager.beginControlledShutdown.
        """
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return []
        if self.state in (BrokerState.STARTING, BrokerState.RECOVERY, BrokerState.NOT_RUNNING):
            if self.config.continued_epoch >= 0:
                self._shuts_down_once_running = True
                return [SetTimer(SHUTDOWN_DEADLINE, now_ms + SHUTDOWN_LIMIT_MS)]
            return self.shut_down("shut down before it ran", now_ms)
        if self.state is not BrokerState.RUNNING:
            return []
        effects = self._enter(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
        if not self._shuts_down_once_running:
            effects.append(SetTimer(SHUTDOWN_DEADLINE, now_ms + SHUTDOWN_LIMIT_MS))
        return effects + self._schedule(0, now_ms)

    def shut_down(self, reason: str, now_ms: int) -> list[Effect]:
        """Stop at once."""
        if self.state is BrokerState.SHUTTING_DOWN:
            return []
        effects = self.channel.close()
        for name in (COMMUNICATION, REGISTRATION_DEADLINE, DIRECTORY_DEADLINE, SHUTDOWN_DEADLINE):
            effects.append(CancelTimer(name))
        return effects + self._enter(BrokerState.SHUTTING_DOWN, reason)

    def propagate_directory_failure(self, directory: uuid.UUID, now_ms: int) -> list[Effect]:
        """Report to the controller that a log directory is lost; unheard for too long, stop.

        Source:  KIP-858; BrokerLifecycleManager.propagateDirectoryFailure.
        """
        if directory in self.offline_dirs:
            return []
        self.offline_dirs[directory] = False
        self._dir_deadlines[directory] = now_ms + self.config.log_dir_failure_timeout_ms
        effects: list[Effect] = [
            SetTimer(DIRECTORY_DEADLINE, min(self._dir_deadlines[d] for d in self._dir_deadlines))
        ]
        if self.registered:
            effects += self._schedule(0, now_ms)
        return effects

    def set_cordoned_dirs(
        self, directories: tuple[uuid.UUID, ...] | None, now_ms: int
    ) -> list[Effect]:
        """Name the directories that take no new replicas (KIP-1066); None: report none."""
        before, self.cordoned_dirs = self.cordoned_dirs, directories
        if directories == before or not (before or directories):
            return []
        return self._schedule(0, now_ms) if self.registered else []

    def register_again(self, now_ms: int) -> list[Effect]:
        """Send the registration once more under the same incarnation."""
        self.registered = False
        return self._schedule(0, now_ms)

    # -- what happens to it ----------------------------------------------------------------

    def on_metadata_offset(self, offset: int) -> None:
        """The broker has applied the metadata log up to this offset; heartbeats report it."""
        self.metadata_offset = offset

    def on_metadata(self, image: MetadataImage, now_ms: int) -> list[Effect]:
        """Register again if the metadata.version has come to want what the registration lacks.

        Source:  BrokerRegistrationTracker.brokerRegistrationNeedsRefresh (KIP-858).
        """
        config = self.config
        cordoned = cordoned_directories(
            image, config.broker_id, config.dir_names, config.cordoned_log_dirs
        )
        effects = self.set_cordoned_dirs(cordoned, now_ms)
        own = image.cluster.broker(self.config.broker_id)
        if (
            own is None
            or own.epoch != self.broker_epoch
            or own.log_dirs
            or not self.config.log_dirs
            or not self.registered
            or not image.metadata_version.directory_assignment_supported
        ):
            return effects
        return effects + self.register_again(now_ms)

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> list[Effect]:
        """The controller responded."""
        return self._complete(self.channel.on_response(correlation_id, response, now_ms), now_ms)

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """No response will come."""
        return self._complete(self.channel.on_failure(correlation_id, now_ms), now_ms)

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """A timer of this machine fired; other names are ignored."""
        if self.state is BrokerState.SHUTTING_DOWN:
            return []
        if name == COMMUNICATION:
            return self._communicate(now_ms)
        if name == self.channel.timer:
            return self._complete(self.channel.on_timer(now_ms), now_ms)
        if name == REGISTRATION_DEADLINE and not self._ever_registered:
            return self.shut_down("unable to register with the controller quorum", now_ms)
        if name == DIRECTORY_DEADLINE:
            return self._directory_deadline(now_ms)
        if name == SHUTDOWN_DEADLINE:
            return self.shut_down("the controller did not grant the shutdown in time", now_ms)
        return []

    # -- registration and heartbeats -------------------------------------------------------

    def _communicate(self, now_ms: int) -> list[Effect]:
        if self._communicating:
            self._next_immediate = True
            return []
        self._communicating = True
        config = self.config
        request: BrokerHeartbeatRequest | BrokerRegistrationRequest
        if self.registered:
            request, version = self._heartbeat(), config.heartbeat_version
        else:
            request, version = self._registration(), config.registration_version
        if version is None:
            version = highest_version(self.rules, request)
        return self.channel.submit(tuple(self.offline_dirs), request, version, now_ms)

    def _registration(self) -> BrokerRegistrationRequest:
        config = self.config
        return BrokerRegistrationRequest(
            broker_id=config.broker_id,
            cluster_id=config.cluster_id,
            incarnation_id=config.incarnation_id,
            listeners=config.listeners,
            features=tuple(
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=low, max_supported_version=high
                )
                for name, (low, high) in sorted(config.features.items())
            ),
            rack=config.rack,
            # All that the process began with: a heartbeat reports those that have failed since.
            log_dirs=tuple(sorted(config.log_dirs, key=java_order)),
            previous_broker_epoch=config.previous_broker_epoch,
        )

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=self.config.broker_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self.metadata_offset,
            want_fence=not self.ready_to_unfence,
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=tuple(self.offline_dirs),
            cordoned_log_dirs=self.cordoned_dirs,
        )

    def _complete(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        for ended in self.channel.take_ended():
            self._communicating = False
            if self.state is BrokerState.SHUTTING_DOWN:
                return effects
            response = ended.response
            if response is None or response.error_code != ErrorCode.NONE:
                effects += self._after_failure(now_ms)
            elif isinstance(ended.request, BrokerRegistrationRequest):
                effects += self._registration_done(response.broker_epoch, now_ms)
            else:
                effects += self._heartbeat_done(response, ended.token, now_ms)
        return effects

    def _registration_done(self, broker_epoch: int, now_ms: int) -> list[Effect]:
        self._failures = 0
        self.broker_epoch = broker_epoch
        self.registered = self._ever_registered = True
        effects: list[Effect] = [CancelTimer(REGISTRATION_DEADLINE), BrokerRegistered(broker_epoch)]
        return effects + self._schedule(0, now_ms)

    def _heartbeat_done(
        self, response: Any, reported_dirs: tuple[uuid.UUID, ...], now_ms: int
    ) -> list[Effect]:
        self._failures = 0
        self.is_fenced = response.is_fenced
        for directory in reported_dirs:
            self.offline_dirs[directory] = True
            self._dir_deadlines.pop(directory, None)
        interval_ms = self.config.heartbeat_interval_ms
        effects: list[Effect] = []
        if self.state is BrokerState.STARTING:
            if response.is_caught_up:
                effects += self._enter(BrokerState.RECOVERY)
            return effects + self._schedule(CAUGHT_UP_DELAY_MS, now_ms)
        if self.state is BrokerState.RECOVERY:
            if not response.is_fenced:
                effects += self._enter(BrokerState.RUNNING)
                if self._shuts_down_once_running:
                    return effects + self.begin_controlled_shutdown(now_ms)
        elif self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            if response.should_shut_down:
                return self.shut_down("the controller granted the shutdown", now_ms)
            if not self._got_shutdown_response:
                self._got_shutdown_response = True
                interval_ms = SHUTDOWN_DELAY_MS
        return effects + self._schedule(interval_ms, now_ms)

    def _after_failure(self, now_ms: int) -> list[Effect]:
        self._next_immediate = False  # what was due at once waits as well
        if not self.rules.broker_retry_backs_off:
            return self._schedule(self.config.heartbeat_interval_ms, now_ms)
        backoff = ExponentialBackoff(BACKOFF_FIRST_MS, self.config.session_timeout_ms)
        self._failures += 1
        return self._schedule(backoff.backoff_ms(self._failures - 1), now_ms)

    def _directory_deadline(self, now_ms: int) -> list[Effect]:
        if not self._dir_deadlines:
            return []
        first = min(self._dir_deadlines, key=lambda d: (self._dir_deadlines[d], d))
        if self._dir_deadlines[first] <= now_ms:
            return self.shut_down(f"the controller never heard that {first} is offline", now_ms)
        return [SetTimer(DIRECTORY_DEADLINE, self._dir_deadlines[first])]

    def _schedule(self, delay_ms: int, now_ms: int) -> list[Effect]:
        if self.state in (BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN):
            return []
        if self._next_immediate and not self._communicating:
            self._next_immediate, delay_ms = False, 0
        if delay_ms == 0:
            if self._communicating:
                self._next_immediate = True
                return []
            return [CancelTimer(COMMUNICATION), *self._communicate(now_ms)]
        return [SetTimer(COMMUNICATION, now_ms + delay_ms)]

    def _enter(self, state: BrokerState, reason: str = "") -> list[Effect]:
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise RuntimeError(f"a broker that is {self.state.name} cannot be {state.name} next")
        self.state = state
        return [BrokerStateChanged(state, reason)]
