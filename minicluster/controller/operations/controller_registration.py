"""ControllerRegistration (70) and AllocateProducerIds (67): small services to other nodes."""

from __future__ import annotations

from minicluster.controller.deciding.decision import Decision, Refused
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from minicluster.protocol.records import (
    ProducerIdsRecord,
    RegisterControllerRecord,
    VersionedRecord,
)

PRODUCER_ID_BLOCK = 1_000


def register_controller(
    state: ClusterState, request: ControllerRegistrationRequest, version: int, now_ms: int
) -> Decision:
    """Note a controller's endpoints and features.

    Errors:  Refused with UNSUPPORTED_VERSION below metadata.version 3.7-IV0.
    Source:  KIP-919; ClusterControlManager.registerController.
    """
    gates = state.gates.metadata_version
    if not gates.controller_registration_supported:
        raise Refused(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=tuple(
            RegisterControllerRecord.ControllerEndpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in request.listeners
        ),
        features=tuple(
            RegisterControllerRecord.ControllerFeature(
                name=offer.name,
                min_supported_version=offer.min_supported_version,
                max_supported_version=offer.max_supported_version,
            )
            for offer in request.features
        ),
    )
    return Decision(
        records=(VersionedRecord(record, gates.register_controller_record_version),),
        response=ControllerRegistrationResponse(error_message=None),
        atomic=True,
    )


def allocate_producer_ids(
    state: ClusterState, request: AllocateProducerIdsRequest, version: int, now_ms: int
) -> Decision:
    """Give a broker the next block of producer ids.

    Errors:  Refused with STALE_BROKER_EPOCH.
    Source:  KIP-730; ProducerIdControlManager.generateNextProducerId.
    """
    state.check_broker_epoch(request.broker_id, request.broker_epoch)
    first = max(0, state.image.producer_ids.next_producer_id)
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + PRODUCER_ID_BLOCK,
    )
    return Decision(
        records=(VersionedRecord(record, 0),),
        response=AllocateProducerIdsResponse(
            producer_id_start=first, producer_id_len=PRODUCER_ID_BLOCK
        ),
    )
