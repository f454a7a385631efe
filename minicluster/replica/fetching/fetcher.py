"""A follower's fetch loop against one leader.

One request is in flight at a time. A partition is FETCHING, or TRUNCATING (it asks where an epoch
ends on the leader), or has fallen out of the leader's range and asks for the leader's offsets, or
waits out a back-off. The log itself is behind the ``FollowerLog`` protocol.

Leaves out: fetch sessions, tiered storage, throttling.
Source:  KIP-101, KIP-279, KIP-320, KIP-595 (truncation on fetch); AbstractFetcherThread,
         ReplicaFetcherThread, RemoteLeaderEndPoint.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from minicluster.effects import CancelTimer, Effect, FaultHit, Send, SetTimer
from minicluster.errors import MiniclusterError
from minicluster.faults import Faults
from minicluster.log.batch import Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.fetching.follower_log import FollowerLog
from minicluster.replica.requests.purgatory import Key
from minicluster.replica.to_controller.controller_channel import CorrelationIds

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
UNDEFINED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherConfig:
    """Kafka's replica.fetch.* settings."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    backoff_ms: int = 1_000
    request_timeout_ms: int = 30_000
    fetch_version: int = 17
    list_offsets_version: int = 9
    epoch_version: int = 4


@dataclass(frozen=True, slots=True)
class FetchFailed(Effect):
    """A partition is not fetched any more until it gets a new leader epoch."""

    topic_id: uuid.UUID
    partition: int
    reason: str


class Phase(enum.Enum):
    """What a partition asks its leader for."""

    FETCHING = "fetch"
    TRUNCATING = "epoch end"
    ASK_LATEST = "latest offset"
    ASK_EARLIEST = "earliest offset"


@dataclass(slots=True)
class FetchState:
    """Where one partition stands."""

    log: FollowerLog
    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    phase: Phase
    delayed_until_ms: int = 0


