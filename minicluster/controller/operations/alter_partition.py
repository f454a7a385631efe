"""AlterPartition (56): the leader of a partition proposes an ISR and a leader recovery state.

Versions:  0-3; 4.x serves 2-3.
           0: topics by name (KIP-497).
           1: LeaderRecoveryState (KIP-704).
           2: topics by id; INELIGIBLE_REPLICA and NEW_LEADER_ELECTED (KIP-841), for which lower
              versions have OPERATION_NOT_ATTEMPTED and FENCED_LEADER_EPOCH.
           3: the broker epoch of each member of the ISR (KIP-903).

The ISR decides who may be elected and what counts as committed, and two parties change it: the
leader, which alone sees who keeps up with its log, and this controller, which alone sees which
brokers live. Each works from an image of the other's state that may be old. What keeps them
together is that the controller decides every change, and that a proposal names what it was made
from: the *leader epoch* (do I still lead?), the *partition epoch* (has anything changed since?) and
the *broker epoch* of each member (is it the process that I saw fetch?).

A request is read from top to bottom, and so is this file; the first refusal wins:

| order | what is rejected | error |
|---|---|---|
| 1 | a broker epoch that is not the sender's, with the whole request | STALE_BROKER_EPOCH |
| 2 | an unknown topic or partition | UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION |
| 3 | a leader epoch or a partition epoch ahead of this controller | NOT_CONTROLLER |
| 4 | an older leader epoch | FENCED_LEADER_EPOCH |
| 5 | a sender that is not the leader | INVALID_REQUEST |
| 6 | an older partition epoch | INVALID_UPDATE_VERSION |
| 7 | an ISR with a duplicate, a stranger, or without the leader | INVALID_REQUEST |
| 8 | an unknown recovery state; RECOVERING with several members, or once more | INVALID_REQUEST |
| 9 | a member that is gone, shutting down, fenced or restarted | INELIGIBLE_REPLICA |
| 10 | a member whose log directory is offline (by the KIPs' texts only) | INELIGIBLE_REPLICA |

tests/controller/test_alter_partition.py has every refusal alone, and every pair.
"""

from __future__ import annotations

from minicluster.controller.api import ControllerApi
from minicluster.controller.decision import Decision
from minicluster.controller.errors import ControllerFault, Reason, Refusal
from minicluster.controller.leader_election import Election
from minicluster.controller.partition_change import Targets, change_partition
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.indexes import TopicPartition
from minicluster.metadata.image.partition import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionRegistration,
)
from minicluster.metadata.image.topics import TopicImage
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.records import PartitionChangeRecord, VersionedRecord
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.security.acls import Operation
from minicluster.values import Value

PartitionData = AlterPartitionResponse.PartitionData
Outcome = PartitionRegistration | Refusal
"""A partition after its change, or the refusal of the change."""

ANY_EPOCH = -1
"""The broker epoch of a member whose epoch the leader does not have; it is not compared."""


def alter_partition(
    state: ClusterState, request: AlterPartitionRequest, version: int, now_ms: int
) -> Decision:
    """Decide one AlterPartition: each partition is changed or rejected by itself.

    Shapes:  ClusterState, AlterPartitionRequest -> Decision of 0..n records and one response.
    Units:   epochs are counters, never times; -1 means "not given" and matches nothing.
    Errors:  Rejected with STALE_BROKER_EPOCH for the whole; else an ErrorCode per partition.
    Source:  KIP-497, KIP-704, KIP-841, KIP-903; ReplicationControlManager.alterPartition.
    """
    if not request.topics:
        return Decision(response=AlterPartitionResponse())
    # A request that the broker sent before it restarted must not change an ISR any more: it was
    # decided from a log that the new incarnation may not have.
    state.check_broker_epoch(request.broker_id, request.broker_epoch)
    records: list[VersionedRecord] = []
    outcomes: list[list[Outcome]] = []
    for topic in request.topics:
        outcomes.append([])
        for data in topic.partitions:
            outcomes[-1].append(_alter(state, request, version, topic, data, records))
    refusals = tuple(o for of_topic in outcomes for o in of_topic if isinstance(o, Refusal))
    error = _ineligible_error(version)
    # KIP-841's text; as shipped, an ineligible replica rejects its own partition only.
    if state.rules.ineligible_member_refuses_all_partitions and any(
        refusal.error == error for refusal in refusals
    ):
        return Decision(response=_response(request, version, error), refusals=refusals)
    response = _response(request, version, outcomes)
    return Decision(records=tuple(records), response=response, refusals=refusals)


