"""The APIs of a controller: one row per request.

Source:  ControllerApis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from minicluster.controller.deciding.decision import Decision, KRaftVersion
from minicluster.controller.deciding.placement import Draw
from minicluster.controller.mutation_quotas import MutationQuota
from minicluster.controller.operations.allocate_producer_ids import allocate_producer_ids
from minicluster.controller.operations.alter_configs import alter_configs
from minicluster.controller.operations.alter_partition import alter_partition
from minicluster.controller.operations.alter_partition_reassignments import (
    alter_partition_reassignments,
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
from minicluster.controller.operations.clients.alter_client_quotas import alter_client_quotas
from minicluster.controller.operations.clients.alter_user_scram_credentials import (
    alter_user_scram_credentials,
)
from minicluster.controller.operations.controller_registration import register_controller
from minicluster.controller.operations.create_partitions import create_partitions
from minicluster.controller.operations.create_topics import create_topics
from minicluster.controller.operations.delete_topics import delete_topics
from minicluster.controller.operations.elect_leaders import elect_leaders
from minicluster.controller.operations.incremental_alter_configs import incremental_alter_configs
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
from minicluster.controller.screening.configs import (
    screen_alter_configs,
    screen_incremental_alter_configs,
)
from minicluster.controller.screening.delete_topics import screen_delete_topics
from minicluster.controller.screening.screened import Screened
from minicluster.controller.screening.topics import (
    screen_create_partitions,
    screen_create_topics,
)
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.lazy_dataclass import dataclass
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import messages as m
from minicluster.protocol.messages.kip_texts import kip_497, kip_704
from minicluster.protocol.messages.kip_texts.kip_589 import AlterReplicaStateRequest
from minicluster.rules import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request with everything that its decision may need.

    Shapes:  state includes what is made and not yet committed; committed does not.
    Units:   next_offset is the offset of the decision's first record.
    """

    state: ClusterState
    request: Any
    version: int
    next_offset: int
    kraft: KRaftVersion
    forwarded: bool
    draw: Draw
    new_topic_id: Callable[[], UUID]
    committed: MetadataImage
    quota: MutationQuota
    now_ms: int

    @property
    def plain(self) -> tuple[ClusterState, Any, int, int]:
        """The arguments that every operation takes."""
        return self.state, self.request, self.version, self.now_ms


@dataclass(frozen=True, slots=True)
class Api:
    """The way in which one request is served.

    Shapes:  cluster_action: only brokers and controllers are authorized. lowest_version: of those
             that the release serves. screen: the checks that any controller does first. items: the
             fields that list what the request is about; where nothing is left any controller
             responds, at once, with ``nothing``. reads: any controller responds, from what is
             committed. quota_strict_since: the version from which the quota on
             partitions refuses what exceeds it (KIP-599); before, it is only reported.
    """

    decide: Callable[[Call], Decision]
    cluster_action: bool = False
    lowest_version: Callable[[Rules], int] = lambda rules: 0
    screen: Callable[[Call], Screened] | None = None
    items: tuple[str, ...] = ()
    nothing: Any = None
    reads: bool = False
    quota_strict_since: int | None = None

    def is_empty(self, request: Any) -> bool:
        """True for a request that lists nothing to do."""
        return bool(self.items) and all(getattr(request, items) == () for items in self.items)


def _register_broker(call: Call) -> Decision:
    decision = register_broker(
        call.state, call.request, call.version, call.next_offset, call.kraft.level, call.now_ms
    )
    made: BrokerRegistrationReply = decision.response
    return replace(decision, response=m.BrokerRegistrationResponse(broker_epoch=made.broker_epoch))


def _broker_heartbeat(call: Call) -> Decision:
    decision = broker_heartbeat(*call.plain)
    made: BrokerHeartbeatReply = decision.response
    response = m.BrokerHeartbeatResponse(
        is_caught_up=made.is_caught_up,
        is_fenced=made.is_fenced,
        should_shut_down=made.should_shut_down,
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


APIS: dict[type, Api] = {
    m.AlterPartitionRequest: Api(
        lambda call: alter_partition(*call.plain),
        cluster_action=True,
        lowest_version=lambda rules: rules.alter_partition_version_lowest,
        items=("topics",),
        nothing=m.AlterPartitionResponse(),
    ),
    m.BrokerRegistrationRequest: Api(_register_broker, cluster_action=True),
    m.BrokerHeartbeatRequest: Api(_broker_heartbeat, cluster_action=True),
    m.UnregisterBrokerRequest: Api(lambda call: unregister_broker(*call.plain)),
    m.AssignReplicasToDirsRequest: Api(
        lambda call: assign_replicas_to_dirs(*call.plain), cluster_action=True
    ),
    m.CreateTopicsRequest: Api(
        _create_topics,
        screen=lambda call: screen_create_topics(call.request),
        items=("topics",),
        nothing=m.CreateTopicsResponse(),
        quota_strict_since=6,
    ),
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
    m.ControllerRegistrationRequest: Api(
        lambda call: register_controller(*call.plain), cluster_action=True
    ),
    m.AllocateProducerIdsRequest: Api(
        lambda call: allocate_producer_ids(*call.plain), cluster_action=True
    ),
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
