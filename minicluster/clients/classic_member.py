"""A member of a classic group: join, sync, beat, leave; assignments by range, eagerly.

    join ──generation──▶ sync ──assignment──▶ beats … ──REBALANCE_IN_PROGRESS──▶ join

The leader of the group assigns. On a rebalance a member gives up all of its partitions, before it
joins: the assignment of the next generation may give any of them to another. The generation fences
a member that has missed the rebalance: its commits are rejected.

Source:  AbstractCoordinator, ConsumerCoordinator, RangeAssignor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from minicluster.clients.client import BACKOFF_MS, COORDINATOR_ERRORS, Client, TopicPartition
from minicluster.clients.member import REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS, Member
from minicluster.clients.offsets import Membership
from minicluster.protocol import ErrorCode, decode, encode
from minicluster.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from minicluster.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

HEARTBEAT_MS = 3_000
# The coordinator holds a JoinGroup until all members have come, for the rebalance timeout at most.
# With no more time than that, a client would give up on a response that is about to come.
_JOIN_TIMEOUT_MS = REBALANCE_TIMEOUT_MS + 5_000
_JOIN_VERSION, _SYNC_VERSION, _HEARTBEAT_VERSION, _LEAVE_VERSION = 9, 5, 4, 5
_PROTOCOL_TYPE, _PROTOCOL = "consumer", "range"
_PAYLOAD_VERSION = 1


class ClassicMember(Member):
    """One member of a classic group."""

    _member_id = ""
    _generation = -1

    @property
    def membership(self) -> Membership:
        return Membership(self._group, self._member_id, self._generation)

    # --- join and sync ------------------------------------------------------------------------

    def join(self, now_ms: int) -> None:
        self._client.find_leaders(self._topics, self._send_join, now_ms)

    def _send_join(self, now_ms: int) -> None:
        subscription = _payload(ConsumerProtocolSubscription(topics=self._topics))
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=_PROTOCOL, metadata=subscription)
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type=_PROTOCOL_TYPE,
            protocols=(protocol,),
        )
        self._request(request, _JOIN_VERSION, self._joined, now_ms, _JOIN_TIMEOUT_MS)

    def _joined(self, response: Any | None, now_ms: int) -> None:
        error = _error_of(response)
        if error == ErrorCode.MEMBER_ID_REQUIRED and response is not None:
            # KIP-394: a first request without an id is rejected with the id to join by, so that no
            # retry of a client leaves a member behind that never answers.
            self._member_id = response.member_id
            self._send_join(now_ms)
            return
        if response is None or error != ErrorCode.NONE:
            self._again(error, now_ms)
            return
        self._member_id, self._generation = response.member_id, response.generation_id
        assigned: Mapping[str, list[TopicPartition]] = {}
        if response.leader == self._member_id:
            subscribed = {
                member.member_id: _subscribed(member.metadata) for member in response.members
            }
            assigned = range_assignment(subscribed, self._client)
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=_PROTOCOL,
            assignments=tuple(
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=member_id, assignment=_payload(_assignment(places))
                )
                for member_id, places in assigned.items()
            ),
        )
        self._request(request, _SYNC_VERSION, self._synced, now_ms)

    def _synced(self, response: Any | None, now_ms: int) -> None:
        error = _error_of(response)
        if response is None or error != ErrorCode.NONE:
            self._again(error, now_ms)
            return
        self._client.after("heartbeat", HEARTBEAT_MS, self._beat, now_ms)
        self._on_assigned(self.membership, assigned_partitions(response.assignment), now_ms)

    # --- beats --------------------------------------------------------------------------------

    def _beat(self, now_ms: int) -> None:
        request = HeartbeatRequest(
            group_id=self._group, generation_id=self._generation, member_id=self._member_id
        )
        self._request(request, _HEARTBEAT_VERSION, self._beaten, now_ms)

    def _beaten(self, response: Any | None, now_ms: int) -> None:
        error = _error_of(response)
        if error == ErrorCode.NONE:
            self._client.after("heartbeat", HEARTBEAT_MS, self._beat, now_ms)
        elif response is None or error in COORDINATOR_ERRORS:
            self._client.forget_coordinators()
            self._client.after("heartbeat", BACKOFF_MS, self._beat, now_ms)
        else:
            self.on_rejected(error, now_ms)

    def on_rejected(self, error: ErrorCode, now_ms: int) -> None:
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            self._on_revoked(lambda at_ms: self._again(error, at_ms), now_ms)
        else:
            self._again(error, now_ms)

    def _again(self, error: ErrorCode, now_ms: int) -> None:
        """Join again; without an id where the coordinator does not know this member any more."""
        self._client.forget_requests()
        self._client.forget_timers()
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self._member_id = ""
        if error in COORDINATOR_ERRORS or error == ErrorCode.NETWORK_EXCEPTION:
            self._client.forget_coordinators()
        self._client.after("join", BACKOFF_MS, self.join, now_ms)

    def leave(self, then: Callable[[int], None], now_ms: int) -> None:
        member = LeaveGroupRequest.MemberIdentity(member_id=self._member_id)
        request = LeaveGroupRequest(group_id=self._group, members=(member,))
        self._request(request, _LEAVE_VERSION, lambda _, at_ms: then(at_ms), now_ms)


def range_assignment(
    subscribed: Mapping[str, Iterable[str]], client: Client
) -> dict[str, list[TopicPartition]]:
    """The partitions of each member: of each topic a range, the first members one more.

    Source:  RangeAssignor.
    """
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in subscribed}
    for topic in sorted({topic for topics in subscribed.values() for topic in topics}):
        members = sorted(member for member, topics in subscribed.items() if topic in topics)
        partitions = client.partitions_of(topic)
        each, more = divmod(len(partitions), len(members))
        begin = 0
        for number, member in enumerate(members):
            end = begin + each + (number < more)
            assigned[member] += [(topic, index) for index in partitions[begin:end]]
            begin = end
    return assigned


def assigned_partitions(payload: bytes) -> tuple[TopicPartition, ...]:
    """The partitions in an assignment; none in one without bytes."""
    if len(payload) < 2:
        return ()
    assignment = decode(ConsumerProtocolAssignment, payload[2:], _PAYLOAD_VERSION)
    return tuple(
        (topic.topic, index)
        for topic in assignment.assigned_partitions
        for index in topic.partitions
    )


def _assignment(places: Iterable[TopicPartition]) -> ConsumerProtocolAssignment:
    topics: dict[str, list[int]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(index)
    kind = ConsumerProtocolAssignment
    return kind(
        assigned_partitions=tuple(
            kind.TopicPartition(topic=topic, partitions=tuple(indexes))
            for topic, indexes in topics.items()
        )
    )


def _subscribed(payload: bytes) -> tuple[str, ...]:
    subscription = decode(ConsumerProtocolSubscription, payload[2:], _PAYLOAD_VERSION)
    return tuple(subscription.topics)


def _payload(message: Any) -> bytes:
    return _PAYLOAD_VERSION.to_bytes(2, "big") + encode(message, _PAYLOAD_VERSION)


def _error_of(response: Any | None) -> ErrorCode:
    if response is None:
        return ErrorCode.NETWORK_EXCEPTION
    return ErrorCode.for_code(response.error_code)
