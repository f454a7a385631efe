"""A proposal of AlterPartition, and its refusals with the messages that Kafka logs for them.

Source:  ReplicationControlManager.validateAlterPartitionData (the log statements).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from minicluster.controller.refusal import Reason, Refusal
from minicluster.controller.state.indexes import TopicPartition
from minicluster.lazy_dataclass import dataclass
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest

ANY_EPOCH = -1
"""The broker epoch of a member whose epoch the leader does not have; it is not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One partition of a request beside the partition as the controller has it.

    Shapes:  members are (broker id, broker epoch), the epoch ANY_EPOCH below version 3.
    """

    sender: int
    version: int
    topic: TopicImage
    partition: PartitionRegistration
    data: AlterPartitionRequest.PartitionData
    members: tuple[tuple[int, int], ...]

    @classmethod
    def of(
        cls,
        sender: int,
        version: int,
        topic: TopicImage,
        partition: PartitionRegistration,
        data: AlterPartitionRequest.PartitionData,
    ) -> Proposal:
        """The proposal that a version of the request carries."""
        if version >= 3:
            members = tuple((m.broker_id, m.broker_epoch) for m in data.new_isr_with_epochs)
        else:
            members = tuple((broker_id, ANY_EPOCH) for broker_id in data.new_isr)
        return cls(
            sender=sender,
            version=version,
            topic=topic,
            partition=partition,
            data=data,
            members=members,
        )

    @property
    def isr(self) -> tuple[int, ...]:
        """The broker ids of the proposed ISR."""
        return tuple(broker_id for broker_id, _ in self.members)

    @property
    def key(self) -> TopicPartition:
        """The partition's topic id and index."""
        return self.topic.id, self.data.partition_index


_INVALID_ISR = "it specified an invalid ISR"
_BECAUSE: Mapping[Reason, Callable[[Proposal], str]] = {
    Reason.LEADER_EPOCH_AHEAD: lambda p: (
        f"the current leader epoch is {p.partition.leader_epoch}, which is lower than the request "
        f"value {p.data.leader_epoch}"
    ),
    Reason.PARTITION_EPOCH_AHEAD: lambda p: (
        f"the current partition epoch is {p.partition.partition_epoch}, which is lower than the "
        f"request value {p.data.partition_epoch}"
    ),
    Reason.STALE_LEADER_EPOCH: lambda p: (
        f"the current leader epoch is {p.partition.leader_epoch}, not {p.data.leader_epoch}"
    ),
    Reason.NOT_LEADER: lambda p: f"the current leader is {p.partition.leader}",
    Reason.STALE_PARTITION_EPOCH: lambda p: (
        f"the current partition epoch is {p.partition.partition_epoch}, not "
        f"{p.data.partition_epoch}"
    ),
    Reason.DUPLICATE_IN_ISR: lambda _: _INVALID_ISR,
    Reason.NOT_IN_REPLICAS: lambda _: _INVALID_ISR,
    Reason.LEADER_NOT_IN_ISR: lambda _: f"{_INVALID_ISR} that doesn't include itself",
    Reason.ISR_GROWS_WHILE_RECOVERING: lambda _: (
        "the ISR had more than one replica while the leader was still recovering from an unclean "
        "leader election RECOVERING"
    ),
    Reason.RECOVERED_TO_RECOVERING: lambda _: (
        "the leader recovery state cannot change from RECOVERED to RECOVERING"
    ),
}


def rejected(
    proposal: Proposal, error: ErrorCode, reason: Reason, because: str | None = None
) -> Refusal:
    """A refusal; its message states the proposal beside the partition."""
    topic, index, partition = proposal.topic, proposal.data.partition_index, proposal.partition
    if because is None:
        because = _BECAUSE[reason](proposal)
    return Refusal(
        error=error,
        reason=reason,
        message=(
            f"Rejecting AlterPartition request from node {proposal.sender} for "
            f"{topic.name}-{index} because {because}. Proposed ISR was {list(proposal.isr)} and "
            f"current ISR is {list(partition.isr)}. Current replica set is "
            f"{list(partition.replicas)}. Current partitionEpoch is {partition.partition_epoch}. "
            f"Current leaderEpoch is {partition.leader_epoch}."
        ),
        topic=topic.name,
        partition=index,
    )


def rejected_members(
    proposal: Proposal, error: ErrorCode, found: Sequence[tuple[int, Reason, str]]
) -> Refusal:
    """A refusal that names each ineligible member; the reason of the first one counts."""
    shown = ", ".join(
        f"IneligibleReplica[replicaId={broker_id}, reason={text}]" for broker_id, _, text in found
    )
    because = f"it specified ineligible replicas [{shown}] in the new ISR"
    return rejected(proposal, error, found[0][1], because)


def unknown_topic(topic: AlterPartitionRequest.TopicData, index: int, version: int) -> Refusal:
    """The refusal of a partition whose topic this controller does not have."""
    by_id = version >= 2
    named = f"topic ID {topic.topic_id}" if by_id else f"topic {topic.topic_name}"
    return Refusal(
        error=ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        reason=Reason.UNKNOWN_TOPIC,
        message=f"Rejecting AlterPartition request for unknown {named}.",
        topic=topic.topic_name,
        partition=index,
    )


def unknown_partition(topic: str, index: int) -> Refusal:
    """The refusal of a partition that its topic does not have."""
    return Refusal(
        error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        reason=Reason.UNKNOWN_PARTITION,
        message=f"Rejecting AlterPartition request for unknown partition {topic}-{index}.",
        topic=topic,
        partition=index,
    )
