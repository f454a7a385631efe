"""A member of a consumer group (KIP-848): one request for all, and the coordinator assigns.

A member gives up the partitions that its assignment does not have any more, reports that with its
next heartbeat, and takes the new ones. The coordinator assigns a partition to its next owner only
after that report, so no two members have it at a time, and a member keeps reading what stays with
it through the whole rebalance.

Source:  AbstractMembershipManager, ConsumerHeartbeatRequestManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.clients.client import BACKOFF_MS, COORDINATOR_ERRORS, TopicPartition
from minicluster.clients.member import REBALANCE_TIMEOUT_MS, Member
from minicluster.clients.offsets import Membership
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ConsumerGroupHeartbeatRequest

_VERSION = 1
_JOINS, _LEAVES = 0, -1


class ConsumerMember(Member):
    """One member of a consumer group."""

    _epoch = _JOINS
    _owned: tuple[TopicPartition, ...] = ()
    _interval_ms = BACKOFF_MS
    _was_lost = False

    @property
    def membership(self) -> Membership:
        return Membership(self._group, self._client.name, self._epoch, is_consumer=True)

    def join(self, now_ms: int) -> None:
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
            member_id=self._client.name,
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
        self._request(request, _VERSION, self._beaten, now_ms)

    def _beaten(self, response: Any | None, now_ms: int) -> None:
        error = ErrorCode.NETWORK_EXCEPTION
        if response is not None:
            error = ErrorCode.for_code(response.error_code)
        self._was_lost = response is None or error in COORDINATOR_ERRORS
        if response is None or error in COORDINATOR_ERRORS:
            self._client.forget_coordinators()
            self._client.after("heartbeat", BACKOFF_MS, self._beat, now_ms)
            return
        if error != ErrorCode.NONE:
            self.on_rejected(error, now_ms)
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

    def on_rejected(self, error: ErrorCode, now_ms: int) -> None:
        # All partitions are lost.
        self._client.forget_requests()
        self._client.forget_timers()
        self._client.after("join", BACKOFF_MS, self.join, now_ms)

    def leave(self, then: Callable[[int], None], now_ms: int) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self._client.name, member_epoch=_LEAVES
        )
        self._request(request, _VERSION, lambda _, at_ms: then(at_ms), now_ms)
