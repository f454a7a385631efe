"""The fetch loop of a follower against one leader.

    TRUNCATING --epoch end known--> FETCHING --diverging epoch--> FETCHING or TRUNCATING
    FETCHING --OFFSET_OUT_OF_RANGE--> LATEST_OFFSET --leader is longer--> EARLIEST_OFFSET

One request is in flight at a time. A fetch names the partitions that have changed since the last
one (KIP-227). A partition whose fetch was rejected waits out a back-off, out of the session.

**Truncation.** The end of a follower's log may hold records that its last leader never committed
and that the new leader does not have. They must go before anything is appended behind them. To cut
at the follower's high watermark is wrong: it lags behind the leader's by a fetch, so committed
records would go too, and with a second failure the last copy of them (KIP-101). Instead the fetch
carries the leader epoch of the last record here. If the leader's log leaves that epoch earlier, it
responds with the largest epoch it has up to there and that epoch's end, and this log is cut to what
both have of it. Several elections in a row can leave epochs here that the leader never had; then
one cut is not enough, and the next epoch is looked up in turn, until both name the same (KIP-279).

**Out of range.** Where the fetch offset is outside of the leader's log, there is no epoch to
compare. A leader whose log is shorter was elected uncleanly: this log is cut to the leader's end.
Otherwise the leader has deleted what comes next: this log is dropped and starts where the leader's
does, or continues if it reaches that far.

A response counts only for the offset and leader epoch that its request named: metadata may have
moved the partition to another epoch while the request was under way.

**Throttled.** A partition that is not in sync leaves the session while the follower's quota is
exceeded (KIP-73), and is looked at again with each fetch.

Leaves out: tiered storage.
Source:     KIP-101, KIP-227, KIP-279, KIP-320, KIP-595 (truncation on fetch);
            AbstractFetcherThread (processFetchRequest, maybeTruncate, getOffsetTruncationState,
            truncateOnFetchResponse), ReplicaFetcherThread.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import partial
from typing import Any

from minicluster.effects import CancelTimer, Send, SetTimer
from minicluster.errors import MiniclusterError
from minicluster.log import Records
from minicluster.log.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET
from minicluster.planting import Plantable, step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchRequest
from minicluster.replica.broker_context import BrokerContext
from minicluster.replica.config import FetcherConfig
from minicluster.replica.effects import FetchFailed
from minicluster.replica.fetching import leader_endpoint as endpoint
from minicluster.replica.fetching.leader_endpoint import (
    FetchKey,
    FetchSessionHandler,
    FetchState,
    Named,
    Phase,
    fetch_key,
)
from minicluster.replica.partition.follower_log import (
    append_records_to_follower,
    truncate,
    truncate_fully,
)
from minicluster.replica.partition.partition import Partition
from minicluster.replica.requests.purgatory import Key

_LOOKUPS = (Phase.TRUNCATING, Phase.LATEST_OFFSET, Phase.EARLIEST_OFFSET)  # in this order
# The next request opens another session at once; all else backs off.
_SESSION_IS_LOST = (
    ErrorCode.NONE,  # its partitions were not those of the session
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
)


class Fetcher:
    """The machine for one leader. ``add`` and ``remove`` change the fetched partitions; ``poll``
    sends the next request; ``on_response`` and ``on_failure`` take what became of it, and poll.

    Effects: Send to the leader, SetTimer and CancelTimer ``fetcher-<leader>``, FetchFailed, and
             those of the partitions.
    """

    def __init__(self, context: BrokerContext, leader_id: int) -> None:
        self.context = context
        self.faults, self.hit = context.faults, context.hit
        self.leader_id = leader_id
        self.states: dict[FetchKey, FetchState] = {}
        self.timer = f"fetcher-{leader_id}"
        self._session = FetchSessionHandler()
        self._pending: dict[FetchKey, None] = {}  # those that the session has not as they are
        self._in_flight: tuple[int, Phase] | None = None
        self._looked_up: dict[FetchKey, tuple[int, int]] = {}  # (offset, leader epoch) then
        self._request: FetchRequest | None = None  # the last full fetch, while nothing has changed
        self._request_of: tuple[int, FetcherConfig, int] | None = None  # what else it depends on
        self._all_delayed_until_ms: int | None = None  # the back-off of all, while nothing changes
        self._timer_ms: int | None = None

    # --- partitions ---------------------------------------------------------------------------

    def add(self, partition: Partition) -> None:
        """Fetch a partition in its present leader epoch."""
        self._delay_each()
        key = fetch_key(partition.key)
        self.states[key] = FetchState.of(partition)
        self._pending[key] = None

    def remove(self, partition: Key) -> bool:
        """Stop fetching a partition; a response on its way is ignored."""
        return self._remove(fetch_key(partition))

    def _remove(self, key: FetchKey) -> bool:
        self._delay_each()
        self._pending[key] = None
        self._looked_up.pop(key, None)
        return self.states.pop(key, None) is not None

    def log_start_moved(self, partition: Key) -> None:
        """Send the new log start of a partition, if it is fetched here."""
        key = fetch_key(partition)
        if key in self.states:
            self._delay_each()
            self._pending[key] = None

    @property
    def is_idle(self) -> bool:
        """A fetcher without partitions may be dropped."""
        return not self.states

    # --- inputs -------------------------------------------------------------------------------

    def owns(self, correlation_id: int) -> bool:
        """True for the id of the request in flight."""
        return self._in_flight is not None and self._in_flight[0] == correlation_id

    def poll(self, now_ms: int) -> None:
        """Send the next request if none is in flight, or set the timer of the next back-off.

        Source:  AbstractFetcherThread.doWork.
        """
        if self._in_flight is not None:
            return
        if self._all_delayed_until_ms is not None:
            if now_ms < self._all_delayed_until_ms:
                self._set_timer(self._all_delayed_until_ms)
                return
            if self._request_of_now() != self._request_of:
                self._delay_each()
            self._all_delayed_until_ms = None
        self._send_next(now_ms)

    def on_timer(self, now_ms: int) -> None:
        """A back-off has ended."""
        self._timer_ms = None
        self.poll(now_ms)

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> None:
        """The leader has responded; a response to an earlier request is ignored."""
        if self._in_flight is None or self._in_flight[0] != correlation_id:
            return
        phase = self._in_flight[1]
        self._in_flight = None
        take: Callable[[FetchKey, Any, int], None]
        results: Iterable[tuple[FetchKey, Any]]
        if phase is Phase.FETCHING:
            results, take = self._fetched(response, now_ms), self._on_fetched
        elif phase is Phase.TRUNCATING:
            results = endpoint.epoch_ends(response, self._looked_up_by_name())
            take = self._on_epoch_end
        else:
            results = endpoint.offsets(response, self._looked_up_by_name())
            take = partial(self._on_offset, phase)
        for key, data in results:
            take(key, data, now_ms)
        self.poll(now_ms)

    def _looked_up_by_name(self) -> dict[tuple[str, int], FetchKey]:
        """The partitions of the request in flight, as responses without topic ids name them."""
        states = [(key, self.states.get(key)) for key in self._looked_up]
        return {(state.partition.topic, key[1]): key for key, state in states if state is not None}

    def on_failure(self, correlation_id: int, now_ms: int) -> None:
        """No response will come; all partitions of the request back off."""
        if self._in_flight is None or self._in_flight[0] != correlation_id:
            return
        phase = self._in_flight[1]
        self._in_flight = None
        if phase is Phase.FETCHING:
            self._session.on_failure()
            if self.states and not self._pending:  # so all are in the session
                self._all_delayed_until_ms = self._end_of_back_off(now_ms)
            else:
                self._delay(self._session.partitions, self._end_of_back_off(now_ms))
        else:
            self._delay(self._looked_up, self._end_of_back_off(now_ms))
        self.poll(now_ms)

    # --- requests -----------------------------------------------------------------------------

    def _send_next(self, now_ms: int) -> None:
        """Send the next request, or set the timer of the next back-off."""
        looked_up = self._truncate(now_ms)
        if looked_up:
            phase, keys = looked_up
            self._look_up(phase, keys)
            return
        slow = self._catching_up_slowly()
        fetch = self._fetch_request(slow, now_ms)
        if fetch is not None:
            self._set_timer(None)
            self._send(Phase.FETCHING, fetch)
            return
        states = filter(None, map(self.states.get, self._pending))
        delays = [state.delayed_until_ms for state in states]
        if slow:
            delays.append(self._end_of_back_off(now_ms))
        self._set_timer(min((ms for ms in delays if ms > now_ms), default=None))

    def _truncate(self, now_ms: int) -> tuple[Phase, list[FetchKey]] | None:
        """Truncate logs without epochs at their high watermark; the others need a lookup first.

        Shapes:  -> the next lookup, None where all that is pending can be fetched, or waits.
        Source:  AbstractFetcherThread.maybeTruncate, truncateToHighWatermark.
        """
        to_look_up: dict[Phase, list[FetchKey]] = {}
        for key in self._pending:
            state = self.states.get(key)
            if state is not None and state.phase is not Phase.FETCHING:
                if state.delayed_until_ms > now_ms:
                    pass
                elif state.phase is Phase.TRUNCATING and state.partition.latest_epoch is None:
                    truncate_to_high_watermark(state)
                else:
                    to_look_up.setdefault(state.phase, []).append(key)
        if not to_look_up:
            return None
        phase = min(to_look_up, key=_LOOKUPS.index)
        return phase, to_look_up[phase]

    def _fetch_request(self, slow: dict[FetchKey, None], now_ms: int) -> FetchRequest | None:
        """The next fetch; None where no partition is fetched now.

        Shapes:  slow: the partitions that are left out while the quota is exceeded.
        Source:  RemoteLeaderEndPoint.buildFetch.
        """
        if not self.states:
            return None
        context, session = self.context, self._session
        request_of = self._request_of_now()
        if (
            self._request is not None
            and session.is_full
            and not self._pending
            and not slow
            and self._request_of == request_of
        ):
            return self._request
        self._request = None
        held_back = slow if context.quotas.follower.is_exceeded(now_ms) else {}
        pending, self._pending = self._pending | slow, {}
        to_send, to_forget = session.update(self._changes(pending, held_back, now_ms))
        if session.is_full:
            to_send, to_forget = list(session.partitions), []
        if not session.partitions and not to_forget:
            return None
        epoch, config, _ = request_of
        fetch = endpoint.fetch_request(
            session, to_send, to_forget, context.broker_id, epoch, config
        )
        if session.is_full:
            self._request = fetch
        self._request_of = request_of
        return fetch

    def _request_of_now(self) -> tuple[int, FetcherConfig, int]:
        """The rest of what a full fetch depends on, besides its partitions."""
        return self.context.view.broker_epoch, self.context.fetcher_config, self._session.id

    def _changes(
        self, keys: Iterable[FetchKey], held_back: Container[FetchKey], now_ms: int
    ) -> list[tuple[FetchKey, Named | None]]:
        """The offsets to fetch these partitions from; one that is not ready is pending again."""
        changes: list[tuple[FetchKey, Named | None]] = []
        max_bytes = self.context.fetcher_config.partition_max_bytes
        for key in keys:
            state = self.states.get(key)
            if state is None:
                changes.append((key, None))
            elif (
                key in held_back
                or state.phase is not Phase.FETCHING
                or state.delayed_until_ms > now_ms
            ):
                self._pending[key] = None
                changes.append((key, None))
            else:
                data = endpoint.fetch_partition(key, state, max_bytes)
                partition = state.partition
                changes.append((key, (partition.topic, partition.topic_id, data)))
        return changes

    def _catching_up_slowly(self) -> dict[FetchKey, None]:
        """The partitions that are held back while the follower's quota is exceeded.

        Source:  RemoteLeaderEndPoint.shouldFollowerThrottle.
        """
        quota = self.context.quotas.follower
        if not quota.throttles:
            return {}
        return {
            key: None
            for key, state in self.states.items()
            if state.lag != 0 and quota.is_throttled(state.partition.topic, key[1])
        }

    def _look_up(self, phase: Phase, keys: list[FetchKey]) -> None:
        broker_id = self.context.broker_id
        request: Any
        if phase is Phase.TRUNCATING:
            request = endpoint.epoch_request(self.states, keys, broker_id)
        else:
            request = endpoint.list_offsets_request(self.states, keys, broker_id, phase)
        self._looked_up = {k: (self.states[k].offset, self.states[k].leader_epoch) for k in keys}
        self._send(phase, request)

    def _send(self, phase: Phase, request: Any) -> None:
        config = self.context.fetcher_config
        if phase is Phase.FETCHING:
            version = config.fetch_version
        elif phase is Phase.TRUNCATING:
            version = config.epoch_version
        else:
            version = config.list_offsets_version
        correlation_id = self.context.ids.take()
        self._in_flight = (correlation_id, phase)
        self.context.effects.append(
            Send(self.leader_id, request, version, correlation_id, config.request_timeout_ms)
        )

    def _set_timer(self, at_ms: int | None) -> None:
        if at_ms != self._timer_ms:
            self._timer_ms = at_ms
            timer = CancelTimer(self.timer) if at_ms is None else SetTimer(self.timer, at_ms)
            self.context.effects.append(timer)

    # --- responses ----------------------------------------------------------------------------

    def _fetched(self, response: Any, now_ms: int) -> list[tuple[FetchKey, Any]]:
        """The partitions of a response; where the session has failed, there are none.

        Source:  RemoteLeaderEndPoint.fetch, AbstractFetcherThread.processFetchRequest.
        """
        session = self._session
        fetched = list(endpoint.fetched(response, session.keys_by_name))
        if session.on_response(response, [key for key, _ in fetched]):
            return fetched
        if response.error_code not in _SESSION_IS_LOST:
            self._delay(session.partitions, self._end_of_back_off(now_ms))
        return []

    def _on_fetched(self, key: FetchKey, data: Any, now_ms: int) -> None:
        """Append what was fetched, or react to an error or to diverging logs.

        Source:  AbstractFetcherThread.processFetchRequest.
        """
        state = self.states.get(key)
        _, _, sent = self._session.partitions[key]
        if state is None:
            return
        # The partition was truncated, or has another leader epoch, since the request was sent: what
        # was read is of another place, or of a log that need not be a continuation of this one.
        position = sent.fetch_offset, sent.current_leader_epoch
        if position != (state.offset, state.leader_epoch) or state.phase is not Phase.FETCHING:
            self._fetch_ignored_again()
            return
        error = data.error_code
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            state.phase = Phase.LATEST_OFFSET
            self._pending[key] = None
        elif error != ErrorCode.NONE:
            self._on_error(key, error, now_ms)
        elif data.diverging_epoch.epoch >= 0:
            diverging = data.diverging_epoch
            self._pending[key] = None
            self._fetch_ignored_again()
            truncate_to_epoch_end(self, state, diverging.epoch, diverging.end_offset)
        else:
            self._append(key, state, data, now_ms)

    def _fetch_ignored_again(self) -> None:
        """Open another session, after a response that was ignored.

        The leader counts the high watermark in it as sent, and does not send it again before it
        changes: without another session this log would not learn of it until the next append.
        """
        if not self.context.rules.ignored_fetch_is_not_repeated:
            self._session.on_failure()

    def _append(self, key: FetchKey, state: FetchState, data: Any, now_ms: int) -> None:
        partition = state.partition
        log_start = partition.log_start_offset
        if state.lag is None:
            state.lag = max(0, data.high_watermark - state.offset)
        if (
            not data.records
            and data.high_watermark == partition.high_watermark
            and data.log_start_offset <= log_start
        ):
            return
        try:
            appended = append_records_to_follower(
                partition,
                Records.of(data.records).batches,
                partition_leader_epoch=state.leader_epoch,
                leader_high_watermark=data.high_watermark,
                leader_log_start_offset=data.log_start_offset,
                now_ms=now_ms,
            )
        except MiniclusterError as error:
            self._fail(key, str(error))
            return
        quota = self.context.quotas.follower
        # What a replica in sync fetches counts as well: the throttle is of all that moves.
        if data.records and quota.is_throttled(partition.topic, key[1]):
            quota.record(Records.of(data.records).size, now_ms)
        if appended.high_watermark_changed:
            self.context.delayed.check_and_complete_all(partition.key, now_ms)
        if partition.log_end_offset != state.offset or partition.log_start_offset != log_start:
            self._pending[key] = None
            state.resume(partition.log_end_offset)
            if data.records:
                state.lag = max(0, data.high_watermark - state.offset)

    def _on_error(self, key: FetchKey, error: int, now_ms: int) -> None:
        """Retry after a back-off, unless the metadata will bring a newer leader epoch.

        Source:  AbstractFetcherThread.processFetchRequest, onPartitionFenced.
        """
        # A leader with a newer epoch has newer metadata, which is on its way here as well and adds
        # the partition again. All else passes by itself: UNKNOWN_LEADER_EPOCH and
        # NOT_LEADER_OR_FOLLOWER, too, are of a leader whose metadata is behind.
        if error == ErrorCode.FENCED_LEADER_EPOCH:
            self._fail(key, "fenced: the leader has a newer epoch")
        else:
            self._delay([key], self._end_of_back_off(now_ms))

    def _fail(self, key: FetchKey, reason: str) -> None:
        topic_id, index = self.states[key].partition.key
        self._remove(key)
        self.context.effects.append(FetchFailed(topic_id, index, reason))

    def _end_of_back_off(self, now_ms: int) -> int:
        return now_ms + self.context.fetcher_config.backoff_ms

    def _delay(self, keys: Iterable[FetchKey], until_ms: int) -> None:
        for key in keys:
            state = self.states.get(key)
            if state is not None:
                self._pending[key] = None
                state.delayed_until_ms = until_ms

    def _delay_each(self) -> None:
        """Let each partition of a fetch that has failed wait by itself: one of them changes.

        A fetch to a dead leader is repeated each second, with all of its partitions. As long as
        none has changed the same request is sent again.
        """
        until_ms, self._all_delayed_until_ms = self._all_delayed_until_ms, None
        if until_ms is not None:
            delayed = list(self._session.partitions)
            self._session.update([(key, None) for key in delayed])
            self._delay(delayed, until_ms)

    def _current(self, key: FetchKey) -> FetchState | None:
        """The partition's state, unless it has changed since it was looked up."""
        state = self.states.get(key)
        if state is None or self._looked_up.get(key) != (state.offset, state.leader_epoch):
            return None
        return state

    def _on_epoch_end(self, key: FetchKey, data: Any, now_ms: int) -> None:
        state = self._current(key)
        if state is None or state.phase is not Phase.TRUNCATING:
            return
        if data.error_code != ErrorCode.NONE:
            self._on_error(key, data.error_code, now_ms)
        else:
            truncate_to_epoch_end(self, state, data.leader_epoch, data.end_offset)

    def _on_offset(self, phase: Phase, key: FetchKey, data: Any, now_ms: int) -> None:
        """Follow a shorter leader down, else go to where the leader's log begins.

        Source:  AbstractFetcherThread.fetchOffsetAndTruncate.
        """
        state = self._current(key)
        if state is None or state.phase is not phase:
            return
        if data.error_code != ErrorCode.NONE:
            self._on_error(key, data.error_code, now_ms)
            state.phase = Phase.FETCHING
            return
        partition = state.partition
        log_end = partition.log_end_offset
        if phase is Phase.LATEST_OFFSET and data.offset >= log_end:
            state.phase = Phase.EARLIEST_OFFSET
        elif phase is Phase.LATEST_OFFSET:
            truncate_to(state, data.offset)
        else:
            if data.offset > log_end:
                truncate_fully(partition, data.offset)
            state.resume(max(data.offset, log_end))


