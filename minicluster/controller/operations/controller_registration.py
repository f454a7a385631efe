"""ControllerRegistration (70): a controller announces its endpoints and features.

Versions:  0; needs metadata.version 3.7-IV0.
"""

from __future__ import annotations

from minicluster.controller.api import ControllerApi
from minicluster.controller.decision import Decision
from minicluster.controller.errors import Reason, Rejected
from minicluster.controller.operations.broker_registration import check_listeners, copies
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from minicluster.protocol.records import RegisterControllerRecord, VersionedRecord
from minicluster.security.acls import Operation


def register_controller(
    state: ClusterState, request: ControllerRegistrationRequest, version: int, now_ms: int
) -> Decision:
    """Write a controller's endpoints and features.

    Errors:  Rejected with UNSUPPORTED_VERSION below metadata.version 3.7-IV0.
    Source:  KIP-919; ClusterControlManager.registerController.
    """
    gates = state.gates.metadata_version
    if not gates.controller_registration_supported:
        raise Rejected(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
            Reason.UNSUPPORTED_METADATA_VERSION,
        )
    check_listeners(request.listeners)
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready and state.rules.zk_migration_ready_is_kept,
        end_points=copies(request.listeners, RegisterControllerRecord.ControllerEndpoint),
        features=copies(request.features, RegisterControllerRecord.ControllerFeature),
    )
    return Decision(
        records=(VersionedRecord(record, gates.register_controller_record_version),),
        response=ControllerRegistrationResponse(),
        atomic=True,
    )


API = ControllerApi(
    ControllerRegistrationRequest,
    lambda call: register_controller(*call.plain),
    right=Operation.CLUSTER_ACTION,
)