class Fetcher:
    """The machine for one leader. ``add``, ``remove`` change what it fetches; ``poll`` sends when
    something is to be asked; answers come in by ``on_response`` and ``on_failure`` (which poll).

    Effects: Send to the leader, SetTimer and CancelTimer ``fetcher-<leader>``, FetchFailed, and
             whatever the logs return.
    """

    def __init__(
        self,
        *,
        broker_id: int,
        leader_id: int,
        ids: CorrelationIds,
        config: FetcherConfig,
        broker_epoch: int = -1,
        faults: Faults = Faults.NONE,
    ) -> None:
        self.broker_id = broker_id
        self.faults = faults
        self.leader_id = leader_id
        self.config = config
        self.states: dict[Key, FetchState] = {}
        self.timer = f"fetcher-{leader_id}"
        self._broker_epoch = broker_epoch
        self._ids = ids
        self._in_flight: tuple[int, Phase] | None = None
        self._asked: dict[Key, tuple[int, int]] = {}  # (offset, leader epoch) of the last request
        self._request: FetchRequest | None = None  # of the last fetch, while nothing has changed
        self._request_until_ms: int | None = None  # when a partition left out of it comes back
        self._timer_ms: int | None = None

    # -- what it fetches -------------------------------------------------------------------

    def add(self, key: Key, log: FollowerLog, *, leader_epoch: int) -> None:
        """Fetch a partition from its log end on; one without epochs truncates first."""
        latest = log.latest_epoch
        self.states[key] = FetchState(
            log=log,
            offset=log.log_end_offset,
            leader_epoch=leader_epoch,
            last_fetched_epoch=UNDEFINED if latest is None else latest,
            phase=Phase.TRUNCATING if latest is None else Phase.FETCHING,
        )
        self._request = None

    def remove(self, key: Key) -> bool:
        """Stop fetching a partition; an answer on its way for it is ignored."""
        self._request = None
        self._asked.pop(key, None)
        return self.states.pop(key, None) is not None

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to fetch; such a fetcher may be dropped."""
        return not self.states

    def set_broker_epoch(self, broker_epoch: int) -> None:
        """Requests carry this epoch of the follower from now on (KIP-903)."""
        if broker_epoch != self._broker_epoch:
            self._broker_epoch = broker_epoch
            self._request = None

    def set_config(self, config: FetcherConfig) -> None:
        """Ask in these versions and with these limits from now on."""
        if config != self.config:
            self.config = config
            self._request = None

    # -- inputs ----------------------------------------------------------------------------

    def owns(self, correlation_id: int) -> bool:
        """Whether the request in flight has this id."""
        return self._in_flight is not None and self._in_flight[0] == correlation_id

    def poll(self, now_ms: int) -> list[Effect]:
        """Send the next request if none is in flight, or say when to look again."""
        if self._in_flight is not None:
            return []
        until_ms = self._request_until_ms
        if self._request is not None and (until_ms is None or now_ms < until_ms):
            return self._send(Phase.FETCHING, self._request)
        effects: list[Effect] = []
        for phase in (Phase.TRUNCATING, Phase.ASK_LATEST, Phase.ASK_EARLIEST):
            ready = list(self._ready(now_ms, phase))
            if phase is Phase.TRUNCATING:
                ready = self._truncate_without_epochs(now_ms, ready, effects)
            if ready:
                return effects + self._send(phase, self._question(phase, ready))
        ready = list(self._ready(now_ms, Phase.FETCHING))
        waiting = [s.delayed_until_ms for s in self.states.values() if s.delayed_until_ms > now_ms]
        until_ms = min(waiting, default=None)
        if not ready:
            return effects + self._set_timer(until_ms)
        self._request, self._request_until_ms = self._fetch_request(ready), until_ms
        return effects + self._set_timer(None) + self._send(Phase.FETCHING, self._request)

    def on_timer(self, now_ms: int) -> list[Effect]:
        """A back-off has ended."""
        self._timer_ms = None
        return self.poll(now_ms)

    def on_response(self, now_ms: int, correlation_id: int, response: Any) -> list[Effect]:
        """The leader answered."""
        if self._in_flight is None or self._in_flight[0] != correlation_id:
            return []
        phase = self._in_flight[1]
        self._in_flight = None
        effects: list[Effect] = []
        if phase is Phase.FETCHING:
            if response.error_code != ErrorCode.NONE:
                self._delay(now_ms, list(self._asked))
            for key, data in self._fetched(response):
                effects += self._on_fetched(now_ms, key, data)
        elif phase is Phase.TRUNCATING:
            for key, data in self._by_topic_name(response, "topic", "partition"):
                effects += self._on_epoch_end(now_ms, key, data)
        else:
            for key, data in self._by_topic_name(response, "name", "partition_index"):
                effects += self._on_offset(now_ms, key, data, phase)
        return effects + self.poll(now_ms)

    def on_failure(self, now_ms: int, correlation_id: int) -> list[Effect]:
        """No answer will come; everything that was asked backs off."""
        if self._in_flight is None or self._in_flight[0] != correlation_id:
            return []
        self._in_flight = None
        self._delay(now_ms, list(self._asked))
        return self.poll(now_ms)

    # -- requests --------------------------------------------------------------------------

    def _ready(self, now_ms: int, phase: Phase) -> Iterator[Key]:
        for key, state in self.states.items():
            if state.phase is phase and state.delayed_until_ms <= now_ms:
                yield key

    def _send(self, phase: Phase, request: Any) -> list[Effect]:
        config = self.config
        if phase is Phase.FETCHING:
            version = config.fetch_version
        elif phase is Phase.TRUNCATING:
            version = config.epoch_version
        else:
            version = config.list_offsets_version
        correlation_id = self._ids.take()
        self._in_flight = (correlation_id, phase)
        timeout_ms = config.request_timeout_ms
        return [Send(self.leader_id, request, version, correlation_id, timeout_ms)]

    def _set_timer(self, at_ms: int | None) -> list[Effect]:
        if at_ms == self._timer_ms:
            return []
        self._timer_ms = at_ms
        return [CancelTimer(self.timer) if at_ms is None else SetTimer(self.timer, at_ms)]

    def _remember(self, keys: Iterable[Key]) -> None:
        self._asked = {k: (self.states[k].offset, self.states[k].leader_epoch) for k in keys}

    def _fetch_request(self, keys: list[Key]) -> FetchRequest:
        config = self.config
        self._remember(keys)
        topics = []
        for topic_id, group in groupby(sorted(keys), key=lambda key: key[0]):
            partitions = []
            for key in group:
                state = self.states[key]
                partitions.append(
                    FetchRequest.FetchPartition(
                        partition=key[1],
                        current_leader_epoch=state.leader_epoch,
                        fetch_offset=state.offset,
                        last_fetched_epoch=state.last_fetched_epoch,
                        log_start_offset=state.log.log_start_offset,
                        partition_max_bytes=config.partition_max_bytes,
                    )
                )
            topics.append(
                FetchRequest.FetchTopic(
                    topic=state.log.topic, topic_id=topic_id, partitions=tuple(partitions)
                )
            )
        in_state = config.fetch_version >= 15
        return FetchRequest(
            replica_id=-1 if in_state else self.broker_id,
            replica_state=FetchRequest.ReplicaState(
                replica_id=self.broker_id, replica_epoch=self._broker_epoch
            )
            if in_state
            else FetchRequest.ReplicaState(),
            max_wait_ms=config.max_wait_ms,
            min_bytes=config.min_bytes,
            max_bytes=config.max_bytes,
            session_id=0,
            session_epoch=-1,
            topics=tuple(topics),
        )

    def _question(self, phase: Phase, keys: list[Key]) -> Any:
        self._remember(keys)
        self._request = None
        by_name = sorted((self.states[key].log.topic, key) for key in keys)
        topics: list[Any] = []
        for name, group in groupby(by_name, key=lambda item: item[0]):
            states = [(key[1], self.states[key]) for _, key in group]
            if phase is Phase.TRUNCATING:
                topics.append(
                    OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                        topic=name,
                        partitions=tuple(
                            OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                                partition=index,
                                current_leader_epoch=state.leader_epoch,
                                leader_epoch=_or_undefined(state.log.latest_epoch),
                            )
                            for index, state in states
                        ),
                    )
                )
            else:
                latest = phase is Phase.ASK_LATEST
                topics.append(
                    ListOffsetsRequest.ListOffsetsTopic(
                        name=name,
                        partitions=tuple(
                            ListOffsetsRequest.ListOffsetsPartition(
                                partition_index=index,
                                current_leader_epoch=state.leader_epoch,
                                timestamp=LATEST_TIMESTAMP if latest else EARLIEST_TIMESTAMP,
                            )
                            for index, state in states
                        ),
                    )
                )
        kind = OffsetForLeaderEpochRequest if phase is Phase.TRUNCATING else ListOffsetsRequest
        return kind(replica_id=self.broker_id, topics=tuple(topics))

    # -- answers ---------------------------------------------------------------------------

    def _fetched(self, response: Any) -> Iterator[tuple[Key, Any]]:
        """The partitions of a fetch answer; below version 13 topics have no id in it."""
        if any(topic.topic_id == ZERO_UUID for topic in response.responses):
            yield from self._by_topic_name(response, "topic", "partition_index", "responses")
            return
        for topic in response.responses:
            for data in topic.partitions:
                yield (topic.topic_id, data.partition_index), data

    def _by_topic_name(
        self, response: Any, topic_field: str, index_field: str, topics_field: str = "topics"
    ) -> Iterator[tuple[Key, Any]]:
        keys = {(self.states[k].log.topic, k[1]): k for k in self._asked if k in self.states}
        for topic in getattr(response, topics_field):
            for data in topic.partitions:
                key = keys.get((getattr(topic, topic_field), getattr(data, index_field)))
                if key is not None:
                    yield key, data

    def _current(self, key: Key) -> FetchState | None:
        """The partition's state, if it still is what the request was built from."""
        state = self.states.get(key)
        if state is None or self._asked.get(key) != (state.offset, state.leader_epoch):
            return None
        return state

    def _on_fetched(self, now_ms: int, key: Key, data: Any) -> list[Effect]:
        state = self._current(key)
        if state is None or state.phase is not Phase.FETCHING:
            return []
        error = data.error_code
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            state.phase, self._request = Phase.ASK_LATEST, None
            return []
        if error != ErrorCode.NONE:
            return self._refused(now_ms, key, error)
        if data.diverging_epoch.epoch >= 0:
            diverging = data.diverging_epoch
            return self._truncate(now_ms, key, diverging.epoch, diverging.end_offset)
        log, log_start = state.log, state.log.log_start_offset
        if (
            not data.records
            and data.high_watermark == log.high_watermark
            and data.log_start_offset <= log_start
        ):
            return []
        try:
            effects = log.append_fetched(
                now_ms,
                Records.of(data.records),
                leader_epoch=state.leader_epoch,
                high_watermark=data.high_watermark,
                log_start_offset=data.log_start_offset,
            )
        except MiniclusterError as error:
            return self._failed(key, str(error))
        if log.log_end_offset != state.offset or log.log_start_offset != log_start:
            state.offset, self._request = log.log_end_offset, None
            state.last_fetched_epoch = _or_undefined(log.latest_epoch)
        return effects

    def _refused(self, now_ms: int, key: Key, error: int) -> list[Effect]:
        """FENCED means that the metadata will bring a newer epoch; everything else is retried."""
        if error == ErrorCode.FENCED_LEADER_EPOCH:
            return self._failed(key, "fenced: the leader has a newer epoch")
        self._delay(now_ms, [key])
        return []

    def _failed(self, key: Key, reason: str) -> list[Effect]:
        self.remove(key)
        return [FetchFailed(key[0], key[1], reason)]

    def _delay(self, now_ms: int, keys: list[Key]) -> None:
        self._request = None
        for key in keys:
            if key in self.states:
                self.states[key].delayed_until_ms = now_ms + self.config.backoff_ms

    # -- truncation ------------------------------------------------------------------------

    def _truncate_without_epochs(
        self, now_ms: int, keys: list[Key], effects: list[Effect]
    ) -> list[Key]:
        """A log without epochs is cut at its high watermark; the others have to ask."""
        asking = []
        for key in keys:
            state = self.states[key]
            if state.log.latest_epoch is not None:
                asking.append(key)
                continue
            target = min(state.log.high_watermark, state.log.log_end_offset)
            effects += self._cut(now_ms, state, target, complete=True)
        return asking

    def _on_epoch_end(self, now_ms: int, key: Key, data: Any) -> list[Effect]:
        state = self._current(key)
        if state is None or state.phase is not Phase.TRUNCATING:
            return []
        if data.error_code != ErrorCode.NONE:
            return self._refused(now_ms, key, data.error_code)
        return self._truncate(now_ms, key, data.leader_epoch, data.end_offset)

    def _truncate(self, now_ms: int, key: Key, epoch: int, end_offset: int) -> list[Effect]:
        """Cut to where this log and the leader's may still agree; ask again if that is not sure.

        Source:  KIP-279; AbstractFetcherThread.getOffsetTruncationState.
        """
        state = self.states[key]
        log, complete = state.log, True
        log_end = log.log_end_offset
        if end_offset == UNDEFINED:
            target = log.high_watermark
        elif epoch == UNDEFINED:
            target = min(end_offset, log_end)
        else:
            own_epoch, own_end = log.end_offset_for(epoch)
            if own_end == UNDEFINED:
                target = min(end_offset, log_end)
            elif own_epoch != epoch and self.faults.z36_truncates_without_asking:
                cut = self._cut(now_ms, state, min(end_offset, log_end), complete=True)
                state.last_fetched_epoch = UNDEFINED  # no leader looked at it in those days
                return [*cut, FaultHit("Z36")]
            elif own_epoch != epoch:
                target, complete = min(own_end, log_end), False
            else:
                target = min(own_end, end_offset, log_end)
        return self._cut(now_ms, state, target, complete=complete)

    def _cut(self, now_ms: int, state: FetchState, target: int, *, complete: bool) -> list[Effect]:
        effects = state.log.truncate_to(now_ms, target)
        state.offset, self._request = target, None
        state.phase = Phase.FETCHING if complete else Phase.TRUNCATING
        state.last_fetched_epoch = _or_undefined(state.log.latest_epoch) if complete else UNDEFINED
        return effects

    def _on_offset(self, now_ms: int, key: Key, data: Any, phase: Phase) -> list[Effect]:
        """Out of range: follow a shorter leader down, else jump to where its log begins.

        Source:  AbstractFetcherThread.fetchOffsetAndTruncate.
        """
        state = self._current(key)
        if state is None or state.phase is not phase:
            return []
        if data.error_code != ErrorCode.NONE:
            effects = self._refused(now_ms, key, data.error_code)
            if key in self.states:
                state.phase = Phase.FETCHING
            return effects
        log_end = state.log.log_end_offset
        if phase is Phase.ASK_LATEST:
            if data.offset < log_end:
                return self._cut(now_ms, state, data.offset, complete=True)
            state.phase = Phase.ASK_EARLIEST
            return []
        effects = []
        if data.offset > log_end:
            effects = state.log.truncate_fully_to(now_ms, data.offset)
        state.offset, state.phase, self._request = max(data.offset, log_end), Phase.FETCHING, None
        state.last_fetched_epoch = _or_undefined(state.log.latest_epoch)
        return effects


def _or_undefined(epoch: int | None) -> int:
    return UNDEFINED if epoch is None else epoch