# --- truncation to where the log agrees with the leader's ---------------------------------------


@step
def truncate_to_epoch_end(
    fetcher: Plantable, state: FetchState, epoch: int, end_offset: int
) -> None:
    """Truncate by the leader's end of an epoch; where that may not suffice, look up another epoch.

    Shapes:  epoch is the leader's largest one that is not above the requested one; either is -1
             where the leader has none.
    """
    partition = state.partition
    log_end = partition.log_end_offset
    if end_offset == UNDEFINED_OFFSET:
        # The leader has no such epoch: only what is committed is surely common to both logs.
        truncate_to(state, partition.high_watermark)
        return
    if epoch == UNDEFINED_EPOCH:
        # A leader of message format v0 or v1 has a log end, and no epochs.
        truncate_to(state, min(end_offset, log_end))
        return
    own_epoch, own_end = partition.log.end_offset_for(epoch)
    if own_end == UNDEFINED_OFFSET:
        truncate_to(state, min(end_offset, log_end))
    elif own_epoch == epoch:
        truncate_to(state, min(own_end, end_offset, log_end))
    else:
        # This log has no such epoch. Records of its epochs below may not be on the leader, so the
        # largest of those has to be looked up in turn (KIP-279).
        truncate_to(state, min(own_end, log_end))
        state.phase, state.last_fetched_epoch = Phase.TRUNCATING, UNDEFINED_EPOCH


def truncate_to_high_watermark(state: FetchState) -> None:
    """Truncate a log that has no epochs to compare."""
    partition = state.partition
    truncate_to(state, min(partition.high_watermark, partition.log_end_offset))


def truncate_to(state: FetchState, offset: int) -> None:
    """Truncate, and fetch from there."""
    truncate(state.partition, offset)
    state.resume(offset)
