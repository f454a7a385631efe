"""A classic group and its members.

    EMPTY --a member joins--> PREPARING_REBALANCE --(1)--> COMPLETING_REBALANCE --(2)--> STABLE
      ^                          |    ^  ^                         |                        |
      +--(1) without members ----+    |  +--(3)--------------------+                        |
                                      +--(3)------------------------------------------------+

    (1) all members have joined again, or the time for it is over: a generation begins
    (2) the leader's assignment is written and committed
    (3) a member joins, leaves, expires, or does not sync in time

``members`` has these steps and their timers. DEAD is a group whose shard another broker leads now.

What a member of the present generation gets, by the state of its group:

====================  ========================  ==================  ===========  ===================
state                 JoinGroup                 SyncGroup           Heartbeat    OffsetCommit
====================  ========================  ==================  ===========  ===================
PREPARING_REBALANCE   waits for the generation  (rebalance)         (rebalance)  committed
COMPLETING_REBALANCE  the generation again;     waits for the       NONE         (rebalance); in a
                      with other protocols a    leader's                         transaction
                      new rebalance             assignment                       committed
STABLE                likewise, but the leader  its assignment      NONE         committed
                      always begins a new one
DEAD                  COORDINATOR_NOT_AVAILABLE for every request
====================  ========================  ==================  ===========  ===================

(rebalance) is REBALANCE_IN_PROGRESS, which sends a member back to JoinGroup. A member that waits
for no response learns by its heartbeats alone that a rebalance has begun, so until it joins again
it may commit what it has processed. With the next generation its partitions may go to others.

**Invariant:** no member gets its assignment before the record of the generation is committed.
Otherwise, the next coordinator could have an older generation, and give a partition to a second
member while the first one still reads it.

Between two generations the state is in memory alone. What a coordinator loads is the last
generation that was written: Stable, or Empty without members. To a member that has joined a later
one it responds with ILLEGAL_GENERATION, or UNKNOWN_MEMBER_ID where the record does not have it.

Source:  ClassicGroup, ClassicGroupMember, ClassicGroupState; KIP-62, KIP-345.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.java_order import hash_map_order, string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.codec import decode_prefix
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.messages import (
    ConsumerProtocolSubscription,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupResponse,
)

UNKNOWN_MEMBER_ID = ""
CONSUMER_PROTOCOL_TYPE = "consumer"
CLASSIC = "classic"

Protocols = tuple[JoinGroupRequest.JoinGroupRequestProtocol, ...]
RespondJoin = Callable[[JoinGroupResponse], None]
RespondSync = Callable[[SyncGroupResponse], None]
MemberOrder = Callable[[Collection[str]], Sequence[str]]
"""The order in which Kafka walks over the members of a group, by their ids."""


def hash_order(member_ids: Collection[str]) -> Sequence[str]:
    """The order of a java.util.HashMap, which the random part of the ids decides."""
    return hash_map_order(member_ids, string_hash)


class GroupState(enum.Enum):
    """The states of a group.

    Shapes:  the values are the names that clients see.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


VALID_PREVIOUS_STATES: Mapping[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}
"""Source: ClassicGroupState."""


class IllegalStateTransition(RuntimeError):
    """A change of state that no rule of the coordinator may attempt."""


