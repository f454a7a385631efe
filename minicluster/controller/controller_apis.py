"""The APIs of a controller: one row per request.

Source:  ControllerApis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from minicluster.controller.api import Api, Call, Screened
from minicluster.controller.deciding.decision import Decision
from minicluster.controller.operations.allocate_producer_ids import allocate_producer_ids
from minicluster.controller.operations.alter_client_quotas import alter_client_quotas
from minicluster.controller.operations.alter_configs import (
    alter_configs,
    incremental_alter_configs,
    screen_alter_configs,
    screen_incremental_alter_configs,
)
from minicluster.controller.operations.alter_partition import alter_partition
from minicluster.controller.operations.alter_partition_reassignments import (
    alter_partition_reassignments,
)
from minicluster.controller.operations.alter_user_scram_credentials import (
    alter_user_scram_credentials,
)
from minicluster.controller.operations.assign_replicas_to_dirs import assign_replicas_to_dirs
from minicluster.controller.operations.broker_heartbeat import (
    BrokerHeartbeatReply,
    broker_heartbeat,
)
from minicluster.controller.operations.broker_registration import (
    BrokerRegistrationReply,
    register_broker,
)
from minicluster.controller.operations.controller_registration import register_controller
from minicluster.controller.operations.create_partitions import (
    create_partitions,
    screen_create_partitions,
)
from minicluster.controller.operations.create_topics import create_topics, screen_create_topics
from minicluster.controller.operations.delete_topics import delete_topics, screen_delete_topics
from minicluster.controller.operations.elect_leaders import elect_leaders
from minicluster.controller.operations.kip_texts.alter_isr import (
    alter_isr_of_kip_497,
    alter_isr_of_kip_704,
)
from minicluster.controller.operations.kip_texts.alter_replica_state import alter_replica_state
from minicluster.controller.operations.list_partition_reassignments import (
    list_partition_reassignments,
)
from minicluster.controller.operations.unregister_broker import unregister_broker
from minicluster.controller.operations.update_features import update_features
from minicluster.protocol import messages as m
from minicluster.protocol.messages.kip_texts import kip_497, kip_704
from minicluster.protocol.messages.kip_texts.kip_589 import AlterReplicaStateRequest


def _register_broker(call: Call) -> Decision:
    decision = register_broker(
        call.state, call.request, call.version, call.next_offset, call.kraft.level, call.now_ms
    )
    reply: BrokerRegistrationReply = decision.response
    response = m.BrokerRegistrationResponse(broker_epoch=reply.broker_epoch)
    return replace(decision, response=response)


def _broker_heartbeat(call: Call) -> Decision:
    decision = broker_heartbeat(*call.plain)
    reply: BrokerHeartbeatReply = decision.response
    response = m.BrokerHeartbeatResponse(
        is_caught_up=reply.is_caught_up,
        is_fenced=reply.is_fenced,
        should_shut_down=reply.should_shut_down,
    )
    return replace(decision, response=response)


def _create_topics(call: Call) -> Decision:
    return create_topics(
        call.state,
        call.request,
        call.version,
        call.draw,
        call.new_topic_id,
        call.quota,
        call.now_ms,
    )


def _create_partitions(call: Call) -> Decision:
    return create_partitions(
        call.state, call.request, call.version, call.draw, call.quota, call.now_ms
    )


def _delete_topics(call: Call) -> Decision:
    return delete_topics(call.state, call.request, call.version, call.quota, call.now_ms)


def _list_partition_reassignments(call: Call) -> Decision:
    return list_partition_reassignments(
        call.state, call.request, call.version, call.committed, call.now_ms
    )


def _incremental_alter_configs(call: Call) -> Decision:
    return incremental_alter_configs(
        call.state, call.request, call.version, call.forwarded, call.now_ms
    )


def _alter_configs(call: Call) -> Decision:
    return alter_configs(call.state, call.request, call.version, call.forwarded, call.now_ms)


def _screen_delete_topics(call: Call) -> Screened:
    return screen_delete_topics(call.state, call.request, call.version, call.committed)


def _update_features(call: Call) -> Decision:
    return update_features(call.state, call.request, call.version, call.kraft, call.now_ms)


CONTROLLER_APIS: Mapping[type, Api] = {
    # Of brokers and controllers.
    m.AlterPartitionRequest: Api(
        lambda call: alter_partition(*call.plain),
        cluster_action=True,
        lowest_version=lambda rules: rules.alter_partition_version_lowest,
        items=("topics",),
        nothing=m.AlterPartitionResponse(),
    ),
    m.BrokerRegistrationRequest: Api(_register_broker, cluster_action=True),
    m.BrokerHeartbeatRequest: Api(_broker_heartbeat, cluster_action=True),
    m.AssignReplicasToDirsRequest: Api(
        lambda call: assign_replicas_to_dirs(*call.plain), cluster_action=True
    ),
    m.ControllerRegistrationRequest: Api(
        lambda call: register_controller(*call.plain), cluster_action=True
    ),
    m.AllocateProducerIdsRequest: Api(
        lambda call: allocate_producer_ids(*call.plain), cluster_action=True
    ),
    # Of administrators, forwarded by a broker or sent to the controller itself.
    m.CreateTopicsRequest: Api(
        _create_topics,
        screen=lambda call: screen_create_topics(call.request),
        items=("topics",),
        nothing=m.CreateTopicsResponse(),
        quota_strict_since=6,
    ),
    m.UnregisterBrokerRequest: Api(lambda call: unregister_broker(*call.plain)),
    m.DeleteTopicsRequest: Api(
        _delete_topics,
        screen=_screen_delete_topics,
        items=("topics",),
        nothing=m.DeleteTopicsResponse(),
        quota_strict_since=5,
    ),
    m.CreatePartitionsRequest: Api(
        _create_partitions,
        screen=lambda call: screen_create_partitions(call.request),
        items=("topics",),
        nothing=m.CreatePartitionsResponse(),
        quota_strict_since=3,
    ),
    m.ElectLeadersRequest: Api(
        lambda call: elect_leaders(*call.plain),
        items=("topic_partitions",),
        nothing=m.ElectLeadersResponse(),
    ),
    m.AlterPartitionReassignmentsRequest: Api(
        lambda call: alter_partition_reassignments(*call.plain),
        items=("topics",),
        nothing=m.AlterPartitionReassignmentsResponse(),
    ),
    m.ListPartitionReassignmentsRequest: Api(_list_partition_reassignments, reads=True),
    m.IncrementalAlterConfigsRequest: Api(
        _incremental_alter_configs,
        screen=lambda call: screen_incremental_alter_configs(call.state, call.request),
        items=("resources",),
        nothing=m.IncrementalAlterConfigsResponse(),
    ),
    m.AlterConfigsRequest: Api(
        _alter_configs,
        screen=lambda call: screen_alter_configs(call.state, call.request),
        items=("resources",),
        nothing=m.AlterConfigsResponse(),
    ),
    m.AlterClientQuotasRequest: Api(
        lambda call: alter_client_quotas(*call.plain),
        items=("entries",),
        nothing=m.AlterClientQuotasResponse(),
    ),
    m.AlterUserScramCredentialsRequest: Api(
        lambda call: alter_user_scram_credentials(*call.plain),
        items=("deletions", "upsertions"),
        nothing=m.AlterUserScramCredentialsResponse(),
    ),
    m.UpdateFeaturesRequest: Api(_update_features),
    # Of the texts of KIPs; never shipped.
    kip_497.AlterIsrRequest: Api(
        lambda call: alter_isr_of_kip_497(*call.plain), cluster_action=True
    ),
    kip_704.AlterIsrRequest: Api(
        lambda call: alter_isr_of_kip_704(*call.plain), cluster_action=True
    ),
    AlterReplicaStateRequest: Api(
        lambda call: alter_replica_state(*call.plain), cluster_action=True
    ),
}
