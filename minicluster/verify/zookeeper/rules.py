"""Promises about Kafka's znodes that hold in every run."""

from __future__ import annotations

from minicluster.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ZnodeRule:
    """One promise, and where it is given."""

    id: str
    title: str
    source: str


ZNODE_RULES = {
    rule.id: rule
    for rule in (
        ZnodeRule(
            id="K1",
            title="a controller epoch has one writer: /controller and the next epoch come together",
            source="KAFKA-6082; KafkaZkClient.registerControllerAndIncrementControllerEpoch",
        ),
        ZnodeRule(
            id="K2",
            title="a controller that another one has followed writes no state",
            source="KAFKA-6082; KafkaZkClient.retryRequestsUntilConnected",
        ),
        ZnodeRule(
            id="K3",
            title="the leader epoch rises by one with each decision of the controller, else never",
            source="KIP-497; LeaderAndIsr.newLeaderAndIsr",
        ),
        ZnodeRule(
            id="K4",
            title="a write that keeps the leader epoch keeps the leader",
            source="KIP-497; ReplicationUtils.updateLeaderAndIsr",
        ),
        ZnodeRule(
            id="K5",
            title="the ISR has a member, each once, and replicas only",
            source="KIP-497; ReplicaStateMachine.doRemoveReplicasFromIsr",
        ),
        ZnodeRule(
            id="K6",
            title="the leader is in the ISR, or there is none",
            source="KIP-704; Election",
        ),
        ZnodeRule(
            id="K7",
            title="a leader from outside the ISR is elected only if no member is alive, and is the "
            "ISR alone",
            source="KIP-106; PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection",
        ),
        ZnodeRule(
            id="K8",
            title="from IBP 3.2 on such a leader is recovering, until it asks for another ISR",
            source="KIP-704; LeaderAndIsr.newRecoveringLeaderAndIsr",
        ),
        ZnodeRule(
            id="K9",
            title="the id of a topic never changes",
            source="KIP-516, KAFKA-14190; ControllerContext.addTopicId",
        ),
        ZnodeRule(
            id="K10",
            title="the ISR gains members only by the leader's wish: the controller adds none",
            source="KIP-497; KafkaController.processAlterPartition",
        ),
        ZnodeRule(
            id="K11",
            title="a member that joins the ISR is alive (from IBP 2.7-IV2 on, release 3.3)",
            source="KIP-841; KafkaController.tryProcessAlterPartition",
        ),
        ZnodeRule(
            id="K12",
            title="a reassignment ends when all replicas that it adds are in the ISR",
            source="KIP-455; KafkaController.isReassignmentComplete",
        ),
        ZnodeRule(
            id="K13",
            title="the controller is notified of every ISR that a leader has written, in 70 s",
            source="KIP-497; ZkAlterPartitionManager",
        ),
    )
}
