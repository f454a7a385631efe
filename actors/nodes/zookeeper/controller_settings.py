"""The settings of the candidate for the controller, from the broker's configs and its release."""

from __future__ import annotations

from minicluster.actors.nodes.shell import NodeContext
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.rules import FailedReplicas
from minicluster.zookeeper.controller.state.settings import (
    ReleaseRules,
    ZooKeeperControllerSettings,
)


def controller_settings(
    context: NodeContext, protocol: InterBrokerProtocol
) -> ZooKeeperControllerSettings:
    """The settings; by the text of KIP-589 brokers send AlterReplicaState, else write a znode."""
    config, reported_by = context.config, context.rules.failed_replicas_reported_by
    unclean = config.static.get("unclean.leader.election.enable", "false")
    return ZooKeeperControllerSettings(
        broker_id=context.node_id,
        protocol=protocol,
        unclean_leader_election_enable=unclean.lower() == "true",
        auto_leader_rebalance_enable=config.auto_leader_rebalance,
        delete_topic_enable=config.enables("delete.topic.enable"),
        leader_imbalance_check_interval_ms=config.imbalance_check_interval_ms,
        leader_imbalance_per_broker_percentage=config.leader_imbalance_percentage,
        own_writes_recognized=not context.rules.own_state_write_is_refused,
        replica_states_reported=reported_by is FailedReplicas.ALTER_REPLICA_STATE,
        release=ReleaseRules.of(protocol.release),
    )
