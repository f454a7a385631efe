"""The actor around ``QuietReplicas``, in the place of a replica manager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from minicluster.actors.links import Packet
from minicluster.actors.network import Completion
from minicluster.actors.nodes.metadata_publisher import Published
from minicluster.actors.nodes.replica_manager import (
    ActiveController,
    BeginControlledShutdown,
    BrokerEpoch,
    DirectoryLost,
    EndReplicas,
    FailDirectory,
    ReplicasEnded,
    ReplicasReady,
    replica_manager_config,
)
from minicluster.actors.nodes.shell import NodeContext, Shell
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.replica.log_manager import ReplicaStore
from minicluster.replica.partition.partition import Partition
from minicluster.replica.quiet_replicas import QuietReplicas
from minicluster.replica.to_controller.controller_channel import CorrelationIds


class QuietReplicaManager(Shell):
    """The replicas of a broker without their logs."""

    partitions: Mapping[tuple[UUID, int], Partition] = {}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.broker: ClusterActor | None = None
        config = replica_manager_config(context)
        self.machine = QuietReplicas(config, context.rules, CorrelationIds())
        self._store = ReplicaStore(context.disk)
        self._epoch = -1

    def on_start(self) -> None:
        self.perform(self.machine.start(self.now()))

    def on_packet(self, packet: Packet) -> None:
        version = packet.exchange.version
        self.perform(self.machine.on_request(packet, packet.body, version, self.now()))

    def on_response(self, completion: Completion) -> None:
        self.perform(self.complete(self.machine, completion))

    def on_wakeup(self, name: str) -> None:
        self.perform(self.machine.on_timer(name, self.now()))

    def on_message(self, message: Any) -> None:
        now_ms = self.now()
        match message:
            case Published():
                first = self.machine.image.is_empty
                self.perform(self.machine.on_metadata(message.delta, now_ms))
                if first:
                    self._send_to_broker(ReplicasReady())
            case ActiveController(node_id):
                self.perform(self.machine.channel.on_controller(node_id, now_ms))
            case BrokerEpoch(epoch):
                self._epoch = epoch
                self.machine.on_broker_epoch(epoch)
            case BeginControlledShutdown():
                pass  # nothing is written that would have to end first
            case EndReplicas():
                self._store.write_clean_shutdown(self._epoch)
                self._send_to_broker(ReplicasEnded())
            case FailDirectory(index):
                self._fail_directory(index, now_ms)
            case _:
                super().on_message(message)

    def _fail_directory(self, index: int, now_ms: int) -> None:
        directory = self.context.disk.directory_ids[index]
        self._store.fail_directory(directory)
        self.perform(self.machine.on_directory_failure(directory, now_ms))
        self._send_to_broker(DirectoryLost(directory))
        metadata = self.context.config.metadata_directory(self.context.disk.directory_ids)
        why = self._store.cannot_run(metadata)
        if why is not None:
            self.context.exited(self.node_id, why)

    def _send_to_broker(self, message: Any) -> None:
        if self.broker is not None:
            self.broker.deliver(message)
