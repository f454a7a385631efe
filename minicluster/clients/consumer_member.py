"""A member of a consumer group (KIP-848): one request for all, and the coordinator assigns.

A member gives up the partitions that its assignment does not have any more, reports that with its
next heartbeat, and takes the new ones.

Source:  AbstractMembershipManager, ConsumerHeartbeatRequestManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from minicluster.clients.classic_member import REBALANCE_TIMEOUT_MS, OnAssigned
from minicluster.clients.client import BACKOFF_MS, COORDINATOR_ERRORS, GROUP, Client, TopicPartition
from minicluster.clients.offsets import Membership
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ConsumerGroupHeartbeatRequest

_VERSION = 1
_TIMEOUT_MS = 10_000
_JOINS, _LEAVES = 0, -1


class ConsumerMember:
    """One member; the arguments are those of ``ClassicMember``."""

    def __init__(
        self,
        client: Client,
        group: str,
        topics: Iterable[str],
        *,
        on_assigned: OnAssigned,
        on_revoked: Callable[[Callable[[int], None], int], None],
    ) -> None:
        self._client = client
        self._group = group
        self._topics = tuple(topics)
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._member_id = client.name
        self._epoch = _JOINS
        self._owned: tuple[TopicPartition, ...] = ()
        self._interval_ms = BACKOFF_MS
        self._was_lost = False

    @property
    def membership(self) -> Membership:
        """The member in its epoch."""
        return Membership(self._group, self._member_id, self._epoch, is_consumer=True)

    def join(self, now_ms: int) -> None:
        """Join the group with the leaders of the topics at hand."""
        self._epoch, self._owned = _JOINS, ()
        self._client.find_leaders(self._topics, self._beat, now_ms)

    def _beat(self, now_ms: int) -> None:
        # After a beat without a response the coordinator has to repeat the assignment.
        is_full = self._epoch == _JOINS or self._was_lost
        ids = {name: topic_id for topic_id, name in self._client.topic_ids.items()}
        topics: dict[str, list[int]] = {}
        for topic, index in self._owned:
            topics.setdefault(topic, []).append(index)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if is_full else -1,
            subscribed_topic_names=self._topics if is_full else None,
            topic_partitions=tuple(
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=ids[topic], partitions=tuple(indexes)
                )
                for topic, indexes in topics.items()
            ),
        )
        self._request(request, self._beaten, now_ms)

    def _beaten(self, response: Any | None, now_ms: int) -> None:
        error = ErrorCode.NETWORK_EXCEPTION
        if response is not None:
            error = ErrorCode.for_code(response.error_code)
        self._was_lost = response is None or error in COORDINATOR_ERRORS
        if response is None or error in COORDINATOR_ERRORS:
            self._client.forget_coordinator()
            self._client.after("heartbeat", BACKOFF_MS, self._beat, now_ms)
            return
        if error != ErrorCode.NONE:
            self.on_refused(error, now_ms)
            return
        self._epoch, self._interval_ms = response.member_epoch, response.heartbeat_interval_ms
        assignment = response.assignment
        if assignment is not None:
            self._reconcile(assignment, now_ms)
        else:
            self._client.after("heartbeat", self._interval_ms, self._beat, now_ms)

    def _reconcile(self, assignment: Any, now_ms: int) -> None:
        names = self._client.topic_ids
        assigned = tuple(
            (names[topic.topic_id], index)
            for topic in assignment.topic_partitions
            for index in topic.partitions
        )

        def take(at_ms: int) -> None:
            self._owned = assigned
            self._on_assigned(self.membership, assigned, at_ms)
            self._client.after("heartbeat", 0, self._beat, at_ms)

        if set(self._owned) - set(assigned):
            self._on_revoked(take, now_ms)
        else:
            take(now_ms)

    def on_refused(self, error: ErrorCode, now_ms: int) -> None:
        """The coordinator has refused a beat or a commit: all partitions are lost, join anew."""
        self._client.forget_requests()
        self._client.forget_timers()
        self._client.after("join", BACKOFF_MS, self.join, now_ms)

    def leave(self, then: Callable[[int], None], now_ms: int) -> None:
        """Leave the group; what comes of it makes no difference."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self._member_id, member_epoch=_LEAVES
        )
        self._request(request, lambda _, at_ms: then(at_ms), now_ms)

    def _request(
        self, request: Any, on_end: Callable[[Any | None, int], None], now_ms: int
    ) -> None:
        client = self._client
        client.with_coordinator(
            self._group,
            GROUP,
            lambda node, _: client.send(node, request, _VERSION, on_end, _TIMEOUT_MS),
            now_ms,
        )
