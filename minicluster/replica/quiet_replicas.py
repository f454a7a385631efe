"""The replicas of a broker on which nothing is produced: ISRs without logs.

For clusters with more partitions than logs can be carried for. A follower that has fetched is in
sync, since there is no record that it lacks. One fetch to each leader, without partitions, is
enough for all of them: so does an incremental fetch request of KIP-227 while nothing changes.

    follower ──Fetch, parked for max_wait_ms──▶ leader ──AlterPartition──▶ controller
    none since the election for replica.lag.time.max.ms ▶ the follower leaves the ISR

Leaves out: records and offsets, hence all requests of clients; AssignReplicasToDirs.
Source:  KIP-227, KIP-497, KIP-903; Partition.maybeExpandIsr, maybeShrinkIsr.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from minicluster.effects import Effect, Respond, Send, SetTimer
from minicluster.lazy_dataclass import dataclass
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.directory_id import MIGRATING
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.protocol import ErrorCode
from minicluster.protocol.api_versions import highest_version
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import AlterPartitionRequest, FetchRequest, FetchResponse
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.partition.isr_state import AlterPartitionItem
from minicluster.replica.to_controller.alter_partition_wire import (
    alter_partition_request,
    alter_partition_results,
)
from minicluster.replica.to_controller.controller_channel import ControllerChannel, CorrelationIds
from minicluster.rules import Rules

PARKED = "quiet-parked"
EXPIRATION = "quiet-isr-expiration"
FETCH_AGAIN = "quiet-fetch-"  # and the leader
FETCHES_PER_LAG = 6  # of replica.lag.time.max.ms

Key = tuple[UUID, int]


@dataclass(slots=True)
class _Led:
    """A partition that this broker leads."""

    topic: str
    state: PartitionRegistration
    since_ms: int


class QuietReplicas:
    """The machine.

    Inputs:  ``on_request``, ``on_response``, ``on_failure``, ``on_timer``, ``on_metadata``,
             ``channel.on_controller``, ``on_broker_epoch``, ``on_directory_failure``.
    Effects: Send (to leaders and to the active controller), Respond, SetTimer, CancelTimer.
    """

    def __init__(self, config: ReplicaManagerConfig, rules: Rules, ids: CorrelationIds) -> None:
        self._config, self._rules = config, rules
        self._ids = ids
        self.image = MetadataImage.EMPTY
        self.channel = ControllerChannel(name="quiet-alter-partition", ids=ids)
        self._epoch = -1
        self._led: dict[Key, _Led] = {}
        self._in_isr: dict[int, set[Key]] = {}  # follower -> led partitions
        self._outside: dict[int, set[Key]] = {}
        self._pending: set[Key] = set()  # an ISR change is on its way, or its metadata is
        self._unsent: dict[Key, AlterPartitionItem] = {}
        self._followed: dict[Key, int] = {}  # partition -> leader
        self._leaders: dict[int, int] = {}  # leader -> number of partitions followed
        self._fetching: dict[int, int] = {}  # leader -> correlation id; -1: backing off
        self._fetched_ms: dict[int, int] = {}  # follower -> time of its last fetch
        self._parked: deque[tuple[int, Any]] = deque()
        self._waiting: dict[int, tuple[int, int]] = {}  # follower -> its epoch, until when
        self._offline: set[UUID] = set()

    # Inputs.

    def start(self, now_ms: int) -> list[Effect]:
        """Begin to look for followers that are late."""
        return [SetTimer(EXPIRATION, now_ms + self._config.replica_lag_time_max_ms // 2)]

    def on_metadata(self, delta: MetadataDelta, now_ms: int) -> list[Effect]:
        """Lead and follow as the image has it."""
        self.image = delta.after
        own = self._config.broker_id
        for topic_id, topic in delta.topics().items():
            old = {} if topic.before is None else topic.before.partitions
            for index, state in old.items() if topic.after is None else ():
                if own in state.replicas:
                    self._leave((topic_id, index))
            changed = topic.changed_partitions()
            for index in topic.changed_on(own):
                self._place((topic_id, index), topic.topic.name, changed[index], now_ms)
        effects = self._fetch_from_all()
        for follower, (epoch, until_ms) in sorted(self._waiting.items()):
            if now_ms < until_ms:
                effects += self._expand(follower, epoch, now_ms)
        return effects

    def on_broker_epoch(self, epoch: int) -> None:
        """The broker is registered."""
        self._epoch = epoch

    def on_directory_failure(self, directory: UUID, now_ms: int) -> list[Effect]:
        """Neither lead nor follow in this directory any more."""
        self._offline.add(directory)
        for key in [*self._led, *self._followed]:
            topic = self.image.topics.get(key[0])
            if topic is not None:
                self._place(key, topic.name, topic.partitions[key[1]], now_ms)
        return []

    def on_request(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Park a follower's fetch; clients are refused."""
        follower = request.replica_state if isinstance(request, FetchRequest) else None
        if follower is None or follower.replica_id < 0:
            refused = error_response(request, ErrorCode.NOT_LEADER_OR_FOLLOWER, version=version)
            return [Respond(token, refused)]
        self._fetched_ms[follower.replica_id] = now_ms
        due_ms = now_ms + request.max_wait_ms
        self._waiting[follower.replica_id] = follower.replica_epoch, due_ms
        self._parked.append((due_ms, token))
        effects: list[Effect] = []
        if len(self._parked) == 1:
            effects.append(SetTimer(PARKED, due_ms))
        return effects + self._expand(follower.replica_id, follower.replica_epoch, now_ms)

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> list[Effect]:
        """A leader or the controller responded."""
        if self.channel.owns(correlation_id):
            return self._decided(self.channel.on_response(correlation_id, response, now_ms), now_ms)
        leader = self._ended_fetch(correlation_id)
        return [] if leader is None else self._fetch(leader)

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """No response will come."""
        if self.channel.owns(correlation_id):
            return self._decided(self.channel.on_failure(correlation_id, now_ms), now_ms)
        leader = self._ended_fetch(correlation_id)
        if leader is None:
            return []
        self._fetching[leader] = -1
        return [SetTimer(f"{FETCH_AGAIN}{leader}", now_ms + self._config.fetcher.backoff_ms)]

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """A timer fired."""
        if name == PARKED:
            return self._respond_to_parked(now_ms)
        if name == EXPIRATION:
            return [*self._shrink(now_ms), *self.start(now_ms)]
        if name == self.channel.timer:
            return self._decided(self.channel.on_timer(now_ms), now_ms)
        leader = int(name.removeprefix(FETCH_AGAIN))
        self._fetching.pop(leader, None)
        return self._fetch(leader)

    # Partitions.

    def _place(self, key: Key, topic: str, state: PartitionRegistration, now_ms: int) -> None:
        own = self._config.broker_id
        is_followed = self._followed.get(key) == state.leader and own in state.replicas
        if is_followed and not self._offline:
            return
        before = self._led.get(key)
        self._leave(key)
        if own not in state.replicas or state.leader < 0 or self._is_offline(state):
            return
        if state.leader != own:
            self._followed[key] = state.leader
            self._leaders[state.leader] = self._leaders.get(state.leader, 0) + 1
            return
        same = before is not None and before.state.leader_epoch == state.leader_epoch
        since_ms = before.since_ms if same and before is not None else now_ms
        self._led[key] = _Led(topic, state, since_ms)
        for replica in state.replicas:
            if replica != own:
                of = self._in_isr if replica in state.isr else self._outside
                of.setdefault(replica, set()).add(key)

    def _leave(self, key: Key) -> None:
        self._pending.discard(key)
        self._unsent.pop(key, None)
        led = self._led.pop(key, None)
        for replica in () if led is None else led.state.replicas:
            for of in (self._in_isr, self._outside):
                of.get(replica, set()).discard(key)
        leader = self._followed.pop(key, None)
        if leader is not None:
            self._leaders[leader] -= 1

    def _is_offline(self, state: PartitionRegistration) -> bool:
        return bool(self._offline) and _directory(state, self._config.broker_id) in self._offline

    # Following.

    def _fetch_from_all(self) -> list[Effect]:
        new = (n for n in sorted(self._leaders) if n not in self._fetching)
        return [effect for leader in new for effect in self._fetch(leader)]

    def _fetch(self, leader: int) -> list[Effect]:
        if not self._leaders.get(leader) or leader in self._fetching:
            return []
        self._fetching[leader] = correlation_id = self._ids.take()
        fetcher = self._config.fetcher
        request = FetchRequest(
            replica_state=FetchRequest.ReplicaState(
                replica_id=self._config.broker_id, replica_epoch=self._epoch
            ),
            max_wait_ms=self._config.replica_lag_time_max_ms // FETCHES_PER_LAG,
            min_bytes=fetcher.min_bytes,
        )
        version = highest_version(self._rules, request)
        timeout_ms = fetcher.request_timeout_ms
        return [Send(leader, request, version, correlation_id, timeout_ms)]

    def _ended_fetch(self, correlation_id: int) -> int | None:
        found = (n for n, fetch in self._fetching.items() if fetch == correlation_id)
        leader = next(found, None)
        if leader is not None:
            del self._fetching[leader]
        return leader

    def _respond_to_parked(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        while self._parked and self._parked[0][0] <= now_ms:
            effects.append(Respond(self._parked.popleft()[1], FetchResponse()))
        if self._parked:
            effects.append(SetTimer(PARKED, self._parked[0][0]))
        return effects

    # ISRs.

    def _expand(self, follower: int, epoch: int, now_ms: int) -> list[Effect]:
        """Propose a follower that has fetched, unless the controller would refuse it.

        Source:  Partition.isReplicaIsrEligible.
        """
        broker = self.image.cluster.broker(follower)
        if broker is None or not broker.active or epoch not in (-1, broker.epoch):
            return []
        changes = {
            key: (*state.isr, follower)
            for key in sorted(self._outside.get(follower, set()) - self._pending)
            if broker.has_online_dir(_directory(state := self._led[key].state, follower))
        }
        return self._propose(changes, now_ms)

    def _shrink(self, now_ms: int) -> list[Effect]:
        """Propose ISRs without followers that have not fetched for too long since the election.

        One that has fetched stays in sync: it has every record, as there are none.

        Source:  Partition.isFollowerOutOfSync, Replica.isCaughtUp.
        """
        latest_ms = now_ms - self._config.replica_lag_time_max_ms
        late: dict[Key, set[int]] = {}
        for follower, keys in self._in_isr.items():
            fetched_ms = self._fetched_ms.get(follower, -1)
            for key in keys - self._pending:
                if fetched_ms < self._led[key].since_ms < latest_ms:
                    late.setdefault(key, set()).add(follower)
        changes = {
            key: tuple(m for m in self._led[key].state.isr if m not in late[key])
            for key in sorted(late)
        }
        return self._propose(changes, now_ms)

    def _propose(self, changes: Mapping[Key, tuple[int, ...]], now_ms: int) -> list[Effect]:
        brokers = self.image.cluster.brokers.rows
        for key, isr in changes.items():
            led = self._led[key]
            self._unsent[key] = AlterPartitionItem(
                topic=led.topic,
                topic_id=key[0],
                partition=key[1],
                leader=self._config.broker_id,
                leader_epoch=led.state.leader_epoch,
                partition_epoch=led.state.partition_epoch,
                isr=tuple((m, brokers[m].epoch if m in brokers else -1) for m in sorted(isr)),
            )
        self._pending |= changes.keys()
        return self._send_unsent(now_ms)

    def _send_unsent(self, now_ms: int) -> list[Effect]:
        if not self._unsent or self.channel.is_busy:
            return []
        items = tuple(self._unsent.values())
        self._unsent.clear()
        request, version = alter_partition_request(
            items,
            broker_id=self._config.broker_id,
            broker_epoch=self._epoch,
            rules=self._rules,
            sends_recovery_state=self.image.metadata_version.leader_recovery_supported,
        )
        if isinstance(request, AlterPartitionRequest):
            version = min(version, highest_version(self._rules, request))
        return self.channel.submit(items, request, version, now_ms)

    def _decided(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        """Let refused changes be proposed again; the others come with the metadata."""
        for ended in self.channel.take_ended():
            items: Iterable[AlterPartitionItem] = ended.token
            response = ended.response
            if response is None or response.error_code != ErrorCode.NONE:
                results = {}
            else:
                results = alter_partition_results(response)
            for item in items:
                result = results.get((item.topic_id, item.partition))
                result = results.get((item.topic, item.partition)) if result is None else result
                if result is None or result.error != ErrorCode.NONE:
                    self._pending.discard((item.topic_id, item.partition))
        return [*effects, *self._send_unsent(now_ms)]


def _directory(state: PartitionRegistration, replica: int) -> UUID:
    """The log directory of a replica."""
    if len(state.directories) != len(state.replicas):
        return MIGRATING
    return state.directories[state.replicas.index(replica)]
