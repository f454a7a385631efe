"""A tiny loop that drives replica managers by hand: a clock, a wire, and a controller by heart.

The controller keeps an image, takes every AlterPartition that names its epochs rightly, and
publishes what changed to all brokers at once. There is no quorum and no actor.
"""

from __future__ import annotations

import heapq
import itertools
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from minicluster.effects import CancelTimer, Effect, FaultHit, Respond, Send, SetTimer, Trace
from minicluster.faults import Faults
from minicluster.log import Record, RecordBatch, Records
from minicluster.metadata.image.delta import DeltaBuilder, MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    FetchRequest,
    ListOffsetsRequest,
    ProduceRequest,
    ProduceResponse,
)
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.effects import CloseConnection
from minicluster.replica.machine import ReplicaManagerMachine
from minicluster.replica.partition.partition import Partition
from minicluster.rules import Rules
from tests.replica.memory_disk import MemoryDisk

CONTROLLER = 101
CLIENT = 0
LATENCY_MS = 1
TOPIC_IDS = {"orders": uuid.UUID(int=0xA), "bills": uuid.UUID(int=0xB)}


class Cluster:
    """Brokers 1 to n, their disks, and what travels between them."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
        racks: Mapping[int, str] | None = None,
        **settings: Any,
    ) -> None:
        self.now_ms = 10_000
        self.racks = racks or {}
        self.settings = settings  # of ReplicaManagerConfig
        self.rules = rules
        self.faults = faults
        self.image = MetadataImage.EMPTY
        self.offset = itertools.count()
        self.managers: dict[int, ReplicaManagerMachine] = {}
        self.disks = {
            b: MemoryDisk(directory_ids=(_dir(b), _dir(0x100 + b))) for b in range(1, brokers + 1)
        }
        self.traces: list[dict[str, Any]] = []
        self.sent: list[tuple[int, int, Any]] = []
        self.alterations: list[AlterPartitionRequest] = []
        self.responses: list[ErrorCode] = []  # what the controller says next instead
        self.deltas: list[MetadataDelta] = []
        self.published: dict[int, int] = {}
        self.lags: dict[int, int] = {}  # how long a broker's image lags behind the log
        self.cuts: set[tuple[int, int]] = set()
        self.controller_responds = True
        self.hits: list[str] = []
        self.closed: list[int] = []
        self.acks: dict[int, int] = {}  # of each produce, by its token
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._timers: dict[tuple[int, str], int] = {}
        self._responses: dict[Any, Any] = {}
        self._tokens = itertools.count(1)
        self.publish(FeatureLevelRecord(name="metadata.version", feature_level=30))
        for broker in range(1, brokers + 1):
            self.start(broker)

    # -- controller --------------------------------------------------------------------------

    def publish(self, *records: Any) -> None:
        """Commit records; every broker publishes them after its lag (``lags``), in order."""
        builder = DeltaBuilder(self.image)
        for record in records:
            builder.apply(record, offset=next(self.offset))
        delta = builder.build()
        self.image = delta.after
        self.deltas.append(delta)
        for broker in list(self.managers):
            self._publish_to(broker, len(self.deltas))

    def _publish_to(self, broker: int, until: int) -> None:
        manager = self.managers[broker]

        def catch_up() -> None:
            if self.managers.get(broker) is not manager:
                return
            while self.published[broker] < until:
                delta = self.deltas[self.published[broker]]
                self.published[broker] += 1
                self.see(broker, manager.on_metadata(delta, self.now_ms))

        lag_ms = self.lags.get(broker, 0)
        if lag_ms:
            self._later(lag_ms, catch_up)
        else:
            catch_up()

    def create_topic(
        self,
        name: str = "orders",
        *,
        replicas: tuple[int, ...] = (1, 2, 3),
        isr: tuple[int, ...] | None = None,
        min_isr: int | None = None,
    ) -> None:
        topic_id = TOPIC_IDS[name]
        records: list[Any] = [TopicRecord(name=name, topic_id=topic_id)]
        if min_isr is not None:
            records.append(_config(name, min_isr))
        records.append(
            PartitionRecord(
                partition_id=0,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas if isr is None else isr,
                leader=(replicas if isr is None else isr)[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=tuple(_dir(b) for b in replicas),
            )
        )
        self.publish(*records)

    def change(self, name: str = "orders", **fields: Any) -> None:
        """Commit a PartitionChangeRecord for partition 0."""
        self.publish(PartitionChangeRecord(topic_id=TOPIC_IDS[name], partition_id=0, **fields))

    def configure(self, name: str, **configs: str) -> None:
        """Set configs of a topic; a name has underscores for its dots."""
        for config, value in configs.items():
            self.publish(
                ConfigRecord(
                    resource_type=2,
                    resource_name=name,
                    name=config.replace("_", "."),
                    value=value,
                )
            )

    def set_min_isr(self, name: str, value: int) -> None:
        self.publish(_config(name, value))

    def delete_topic(self, name: str = "orders") -> None:
        self.publish(RemoveTopicRecord(topic_id=TOPIC_IDS[name]))

    def fence(self, broker: int, *, fenced: bool = True) -> None:
        known = self.image.cluster.broker(broker)
        assert known is not None
        self.publish(
            BrokerRegistrationChangeRecord(
                broker_id=broker, broker_epoch=known.epoch, fenced=1 if fenced else -1
            )
        )

    def _assign(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        kind = AssignReplicasToDirsResponse
        directories = []
        for directory in request.directories:
            topics = []
            for topic in directory.topics:
                for proposed in topic.partitions:
                    known = self.image.topics.partition(topic.topic_id, proposed.partition_index)
                    assert known is not None
                    self.publish(
                        PartitionChangeRecord(
                            topic_id=topic.topic_id,
                            partition_id=proposed.partition_index,
                            directories=tuple(
                                directory.id if broker == request.broker_id else other
                                for broker, other in zip(
                                    known.replicas, known.directories, strict=True
                                )
                            ),
                        )
                    )
                found = tuple(
                    kind.PartitionData(partition_index=p.partition_index) for p in topic.partitions
                )
                topics.append(kind.TopicData(topic_id=topic.topic_id, partitions=found))
            directories.append(kind.DirectoryData(id=directory.id, topics=tuple(topics)))
        return kind(directories=tuple(directories))

    def _alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.alterations.append(request)
        topics = []
        for topic in request.topics:
            responses = []
            for requested in topic.partitions:
                responses.append(self._alter_one(request.broker_id, topic.topic_id, requested))
            topics.append(
                AlterPartitionResponse.TopicData(
                    topic_id=topic.topic_id, partitions=tuple(responses)
                )
            )
        return AlterPartitionResponse(topics=tuple(topics))

    def _alter_one(self, broker: int, topic_id: uuid.UUID, requested: Any) -> Any:
        kind = AlterPartitionResponse.PartitionData
        known = self.image.topics.partition(topic_id, requested.partition_index)
        assert known is not None
        error = self.responses.pop(0) if self.responses else ErrorCode.NONE
        if not error and requested.partition_epoch != known.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        if not error and (known.leader, known.leader_epoch) != (broker, requested.leader_epoch):
            error = ErrorCode.FENCED_LEADER_EPOCH
        if not error and not all(self._eligible(m) for m in requested.new_isr_with_epochs):
            error = ErrorCode.INELIGIBLE_REPLICA
        if error:
            return kind(partition_index=requested.partition_index, error_code=error)
        self.publish(
            PartitionChangeRecord(
                topic_id=topic_id,
                partition_id=requested.partition_index,
                isr=tuple(member.broker_id for member in requested.new_isr_with_epochs),
                leader_recovery_state=requested.leader_recovery_state
                if requested.leader_recovery_state != known.leader_recovery_state
                else -1,
            )
        )
        now = self.image.topics.partition(topic_id, requested.partition_index)
        assert now is not None
        return kind(
            partition_index=requested.partition_index,
            leader_id=now.leader,
            leader_epoch=now.leader_epoch,
            isr=now.isr,
            leader_recovery_state=now.leader_recovery_state,
            partition_epoch=now.partition_epoch,
        )

    def _eligible(self, member: Any) -> bool:
        known = self.image.cluster.broker(member.broker_id)
        return known is not None and known.active and member.broker_epoch in (-1, known.epoch)

    def fence_and_elect(self, broker: int) -> None:
        """What the controller does when a session ends: out of the ISRs, out of leadership."""
        for topic, index, partition in list(self.image.topics.partitions()):
            isr = tuple(m for m in partition.isr if m != broker) or partition.isr
            fields: dict[str, Any] = {} if isr == partition.isr else {"isr": isr}
            if partition.leader == broker:
                alive = [r for r in partition.replicas if r in isr and r != broker]
                alive = [r for r in alive if self.image.cluster.is_active(r)]
                fields["leader"] = alive[0] if alive else -1
            if fields:
                self.publish(PartitionChangeRecord(topic_id=topic.id, partition_id=index, **fields))
        self.fence(broker)

    def unfence_and_elect(self, broker: int) -> None:
        """What the controller does when a fenced broker is well again."""
        self.fence(broker, fenced=False)
        for topic, index, partition in list(self.image.topics.partitions()):
            if partition.leader == -1 and broker in partition.isr:
                self.publish(
                    PartitionChangeRecord(topic_id=topic.id, partition_id=index, leader=broker)
                )

    # -- brokers -----------------------------------------------------------------------------

    def start(self, broker: int, epoch: int | None = None, *, fenced: bool = False) -> None:
        """Start an incarnation over the broker's disk; it learns everything from the image."""
        manager = ReplicaManagerMachine(
            ReplicaManagerConfig(
                broker_id=broker, incarnation=f"inc-{broker}-{self.now_ms}", **self.settings
            ),
            self.disks[broker],
            rules=self.rules,
            faults=self.faults,
        )
        self.see(broker, manager.start(self.now_ms))
        epoch = 1_000 + broker if epoch is None else epoch
        manager.on_broker_epoch(epoch)
        self.see(broker, manager.on_controller(CONTROLLER, self.now_ms))
        self.publish(
            RegisterBrokerRecord(
                broker_id=broker,
                broker_epoch=epoch,
                incarnation_id=uuid.UUID(int=epoch),
                fenced=fenced,
                rack=self.racks.get(broker),
                end_points=(
                    RegisterBrokerRecord.BrokerEndpoint(
                        name="PLAINTEXT", host=f"host-{broker}", port=9092, security_protocol=0
                    ),
                ),
                log_dirs=self.disks[broker].directory_ids,
            )
        )
        self.managers[broker] = manager
        self.published[broker] = len(self.deltas)
        delta = MetadataDelta.between(MetadataImage.EMPTY, self.image)
        self.see(broker, manager.on_metadata(delta, self.now_ms))

    def crash(self, broker: int) -> None:
        """The process is gone; its disk is not. Whoever talks to it sees the connection break."""
        del self.managers[broker]
        self._timers = {key: at for key, at in self._timers.items() if key[0] != broker}

    def partition(self, broker: int, name: str = "orders") -> Partition:
        return self.managers[broker].state.partitions[(TOPIC_IDS[name], 0)]

    def log_values(self, broker: int, name: str = "orders") -> list[bytes | None]:
        log = self.disks[broker].logs[f"{name}-0"]
        return [r.value for batch in log.batches for r in batch.records]

    # -- clients -----------------------------------------------------------------------------

    def produce(
        self,
        broker: int,
        *values: bytes,
        acks: int = -1,
        name: str = "orders",
        timeout_ms: int = 30_000,
        timestamp: int | None = None,
    ) -> int:
        """Send one batch; ``reply`` has the answer once there is one."""
        at_ms = self.now_ms if timestamp is None else timestamp
        batch = RecordBatch.of(
            [Record(i, at_ms, None, value) for i, value in enumerate(values)], leader_epoch=-1
        )
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=(
                ProduceRequest.TopicProduceData(
                    name=name,
                    partition_data=(
                        ProduceRequest.PartitionProduceData(index=0, records=Records((batch,))),
                    ),
                ),
            ),
        )
        token = self.request(broker, request, 12)
        self.acks[token] = acks
        return token

    def request(self, broker: int, request: Any, version: int) -> int:
        token = next(self._tokens)
        manager = self.managers[broker]
        self.see(broker, manager.on_request((CLIENT, token), request, version, self.now_ms))
        return token

    def consume(
        self,
        broker: int,
        offset: int,
        *,
        name: str = "orders",
        wait_ms: int = 0,
        min_bytes: int = 1,
    ) -> int:
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=1 << 20,
            topics=(
                FetchRequest.FetchTopic(
                    topic_id=TOPIC_IDS[name],
                    partitions=(
                        FetchRequest.FetchPartition(
                            partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
                        ),
                    ),
                ),
            ),
        )
        return self.request(broker, request, 13)

    def list_offset(
        self, broker: int, timestamp: int, *, name: str = "orders", version: int = 7
    ) -> Any:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=(
                ListOffsetsRequest.ListOffsetsTopic(
                    name=name,
                    partitions=(
                        ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=0, timestamp=timestamp
                        ),
                    ),
                ),
            ),
        )
        return self.response(self.request(broker, request, version)).topics[0].partitions[0]

    def has_response(self, token: int) -> bool:
        return token in self._responses

    def response(self, token: int) -> Any:
        return self._responses[token]

    def produced(self, token: int) -> ProduceResponse.PartitionProduceResponse:
        found: ProduceResponse.PartitionProduceResponse = (
            self._responses[token].responses[0].partition_responses[0]
        )
        return found

    def fetched(self, token: int) -> tuple[Any, list[bytes | None]]:
        data = self._responses[token].responses[0].partitions[0]
        return data, [r.value for batch in Records.of(data.records).batches for r in batch.records]

    # -- the loop ----------------------------------------------------------------------------

    def see(self, broker: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.sent.append((broker, effect.to, effect.request))
                self._later(LATENCY_MS, self._delivery(broker, effect))
            elif isinstance(effect, Respond):
                self._respond(broker, effect)
            elif isinstance(effect, SetTimer):
                self._timers[(broker, effect.name)] = effect.at_ms
            elif isinstance(effect, CancelTimer):
                self._timers.pop((broker, effect.name), None)
            elif isinstance(effect, Trace):
                self.traces.append(dict(effect.row))
            elif isinstance(effect, FaultHit):
                self.hits.append(effect.fault)
            elif isinstance(effect, CloseConnection):
                self.closed.append(effect.token[1])

    def advance(self, span_ms: int) -> None:
        until_ms = self.now_ms + span_ms
        while True:
            timer = min(self._timers, key=lambda k: (self._timers[k], k), default=None)
            timer_ms = self._timers[timer] if timer is not None else until_ms + 1
            event_ms = self._events[0][0] if self._events else until_ms + 1
            if min(timer_ms, event_ms) > until_ms:
                break
            if event_ms <= timer_ms:
                self.now_ms = event_ms
                heapq.heappop(self._events)[2]()
            elif timer is not None:
                self.now_ms = timer_ms
                del self._timers[timer]
                broker, name = timer
                self.see(broker, self.managers[broker].on_timer(name, self.now_ms))
        self.now_ms = until_ms

    def _later(self, delay_ms: int, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now_ms + delay_ms, next(self._order), do))

    def _delivery(self, source: int, send: Send) -> Callable[[], None]:
        manager = self.managers[source]

        def fail() -> None:
            if self.managers.get(source) is manager:
                self.see(source, manager.on_failure(send.correlation_id, self.now_ms))

        def complete(response: Any) -> None:
            if (send.to, source) in self.cuts:
                return
            if self.managers.get(source) is manager:
                self.see(source, manager.on_response(send.correlation_id, response, self.now_ms))

        def deliver() -> None:
            self._later(send.timeout_ms or 30_000, fail)
            if (source, send.to) in self.cuts:
                return
            if send.to == CONTROLLER:
                if self.controller_responds and isinstance(send.request, AlterPartitionRequest):
                    response = self._alter(send.request)
                    self._later(LATENCY_MS, lambda: complete(response))
                elif self.controller_responds and isinstance(
                    send.request, AssignReplicasToDirsRequest
                ):
                    assigned = self._assign(send.request)
                    self._later(LATENCY_MS, lambda: complete(assigned))
            elif send.to not in self.managers:
                fail()
            else:
                to = self.managers[send.to]
                self.see(
                    send.to,
                    to.on_request(("node", complete), send.request, send.version, self.now_ms),
                )

        return deliver

    def _respond(self, broker: int, response: Respond) -> None:
        kind, who = response.token
        if kind == CLIENT:
            self._responses[who] = response.response
        else:
            self._later(LATENCY_MS, lambda: who(response.response))


def _dir(broker: int) -> uuid.UUID:
    return uuid.UUID(int=0xD000 + broker)


def _config(topic: str, min_isr: int) -> ConfigRecord:
    return ConfigRecord(
        resource_type=2, resource_name=topic, name="min.insync.replicas", value=str(min_isr)
    )
