"""Images as records, in Kafka's order, and back.

**Invariant:** the fold of an image's records is that image. A kind of record that is forgotten here
is lost by all nodes that start from the snapshot, and by no others, so that the cluster falls apart
(KAFKA-15860, KAFKA-13357). Only what the metadata.version cannot write may go, and is reported.

Inside a section rows come by name or id, where Kafka follows its hash maps.

Source:  MetadataImage.write and the write methods of its parts; 4.3 writes no
         ZkMigrationStateRecord and never kraft.version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from minicluster.metadata.image.cluster import BrokerRegistration, ControllerRegistration
from minicluster.metadata.image.folded_run import fold_run, run_length
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import OnLoss, raise_loss
from minicluster.metadata.image.quotas import NO_PRODUCER_IDS
from minicluster.metadata.metadata_version import MetadataVersion, lowest_version
from minicluster.protocol.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    UserScramCredentialRecord,
    VersionedRecord,
    ZkMigrationStateRecord,
)
from minicluster.rules import Rules

MIGRATION_STATE_NONE = 0


def image_records(
    image: MetadataImage, rules: Rules = Rules.KAFKA_4_3, on_loss: OnLoss = raise_loss
) -> Iterator[VersionedRecord]:
    """The records whose fold is the image.

    Errors:  what on_loss raises when the metadata.version cannot write something.
    """
    version = image.features.metadata_version or lowest_version(rules)
    yield from _feature_records(image, rules)
    for broker in image.cluster.brokers.values():
        yield broker_record(broker, version, on_loss)
    yield from _controller_records(image, version, on_loss)
    writes_elr = image.features.elr_enabled or not rules.snapshot_omits_elr_when_off
    for topic in image.topics:
        yield VersionedRecord(TopicRecord(name=topic.name, topic_id=topic.id), 0)
        for index, partition in topic.items():
            yield partition.to_record(topic.id, index, version, writes_elr, rules, on_loss)
    yield from _config_records(image)
    yield from _quota_records(image)
    if image.producer_ids.next_producer_id != NO_PRODUCER_IDS:
        yield VersionedRecord(
            ProducerIdsRecord(
                broker_id=-1,
                broker_epoch=-1,
                next_producer_id=image.producer_ids.next_producer_id,
            ),
            0,
        )
    yield from _security_records(image, version, on_loss)


def image_from_records(records: Iterable[VersionedRecord], *, offset: int = -1) -> MetadataImage:
    """The image that a snapshot holds: nothing of what was before, so what is absent is gone.

    Units:   offset is the last one that the snapshot contains; registrations remember it, as the
             offsets of the original records are not in a snapshot.
    Errors:  ReplayError.
    """
    image, start = MetadataImage.EMPTY, 0
    content = tuple(records)
    while start < len(content):
        end = start + run_length(content, start)
        image = fold_run(image, content[start:end], offset).after
        start = end
    return image


def broker_record(
    broker: BrokerRegistration, version: MetadataVersion, on_loss: OnLoss = raise_loss
) -> VersionedRecord:
    """A broker's registration as a record, without what the metadata.version cannot carry.

    Source:  BrokerRegistration.toRecord.
    """
    in_controlled_shutdown, migrating = broker.in_controlled_shutdown, broker.is_migrating_zk_broker
    log_dirs, cordoned = broker.log_dirs, broker.cordoned_log_dirs
    if in_controlled_shutdown and not version.in_controlled_shutdown_supported:
        on_loss("the controlled shutdown state of one or more brokers")
        in_controlled_shutdown = False
    if migrating and not version.migration_supported:
        on_loss("the migration state of one or more brokers")
        migrating = False
    if log_dirs and not version.directory_assignment_supported:
        on_loss("the log directories of one or more brokers")
        log_dirs = ()
    if cordoned is not None and not version.cordoned_log_dirs_supported:
        if cordoned:
            on_loss("the cordoned log directories of one or more brokers")
        cordoned = None
    record = RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=migrating,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=_endpoints(RegisterBrokerRecord.BrokerEndpoint, broker),
        features=_features(RegisterBrokerRecord.BrokerFeature, broker),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=log_dirs,
        cordoned_log_dirs=cordoned,
    )
    return VersionedRecord(record, version.register_broker_record_version)


def _feature_records(image: MetadataImage, rules: Rules) -> Iterator[VersionedRecord]:
    for name, level in image.features.finalized().items():
        yield VersionedRecord(FeatureLevelRecord(name=name, feature_level=level), 0)
    version = image.features.metadata_version
    if rules.zk_migration_state_is_written and version and version.migration_supported:
        none = ZkMigrationStateRecord(zk_migration_state=MIGRATION_STATE_NONE)
        yield VersionedRecord(none, 0)


def _controller_records(
    image: MetadataImage, version: MetadataVersion, on_loss: OnLoss
) -> Iterator[VersionedRecord]:
    if image.cluster.controllers and not version.controller_registration_supported:
        on_loss("the registrations of controllers")
        return
    for controller in image.cluster.controllers.values():
        record = RegisterControllerRecord(
            controller_id=controller.id,
            incarnation_id=controller.incarnation_id,
            zk_migration_ready=controller.zk_migration_ready,
            end_points=_endpoints(RegisterControllerRecord.ControllerEndpoint, controller),
            features=_features(RegisterControllerRecord.ControllerFeature, controller),
        )
        yield VersionedRecord(record, version.register_controller_record_version)


def _config_records(image: MetadataImage) -> Iterator[VersionedRecord]:
    for resource_type, resource_name in image.configs.resources():
        for name, value in image.configs.of(resource_type, resource_name).items():
            record = ConfigRecord(
                resource_type=resource_type, resource_name=resource_name, name=name, value=value
            )
            yield VersionedRecord(record, 0)


def _quota_records(image: MetadataImage) -> Iterator[VersionedRecord]:
    for entity in image.client_quotas.table:
        parts = tuple(
            ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity
        )
        for key, value in image.client_quotas.table.group(entity).items():
            yield VersionedRecord(ClientQuotaRecord(entity=parts, key=key, value=value), 0)


def _security_records(
    image: MetadataImage, version: MetadataVersion, on_loss: OnLoss
) -> Iterator[VersionedRecord]:
    for entry in image.acls.values():
        fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
        yield VersionedRecord(AccessControlEntryRecord(**fields), 0)
    if image.scram and not version.scram_supported:
        on_loss("SCRAM credentials")
    else:
        for (mechanism, name), credential in image.scram.items():
            record = UserScramCredentialRecord(
                name=name,
                mechanism=mechanism,
                salt=credential.salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=credential.iterations,
            )
            yield VersionedRecord(record, 0)
    if image.delegation_tokens and not version.delegation_tokens_supported:
        on_loss("delegation tokens")
        return
    for token_id, token in image.delegation_tokens.items():
        fields = {name: getattr(token, name) for name in token.__struct_fields__}
        yield VersionedRecord(DelegationTokenRecord(token_id=token_id, **fields), 0)


def _endpoints(cls: Any, node: BrokerRegistration | ControllerRegistration) -> tuple[Any, ...]:
    return tuple(
        cls(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
        for e in node.endpoints
    )


def _features(cls: Any, node: BrokerRegistration | ControllerRegistration) -> tuple[Any, ...]:
    return tuple(
        cls(
            name=offer.name,
            min_supported_version=offer.min_supported_version,
            max_supported_version=offer.max_supported_version,
        )
        for offer in node.features
    )
