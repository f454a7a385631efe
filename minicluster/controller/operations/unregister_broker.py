"""UnregisterBroker (64): take a broker out of the cluster for good."""

from __future__ import annotations

from minicluster.controller.api import ControllerApi
from minicluster.controller.broker_changes import broker_unregistered
from minicluster.controller.decision import Decision
from minicluster.controller.errors import Reason, Rejected, reject_too_many_records
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import UnregisterBrokerRequest, UnregisterBrokerResponse
from minicluster.security.acls import Operation


def unregister_broker(
    state: ClusterState, request: UnregisterBrokerRequest, version: int, now_ms: int
) -> Decision:
    """Remove a registration, alive or not.

    Errors:  Rejected with BROKER_ID_NOT_REGISTERED; with POLICY_VIOLATION where it changes too many
             partitions.
    Source:  ReplicationControlManager.unregisterBroker.
    """
    broker = state.image.cluster.broker(request.broker_id)
    if broker is None:
        raise Rejected(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {request.broker_id} is not currently registered",
            Reason.NOT_REGISTERED,
        )
    records = list(broker_unregistered(state, broker))
    reject_too_many_records(len(records))
    return Decision(records=tuple(records), response=UnregisterBrokerResponse())


API = ControllerApi(
    UnregisterBrokerRequest,
    lambda call: unregister_broker(*call.plain),
    right=Operation.ALTER,
)
