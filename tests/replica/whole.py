"""Whole brokers and one controller machine, wired by hand: the quorum commits at once."""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Callable
from typing import Any

from minicluster.broker.api_state import KafkaApisConfig
from minicluster.broker.kafka_apis import KafkaApis
from minicluster.broker.lifecycle import (
    BrokerLifecycle,
    BrokerRegistered,
    BrokerState,
    BrokerStateChanged,
    LifecycleConfig,
)
from minicluster.channel.controller_channel import CorrelationIds
from minicluster.controller.effects import Append
from minicluster.controller.machine import ControllerMachine
from minicluster.controller.settings import ControllerSettings
from minicluster.effects import CancelTimer, Effect, Respond, Send, SetTimer, Trace
from minicluster.log import Record, RecordBatch, Records
from minicluster.metadata.bootstrap import bootstrap_records
from minicluster.metadata.image.delta import DeltaBuilder, MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ProduceRequest,
)
from minicluster.protocol.messages.kip_texts.kip_497 import AlterIsrRequest
from minicluster.protocol.messages.kip_texts.kip_589 import AlterReplicaStateRequest
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.effects import DirectoryFailed
from minicluster.replica.log_manager import ReplicaStore
from minicluster.replica.machine import HANDLERS as REPLICA_HANDLERS
from minicluster.replica.machine import ReplicaManagerMachine
from minicluster.rules import Rules
from tests.driving import Driving
from tests.replica.memory_disk import MemoryDisk

CONTROLLER = 101
LATENCY_MS = 1


class WholeBroker:
    """Lifecycle, client API and replica manager of one incarnation."""

    def __init__(self, number: int, incarnation: int, disk: MemoryDisk, rules: Rules) -> None:
        store = ReplicaStore(disk)
        ids = CorrelationIds()
        self.number = number
        self.lifecycle = BrokerLifecycle(
            LifecycleConfig(
                broker_id=number,
                incarnation_id=uuid.UUID(int=incarnation),
                features={
                    "metadata.version": (
                        rules.metadata_version_lowest,
                        rules.metadata_version_latest,
                    ),
                    "kraft.version": (0, 1),
                    "eligible.leader.replicas.version": (0, 1),
                    "group.version": (0, 1),
                    "share.version": (0, 1),
                    "streams.version": (0, 1),
                    "transaction.version": (0, 2),
                },
                listeners=(
                    BrokerRegistrationRequest.Listener(
                        name="PLAINTEXT", host="localhost", port=9_000 + number
                    ),
                ),
                log_dirs=store.online_directories,
                previous_broker_epoch=store.take_previous_epoch(),
            ),
            ids=ids,
            rules=rules,
        )
        self.apis = KafkaApis(
            KafkaApisConfig(broker_id=number, cluster_id="", rules=rules), ids=ids
        )
        self.replicas = ReplicaManagerMachine(
            ReplicaManagerConfig(broker_id=number, incarnation=str(incarnation)),
            disk,
            ids=ids,
            rules=rules,
        )
        self.installed = False


