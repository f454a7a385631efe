"""The refusals of AlterPartition, in Kafka's order: the first one wins.

| order | refused is | error |
|---|---|---|
| 1 | a leader epoch or a partition epoch ahead of this controller | NOT_CONTROLLER |
| 2 | an older leader epoch | FENCED_LEADER_EPOCH |
| 3 | a sender that is not the leader | INVALID_REQUEST |
| 4 | an older partition epoch | INVALID_UPDATE_VERSION |
| 5 | an ISR with a duplicate, a stranger, or without the leader | INVALID_REQUEST |
| 6 | several members while the leader recovers; RECOVERED to RECOVERING | INVALID_REQUEST |
| 7 | a member that is gone, shutting down, fenced or restarted | INELIGIBLE_REPLICA |

Source:  KIP-497, KIP-704, KIP-841, KIP-903; ReplicationControlManager.validateAlterPartitionData.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicluster.controller.refusal import Reason, Refusal
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.indexes import TopicPartition
from minicluster.metadata.image.partition import RECOVERED, RECOVERING, PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.planting import step
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


@step
def first_refusal(state: ClusterState, proposal: Proposal) -> Refusal | None:
    """The first refusal of a proposal, or None when it may be written."""
    data, partition = proposal.data, proposal.partition
    # A leader that is ahead has metadata of a newer controller: this one is not active any more,
    # and FENCED would make a rightful leader step down.
    if data.leader_epoch > partition.leader_epoch:
        why = (
            f"the current leader epoch is {partition.leader_epoch}, which is lower than the "
            f"request value {data.leader_epoch}"
        )
        return rejected(proposal, ErrorCode.NOT_CONTROLLER, Reason.LEADER_EPOCH_AHEAD, why)
    if data.partition_epoch > partition.partition_epoch:
        why = (
            f"the current partition epoch is {partition.partition_epoch}, which is lower than the "
            f"request value {data.partition_epoch}"
        )
        return rejected(proposal, ErrorCode.NOT_CONTROLLER, Reason.PARTITION_EPOCH_AHEAD, why)
    if data.leader_epoch < partition.leader_epoch:
        why = f"the current leader epoch is {partition.leader_epoch}, not {data.leader_epoch}"
        return rejected(proposal, ErrorCode.FENCED_LEADER_EPOCH, Reason.STALE_LEADER_EPOCH, why)
    if proposal.sender != partition.leader:
        why = f"the current leader is {partition.leader}"
        return rejected(proposal, ErrorCode.INVALID_REQUEST, Reason.NOT_LEADER, why)
    # The ISR has changed since the leader read it: two changes of one epoch would overlap.
    if data.partition_epoch < partition.partition_epoch:
        why = (
            f"the current partition epoch is {partition.partition_epoch}, not "
            f"{data.partition_epoch}"
        )
        error = ErrorCode.INVALID_UPDATE_VERSION
        return rejected(proposal, error, Reason.STALE_PARTITION_EPOCH, why)
    return (
        _isr_refusal(proposal)
        or recovery_refusal(state, proposal)
        or _eligibility_refusal(state, proposal)
    )


def _isr_refusal(proposal: Proposal) -> Refusal | None:
    isr, partition = proposal.isr, proposal.partition
    invalid = "it specified an invalid ISR"
    if len(set(isr)) < len(isr):
        return rejected(proposal, ErrorCode.INVALID_REQUEST, Reason.DUPLICATE_IN_ISR, invalid)
    if any(broker_id < 0 or broker_id not in partition.replicas for broker_id in isr):
        return rejected(proposal, ErrorCode.INVALID_REQUEST, Reason.NOT_IN_REPLICAS, invalid)
    if partition.leader not in isr:
        why = f"{invalid} that doesn't include itself"
        return rejected(proposal, ErrorCode.INVALID_REQUEST, Reason.LEADER_NOT_IN_ISR, why)
    return None


@step
def recovery_refusal(state: ClusterState, proposal: Proposal) -> Refusal | None:
    """After an unclean election the leader recovers alone, and only an election begins that.

    Source:  KIP-704.
    """
    recovering = proposal.data.leader_recovery_state == RECOVERING
    if recovering and len(proposal.members) > 1:
        why = (
            "the ISR had more than one replica while the leader was still recovering from an "
            "unclean leader election RECOVERING"
        )
        error = ErrorCode.INVALID_REQUEST
        return rejected(proposal, error, Reason.ISR_GROWS_WHILE_RECOVERING, why)
    if recovering and proposal.partition.leader_recovery_state == RECOVERED:
        why = "the leader recovery state cannot change from RECOVERED to RECOVERING"
        return rejected(proposal, ErrorCode.INVALID_REQUEST, Reason.RECOVERED_TO_RECOVERING, why)
    return None


def _eligibility_refusal(state: ClusterState, proposal: Proposal) -> Refusal | None:
    """KIP-841: the leader's metadata lags, so it can propose a replica that is fenced by now."""
    ineligible = ineligible_replicas(state, proposal)
    if not ineligible:
        return None
    shown = ", ".join(
        f"IneligibleReplica[replicaId={broker_id}, reason={text}]"
        for broker_id, _, text in ineligible
    )
    why = f"it specified ineligible replicas [{shown}] in the new ISR"
    return rejected(proposal, ineligible_error(proposal.version), ineligible[0][1], why)


