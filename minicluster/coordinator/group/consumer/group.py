"""A consumer group: its epochs, members, target assignment and expressions, folded from records.

    EMPTY --first member--> ASSIGNING --new target--> RECONCILING --all have taken over--> STABLE
      ^------------------- (the last member leaves) -------------------'

A change of members, of their subscriptions or of topics raises the group epoch. The assignment
epoch follows with a new target assignment, and each member's epoch once it has given up what is no
longer its own.

What clients see of members and epochs can be read as committed. What is counted from them is for
decisions alone, and is the newest.

Source:  ConsumerGroup, ModernGroup.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any
from uuid import UUID

from msgspec import field

from minicluster.coordinator.group.consumer.subscription import (
    Counts,
    ResolvedRegularExpression,
    add_matches,
    add_names,
    add_one,
    is_homogeneous,
)
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.runtime.timeline import Timeline, TimelineDict
from minicluster.java_order import (
    hash_map_order,
    room_of_copy,
    string_hash,
    timeline_order,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.coordinator_records.groups import (
    ConsumerGroupMemberMetadataValue,
)
from minicluster.protocol.errors import ProtocolError
from minicluster.values import Value

# A member of a consumer group, as a value.
#
# Source:  ConsumerGroupMember, ModernGroupMember, MemberState.


ClassicMemberMetadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
ClassicProtocol = ConsumerGroupMemberMetadataValue.ClassicProtocol

Partitions = Mapping[UUID, frozenset[int]]
"""The partitions of topics, by topic id."""
PartitionEpochs = Mapping[UUID, Mapping[int, int]]
"""The partitions of a member, each with the member epoch in which it was assigned.