def _alter(
    state: ClusterState,
    request: AlterPartitionRequest,
    version: int,
    topic_data: AlterPartitionRequest.TopicData,
    data: AlterPartitionRequest.PartitionData,
    records: list[VersionedRecord],
) -> Outcome:
    """Find one partition, reject its proposal or change it, and tell the leader what it is now."""
    index, topics, by_id = data.partition_index, state.image.topics, version >= 2
    topic = topics.get(topic_data.topic_id) if by_id else topics.named(topic_data.topic_name)
    if topic is None:
        name = f"topic ID {topic_data.topic_id}" if by_id else f"topic {topic_data.topic_name}"
        return Refusal(
            error=ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            reason=Reason.UNKNOWN_TOPIC,
            message=f"Rejecting AlterPartition request for unknown {name}.",
            topic=topic_data.topic_name,
            partition=index,
        )
    partition = topic.partitions.get(index)
    if partition is None:
        return Refusal(
            error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            reason=Reason.UNKNOWN_PARTITION,
            message=f"Rejecting AlterPartition request for unknown partition {topic.name}-{index}.",
            topic=topic.name,
            partition=index,
        )
    proposal = Proposal.of(request.broker_id, version, topic, partition, data)
    refusal = first_refusal(state, proposal) or _offline_refusal(state, proposal)
    if refusal is not None:
        return refusal
    record = partition_change(state, proposal)
    if record is None:
        # The partition is as proposed already. A record that changes nothing would raise the
        # partition epoch, and make what its leader proposes next stale.
        return partition
    records.append(record)
    change = record.record
    assert isinstance(change, PartitionChangeRecord)
    if _names_another_leader(state, change, request.broker_id):
        # An error although the record is written: the new ISR ends the reassignment of its leader.
        # By a success the sender would take the new ISR for its own, and would lead beside its
        # successor until the metadata reaches it.
        error = ErrorCode.NEW_LEADER_ELECTED if by_id else ErrorCode.FENCED_LEADER_EPOCH
        because = f"its ISR made {change.leader} the leader"
        return proposal.rejected(error, Reason.LEADER_CHANGED, because)
    return partition.merge(change)


class Proposal(Value, kw_only=True):
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

    def rejected(self, error: ErrorCode, reason: Reason, because: str) -> Refusal:
        """A refusal; its message states the proposal beside the partition, as Kafka's log does."""
        topic, index, partition = self.topic, self.data.partition_index, self.partition
        return Refusal(
            error=error,
            reason=reason,
            message=(
                f"Rejecting AlterPartition request from node {self.sender} for "
                f"{topic.name}-{index} because {because}. Proposed ISR was {list(self.isr)} and "
                f"current ISR is {list(partition.isr)}. Current replica set is "
                f"{list(partition.replicas)}. Current partitionEpoch is "
                f"{partition.partition_epoch}. Current leaderEpoch is {partition.leader_epoch}."
            ),
            topic=topic.name,
            partition=index,
        )


@step
def first_refusal(state: ClusterState, proposal: Proposal) -> Refusal | None:
    """The first refusal of a proposal, or None when it may be written.

    Source:  ReplicationControlManager.validateAlterPartitionData.
    """
    data, partition = proposal.data, proposal.partition
    # A leader that is ahead has metadata of a newer controller: this one is not active any more.
    # With FENCED_LEADER_EPOCH a rightful leader would step down.
    if data.leader_epoch > partition.leader_epoch:
        return proposal.rejected(
            ErrorCode.NOT_CONTROLLER,
            Reason.LEADER_EPOCH_AHEAD,
            f"the current leader epoch is {partition.leader_epoch}, which is lower than the "
            f"request value {data.leader_epoch}",
        )
    if data.partition_epoch > partition.partition_epoch:
        return proposal.rejected(
            ErrorCode.NOT_CONTROLLER,
            Reason.PARTITION_EPOCH_AHEAD,
            f"the current partition epoch is {partition.partition_epoch}, which is lower than the "
            f"request value {data.partition_epoch}",
        )
    # A deposed leader, which could take its successor out of the ISR as long as it has not heard
    # of it.
    if data.leader_epoch < partition.leader_epoch:
        return proposal.rejected(
            ErrorCode.FENCED_LEADER_EPOCH,
            Reason.STALE_LEADER_EPOCH,
            f"the current leader epoch is {partition.leader_epoch}, not {data.leader_epoch}",
        )
    # Followers know the epoch too, but only the leader knows who has caught up with its log.
    if proposal.sender != partition.leader:
        return proposal.rejected(
            ErrorCode.INVALID_REQUEST,
            Reason.NOT_LEADER,
            f"the current leader is {partition.leader}",
        )
    # The ISR has changed since the leader read it. A request that was delayed on its way would
    # bring back a member that has been removed meanwhile, and may lack committed records.
    if data.partition_epoch < partition.partition_epoch:
        return proposal.rejected(
            ErrorCode.INVALID_UPDATE_VERSION,
            Reason.STALE_PARTITION_EPOCH,
            f"the current partition epoch is {partition.partition_epoch}, not "
            f"{data.partition_epoch}",
        )
    return (
        _invalid_isr_refusal(proposal)
        or _unknown_state_refusal(state, proposal)
        or recovery_refusal(state, proposal)
        or _ineligible_refusal(state, proposal)
    )