@step
def ineligible_replicas(state: ClusterState, proposal: Proposal) -> list[tuple[int, Reason, str]]:
    """The members that may not be in an ISR, each with its reason; old members are no exception.

    Source:  ReplicationControlManager.ineligibleReplicasForIsr.
    """
    found = []
    for broker_id, epoch in proposal.members:
        broker = state.image.cluster.broker(broker_id)
        if broker is None:
            reason = Reason.NOT_REGISTERED
        elif broker.in_controlled_shutdown:
            reason = Reason.SHUTTING_DOWN
        elif broker.fenced:
            reason = Reason.FENCED
        elif epoch not in (ANY_EPOCH, broker.epoch):
            # The replica has restarted since it caught up, and may have lost its log (KIP-903).
            text = f"{Reason.BROKER_EPOCH_MISMATCH}: requested={epoch} VS expected={broker.epoch}"
            found.append((broker_id, Reason.BROKER_EPOCH_MISMATCH, text))
            continue
        else:
            continue
        found.append((broker_id, reason, reason.value))
    return found


def ineligible_error(version: int) -> ErrorCode:
    """INELIGIBLE_REPLICA, or OPERATION_NOT_ATTEMPTED where the version does not have it."""
    return ErrorCode.INELIGIBLE_REPLICA if version >= 2 else ErrorCode.OPERATION_NOT_ATTEMPTED


def offline_refusal(state: ClusterState, proposal: Proposal) -> Refusal | None:
    """A replica that is lost may not join (KIP-858, KIP-589), though no release checks it."""
    if state.rules.replica_in_failed_dir_may_join:
        return None
    for broker_id in proposal.isr:
        broker = state.image.cluster.broker(broker_id)
        if broker is None:
            continue
        directory = proposal.partition.directory_of(broker_id)
        offline = state.offline_replicas.is_offline(broker, proposal.key)
        if offline or not broker.has_online_dir(directory):
            error = ineligible_error(proposal.version)
            why = f"the log directory of replica {broker_id} is offline"
            return rejected(proposal, error, Reason.REPLICA_OFFLINE, why)
    return None


def rejected(proposal: Proposal, error: ErrorCode, reason: Reason, why: str) -> Refusal:
    """A refusal with the message that Kafka logs for it."""
    topic, index, partition = proposal.topic, proposal.data.partition_index, proposal.partition
    return Refusal(
        error=error,
        reason=reason,
        message=(
            f"Rejecting AlterPartition request from node {proposal.sender} for "
            f"{topic.name}-{index} because {why}. Proposed ISR was {list(proposal.isr)} and "
            f"current ISR is {list(partition.isr)}. Current replica set is "
            f"{list(partition.replicas)}. Current partitionEpoch is {partition.partition_epoch}. "
            f"Current leaderEpoch is {partition.leader_epoch}."
        ),
        topic=topic.name,
        partition=index,
    )
