"""A member of a consumer group, as a value.

Source:  ConsumerGroupMember, ModernGroupMember, MemberState.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any
from uuid import UUID

from minicluster.protocol import messages as m
from minicluster.protocol.coordinator_records.consumer_group import (
    ConsumerGroupMemberMetadataValue,
)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMember:
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
