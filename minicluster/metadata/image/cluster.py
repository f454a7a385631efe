"""Registered brokers and controllers.

Source:  KIP-631, KIP-841, KIP-858, KIP-919, KIP-1066; ClusterImage, ClusterControlManager.replay.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from msgspec import field

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image import directory_id
from minicluster.metadata.image.tables import Fold, Table
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from minicluster.values import Value, dataclass, replace

FENCE, UNFENCE, NO_CHANGE = 1, -1, 0
IN_CONTROLLED_SHUTDOWN = 1


class Endpoint(Value, kw_only=True, order=True):
    """Where a listener can be reached."""

    name: str
    host: str
    port: int
    security_protocol: int


class FeatureRange(Value, kw_only=True, order=True):
    """The levels of a feature that a node supports."""

    name: str
    min_supported_version: int
    max_supported_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """One registered broker.

    Shapes:  endpoints and features by name, directories in Kafka's order; cordoned_log_dirs is
             None as long as nothing is known.
    Units:   register_offset is the offset of the RegisterBrokerRecord: its place in the log, not
             its content, and so no part of equality or of the digest.
    """

    id: int
    epoch: int
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[FeatureRange, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    register_offset: int = dataclasses.field(default=-1, compare=False, repr=False)

    @property
    def active(self) -> bool:
        """Neither fenced nor in controlled shutdown."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def has_uncordoned_log_dirs(self) -> bool:
        """New replicas may be placed here; unknown directories count as free.

        Source:  BrokerRegistration.hasUncordonedDirs.
        """
        if self.cordoned_log_dirs is None or not self.log_dirs:
            return True
        return any(directory not in self.cordoned_log_dirs for directory in self.log_dirs)

    def has_online_dir(self, directory: UUID) -> bool:
        """A replica in this directory is usable on this broker."""
        return directory_id.is_online(directory, self.log_dirs)


class ControllerRegistration(Value, kw_only=True):
    """One registered controller."""

    id: int
    incarnation_id: UUID
    zk_migration_ready: bool = False
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[FeatureRange, ...] = ()


class ClusterImage(Value, kw_only=True):
    """Brokers and controllers by id."""

    brokers: Table[int, BrokerRegistration] = field(default_factory=lambda: Table("broker"))
    controllers: Table[int, ControllerRegistration] = field(
        default_factory=lambda: Table("controller")
    )

    @property
    def fingerprint(self) -> int:
        """The hash of this section."""
        return self.brokers.fingerprint + self.controllers.fingerprint

    def broker(self, broker_id: int) -> BrokerRegistration | None:
        """The broker's registration, or None."""
        return self.brokers.rows.get(broker_id)

    def is_active(self, broker_id: int) -> bool:
        """Registered, and neither fenced nor in controlled shutdown."""
        broker = self.brokers.rows.get(broker_id)
        return broker is not None and broker.active


