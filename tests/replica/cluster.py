"""Replica managers driven by hand: a wire between them, and a controller by heart.

There is no quorum and no actor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import minicluster.zoo  # noqa: F401  (the faults that tests plant)
from minicluster.effects import CancelTimer, Effect, FaultHit, Respond, Send, SetTimer, Trace
from minicluster.faults import Faults
from minicluster.log import Record, RecordBatch, Records
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.messages import (
    AddPartitionsToTxnRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    FetchRequest,
    ListOffsetsRequest,
    ProduceRequest,
    ProduceResponse,
)
from minicluster.protocol.records import FeatureLevelRecord
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.effects import CloseConnection
from minicluster.replica.machine import ReplicaManagerMachine
from minicluster.replica.partition.partition import Partition
from minicluster.rules import Rules
from tests.driving import Driving
from tests.replica.controller_by_heart import TOPIC_IDS, ControllerByHeart, directory_of
from tests.replica.memory_disk import MemoryDisk

CONTROLLER = 101
CLIENT = 0
LATENCY_MS = 1


class Cluster(ControllerByHeart, Driving):
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
        ControllerByHeart.__init__(self)
        Driving.__init__(self, now_ms=10_000)
        self.racks = racks or {}
        self.settings = settings  # of ReplicaManagerConfig
        self.rules = rules
        self.faults = faults
        self.managers: dict[int, ReplicaManagerMachine] = {}
        self.disks = {
            b: MemoryDisk(directory_ids=(directory_of(b), directory_of(0x100 + b)))
            for b in range(1, brokers + 1)
        }
        self.traces: list[dict[str, Any]] = []
        self.sent: list[tuple[int, int, Any]] = []
        self.published: dict[int, int] = {}
        self.lags: dict[int, int] = {}  # how long a broker's image lags behind the log
        self.cuts: set[tuple[int, int]] = set()
        self.controller_responds = True
        self.coordinator: Callable[[Any], Any] = lambda request: None  # of transactions
        self.hits: list[str] = []
        self.closed: list[int] = []
        self.acks: dict[int, int] = {}  # of each produce, by its token
        self._responses: dict[Any, Any] = {}
        self._tokens = itertools.count(1)
        self.publish(FeatureLevelRecord(name="metadata.version", feature_level=30))
        for broker in range(1, brokers + 1):
            self.start(broker)

    # -- metadata ----------------------------------------------------------------------------

    def announce(self) -> None:
        """Hand the newest delta to every broker after its lag (``lags``), in order."""
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
            self.later(lag_ms, catch_up)
        else:
            catch_up()

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
            partition_for=lambda transactional_id, partitions: 0,
        )
        self.see(broker, manager.start(self.now_ms))
        epoch = 1_000 + broker if epoch is None else epoch
        manager.on_broker_epoch(epoch)
        self.see(broker, manager.on_controller(CONTROLLER, self.now_ms))
        self.register(
            broker,
            epoch,
            fenced=fenced,
            rack=self.racks.get(broker),
            log_dirs=self.disks[broker].directory_ids,
        )
        self.managers[broker] = manager
        self.published[broker] = len(self.deltas)
        delta = MetadataDelta.between(MetadataImage.EMPTY, self.image)
        self.see(broker, manager.on_metadata(delta, self.now_ms))

    def crash(self, broker: int) -> None:
        """The process is gone, its disk is not; connections to it break."""
        del self.managers[broker]
        self.timers = {key: at for key, at in self.timers.items() if key[0] != broker}

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
        """Send one batch; ``produced`` has the response once there is one."""
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

    def request(self, broker: int, request: Any, version: int, *, client_id: str = "") -> int:
        token = next(self._tokens)
        effects = self.managers[broker].on_request(
            (CLIENT, token), request, version, self.now_ms, client_id=client_id
        )
        self.see(broker, effects)
        return token

    def consume(
        self,
        broker: int,
        offset: int,
        *,
        name: str = "orders",
        wait_ms: int = 0,
        min_bytes: int = 1,
        partition_max_bytes: int = 1 << 20,
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
                            partition=0,
                            fetch_offset=offset,
                            partition_max_bytes=partition_max_bytes,
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
                self.later(LATENCY_MS, self._delivery(broker, effect))
            elif isinstance(effect, Respond):
                self._respond(broker, effect)
            elif isinstance(effect, SetTimer):
                self.timers[(broker, effect.name)] = effect.at_ms
            elif isinstance(effect, CancelTimer):
                self.timers.pop((broker, effect.name), None)
            elif isinstance(effect, Trace):
                self.traces.append(dict(effect.row))
            elif isinstance(effect, FaultHit):
                self.hits.append(effect.fault)
            elif isinstance(effect, CloseConnection):
                self.closed.append(effect.token[1])

    def on_timer(self, timer: tuple[int, str]) -> None:
        broker, name = timer
        self.see(broker, self.managers[broker].on_timer(name, self.now_ms))

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
            self.later(send.timeout_ms or 30_000, fail)
            if (source, send.to) in self.cuts:
                return
            if send.to == CONTROLLER:
                if self.controller_responds and isinstance(send.request, AlterPartitionRequest):
                    response = self.alter(send.request)
                    self.later(LATENCY_MS, lambda: complete(response))
                elif self.controller_responds and isinstance(
                    send.request, AssignReplicasToDirsRequest
                ):
                    assigned = self.assign(send.request)
                    self.later(LATENCY_MS, lambda: complete(assigned))
            elif isinstance(send.request, AddPartitionsToTxnRequest):
                response = self.coordinator(send.request)
                if response is not None:
                    self.later(LATENCY_MS, lambda: complete(response))
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
            self.later(LATENCY_MS, lambda: who(response.response))
