"""The APIs of the controller, as the modules that decide them declare them."""

from __future__ import annotations

from minicluster.zookeeper.controller import (
    allocate_producer_ids,
    alter_partition,
    alter_replica_state,
    controlled_shutdown,
    preferred_election,
    reassignment,
)
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.events import ControllerEvent, RequestReceived
from minicluster.zookeeper.process import Process

_APIS = (
    alter_partition.API,
    controlled_shutdown.API,
    preferred_election.API,
    reassignment.ALTER_PARTITION_REASSIGNMENTS,
    reassignment.LIST_PARTITION_REASSIGNMENTS,
    allocate_producer_ids.API,
    alter_replica_state.API,
)
_BY_REQUEST = {api.request: api for api in _APIS}

CONTROLLER_REQUESTS = tuple(_BY_REQUEST)
"""The requests that the controller decides in turn with its other events."""


def process_request(state: ControllerState, event: RequestReceived) -> Process[None] | None:
    """Decide a request; None if it was decided at once.

    Errors:  TypeError for a request that the controller does not decide.
    """
    api = _BY_REQUEST.get(type(event.request))
    if api is None:
        raise TypeError(f"the controller has no {type(event.request).__name__}")
    return api.process(state, event)


def preempted(state: ControllerState, event: ControllerEvent) -> None:
    """Respond to a request that waits as a broker that is not the controller."""
    if isinstance(event, RequestReceived):
        response = _BY_REQUEST[type(event.request)].preempted(event.request)
        if response is not None:
            state.respond(event.token, response)