class Whole(Driving):
    """Controller 101, brokers 1 to n, and the metadata log between them."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        rules: Rules = Rules.KAFKA_4_3,
        metadata_version: str | None = None,
        directories: int = 1,
    ) -> None:
        super().__init__(now_ms=100_000)
        self.rules = rules
        self.image = MetadataImage.EMPTY
        self.end_offset = 0
        self.brokers: dict[int, WholeBroker] = {}
        self.disks = {
            b: MemoryDisk(
                directory_ids=tuple(
                    uuid.UUID(int=0xD000 + b + 0x100 * n) for n in range(directories)
                )
            )
            for b in range(1, brokers + 1)
        }
        self.states: dict[int, list[BrokerState]] = {b: [] for b in self.disks}
        self.registrations: list[BrokerRegistrationRequest] = []
        self.traces: list[dict[str, Any]] = []
        self.cuts: set[tuple[int, int]] = set()
        self.drop_to_controller: set[tuple[int, type]] = set()  # requests of a broker, by class
        self.controller_requests: list[Any] = []
        # Called once, after a response of KIP-589 or KIP-497.
        self.after_response: Callable[[], None] | None = None
        self._incarnations = itertools.count(0x1000)
        self._responses: dict[int, Any] = {}
        self._tokens = itertools.count(1)
        chance = random.Random(7)
        topic_ids = itertools.count(0xA)
        self.controller = ControllerMachine(
            settings=ControllerSettings(node_id=CONTROLLER),
            bootstrap=bootstrap_records(
                MetadataVersion(rules.metadata_version_production)
                if metadata_version is None
                else MetadataVersion.parse(metadata_version),
                rules=rules,
            ),
            draw=chance.randrange,
            new_topic_id=lambda: uuid.UUID(int=next(topic_ids)),
            rules=rules,
        )
        self._controller_epoch = 1
        self.see(CONTROLLER, self.controller.on_claim(1, 0, self.now_ms))
        for broker in self.disks:
            self.start(broker)

    # -- brokers -----------------------------------------------------------------------------

    def start(self, number: int) -> WholeBroker:
        broker = WholeBroker(number, next(self._incarnations), self.disks[number], self.rules)
        self.brokers[number] = broker
        self.see(number, broker.replicas.start(self.now_ms))
        self.see(number, broker.replicas.on_controller(CONTROLLER, self.now_ms))
        self.see(number, broker.apis.channel.on_controller(CONTROLLER, self.now_ms))
        self.see(number, broker.lifecycle.channel.on_controller(CONTROLLER, self.now_ms))
        self.see(number, broker.lifecycle.start(self.now_ms))
        broker.lifecycle.on_metadata_offset(self.end_offset - 1)
        return broker

    def crash(self, number: int) -> None:
        del self.brokers[number]
        self.timers = {key: at for key, at in self.timers.items() if key[0] != number}

    def fail_directory(self, number: int, index: int = 0) -> None:
        """Break a log directory of a running broker."""
        directory = self.disks[number].directory_ids[index]
        replicas = self.brokers[number].replicas
        self.see(number, replicas.on_directory_failure(directory, self.now_ms))

    def fail_over(self) -> None:
        """The controller loses its soft state; the next one is a node of the same id."""
        self.see(CONTROLLER, self.controller.on_renounce(self.now_ms))
        epoch = self._controller_epoch = self._controller_epoch + 1
        self.see(CONTROLLER, self.controller.on_claim(epoch, self.end_offset, self.now_ms))
        for controller in (None, CONTROLLER):
            for number, broker in self.brokers.items():
                for part in (broker.replicas, broker.apis.channel, broker.lifecycle.channel):
                    self.see(number, part.on_controller(controller, self.now_ms))

    def shut_down(self, number: int) -> None:
        """Begin a broker's controlled shutdown."""
        broker = self.brokers[number]
        broker.replicas.begin_controlled_shutdown()
        self.see(number, broker.lifecycle.begin_controlled_shutdown(self.now_ms))

    def all_running(self) -> bool:
        return all(b.lifecycle.state is BrokerState.RUNNING for b in self.brokers.values())

    def is_fenced(self, number: int) -> bool:
        known = self.image.cluster.broker(number)
        assert known is not None
        return known.fenced

    def partition(self, topic: str = "orders", index: int = 0) -> PartitionRegistration:
        found = self.image.topics.named(topic)
        assert found is not None
        return found.partitions[index]

    def values(self, broker: int, topic: str = "orders") -> list[bytes | None]:
        log = self.disks[broker].logs[f"{topic}-0"]
        return [r.value for batch in log.batches for r in batch.records]

    # -- clients -----------------------------------------------------------------------------

    def create_topic(self, name: str = "orders", replicas: tuple[int, ...] = (1, 2, 3)) -> int:
        kind = CreateTopicsRequest
        topic = kind.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=(kind.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas),),
        )
        return self.request(next(iter(self.brokers)), kind(topics=(topic,), timeout_ms=5_000), 7)

    def delete_topic(self, name: str = "orders") -> int:
        topic = DeleteTopicsRequest.DeleteTopicState(name=name)
        return self.request(
            next(iter(self.brokers)), DeleteTopicsRequest(topics=(topic,), timeout_ms=5_000), 6
        )

    def produce(self, broker: int, value: bytes, topic: str = "orders", acks: int = -1) -> int:
        batch = RecordBatch.of([Record(0, self.now_ms, None, value)], leader_epoch=-1)
        kind = ProduceRequest
        data = kind.PartitionProduceData(index=0, records=Records((batch,)))
        topics = (kind.TopicProduceData(name=topic, partition_data=(data,)),)
        return self.request(broker, kind(acks=acks, timeout_ms=30_000, topic_data=topics), 9)

    def request(self, broker: int, request: Any, version: int) -> int:
        token = next(self._tokens)
        self._request(broker, lambda r: self._responses.__setitem__(token, r), request, version)
        return token

    def response(self, token: int) -> Any:
        return self._responses.get(token)

    def produced(self, token: int) -> ErrorCode:
        return ErrorCode(self._responses[token].responses[0].partition_responses[0].error_code)

    # -- the loop ----------------------------------------------------------------------------

    def on_timer(self, timer: tuple[int, str]) -> None:
        node, name = timer
        if node == CONTROLLER:
            self.see(node, self.controller.on_timer(name, self.now_ms))
            return
        broker = self.brokers[node]
        for machine in (broker.lifecycle, broker.apis, broker.replicas):
            self.see(node, machine.on_timer(name, self.now_ms))

    def see(self, node: int, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Append():
                    self._append(effect)
                case Send():
                    self._send(node, effect)
                case Respond():
                    self.later(LATENCY_MS, self._respond(effect))
                case SetTimer():
                    self.timers[(node, effect.name)] = effect.at_ms
                case CancelTimer():
                    self.timers.pop((node, effect.name), None)
                case BrokerRegistered():
                    self.brokers[node].replicas.on_broker_epoch(effect.broker_epoch)
                case BrokerStateChanged():
                    self._state(node, effect.state)
                case DirectoryFailed():
                    lifecycle = self.brokers[node].lifecycle
                    self.see(
                        node, lifecycle.propagate_directory_failure(effect.directory, self.now_ms)
                    )
                case Trace():
                    self.traces.append(dict(effect.row))
                case _:
                    pass

    def _respond(self, response: Respond) -> Callable[[], None]:
        return lambda: response.token(response.response)

    def _append(self, append: Append) -> None:
        """Commit at once; every broker publishes what it has not."""
        assert append.base_offset == self.end_offset
        builder = DeltaBuilder(self.image)
        for run in SharedFolds().runs(self.image, append.records, self.end_offset):
            builder.take(run)
        self.end_offset += len(append.records)
        delta = builder.build()
        self.image = delta.after
        end_offset = self.end_offset
        for number, broker in self.brokers.items():
            self.later(LATENCY_MS, self._publish(number, broker, delta, end_offset))
        self.later(
            0,
            lambda: self.see(CONTROLLER, self.controller.on_committed(end_offset, self.now_ms)),
        )

    def _publish(
        self, number: int, broker: WholeBroker, delta: MetadataDelta, end_offset: int
    ) -> Callable[[], None]:
        def publish() -> None:
            if self.brokers.get(number) is not broker:
                return
            broker.lifecycle.on_metadata_offset(end_offset - 1)
            if broker.installed and broker.replicas.state.image is delta.before:
                broker.apis.on_metadata(delta.after, end_offset - 1)
                self.see(number, broker.replicas.on_metadata(delta, self.now_ms))

        return publish

    def _state(self, number: int, state: BrokerState) -> None:
        self.states[number].append(state)
        broker = self.brokers[number]
        if state is BrokerState.RECOVERY:
            self.later(1, lambda: self._install(number, broker))
        elif state is BrokerState.SHUTTING_DOWN:
            self.see(number, broker.replicas.shut_down(self.now_ms))
            self.crash(number)

    def _install(self, number: int, broker: WholeBroker) -> None:
        """The first image is published: the broker can serve."""
        if self.brokers.get(number) is not broker:
            return
        if any(at_ms == self.now_ms for at_ms, _, _ in self._events):
            self.later(1, lambda: self._install(number, broker))
            return
        delta = MetadataDelta.between(MetadataImage.EMPTY, self.image)
        broker.installed = True
        broker.apis.on_metadata(delta.after, self.end_offset - 1)
        self.see(number, broker.replicas.on_metadata(delta, self.now_ms))
        self.see(number, broker.lifecycle.set_ready_to_unfence(self.now_ms))

    def _send(self, source: int, send: Send) -> None:
        broker = self.brokers[source]

        def receive(response: Any | None) -> None:
            if self.brokers.get(source) is not broker:
                return
            if (send.to, source) in self.cuts and response is not None:
                return
            for machine in (broker.lifecycle, broker.apis, broker.replicas):
                if response is None:
                    effects = machine.on_failure(send.correlation_id, self.now_ms)
                else:
                    effects = machine.on_response(send.correlation_id, response, self.now_ms)
                self.see(source, effects)

        def deliver() -> None:
            if (source, send.to) in self.cuts:
                return
            if (source, type(send.request)) in self.drop_to_controller:
                return
            if send.to == CONTROLLER or send.to in self.brokers:
                self._request(send.to, receive, send.request, send.version)
            else:
                receive(None)

        if isinstance(send.request, BrokerRegistrationRequest):
            self.registrations.append(send.request)
        self.later(LATENCY_MS, deliver)
        self.later(send.timeout_ms or 30_000, lambda: receive(None))

    def _request(
        self, node: int, receive: Callable[[Any], None], request: Any, version: int
    ) -> None:
        if node == CONTROLLER:
            self.controller_requests.append(request)
            effects = self.controller.on_request(receive, request, version, self.now_ms)
            responded_early = isinstance(request, (AlterReplicaStateRequest, AlterIsrRequest))
            if responded_early and self.after_response is not None:
                self.see(node, [e for e in effects if isinstance(e, Respond)])
                effects, then, self.after_response = [], self.after_response, None
                then()
        else:
            broker = self.brokers[node]
            machine = broker.replicas if type(request) in REPLICA_HANDLERS else broker.apis
            effects = machine.on_request(receive, request, version, self.now_ms)
        self.see(node, effects)
