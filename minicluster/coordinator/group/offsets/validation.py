"""Checks of commits and fetches of a consumer group's offsets: a member in its epoch (KIP-848).

Source:  ConsumerGroup.validateOffsetCommit, validateOffsetFetch, createAssignmentEpochValidator.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.coordinator.group.consumer.group import ConsumerGroup, ConsumerGroupMember
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.protocol import ErrorCode

_EPOCHS_FROM = 9


def _wrong_epoch(member: ConsumerGroupMember) -> ErrorCode:
    if member.uses_classic_protocol:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH


def committing_member(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    epoch: int,
    *,
    transactional: bool,
    version: int,
) -> ConsumerGroupMember | None:
    """The member whose partitions have to be checked one by one, None where all may be committed.

    A member in its own epoch may commit all. In an earlier one it may commit what it has had since
    then, for its heartbeat may have raised the epoch while the commit was on its way.

    Errors:  UNKNOWN_MEMBER_ID; STALE_MEMBER_EPOCH or, of the classic protocol, ILLEGAL_GENERATION
             for a later epoch; UNSUPPORTED_VERSION where the version has no epoch.
    """
    if epoch < 0 and not group.members:
        return None  # an administrator, or a consumer that assigns itself
    if transactional and epoch == -1 and not member_id and instance_id is None:
        return None
    member = group.member(member_id)
    if not transactional and not member.uses_classic_protocol and version < _EPOCHS_FROM:
        raise OperationError(ErrorCode.UNSUPPORTED_VERSION)
    if epoch > member.epoch:
        raise OperationError(_wrong_epoch(member))
    return None if epoch == member.epoch else member


def validate_partition(
    member: ConsumerGroupMember, epoch: int, topic_id: UUID, partition: int
) -> None:
    """Check one partition of a commit in an earlier epoch.

    Errors:  STALE_MEMBER_EPOCH, ILLEGAL_GENERATION.
    """
    assigned_in = member.assignment_epoch(topic_id, partition)
    if assigned_in is None or epoch < assigned_in:
        raise OperationError(_wrong_epoch(member))


def validate_offset_fetch(
    group: ConsumerGroup, member_id: str | None, epoch: int, *, committed: bool
) -> None:
    """Check the member of a fetch, if it names one.

    Errors:  UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION; UNKNOWN_SERVER_ERROR for an
             epoch without a member, of which Kafka looks up the null.
    """
    if member_id is None:
        if epoch < 0:
            return
        raise OperationError(ErrorCode.UNKNOWN_SERVER_ERROR)
    members = group.members
    member = members.committed_value(member_id) if committed else members.get(member_id)
    if member is None:
        raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID)
    if epoch != member.epoch:
        raise OperationError(_wrong_epoch(member))
