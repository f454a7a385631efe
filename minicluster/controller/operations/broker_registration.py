"""BrokerRegistration (62): a broker incarnation joins the cluster and gets its epoch.

An *incarnation* is one life of a broker's process, an id that it draws at its start. The *broker
epoch* is the controller's number for it: the end of the log at its registration, so a later
incarnation has a higher one. Each request of the broker carries it. One that was sent before a
restart and arrives after it is thus known as such (STALE_BROKER_EPOCH), wherever it was delayed.

| the registered broker of this id | and | the request |
|---|---|---|
| has this incarnation id | | is a retry: epoch, fencing and controlled shutdown stay |
| has another one, a live session | | is rejected: two processes must not share an id |
| has another one, no session | PreviousBrokerEpoch is its epoch | replaces it, cleanly |
| has another one, no session | anything else | replaces it, uncleanly |
| there is none | | registers it; its disk may come from anywhere: uncleanly |

A new incarnation begins fenced, whatever the one before was, and leaves all ISRs first: what its
disk holds is known only when it has fetched. After a clean shutdown everything was flushed, so it
keeps its place in ELRs; otherwise it loses that as well (KIP-966).

Versions:  0-4. The request's version counts only for PreviousBrokerEpoch, from 3 on.
Leaves out: ZooKeeper brokers, which are rejected; parsing listeners, beyond known protocols.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from minicluster.controller.api import Call, ControllerApi
from minicluster.controller.broker_changes import broker_restarted
from minicluster.controller.decision import Decision
from minicluster.controller.errors import ControllerFault, Reason, Rejected
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.cluster import BrokerRegistration
from minicluster.metadata.image.directory_id import is_reserved
from minicluster.metadata.metadata_version import FEATURE_NAME, MINIMUM
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import BrokerRegistrationRequest, BrokerRegistrationResponse
from minicluster.protocol.records import RegisterBrokerRecord, VersionedRecord
from minicluster.protocol.schema import Struct
from minicluster.protocol.uuids import format_uuid
from minicluster.security.acls import Operation
from minicluster.values import Value, replace

_SECURITY_PROTOCOLS = range(4)
"""PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL."""

DUPLICATE = "Another broker is registered with that broker id."
RESOLVES = (
    " If the broker was recently restarted this should self-resolve once the heartbeat manager "
    "expires the broker's session."
)

S = TypeVar("S", bound=Struct)
Feature = BrokerRegistrationRequest.Feature


class BrokerRegistrationReply(Value, kw_only=True):
    """The epoch that a broker got."""

    broker_epoch: int


def register_broker(
    state: ClusterState,
    request: BrokerRegistrationRequest,
    version: int,
    next_offset: int,
    kraft_version: int,
    now_ms: int,
) -> Decision:
    """Decide one registration: reject it, renew it, or replace the incarnation before.

    Units:   next_offset is the offset of the first record of this decision, and the epoch of a new
             incarnation; clean-up records may precede the registration itself.
    Errors:  Rejected in Kafka's order: cluster id, live session, ZooKeeper, directories, features.
    Source:  KIP-631, KIP-841, KIP-858, KIP-966; ClusterControlManager.registerBroker.
    """
    heartbeats = state.active_heartbeats()
    cluster_id = state.settings.cluster_id
    if request.cluster_id != cluster_id:
        raise Rejected(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {cluster_id}, but got cluster ID {request.cluster_id}",
            Reason.CLUSTER_ID_MISMATCH,
        )
    existing = state.image.cluster.broker(request.broker_id)
    amends = _is_same_incarnation(existing, request)
    # Two processes with one broker id, by mistake, would fence each other for ever.
    if (
        existing is not None
        and not amends
        and heartbeats.has_valid_session(existing.id, existing.epoch, now_ms)
    ):
        raise Rejected(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            DUPLICATE + (RESOLVES if state.rules.duplicate_registration_message_has_advice else ""),
            Reason.DUPLICATE_REGISTRATION,
        )
    if request.is_migrating_zk_broker:
        raise Rejected(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Controller does not support registering ZK brokers.",
            Reason.ZK_BROKER,
        )
    if state.gates.metadata_version.directory_assignment_supported:
        _check_directories(state, request)
    check_listeners(request.listeners)
    features = _checked_features(state, request, kraft_version)
    records: list[VersionedRecord] = []
    if not amends:
        # Before the registration: no prefix of the log may have the new incarnation in ISRs that
        # the old one was in, with a log that may be gone.
        is_clean = is_clean_restart(state, existing, request, version)
        records = list(broker_restarted(state, request.broker_id, is_clean))
    record = registration_record(state, request, features, existing, next_offset)
    records.append(record)
    assert isinstance(record.record, RegisterBrokerRecord)
    return Decision(
        records=tuple(records),
        response=BrokerRegistrationReply(broker_epoch=record.record.broker_epoch),
        atomic=state.rules.register_broker_is_atomic,
    )


@step
def is_clean_restart(
    state: ClusterState,
    existing: BrokerRegistration | None,
    request: BrokerRegistrationRequest,
    version: int,
) -> bool:
    """True for a broker that proves that it was shut down in good order (KIP-966)."""
    return (
        state.rules.previous_broker_epoch_counts
        and version >= 3
        and existing is not None
        and existing.epoch == request.previous_broker_epoch
    )


@step
def registration_record(
    state: ClusterState,
    request: BrokerRegistrationRequest,
    features: list[Feature],
    existing: BrokerRegistration | None,
    next_offset: int,
) -> VersionedRecord:
    """The registration: the same incarnation keeps its epoch, a new one begins fenced."""
    amended = existing if _is_same_incarnation(existing, request) else None
    version = state.gates.metadata_version
    cordoned = None
    if amended is not None and not state.rules.amend_forgets_cordoned_dirs:
        cordoned = amended.cordoned_log_dirs if version.cordoned_log_dirs_supported else None
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=next_offset if amended is None else amended.epoch,
        end_points=copies(request.listeners, RegisterBrokerRecord.BrokerEndpoint),
        features=copies(features, RegisterBrokerRecord.BrokerFeature),
        rack=request.rack,
        fenced=True if amended is None else amended.fenced,
        in_controlled_shutdown=amended is not None
        and amended.in_controlled_shutdown
        and not state.rules.amend_ends_controlled_shutdown,
        log_dirs=request.log_dirs if version.directory_assignment_supported else (),
        cordoned_log_dirs=cordoned,
    )
    return VersionedRecord(record, version.register_broker_record_version)


def copies(structs: Iterable[Struct], kind: type[S]) -> tuple[S, ...]:
    """Structures of a request as those of a record, which have the same fields."""
    names = [spec.name for spec in kind.schema]
    return tuple(kind(**{name: getattr(each, name) for name in names}) for each in structs)


def _is_same_incarnation(
    existing: BrokerRegistration | None, request: BrokerRegistrationRequest
) -> bool:
    return existing is not None and existing.incarnation_id == request.incarnation_id


def _check_directories(state: ClusterState, request: BrokerRegistrationRequest) -> None:
    """Reject none, reserved ones, duplicates and those of another broker, in this order."""
    dirs = request.log_dirs
    if not dirs:
        raise _invalid_directories("No directories specified in request")
    if any(is_reserved(directory) for directory in dirs):
        raise _invalid_directories("Reserved directory ID in request")
    if len(set(dirs)) < len(dirs):
        raise _invalid_directories("Duplicate directory ID in request")
    for directory in dirs:
        for broker in state.image.cluster.brokers.values():
            if broker.id != request.broker_id and directory in broker.log_dirs:
                raise _invalid_directories(
                    f"Broker {broker.id} is already registered with directory "
                    f"{format_uuid(directory)}",
                )


def _invalid_directories(message: str) -> Rejected:
    return Rejected(ErrorCode.INVALID_REGISTRATION, message, Reason.INVALID_DIRECTORIES)


def check_listeners(listeners: Iterable[Any]) -> None:
    """Check the security protocols of the listeners of a broker or a controller.

    Errors:  ControllerFault for an unknown one; Kafka's controller resigns.
    Source:  ListenerInfo.fromBrokerRegistrationRequest, fromControllerRegistrationRequest.
    """
    for listener in listeners:
        if listener.security_protocol not in _SECURITY_PROTOCOLS:
            raise ControllerFault(f"listener {listener.name}: unknown security protocol")


def _checked_features(
    state: ClusterState, request: BrokerRegistrationRequest, kraft_version: int
) -> list[Feature]:
    """The offered features, if they take in every finalized level."""
    finalized = state.image.features.finalized()
    if kraft_version:
        finalized["kraft.version"] = kraft_version
    offered = list(request.features)
    if state.rules.metadata_version_is_assumed:
        finalized.setdefault(FEATURE_NAME, MINIMUM.level)
    for offer in offered:
        _check_feature(finalized.get(offer.name, 0), offer)
    names = {offer.name for offer in offered}
    if FEATURE_NAME not in names:
        if state.rules.registration_needs_metadata_version:
            raise Rejected(
                ErrorCode.INVALID_REGISTRATION,
                "Request features do not contain 'metadata.version'",
                Reason.UNSUPPORTED_FEATURE_LEVEL,
            )
        assumed = Feature(name=FEATURE_NAME, min_supported_version=1, max_supported_version=1)
        _check_feature(finalized.get(FEATURE_NAME, 0), assumed)
        offered.append(assumed)
        names.add(FEATURE_NAME)
    for name, level in finalized.items():
        if level != 0 and name not in names:
            _check_feature(level, Feature(name=name))
    return offered


def _check_feature(level: int, offer: Feature) -> None:
    low, high = offer.min_supported_version, offer.max_supported_version
    if not low <= level <= high:
        raise Rejected(
            ErrorCode.UNSUPPORTED_VERSION,
            "Unable to register because the broker does not support finalized version "
            f"{level} of {offer.name}. The broker wants a version between {low} and {high}, "
            "inclusive.",
            Reason.UNSUPPORTED_FEATURE_LEVEL,
        )


def _decide(call: Call) -> Decision:
    decision = register_broker(
        call.state, call.request, call.version, call.next_offset, call.kraft.level, call.now_ms
    )
    reply: BrokerRegistrationReply = decision.response
    response = BrokerRegistrationResponse(broker_epoch=reply.broker_epoch)
    return replace(decision, response=response)


API = ControllerApi(
    BrokerRegistrationRequest,
    _decide,
    right=Operation.CLUSTER_ACTION,
)
