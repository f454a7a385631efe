"""The state znodes of partitions: who writes them, and one write after the other.

A row of ``znode_states`` has the state before the write, and what the write is judged under.
"""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

VIEWS = (
    View(
        name="znode_state_writes",
        sql="""select *, leader_epoch = p_leader_epoch as same_epoch,
          array_except(isr, p_isr) as gained,
          leader <> -1 and not array_contains(p_isr, leader) as unclean
          from znode_states where kind = 'Write'""",
    ),
)

_CHANGE = "p_isr is not null"

RULES = (
    Rule(
        id="K2",
        title="A deposed controller writes no state",
        statement="A state is written by the session of the newest controller and with its epoch, "
        "or below IBP 2.7-IV2 by the leader.",
        source="KAFKA-6082; KafkaZkClient.retryRequestsUntilConnected",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_state_writes",
                when="true",
                bad="not of_leader and (not of_controller or controller_epoch <> epoch)",
                message="written in controller epoch {number} by a controller that another one has "
                "followed, or by none",
                number="controller_epoch",
            ),
        ),
    ),
    Rule(
        id="K3",
        title="Leader epochs rise by one with each decision of the controller",
        statement="A write keeps the leader epoch, or it raises it by one.",
        source="KIP-497; LeaderAndIsr.newLeaderAndIsr",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_state_writes",
                when=_CHANGE,
                bad="not same_epoch and leader_epoch <> p_leader_epoch + 1",
                message="the leader epoch goes from {old} to {number}",
                old="array(p_leader_epoch)",
                number="leader_epoch",
            ),
        ),
    ),
    Rule(
        id="K4",
        title="A leader epoch has one leader",
        statement="A write that keeps the leader epoch keeps the leader.",
        source="KIP-497; ReplicationUtils.updateLeaderAndIsr",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_state_writes",
                when=_CHANGE,
                bad="same_epoch and leader <> p_leader",
                message="leader {broker} follows {old} in the same leader epoch {number}",
                broker="leader",
                old="array(p_leader)",
                number="leader_epoch",
            ),
        ),
    ),
    Rule(
        id="K5",
        title="ISR members are replicas, each once",
        statement="An ISR has a member, each once, and replicas of the partition only.",
        source="KIP-497; ReplicaStateMachine.doRemoveReplicasFromIsr",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_state_writes",
                when="true",
                bad="size(isr) = 0 or size(array_distinct(isr)) < size(isr) "
                "or size(array_except(isr, replicas)) > 0",
                message="ISR {new} of the replicas {old}",
                old="replicas",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="K6",
        title="The leader is in the ISR of its znode",
        statement="The leader is a member of the ISR, or there is no leader.",
        source="KIP-704; Election",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_state_writes",
                when="true",
                bad="leader <> -1 and not array_contains(isr, leader)",
                message="leader {broker} is not in the ISR {new}",
                broker="leader",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="K7",
        title="An unclean election needs an ISR without a live member",
        statement="A leader from outside the ISR is elected only if no member is alive as far as "
        "the controller has read, and is the ISR alone.",
        source="KIP-106; PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_state_writes",
                when=f"{_CHANGE} and unclean",
                bad="arrays_overlap(p_isr, noticed) or isr <> array(leader)",
                message="leader {broker} from outside the ISR {old}, of which a member is alive, "
                "or with the ISR {new}",
                broker="leader",
                old="p_isr",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="K8",
        title="An unclean leader is recovering",
        statement="From IBP 3.2 on an unclean leader is recovering, until it changes its ISR.",
        source="KIP-704; LeaderAndIsr.newRecoveringLeaderAndIsr",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_state_writes",
                when=f"{_CHANGE} and unclean",
                bad="recovery_supported and rec = 0",
                message="unclean leader {broker} is not recovering",
                broker="leader",
            ),
            Check(
                view="znode_state_writes",
                when=f"{_CHANGE} and not unclean and (rec <> p_rec or p_rec <> 0)",
                bad="rec <> p_rec and (rec <> 0 or not same_epoch)",
                message="the recovery state became {number} without a request of its leader",
                number="rec",
            ),
        ),
    ),
    Rule(
        id="K10",
        title="Only leaders add members to an ISR",
        statement="The ISR gains members only in a write that keeps the leader epoch, as those for "
        "a leader do. An unclean election is the exception.",
        source="KIP-497; KafkaController.processAlterPartition",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_state_writes",
                when=f"{_CHANGE} and not unclean and size(gained) > 0",
                bad="not same_epoch",
                message="the controller took the ISR from {old} to {new}",
                old="p_isr",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="K11",
        title="Only live replicas enter an ISR on ZooKeeper",
        statement="A member that joins the ISR is alive as far as the controller has read, from "
        "IBP 2.7-IV2 and release 3.3 on.",
        source="KIP-841; KafkaController.tryProcessAlterPartition",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_state_writes",
                when=f"{_CHANGE} and members_checked and same_epoch and size(gained) > 0",
                bad="arrays_overlap(gained, dead)",
                message="of the ISR {new} some joined that are not among the live {old}",
                old="live",
                new="isr",
            ),
        ),
    ),
)