class _EndpointFields(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def security_protocol(self) -> int: ...


class _FeatureFields(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def min_supported_version(self) -> int: ...
    @property
    def max_supported_version(self) -> int: ...


def register_broker(
    cluster: ClusterImage, record: RegisterBrokerRecord, offset: int
) -> ClusterImage:
    """Apply a RegisterBrokerRecord: it replaces what was registered under the id."""
    log_dirs = _in_java_order(record.log_dirs or ())
    _reject_shared_directories(cluster, record.broker_id, log_dirs)
    cordoned = record.cordoned_log_dirs
    registration = BrokerRegistration(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        is_migrating_zk_broker=record.is_migrating_zk_broker,
        log_dirs=log_dirs,
        cordoned_log_dirs=None if cordoned is None else _in_java_order(cordoned),
        register_offset=offset,
    )
    return _with_broker(cluster, registration)


def unregister_broker(
    cluster: ClusterImage, record: UnregisterBrokerRecord, _: int
) -> ClusterImage:
    """Apply an UnregisterBrokerRecord."""
    _existing(cluster, record.broker_id, record.broker_epoch)
    return replace(cluster, brokers=cluster.brokers.remove(record.broker_id))


def fence_broker(cluster: ClusterImage, record: FenceBrokerRecord, _: int) -> ClusterImage:
    """Apply a FenceBrokerRecord, which metadata.version 3.3-IV2 replaced."""
    broker = _existing(cluster, record.id, record.epoch)
    return _with_broker(cluster, replace(broker, fenced=True))


def unfence_broker(cluster: ClusterImage, record: UnfenceBrokerRecord, _: int) -> ClusterImage:
    """Apply an UnfenceBrokerRecord, which metadata.version 3.3-IV2 replaced."""
    broker = _existing(cluster, record.id, record.epoch)
    return _with_broker(cluster, replace(broker, fenced=False))


def change_broker(
    cluster: ClusterImage, record: BrokerRegistrationChangeRecord, _: int
) -> ClusterImage:
    """Apply a BrokerRegistrationChangeRecord.

    Its list of log directories cannot express "none": an empty one changes nothing, so that a
    broker keeps its last directories on record. A list of cordoned directories can be empty.
    """
    broker = _existing(cluster, record.broker_id, record.broker_epoch)
    if record.fenced not in (FENCE, UNFENCE, NO_CHANGE):
        raise ReplayError(f"{record.fenced} is not a change of fencing")
    if record.in_controlled_shutdown not in (IN_CONTROLLED_SHUTDOWN, NO_CHANGE):
        raise ReplayError(f"{record.in_controlled_shutdown} is not a change of controlled shutdown")
    log_dirs, cordoned = broker.log_dirs, broker.cordoned_log_dirs
    if record.log_dirs:
        log_dirs = _in_java_order(record.log_dirs)
        _reject_shared_directories(cluster, broker.id, log_dirs)
    if record.cordoned_log_dirs is not None:
        cordoned = _in_java_order(record.cordoned_log_dirs)
    changed = replace(
        broker,
        fenced=broker.fenced if record.fenced == NO_CHANGE else record.fenced == FENCE,
        in_controlled_shutdown=broker.in_controlled_shutdown
        or record.in_controlled_shutdown == IN_CONTROLLED_SHUTDOWN,
        log_dirs=log_dirs,
        cordoned_log_dirs=cordoned,
    )
    return _with_broker(cluster, changed)


def register_controller(
    cluster: ClusterImage, record: RegisterControllerRecord, _: int
) -> ClusterImage:
    """Apply a RegisterControllerRecord: it replaces what was registered under the id."""
    registration = ControllerRegistration(
        id=record.controller_id,
        incarnation_id=record.incarnation_id,
        zk_migration_ready=record.zk_migration_ready,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
    )
    return replace(cluster, controllers=cluster.controllers.put(registration.id, registration))


FOLDS: dict[type, Fold] = {
    RegisterBrokerRecord: register_broker,
    UnregisterBrokerRecord: unregister_broker,
    FenceBrokerRecord: fence_broker,
    UnfenceBrokerRecord: unfence_broker,
    BrokerRegistrationChangeRecord: change_broker,
    RegisterControllerRecord: register_controller,
}


def _with_broker(cluster: ClusterImage, broker: BrokerRegistration) -> ClusterImage:
    return replace(cluster, brokers=cluster.brokers.put(broker.id, broker))


def _existing(cluster: ClusterImage, broker_id: int, epoch: int) -> BrokerRegistration:
    broker = cluster.brokers.get(broker_id)
    if broker is None:
        raise ReplayError(f"broker {broker_id} is not registered")
    if broker.epoch != epoch:
        raise ReplayError(f"broker {broker_id} has epoch {broker.epoch}, not {epoch}")
    return broker


def _reject_shared_directories(
    cluster: ClusterImage, broker_id: int, log_dirs: tuple[UUID, ...]
) -> None:
    mine = set(log_dirs)
    for other in cluster.brokers.values():
        if other.id != broker_id and not mine.isdisjoint(other.log_dirs):
            raise ReplayError(f"brokers {broker_id} and {other.id} both claim a log directory")


def _in_java_order(directories: Iterable[UUID]) -> tuple[UUID, ...]:
    return tuple(sorted(directories, key=directory_id.java_order))


def _endpoints(endpoints: Iterable[_EndpointFields]) -> tuple[Endpoint, ...]:
    by_name = {
        endpoint.name: Endpoint(
            name=endpoint.name,
            host=endpoint.host,
            port=endpoint.port,
            security_protocol=endpoint.security_protocol,
        )
        for endpoint in endpoints
    }
    return tuple(sorted(by_name.values()))


def _features(features: Iterable[_FeatureFields]) -> tuple[FeatureRange, ...]:
    by_name = {
        offer.name: FeatureRange(
            name=offer.name,
            min_supported_version=offer.min_supported_version,
            max_supported_version=offer.max_supported_version,
        )
        for offer in features
    }
    return tuple(sorted(by_name.values()))
