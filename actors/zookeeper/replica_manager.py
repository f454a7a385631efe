"""The replica manager of a broker on ZooKeeper: what it writes itself by the level of the brokers.

From IBP 2.7-IV2 on, ISR changes go to the controller (KIP-497), in the version of the level; from
3.0 on, requests for producer ids do (KIP-730). Below these the broker writes the znodes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minicluster import effects as fx
from minicluster.actors.network import Completion
from minicluster.actors.nodes.replica_manager import ReplicaManager
from minicluster.actors.nodes.shell import NodeContext
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from minicluster.protocol.messages.kip_texts.kip_589 import AlterReplicaStateRequest
from minicluster.values import Value, replace
from minicluster.zookeeper.broker.by_protocol import request_by_protocol, response_with_ids


class WriteToZooKeeper(Value):
    """Do in ZooKeeper what a newer broker requests of the controller."""

    correlation_id: int
    request: AlterPartitionRequest | AllocateProducerIdsRequest


class WrittenToZooKeeper(Value):
    """The response in the place of the controller's."""

    correlation_id: int
    response: AlterPartitionResponse | AllocateProducerIdsResponse


class RegisteredEpoch(Value):
    """The broker epoch that requests to the controller carry."""

    epoch: int


class ZkReplicaManager(ReplicaManager):
    """A replica manager whose controller is a broker, or nobody."""

    # Kafka reads the counts from ZooKeeper when a broker starts. Here they come with requests of
    # the controller, and the first ones have the partitions of this broker alone.
    counts_partitions_once = False

    def __init__(self, context: NodeContext, protocol: InterBrokerProtocol) -> None:
        self._protocol = protocol
        self._broker_epoch = -1
        super().__init__(context, removes_strays=False)

    def interpreters(self) -> Mapping[type, Callable[[Any], None]]:
        return {**super().interpreters(), fx.Send: self._send_by_protocol}

    def on_message(self, message: Any) -> None:
        match message:
            case RegisteredEpoch(epoch):
                self._broker_epoch = epoch
            case WrittenToZooKeeper(number, AllocateProducerIdsResponse() as response):
                transactions = self.coordinators.transactions
                self._coordinate(transactions.on_response(number, response, self.now()))
            case WrittenToZooKeeper(number, response):
                self._replicate(self.machine.on_response(number, response, self.now()))
            case _:
                super().on_message(message)

    def on_response(self, completion: Completion) -> None:
        response = completion.response
        if isinstance(response, AlterPartitionResponse):
            topics = self.machine.state.image.topics.by_id
            ids = {topic.name: topic_id for topic_id, topic in topics.items()}
            completion.response = response_with_ids(response, ids)
        super().on_response(completion)

    def _send_by_protocol(self, send: fx.Send) -> None:
        match send.request:
            case AlterReplicaStateRequest() as request:
                self._send(replace(send, request=replace(request, broker_epoch=self._broker_epoch)))
            case AllocateProducerIdsRequest() as request:
                request = replace(request, broker_epoch=self._broker_epoch)
                if self._protocol.allocate_producer_ids_supported:
                    self._send(replace(send, request=request))
                else:
                    self._send_to_broker(WriteToZooKeeper(send.correlation_id, request))
            case AlterPartitionRequest() as request:
                self._alter_partition(send, request)
            case _:
                self._send(send)

    def _alter_partition(self, send: fx.Send, request: AlterPartitionRequest) -> None:
        if not self._protocol.alter_partition_supported:
            self._send_to_broker(WriteToZooKeeper(send.correlation_id, request))
            return
        topics = self.machine.state.image.topics.by_id
        names = {topic_id: topic.name for topic_id, topic in topics.items()}
        sent, version = request_by_protocol(request, self._protocol, names, self._broker_epoch)
        self._send(replace(send, request=sent, version=version))