def _invalid_isr_refusal(proposal: Proposal) -> Refusal | None:
    isr, partition = proposal.isr, proposal.partition
    invalid = "it specified an invalid ISR"
    # A broker that is named twice would count twice for min.insync.replicas.
    if len(set(isr)) < len(isr):
        return proposal.rejected(ErrorCode.INVALID_REQUEST, Reason.DUPLICATE_IN_ISR, invalid)
    if any(broker_id < 0 or broker_id not in partition.replicas for broker_id in isr):
        return proposal.rejected(ErrorCode.INVALID_REQUEST, Reason.NOT_IN_REPLICAS, invalid)
    # A leader outside its ISR cannot stay: the change itself would elect somebody else.
    if partition.leader not in isr:
        return proposal.rejected(
            ErrorCode.INVALID_REQUEST,
            Reason.LEADER_NOT_IN_ISR,
            f"{invalid} that doesn't include itself",
        )
    return None


def _unknown_state_refusal(state: ClusterState, proposal: Proposal) -> Refusal | None:
    """A recovery state that there is not: no node could apply a record with it.

    Errors:  ControllerFault where ``Rules.unknown_recovery_state_is_fatal``.
    """
    recovery_state = proposal.data.leader_recovery_state
    if recovery_state in (RECOVERED, RECOVERING):
        return None
    if state.rules.unknown_recovery_state_is_fatal:
        raise ControllerFault(f"Value {recovery_state} is not a valid leader recovery state")
    return proposal.rejected(
        ErrorCode.INVALID_REQUEST,
        Reason.UNKNOWN_RECOVERY_STATE,
        f"{recovery_state} is no leader recovery state",
    )


@step
def recovery_refusal(state: ClusterState, proposal: Proposal) -> Refusal | None:
    """After an unclean election the leader recovers alone, and only an election begins that.

    One request may report RECOVERED and grow the ISR: what counts is the state that it proposes.
    Source:  KIP-704.
    """
    if proposal.data.leader_recovery_state != RECOVERING:
        return None
    # From a larger ISR a follower could be elected cleanly, with a log that nobody has recovered.
    if len(proposal.members) > 1:
        return proposal.rejected(
            ErrorCode.INVALID_REQUEST,
            Reason.ISR_GROWS_WHILE_RECOVERING,
            "the ISR had more than one replica while the leader was still recovering from an "
            "unclean leader election RECOVERING",
        )
    if proposal.partition.leader_recovery_state == RECOVERED:
        return proposal.rejected(
            ErrorCode.INVALID_REQUEST,
            Reason.RECOVERED_TO_RECOVERING,
            "the leader recovery state cannot change from RECOVERED to RECOVERING",
        )
    return None


def _ineligible_refusal(state: ClusterState, proposal: Proposal) -> Refusal | None:
    """A refusal that names each ineligible member; the reason of the first one counts."""
    ineligible = ineligible_replicas(state, proposal)
    if not ineligible:
        return None
    shown = ", ".join(
        f"IneligibleReplica[replicaId={broker_id}, reason={text}]"
        for broker_id, _, text in ineligible
    )
    return proposal.rejected(
        _ineligible_error(proposal.version),
        ineligible[0][1],
        f"it specified ineligible replicas [{shown}] in the new ISR",
    )


