"""The internal topics, and the partition of a key in them.

Source:  Topic, GroupCoordinatorService.partitionFor, TransactionStateManager.partitionFor.
"""

from __future__ import annotations

from collections.abc import Mapping

from minicluster.configs.effective import BrokerLevels
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.messages import CreateTopicsRequest
from minicluster.protocol.topics import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)

CreatableTopic = CreateTopicsRequest.CreatableTopic
_Config = CreateTopicsRequest.CreatableTopicConfig
_BY_CONTROLLER = -1


def partition_count(name: str, image: MetadataImage, broker: BrokerLevels) -> int:
    """The partitions of an internal topic, those to come where it is not there yet.

    Source:  MetadataCache.numPartitions.
    """
    topic = image.topics.named(name)
    if topic is not None:
        return len(topic.partitions)
    return int(creatable_topic(name, broker).num_partitions)


def counts_at_start(image: MetadataImage, broker: BrokerLevels) -> Mapping[str, int]:
    """The partitions by which a broker finds coordinators from its first image until it ends.

    A key that moved to another partition with each new count would lose what the log of its old
    partition holds, so a topic that gets more partitions changes nothing before a restart
    (KAFKA-14418, KAFKA-19423).

    Source:  BrokerMetadataPublisher.initializeManagers, GroupCoordinatorService.startup,
             TransactionCoordinator.startup.
    """
    names = GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
    return {name: partition_count(name, image, broker) for name in names}


def creatable_topic(name: str, broker: BrokerLevels) -> CreatableTopic:
    """A topic as a broker creates it when it is first needed.

    An internal one has configs of its own. Of any other the broker names the counts that are among
    its configs, and the controller has defaults for the rest.

    Source:  DefaultAutoTopicCreationManager.creatableTopic,
             GroupCoordinatorService.groupMetadataTopicConfigs,
             TransactionStateManager.transactionTopicConfigs,
             ShareCoordinatorService.shareGroupStateTopicConfigs.
    """

    def number(config: str) -> int:
        return int(broker.value(config) or 0)

    if name == GROUP_METADATA_TOPIC:
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(number("offsets.topic.segment.bytes")),
        }
        counts = "offsets.topic.num.partitions", "offsets.topic.replication.factor"
    elif name == TRANSACTION_STATE_TOPIC:
        configs = {
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": str(number("transaction.state.log.min.isr")),
            "segment.bytes": str(number("transaction.state.log.segment.bytes")),
        }
        counts = "transaction.state.log.num.partitions", "transaction.state.log.replication.factor"
    elif name == SHARE_GROUP_STATE_TOPIC:
        prefix = "share.coordinator.state.topic"
        configs = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "segment.bytes": str(number(f"{prefix}.segment.bytes")),
            "min.insync.replicas": str(number(f"{prefix}.min.isr")),
            "retention.ms": "-1",
        }
        counts = f"{prefix}.num.partitions", f"{prefix}.replication.factor"
    else:
        return CreatableTopic(
            name=name,
            num_partitions=int(broker.configured("num.partitions") or _BY_CONTROLLER),
            replication_factor=int(
                broker.configured("default.replication.factor") or _BY_CONTROLLER
            ),
        )
    return CreatableTopic(
        name=name,
        num_partitions=number(counts[0]),
        replication_factor=number(counts[1]),
        configs=tuple(_Config(name=key, value=value) for key, value in configs.items()),
    )
