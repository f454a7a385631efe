"""AlterPartition in the version that inter.broker.protocol.version allows, and its response back.

The replica manager names topics by id and members by epoch. Brokers on ZooKeeper have no epochs of
others (-1, from version 3 on), and up to version 1 topics have names.

Source:  KIP-497, KIP-704, KIP-841; kafka.server.DefaultAlterPartitionManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from minicluster.log.epochs import NO_EPOCH
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.values import replace

WITH_NAMES = 1
WITH_EPOCHS = 3


def request_by_protocol(
    request: AlterPartitionRequest,
    protocol: InterBrokerProtocol,
    names: Mapping[UUID, str],
    broker_epoch: int,
) -> tuple[AlterPartitionRequest, int]:
    """The request as a broker of this level sends it, and its version."""
    version = protocol.alter_partition_version
    topics = []
    for topic in request.topics:
        partitions = tuple(_data(data, version) for data in topic.partitions)
        if version <= WITH_NAMES:
            name = names.get(topic.topic_id, topic.topic_name)
            topic = replace(topic, topic_name=name, topic_id=ZERO_UUID)
        topics.append(replace(topic, partitions=partitions))
    return replace(request, broker_epoch=broker_epoch, topics=tuple(topics)), version


def _data(
    data: AlterPartitionRequest.PartitionData, version: int
) -> AlterPartitionRequest.PartitionData:
    members = tuple(member.broker_id for member in data.new_isr_with_epochs) or data.new_isr
    if version < WITH_EPOCHS:
        return replace(data, new_isr=members, new_isr_with_epochs=())
    states = tuple(
        AlterPartitionRequest.BrokerState(broker_id=member, broker_epoch=NO_EPOCH)
        for member in members
    )
    return replace(data, new_isr=(), new_isr_with_epochs=states)


def response_with_ids(
    response: AlterPartitionResponse, ids: Mapping[str, UUID]
) -> AlterPartitionResponse:
    """The response with the topic ids of the replica manager."""
    topics = tuple(
        replace(topic, topic_name="", topic_id=ids[topic.topic_name])
        if topic.topic_name in ids
        else topic
        for topic in response.topics
    )
    return replace(response, topics=topics)
