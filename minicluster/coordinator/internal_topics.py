"""The two internal topics, and the partition of a key in them.

Source:  Topic, GroupCoordinatorService.partitionFor, TransactionStateManager.partitionFor.
"""

from __future__ import annotations

from minicluster.configs.effective import BrokerLevels
from minicluster.java_order import string_hash
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.messages import CreateTopicsRequest
from minicluster.protocol.topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

CreatableTopic = CreateTopicsRequest.CreatableTopic
_Config = CreateTopicsRequest.CreatableTopicConfig


def partition_of(key: str, partitions: int) -> int:
    """The partition of a group id or of a transactional id.

    Source:  Utils.abs of String.hashCode.
    """
    code = string_hash(key)
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return (abs(signed) & 0x7FFFFFFF) % partitions


def partition_count(name: str, image: MetadataImage, broker: BrokerLevels) -> int:
    """The partitions of an internal topic, those to come where it is not there yet.

    Source:  MetadataCache.numPartitions, GroupCoordinator.startup.
    """
    topic = image.topics.named(name)
    if topic is not None:
        return len(topic.partitions)
    return int(creatable_topic(name, broker).num_partitions)


def creatable_topic(name: str, broker: BrokerLevels) -> CreatableTopic:
    """An internal topic as a broker creates it when it is first needed; any other by defaults.

    Source:  DefaultAutoTopicCreationManager.creatableTopic,
             GroupCoordinatorService.groupMetadataTopicConfigs,
             TransactionStateManager.transactionTopicConfigs.
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
    else:
        return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    return CreatableTopic(
        name=name,
        num_partitions=number(counts[0]),
        replication_factor=number(counts[1]),
        configs=tuple(_Config(name=key, value=value) for key, value in configs.items()),
    )