class Member(Struct, eq=False):
    """One member; while it waits for a response, the way to give it.

    Units:   time-outs in milliseconds.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    awaiting_join: RespondJoin | None = None
    awaiting_sync: RespondSync | None = None
    is_new: bool = False

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """A member that waits for the others need not send heartbeats, unless it is new."""
        if self.is_new:
            return False
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata(self, protocol_name: str | None) -> bytes:
        """The metadata of the member for a protocol.

        Errors:  UNKNOWN_SERVER_ERROR for a protocol that it does not support, or for none.
        """
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        # Kafka raises an IllegalArgumentException, or without a protocol a NoSuchElementException.
        raise OperationError(ErrorCode.UNKNOWN_SERVER_ERROR)


class ClassicGroup:
    """One group.

    Units:   state_since_ms is the time of the last change of state.
    """

    type = CLASSIC

    def __init__(self, group_id: str, now_ms: int | None, order: MemberOrder = hash_order) -> None:
        self.group_id = group_id
        self._order = order
        self.state, self.previous_state = GroupState.EMPTY, GroupState.DEAD
        self.state_since_ms = now_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.pending_join: set[str] = set()
        self.pending_sync: set[str] = set()
        self.new_member_added = False
        self.subscribed_topics: frozenset[str] | None = None

    # --- members ------------------------------------------------------------------------------

    def add(self, member: Member, respond: RespondJoin | None = None) -> None:
        """Add a member, which waits for its JoinGroup response."""
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        member.awaiting_join = respond
        self.pending_join.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member, or one that has only been given its id."""
        removed = self.members.pop(member_id, None)
        if removed is not None and removed.instance_id is not None:
            self.static_members.pop(removed.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self._order(self.members)), None)
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)

    def members_in_order(self) -> list[Member]:
        """The members in the order in which Kafka walks over them."""
        return [self.members[member_id] for member_id in self._order(self.members)]

    def replace_static_member(self, instance_id: str, old_id: str, new_id: str) -> Member:
        """Give a static member a new id; who used the old one is fenced (KIP-345)."""
        old = self.members.pop(old_id)
        fenced = ErrorCode.FENCED_INSTANCE_ID
        complete_join(old, JoinGroupResponse(error_code=fenced, member_id=old_id))
        complete_sync(old, SyncGroupResponse(error_code=fenced, assignment=b""))
        new = Member(
            member_id=new_id,
            instance_id=old.instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocol_type=old.protocol_type,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members[new_id] = new
        if self.leader_id == old_id:
            self.leader_id = new_id
        self.static_members[instance_id] = new_id
        return new

    def validate_member(self, member_id: str, instance_id: str | None) -> None:
        """Reject a member that is not in the group.

        Errors:  UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID where another member has its instance id.
        """
        if instance_id is not None:
            existing = self.static_members.get(instance_id)
            if existing is None:
                raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID)
            if existing != member_id:
                raise OperationError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID)

    @property
    def awaiting_join(self) -> int:
        """The number of members that wait for a JoinGroup response."""
        return sum(member.awaiting_join is not None for member in self.members.values())

    @property
    def has_all_members_joined(self) -> bool:
        """Every member, and everyone who was given an id, waits for the next generation."""
        return len(self.members) == self.awaiting_join and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a member may take to join again."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def maybe_elect_joined_leader(self) -> bool:
        """Choose a leader among those who have joined again.

        Shapes:  -> whether there is one.
        """
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is not None:
            return True
        for member_id in self._order(self.members):
            if self.members[member_id].awaiting_join is not None:
                self.leader_id = member_id
                return True
        return False

    # --- protocols ----------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """One of a member's protocols is supported by all members that are there."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        counts = self._supported()
        return self.protocol_type == protocol_type and any(
            counts.get(p.name, 0) == len(self.members) for p in protocols
        )

    def select_protocol(self) -> str:
        """The protocol with most votes; each member votes for the first one that all support."""
        candidates = {n for n, count in self._supported().items() if count == len(self.members)}
        votes: dict[str, int] = {}
        for member in self.members.values():
            vote = next(p.name for p in member.protocols if p.name in candidates)
            votes[vote] = votes.get(vote, 0) + 1
        return max(hash_map_order(votes, string_hash), key=lambda name: votes[name])

    def _supported(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for member in self.members.values():
            for protocol in member.protocols:
                counts[protocol.name] = counts.get(protocol.name, 0) + 1
        return counts

    def is_subscribed_to(self, topic: str) -> bool:
        """A member subscribes to a topic, or may do so."""
        if self.subscribed_topics is not None:
            return topic in self.subscribed_topics
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def _subscriptions(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        try:
            subscriptions = (m.metadata(self.protocol_name) for m in self.members.values())
            return frozenset(topic for each in subscriptions for topic in subscribed_topics(each))
        except ProtocolError:
            return None

    def _require_lengths(self) -> None:
        if self.protocol_type == CONSUMER_PROTOCOL_TYPE:
            metadata = (member.metadata(self.protocol_name) for member in self.members.values())
            if any(has_length_beyond_its_end(each) for each in metadata):
                raise OperationError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def compute_subscribed_topics(self) -> None:
        """Read the topics that the members subscribe to; none are known if one is unreadable."""
        self.subscribed_topics = self._subscriptions()

    # --- states -------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """No generation has a member."""
        return self.state is GroupState.EMPTY

    @property
    def is_simple(self) -> bool:
        """The group is there for offsets alone, and no record of its own has made it."""
        return self.protocol_type is None and self.is_empty and not self.pending_join

    @property
    def can_rebalance(self) -> bool:
        """A rebalance may begin."""
        return self.state in VALID_PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        """Enter a state.

        Errors:  IllegalStateTransition, which is a mistake of the coordinator.
        Source:  ClassicGroup.assertValidTransition.
        """
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise IllegalStateTransition(f"{self.group_id}: {state} does not follow {self.state}")
        self.previous_state, self.state = self.state, state
        self.state_since_ms = now_ms

    def next_generation(self, now_ms: int, *, hangs_on_unreadable: bool = False) -> None:
        """Begin a generation with the members that are there.

        Errors:  UNKNOWN_SERVER_ERROR, half way, for a subscription that Kafka's reader fails on.
        """
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        if hangs_on_unreadable:
            self._require_lengths()
        self.compute_subscribed_topics()
        following = GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY
        self.transition_to(following, now_ms)
        self.pending_sync.clear()

    def joined_members(self) -> tuple[Any, ...]:
        """The members as the leader gets them."""
        return tuple(
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in (self.members[i] for i in self._order(self.members))
        )

    # --- offsets ------------------------------------------------------------------------------

    def validate_offset_commit(
        self, member_id: str, instance_id: str | None, generation_id: int, *, transactional: bool
    ) -> None:
        """Reject an OffsetCommit or TxnOffsetCommit that the group does not allow now.

        Errors:  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION; REBALANCE_IN_PROGRESS
                 while the leader assigns.
        """
        if self.state is GroupState.DEAD:
            raise OperationError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation_id < 0 and self.is_empty:
            return  # a consumer that assigns itself
        if generation_id >= 0 or member_id or instance_id is not None:
            self.validate_member(member_id, instance_id)
            if generation_id != self.generation_id:
                raise OperationError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional and not self.is_empty:
            raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is GroupState.COMPLETING_REBALANCE:
            raise OperationError(ErrorCode.REBALANCE_IN_PROGRESS)

    def validate_offset_delete(self) -> None:
        """Reject an OffsetDelete of a group that is dead or in use.

        Errors:  GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP where subscriptions cannot be read.
        """
        self._require_alive()
        if not self.is_empty and self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise OperationError(ErrorCode.NON_EMPTY_GROUP)

    def validate_delete(self) -> None:
        """Reject the deletion of a group that is dead or has members.

        Errors:  GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        self._require_alive()
        if not self.is_empty:
            raise OperationError(ErrorCode.NON_EMPTY_GROUP)

    def _require_alive(self) -> None:
        if self.state is GroupState.DEAD:
            message = f"Group {self.group_id} is in dead state."
            raise OperationError(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def offset_base_ms(self, commit_ms: int) -> int | None:
        """The time from which the retention of an offset counts; None: it does not expire.

        Source:  ClassicGroup.offsetExpirationCondition; KIP-211.
        """
        if self.protocol_type is None:
            return commit_ms
        if self.is_empty:
            return commit_ms if self.state_since_ms is None else self.state_since_ms
        consumers = self.protocol_type == CONSUMER_PROTOCOL_TYPE
        if consumers and self.subscribed_topics is not None and self.state is GroupState.STABLE:
            return commit_ms
        return None


def complete_join(member: Member, response: JoinGroupResponse) -> None:
    """Give a member the response that it waits for, if it does."""
    respond, member.awaiting_join = member.awaiting_join, None
    if respond is not None:
        respond(response)


def complete_sync(member: Member, response: SyncGroupResponse) -> bool:
    """Give a member the assignment that it waits for.

    Shapes:  -> whether it did wait.
    """
    respond, member.awaiting_sync = member.awaiting_sync, None
    if respond is None:
        return False
    respond(response)
    return True


def subscribed_topics(metadata: bytes) -> Sequence[str]:
    """The topics in a member's metadata; every version has them at its begin.

    Errors:  ProtocolError for bytes that are not a subscription.
    """
    if len(metadata) < 2:
        raise ProtocolError("ConsumerProtocolSubscription", "version", "too short", offset=0)
    # A newer version only adds fields, so its first ones are read as those of version 0.
    return decode_prefix(ConsumerProtocolSubscription, metadata, 0, 2)[0].topics


def has_length_beyond_its_end(metadata: bytes) -> bool:
    """A subscription names more topics or bytes than it has; one that ends in a number does not.

    Kafka reads the fields of version 0. It expects the end of the bytes in a number, and nothing
    else that is wrong.

    Source:  ConsumerProtocol.deserializeConsumerProtocolSubscription, ByteBufferAccessor.
    """
    place = 2
    if len(metadata) < place + 4:
        return False
    topics = int.from_bytes(metadata[place : place + 4], "big", signed=True)
    place += 4
    if topics < 0 or topics > len(metadata) - place:
        return True
    for _ in range(topics):
        if len(metadata) < place + 2:
            return False
        length = int.from_bytes(metadata[place : place + 2], "big", signed=True)
        place += 2
        if length < 0 or length > len(metadata) - place:
            return True
        place += length
    if len(metadata) < place + 4:
        return False
    length = int.from_bytes(metadata[place : place + 4], "big", signed=True)
    return length > len(metadata) - place - 4
