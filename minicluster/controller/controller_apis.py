"""The APIs of a controller: one row per request.

Those of a start are here, the others in ``administration``.

Source:  ControllerApis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from minicluster.controller.api import Api, Call
from minicluster.controller.deciding.decision import Decision
from minicluster.controller.operations.alter_partition import alter_partition
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
from minicluster.controller.operations.create_topics import create_topics
from minicluster.controller.screening.topics import screen_create_topics
from minicluster.protocol import messages as m


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


_FIRST: Mapping[type, Api] = {
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
    m.CreateTopicsRequest: Api(
        _create_topics,
        screen=lambda call: screen_create_topics(call.request),
        items=("topics",),
        nothing=m.CreateTopicsResponse(),
        quota_strict_since=6,
    ),
    m.ControllerRegistrationRequest: Api(
        lambda call: register_controller(*call.plain), cluster_action=True
    ),
}


def api_of(request: type) -> Api | None:
    """The row of a request's class; the first one of an administrator loads those of all."""
    found = _FIRST.get(request)
    return _administration().get(request) if found is None else found


def all_apis() -> Mapping[type, Api]:
    """Every row."""
    return {**_FIRST, **_administration()}


def _administration() -> Mapping[type, Api]:
    from minicluster.controller.administration import ADMINISTRATION

    return ADMINISTRATION
