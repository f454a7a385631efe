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

from minicluster.controller.deciding.alter_partition_proposal import (
    ANY_EPOCH,
    Proposal,
    rejected,
    rejected_members,
)
from minicluster.controller.refusal import Reason, Refusal
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.partition import RECOVERED, RECOVERING
from minicluster.planting import step
from minicluster.protocol import ErrorCode


@step
def first_refusal(state: ClusterState, proposal: Proposal) -> Refusal | None:
    """The first refusal of a proposal, or None when it may be written."""
    data, partition, isr = proposal.data, proposal.partition, proposal.isr
    # A leader that is ahead has metadata of a newer controller: this one is not active any more,
    # and FENCED would make a rightful leader step down.
    if data.leader_epoch > partition.leader_epoch:
        return rejected(proposal, ErrorCode.NOT_CONTROLLER, Reason.LEADER_EPOCH_AHEAD)
    if data.partition_epoch > partition.partition_epoch:
        return rejected(proposal, ErrorCode.NOT_CONTROLLER, Reason.PARTITION_EPOCH_AHEAD)
    if data.leader_epoch < partition.leader_epoch:
        return rejected(proposal, ErrorCode.FENCED_LEADER_EPOCH, Reason.STALE_LEADER_EPOCH)
    if proposal.sender != partition.leader:
        return rejected(proposal, ErrorCode.INVALID_REQUEST, Reason.NOT_LEADER)
    # The ISR has changed since the leader read it: two changes of one epoch would overlap.
    if data.partition_epoch < partition.partition_epoch:
        return rejected(proposal, ErrorCode.INVALID_UPDATE_VERSION, Reason.STALE_PARTITION_EPOCH)
    if len(set(isr)) < len(isr):
        return rejected(proposal, ErrorCode.INVALID_REQUEST, Reason.DUPLICATE_IN_ISR)
    if any(broker_id < 0 or broker_id not in partition.replicas for broker_id in isr):
        return rejected(proposal, ErrorCode.INVALID_REQUEST, Reason.NOT_IN_REPLICAS)
    if partition.leader not in isr:
        return rejected(proposal, ErrorCode.INVALID_REQUEST, Reason.LEADER_NOT_IN_ISR)
    refusal = recovery_refusal(state, proposal)
    if refusal is not None:
        return refusal
    # The metadata of the leader lags, so it can propose a replica that is fenced by now (KIP-841).
    ineligible = ineligible_replicas(state, proposal)
    if ineligible:
        return rejected_members(proposal, ineligible_error(proposal.version), ineligible)
    return None


@step
def recovery_refusal(state: ClusterState, proposal: Proposal) -> Refusal | None:
    """After an unclean election the leader recovers alone, and only an election begins that.

    Source:  KIP-704.
    """
    if proposal.data.leader_recovery_state != RECOVERING:
        return None
    if len(proposal.members) > 1:
        return rejected(proposal, ErrorCode.INVALID_REQUEST, Reason.ISR_GROWS_WHILE_RECOVERING)
    if proposal.partition.leader_recovery_state == RECOVERED:
        return rejected(proposal, ErrorCode.INVALID_REQUEST, Reason.RECOVERED_TO_RECOVERING)
    return None


@step
def ineligible_replicas(state: ClusterState, proposal: Proposal) -> list[tuple[int, Reason, str]]:
    """The members that may not be in an ISR, each with its reason; old members are no exception.

    Source:  ReplicationControlManager.ineligibleReplicasForIsr.
    """
    found = []
    for broker_id, epoch in proposal.members:
        broker = state.image.cluster.broker(broker_id)
        if broker is None:
            found.append((broker_id, Reason.NOT_REGISTERED, Reason.NOT_REGISTERED.value))
        elif broker.in_controlled_shutdown:
            found.append((broker_id, Reason.SHUTTING_DOWN, Reason.SHUTTING_DOWN.value))
        elif broker.fenced:
            found.append((broker_id, Reason.FENCED, Reason.FENCED.value))
        elif epoch not in (ANY_EPOCH, broker.epoch):
            # The replica has restarted since it caught up, and may have lost its log (KIP-903).
            reason = Reason.BROKER_EPOCH_MISMATCH
            found.append(
                (broker_id, reason, f"{reason}: requested={epoch} VS expected={broker.epoch}")
            )
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
            because = f"the log directory of replica {broker_id} is offline"
            return rejected(proposal, error, Reason.REPLICA_OFFLINE, because)
    return None