Both levels are in the order of Java's maps, which is the one on the wire and in the log.
"""

LEAVE_GROUP_MEMBER_EPOCH = -1
LEAVE_GROUP_STATIC_MEMBER_EPOCH = -2


class MemberState(IntEnum):
    """The progress of a member towards its target assignment.

    STABLE --a newer target--> UNREVOKED_PARTITIONS --all given up--> STABLE
                                   `--some still owned by others--> UNRELEASED_PARTITIONS
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> MemberState:
        """The state of a record; one of a newer release is unknown."""
        return cls(value) if value in cls._value2member_map_ else cls.UNKNOWN


class ConsumerGroupMember(Value, kw_only=True):
    """One member.

    Shapes:  ``classic`` holds what a member of the classic protocol joined with, else None.
    Units:   time-outs in milliseconds, -1 where the member has given none.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: frozenset[str] = frozenset()
    subscribed_regex: str | None = ""
    server_assignor: str | None = None
    assigned: PartitionEpochs = field(default_factory=dict)
    pending_revocation: PartitionEpochs = field(default_factory=dict)
    classic: Any = None

    @property
    def uses_classic_protocol(self) -> bool:
        """The member joins with JoinGroup."""
        return self.classic is not None

    @property
    def classic_protocols(self) -> tuple[Any, ...]:
        """The protocols of JoinGroup, none for a member of the consumer protocol."""
        return () if self.classic is None else tuple(self.classic.supported_protocols)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """The member has taken over the whole target assignment of an epoch."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def assignment_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch in which a partition was assigned, whether or not it is to be given up."""
        for partitions in (self.assigned, self.pending_revocation):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def classic_metadata(request: m.JoinGroupRequest) -> Any:
    """The part of a JoinGroup that a member of a consumer group keeps."""
    return ClassicMemberMetadata(
        session_timeout_ms=request.session_timeout_ms,
        supported_protocols=tuple(
            ClassicProtocol(name=protocol.name, metadata=protocol.metadata)
            for protocol in request.protocols
        ),
    )


class StillOwned(ProtocolError):
    """Two members have one partition; Kafka raises an IllegalStateException."""


CONSUMER = "consumer"
UNASSIGNED_EPOCH = -1
_FIRST_EPOCH = 1

TopicHash = Callable[[UUID], int]
"""The hash code of a topic id, which orders topics in Java's maps."""


class ConsumerGroupState(enum.Enum):
    """Shapes: the values are the names that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerGroup:
    """One group.

    Units:   *_epoch are counters; assignment_time_ms is when the target assignment was made.
    """

    type = CONSUMER
    protocol_type = "consumer"

    def __init__(self, group_id: str, timeline: Timeline, topic_hash: TopicHash) -> None:
        self.group_id = group_id
        self.topic_hash = topic_hash
        self.members: TimelineDict[str, ConsumerGroupMember] = timeline.new_dict()
        self.target: TimelineDict[str, Partitions] = timeline.new_dict()
        self._epochs: TimelineDict[str, int] = timeline.new_dict()
        self._epochs["group"] = self._epochs["assignment"] = _FIRST_EPOCH
        self.assignment_time_ms = 0
        self.metadata_hash = 0
        self.has_subscription_metadata = False
        self.static_members: dict[str, str] = {}
        self.subscribed_topics: Counts = {}
        self.subscribed_regexes: dict[str, int] = {}
        self.resolved_regexes: dict[str, ResolvedRegularExpression] = {}
        # As of the last change of a member: what expressions match may have changed since.
        self.is_homogeneous = True
        self.target_owners: dict[UUID, dict[int, str]] = {}
        self.classic_members = 0
        self._classic_protocols: dict[str, int] = {}
        self._assignors: dict[str, int] = {}
        self._partition_epochs: dict[UUID, dict[int, int]] = {}
        self._refresh_at_ms, self._refresh_epoch = 0, 0

    # --- epochs and state ---------------------------------------------------------------------

    @property
    def group_epoch(self) -> int:
        """Raised with each change that needs another target assignment."""
        return self._epochs["group"]

    @property
    def assignment_epoch(self) -> int:
        """The group epoch that the target assignment was made for; -1: it is deleted."""
        return self._epochs["assignment"]

    def set_group_epoch(self, epoch: int) -> None:
        """Take over the group epoch of a record."""
        self._epochs["group"] = epoch

    def set_assignment_epoch(self, epoch: int, time_ms: int) -> None:
        """Take over the epoch of a target assignment."""
        self._epochs["assignment"] = epoch
        self.assignment_time_ms = time_ms

    @property
    def state(self) -> ConsumerGroupState:
        """The newest state."""
        members = (self.members[member_id] for member_id in self.members)
        return _state_of(self.group_epoch, self.assignment_epoch, members)

    def committed_epochs(self) -> tuple[int, int]:
        """The group epoch and the assignment epoch, as committed."""
        epochs = self._epochs.committed()
        return epochs.get("group", _FIRST_EPOCH), epochs.get("assignment", _FIRST_EPOCH)

    @property
    def committed_state(self) -> ConsumerGroupState:
        """The state as committed, which clients see."""
        return _state_of(*self.committed_epochs(), self.members.committed().values())

    @property
    def is_empty(self) -> bool:
        """The group has no member."""
        return not self.members

    # --- members ------------------------------------------------------------------------------

    @property
    def member_ids(self) -> list[str]:
        """The members in the order in which Kafka walks over them."""
        return timeline_order(self.members, string_hash, put_again=True)

    def member(self, member_id: str) -> ConsumerGroupMember:
        """A member.

        Errors:  UNKNOWN_MEMBER_ID.
        """
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return member

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """The member of an instance id, None where there is none."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.member(member_id)

    def update_member(self, new: ConsumerGroupMember) -> None:
        """Add a member, or replace what is known of it."""
        old = self.members.get(new.member_id)
        self.members[new.member_id] = new
        if new.instance_id is not None:
            self.static_members[new.instance_id] = new.member_id
        if old is not None:
            self._count(old, -1)
            self._release(old.assigned, old.epoch)
            self._release(old.pending_revocation, old.epoch)
        self._count(new, 1)
        self._occupy(new.assigned, new.epoch)
        self._occupy(new.pending_revocation, new.epoch)
        self._update_subscription_type()

    def remove_member(self, member_id: str) -> None:
        """Remove a member."""
        old = self.members.pop(member_id)
        if old is None:
            return
        if old.instance_id is not None:
            self.static_members.pop(old.instance_id, None)
        self._count(old, -1)
        self._release(old.assigned, old.epoch)
        self._release(old.pending_revocation, old.epoch)
        self._update_subscription_type()

    def _update_subscription_type(self) -> None:
        """Source: ConsumerGroup.maybeUpdateGroupSubscriptionType."""
        self.is_homogeneous = is_homogeneous(
            self.subscribed_regexes, self.subscribed_topics, len(self.members)
        )

    def _count(self, member: ConsumerGroupMember, change: int) -> None:
        add_names(self.subscribed_topics, member.subscribed_topics, change)
        add_one(self.subscribed_regexes, member.subscribed_regex, change)
        add_one(self._assignors, member.server_assignor, change)
        self.classic_members += change * member.uses_classic_protocol
        for protocol in member.classic_protocols:
            add_one(self._classic_protocols, protocol.name, change)

    def regexes_with(self, before: str | None, after: str | None) -> list[str]:
        """The expressions once a member has changed its own, in the order of Kafka's copy.

        Source:  GroupMetadataManager.maybeUpdateRegularExpressions.
        """
        counts = dict(self.subscribed_regexes)
        add_one(counts, before, -1)
        add_one(counts, after, 1)
        copied = timeline_order(self.subscribed_regexes, string_hash)
        # Map.compute puts a key that is not there in front of its bin.
        added = [after] if after and after not in copied else []
        in_order = hash_map_order([*added, *copied], string_hash, room_of_copy(len(copied)))
        return [each for each in in_order if each in counts]

    # --- partitions ---------------------------------------------------------------------------

    def current_partition_epoch(self, topic_id: UUID, partition: int) -> int:
        """The epoch of the member that still has a partition, -1 where it is free."""
        return self._partition_epochs.get(topic_id, {}).get(partition, UNASSIGNED_EPOCH)

    def _release(self, partitions: PartitionEpochs, epoch: int) -> None:
        for topic_id, indexes in partitions.items():
            owner_epochs = self._partition_epochs.get(topic_id, {})
            for index in indexes:
                # A member with a higher epoch may have taken it over in the same batch.
                if owner_epochs.get(index) == epoch:
                    del owner_epochs[index]
            if not owner_epochs:
                self._partition_epochs.pop(topic_id, None)

    def _occupy(self, partitions: PartitionEpochs, epoch: int) -> None:
        for topic_id, indexes in partitions.items():
            owner_epochs = self._partition_epochs.setdefault(topic_id, {})
            for index in indexes:
                owner_epoch = owner_epochs.get(index)
                if owner_epoch is not None and owner_epoch >= epoch:
                    what = f"partition {index} is still owned at epoch {owner_epoch}"
                    raise StillOwned("ConsumerGroupCurrentMemberAssignmentValue", "", what)
                owner_epochs[index] = epoch

    # --- target assignment --------------------------------------------------------------------

    def target_of(self, member_id: str) -> Partitions:
        """The partitions that a member is to have."""
        return self.target.get(member_id) or {}

    def target_of_instance(self, member: ConsumerGroupMember) -> Partitions:
        """The target of a member, or of the one whose instance id it has taken over."""
        if member.instance_id is None:
            return self.target_of(member.member_id)
        return self.target_of(self.static_members.get(member.instance_id, ""))

    def set_target(self, member_id: str, partitions: Partitions) -> None:
        """Take over the target of a member."""
        self._disown(member_id, partitions)
        for topic_id, indexes in partitions.items():
            self.target_owners.setdefault(topic_id, {}).update(dict.fromkeys(indexes, member_id))
        self.target[member_id] = partitions

    def remove_target(self, member_id: str) -> None:
        """Remove the target of a member that has left."""
        self._disown(member_id, {})
        self.target.pop(member_id)

    def _disown(self, member_id: str, kept: Partitions) -> None:
        for topic_id, indexes in self.target_of(member_id).items():
            owners = self.target_owners.get(topic_id, {})
            for index in indexes - kept.get(topic_id, frozenset()):
                # The target of its next owner may have been written first.
                if owners.get(index) == member_id:
                    del owners[index]
            if not owners:
                self.target_owners.pop(topic_id, None)

    # --- subscriptions ------------------------------------------------------------------------

    def is_subscribed_to(self, topic: str) -> bool:
        """A member subscribes to a topic, by its name or by an expression."""
        return topic in self.subscribed_topics

    def set_resolved_regex(self, expression: str, resolved: ResolvedRegularExpression) -> None:
        """Take over the topics that an expression matches."""
        self.remove_resolved_regex(expression)
        self.resolved_regexes[expression] = resolved
        add_matches(self.subscribed_topics, resolved.topics, 1)

    def remove_resolved_regex(self, expression: str) -> None:
        """Forget the topics of an expression."""
        old = self.resolved_regexes.pop(expression, None)
        if old is not None:
            add_matches(self.subscribed_topics, old.topics, -1)

    # --- assignors and protocols --------------------------------------------------------------

    def preferred_assignor(
        self, old: ConsumerGroupMember | None = None, new: ConsumerGroupMember | None = None
    ) -> str | None:
        """The assignor with most votes, after a change of one member."""
        counts = dict(self._assignors)
        names = timeline_order(counts, string_hash)
        add_one(counts, None if old is None else old.server_assignor, -1)
        names = [name for name in names if name in counts]
        add_one(counts, None if new is None else new.server_assignor, 1)
        # Map.compute puts a key that is not there in front of its bin.
        added = [name for name in counts if name not in names]
        names = hash_map_order([*added, *names], string_hash, room_of_copy(len(counts)))
        return max(names, key=lambda name: counts[name], default=None)

    def supports_classic_protocols(self, protocol_type: str, names: Iterable[str]) -> bool:
        """One of a member's protocols is supported by all members of the classic protocol."""
        if protocol_type != self.protocol_type:
            return False
        counts = self._classic_protocols
        return any(self.is_empty or counts.get(n, 0) == self.classic_members for n in names)

    def is_waiting_for_partitions(self, member: ConsumerGroupMember) -> bool:
        """Another member still has a partition of a member's target."""
        return any(
            index not in member.assigned.get(topic_id, {})
            and self.current_partition_epoch(topic_id, index) != UNASSIGNED_EPOCH
            for topic_id, indexes in self.target_of(member.member_id).items()
            for index in indexes
        )

    # --- refresh of metadata ------------------------------------------------------------------

    def request_metadata_refresh(self) -> None:
        """Compare the topics with the hash again at the next heartbeat."""
        self._refresh_at_ms, self._refresh_epoch = 0, 0

    def set_metadata_refresh(self, at_ms: int, epoch: int) -> None:
        """The topics were compared for a group epoch."""
        self._refresh_at_ms, self._refresh_epoch = at_ms, epoch

    def has_metadata_expired(self, now_ms: int) -> bool:
        """The topics have to be compared, or the write of the last comparison was lost."""
        return now_ms >= self._refresh_at_ms or self.group_epoch < self._refresh_epoch

    # --- offsets and deletion -----------------------------------------------------------------

    def validate_delete(self) -> None:
        """Reject the deletion of a group that has members.

        Errors:  NON_EMPTY_GROUP.
        """
        if not self.is_empty:
            raise OperationError(ErrorCode.NON_EMPTY_GROUP)

    def validate_offset_delete(self) -> None:
        """Offsets of topics without subscription can be deleted at any time."""

    def offset_base_ms(self, commit_ms: int) -> int | None:
        """The time from which the retention of an offset counts: that of its commit."""
        return commit_ms


def _state_of(
    group_epoch: int, assignment_epoch: int, members: Iterable[ConsumerGroupMember]
) -> ConsumerGroupState:
    listed = list(members)
    if not listed:
        return ConsumerGroupState.EMPTY
    if group_epoch > assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    if all(member.is_reconciled_to(assignment_epoch) for member in listed):
        return ConsumerGroupState.STABLE
    return ConsumerGroupState.RECONCILING