@step
def ineligible_replicas(state: ClusterState, proposal: Proposal) -> list[tuple[int, Reason, str]]:
    """The members that may not be in an ISR, each with its reason; old members are not exempt.

    The metadata of the leader lags, so it can propose a replica that is fenced by now. Accepted,
    such a replica would stay in the ISR: fencing takes it out once, before that, and the leader
    keeps it as long as it fetches (KIP-841).

    Source:  ReplicationControlManager.ineligibleReplicasForIsr.
    """
    ineligible = []
    for broker_id, epoch in proposal.members:
        broker = state.image.cluster.broker(broker_id)
        if broker is None:
            ineligible.append((broker_id, Reason.NOT_REGISTERED, Reason.NOT_REGISTERED.value))
        elif broker.in_controlled_shutdown:
            ineligible.append((broker_id, Reason.SHUTTING_DOWN, Reason.SHUTTING_DOWN.value))
        elif broker.fenced:
            ineligible.append((broker_id, Reason.FENCED, Reason.FENCED.value))
        elif epoch not in (ANY_EPOCH, broker.epoch):
            # The replica has restarted since it caught up. If its disk came back empty, it would be
            # in the ISR without the committed records, and could be elected (KIP-903).
            reason = Reason.BROKER_EPOCH_MISMATCH
            text = f"{reason}: requested={epoch} VS expected={broker.epoch}"
            ineligible.append((broker_id, reason, text))
    return ineligible


def _ineligible_error(version: int) -> ErrorCode:
    """INELIGIBLE_REPLICA, or OPERATION_NOT_ATTEMPTED where the version does not have it."""
    return ErrorCode.INELIGIBLE_REPLICA if version >= 2 else ErrorCode.OPERATION_NOT_ATTEMPTED


def _offline_refusal(state: ClusterState, proposal: Proposal) -> Refusal | None:
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
            because = f"the log directory of replica {broker_id} is offline"
            error = _ineligible_error(proposal.version)
            return proposal.rejected(error, Reason.REPLICA_OFFLINE, because)
    return None


@step
def partition_change(state: ClusterState, proposal: Proposal) -> VersionedRecord | None:
    """The record of a proposal; it completes a reassignment that waited for its ISR."""
    topic, partition = proposal.topic, proposal.partition
    unclean = state.unclean_election_allowed(topic.name)
    return change_partition(
        topic.id,
        proposal.data.partition_index,
        partition,
        Targets(isr=proposal.isr, recovery_state=proposal.data.leader_recovery_state),
        gates=state.gates,
        acceptable=state.acceptor(partition, key=proposal.key),
        default_dir=state.default_dir,
        min_isr=state.min_isr(topic),
        election=Election.UNCLEAN if unclean else Election.ONLINE,
    )


def _names_another_leader(state: ClusterState, change: PartitionChangeRecord, sender: int) -> bool:
    if change.leader in (NO_LEADER_CHANGE, sender):
        return False
    return change.replicas is not None or not state.rules.new_leader_elected_by_reassignment_only


def _response(
    request: AlterPartitionRequest, version: int, outcomes: list[list[Outcome]] | ErrorCode
) -> AlterPartitionResponse:
    """The response with each partition's outcome, or with one error for all of them."""
    return AlterPartitionResponse(
        topics=tuple(
            AlterPartitionResponse.TopicData(
                topic_name=topic.topic_name if version < 2 else "",
                topic_id=topic.topic_id if version >= 2 else ZERO_UUID,
                partitions=tuple(
                    _partition_data(
                        data.partition_index,
                        outcomes if isinstance(outcomes, ErrorCode) else outcomes[n][p],
                    )
                    for p, data in enumerate(topic.partitions)
                ),
            )
            for n, topic in enumerate(request.topics)
        )
    )


def _partition_data(index: int, outcome: Outcome | ErrorCode) -> PartitionData:
    if isinstance(outcome, ErrorCode):
        return PartitionData(partition_index=index, error_code=outcome)
    if isinstance(outcome, Refusal):
        return PartitionData(partition_index=index, error_code=outcome.error)
    return PartitionData(
        partition_index=index,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=outcome.isr,
        leader_recovery_state=outcome.leader_recovery_state,
        partition_epoch=outcome.partition_epoch,
    )


API = ControllerApi(
    AlterPartitionRequest,
    lambda call: alter_partition(*call.plain),
    right=Operation.CLUSTER_ACTION,
    lowest_version=lambda rules: rules.alter_partition_version_lowest,
    items=("topics",),
    nothing=AlterPartitionResponse(),
)
