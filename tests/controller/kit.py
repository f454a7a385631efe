"""A controller on the log of one voter, with a short method for each request of the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import minicluster.zoo  # noqa: F401  (the faults that tests plant)
from minicluster.controller.effects import (
    Append,
    ControllerRespond,
    RaiseKRaftVersion,
    ReportRefusal,
    Resign,
    TaskFailed,
)
from minicluster.controller.errors import Refusal
from minicluster.controller.machine import ControllerMachine
from minicluster.controller.settings import ControllerSettings
from minicluster.effects import CancelTimer, Effect, FaultHit, SetTimer
from minicluster.faults import Faults
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.metadata_version import FEATURE_NAME, MetadataVersion
from minicluster.metadata.supported_features import supported_features
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import FeatureLevelRecord, VersionedRecord
from minicluster.rules import Rules
from minicluster.security.authorizer import AuthorizerSettings, StandardAuthorizer
from minicluster.security.principals import Requester
from minicluster.security.screening import Access
from minicluster.values import replace
from tests.controller.applying import apply_record

CLUSTER_ID = "test"
MV = MetadataVersion.parse


class JavaRandom:
    """The generator of Kafka's own placement tests: a 64-bit linear congruence."""

    def __init__(self) -> None:
        self._state = 17

    def _next(self, bits: int) -> int:
        self._state = (self._state * 2862933555777941757 + 3037000493) & (1 << 64) - 1
        return self._state >> (64 - bits)

    def __call__(self, bound: int) -> int:
        if bound & (bound - 1) == 0:
            return (bound * self._next(31)) >> 31
        while True:
            bits = self._next(31)
            value = bits % bound
            if bits - value + bound - 1 < 1 << 31:
                return value


def feature_records(
    version: MetadataVersion, features: Mapping[str, int]
) -> tuple[VersionedRecord, ...]:
    """Bootstrap records of any metadata.version, those that no new cluster may have as well."""
    levels = {FEATURE_NAME: version.level} | dict(features)
    return tuple(
        VersionedRecord(FeatureLevelRecord(name=name, feature_level=level), 0)
        for name, level in levels.items()
    )


def dir_id(broker_id: int, number: int = 0) -> UUID:
    """A directory of a broker."""
    return UUID(int=(1 << 64) + (broker_id << 16) + 0x1000 + number)


def incarnation(broker_id: int, number: int = 0) -> UUID:
    """An incarnation of a broker."""
    return UUID(int=(2 << 64) + (broker_id << 16) + number)


def nobody() -> Access:
    """What somebody may do who has no right at all."""
    authorizer = StandardAuthorizer(AuthorizerSettings(), Rules.KAFKA_4_3)
    authorizer.publish(MetadataImage.EMPTY.acls)
    return Access(authorizer, Requester())


@dataclass
class Cluster:
    """An active controller whose appends commit at once, unless they are held."""

    rules: Rules = Rules.KAFKA_4_3
    faults: Faults = Faults.NONE
    metadata_version: str = "4.3-IV0"
    elr: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    draw: Callable[[int], int] = field(default_factory=JavaRandom)
    now_ms: int = 0
    held: bool = False
    active: bool = True
    lowest_alter_partition: int = 0  # no release rejects a version where its order is tested

    def __post_init__(self) -> None:
        self.rules = replace(self.rules, alter_partition_version_lowest=self.lowest_alter_partition)
        features = {"eligible.leader.replicas.version": 1} if self.elr else {}
        self.topic_ids = iter(UUID(int=(3 << 64) + n) for n in range(1_000_000))
        self.machine = ControllerMachine(
            settings=ControllerSettings(
                cluster_id=CLUSTER_ID,
                # As in Kafka's own tests, ReplicationControlManagerTest.
                **{"default_replication_factor": 3} | self.settings,
            ),
            bootstrap=feature_records(MV(self.metadata_version), features),
            draw=self.draw,
            new_topic_id=lambda: next(self.topic_ids),
            rules=self.rules,
            faults=self.faults,
        )
        self.log: dict[int, VersionedRecord] = {}
        self.end = 1  # the LeaderChange of epoch 1 is at offset 0
        self.responses: dict[Any, ControllerRespond] = {}
        self.timers: dict[str, int] = {}
        self.hits: list[str] = []
        self.refusals: list[Refusal] = []
        self.raised: list[tuple[int, int]] = []  # kraft.version, and the offset of its record
        self.resigned = False
        self.failed_tasks: list[str] = []
        self._tokens = 0
        if self.active:
            self.take(self.machine.on_claim(1, self.end, self.now_ms))

    def take(self, effects: Sequence[Effect]) -> None:
        """Carry out the effects of the machine."""
        appended = False
        for effect in effects:
            match effect:
                case Append(epoch, base_offset, records):
                    assert base_offset == self.end and epoch == self.machine.epoch
                    self.log.update(enumerate(records, self.end))
                    self.end += len(records)
                    appended = True
                case RaiseKRaftVersion(epoch, version):
                    assert epoch == self.machine.epoch
                    self.raised.append((version, self.end))
                    self.end += 2  # KRaftVersion and KRaftVoters
                case ReportRefusal(_, _, refusal):
                    self.refusals.append(refusal)
                case ControllerRespond():
                    self.responses[effect.token] = effect
                case SetTimer(name, at_ms):
                    self.timers[name] = at_ms
                case CancelTimer(name):
                    self.timers.pop(name, None)
                case FaultHit(fault):
                    self.hits.append(fault)
                case Resign():
                    self.resigned = True
                case TaskFailed(task, _):
                    self.failed_tasks.append(task)
                case _:
                    raise AssertionError(effect)
        if appended and not self.held:
            self.commit()

    def commit(self, end: int | None = None) -> None:
        """Commit what was appended, or a part of it."""
        self.take(self.machine.on_committed(self.end if end is None else end, self.now_ms))

    def send(self, request: Any, version: int | None = None, **options: Any) -> int:
        """Send a request; the token of its response. One that names no deadline has a minute."""
        self._tokens += 1
        if getattr(request, "timeout_ms", None) == 0 and type(request)().timeout_ms == 0:
            request = replace(request, timeout_ms=60_000)
        if version is None:
            version = type(request).latest_version
        self.take(self.machine.on_request(self._tokens, request, version, self.now_ms, **options))
        return self._tokens

    def request(self, request: Any, version: int | None = None, **options: Any) -> Any:
        """Send a request; its response, which must come at once."""
        return self.responses[self.send(request, version, **options)].response

    def records_of(self, act: Callable[[], Any]) -> list[Any]:
        """The records that doing something appends."""
        before = self.end
        act()
        return [self.log[offset].record for offset in range(before, self.end)]

    def run(self, until_ms: int) -> None:
        """Let time pass, timers included."""
        while self.timers and min(self.timers.values()) <= until_ms:
            name = min(self.timers, key=lambda timer: (self.timers[timer], timer))
            self.now_ms = max(self.now_ms, self.timers.pop(name))
            self.take(self.machine.on_timer(name, self.now_ms))
        self.now_ms = until_ms

    # Brokers.

    def register(
        self,
        broker_id: int,
        *,
        number: int = 0,
        dirs: Sequence[UUID] | None = None,
        rack: str | None = None,
        previous_epoch: int = -1,
        without: str = "",
    ) -> m.BrokerRegistrationResponse:
        """Register an incarnation of a broker, without a feature if one is named."""
        Request = m.BrokerRegistrationRequest
        response = self.request(
            Request(
                broker_id=broker_id,
                cluster_id=CLUSTER_ID,
                incarnation_id=incarnation(broker_id, number),
                listeners=(Request.Listener(name="PLAINTEXT", host="h", port=9092 + broker_id),),
                features=tuple(
                    Request.Feature(
                        name=name,
                        min_supported_version=low,
                        max_supported_version=high,
                    )
                    for name, (low, high) in supported_features(self.rules, unstable=True).items()
                    if name != without
                ),
                rack=rack,
                log_dirs=tuple(dirs) if dirs is not None else (dir_id(broker_id),),
                previous_broker_epoch=previous_epoch,
            )
        )
        assert isinstance(response, m.BrokerRegistrationResponse)
        return response

    def heartbeat(self, broker_id: int, **fields: Any) -> m.BrokerHeartbeatResponse:
        """A heartbeat; by default the broker is caught up and wants to be unfenced."""
        broker = self.machine.image.cluster.broker(broker_id)
        values: dict[str, Any] = {
            "broker_epoch": -1 if broker is None else broker.epoch,
            "current_metadata_offset": self.end - 1,
        }
        request = m.BrokerHeartbeatRequest(broker_id=broker_id, **(values | fields))
        response = self.request(request)
        assert isinstance(response, m.BrokerHeartbeatResponse)
        return response

    def start(self, *broker_ids: int, **options: Any) -> None:
        """Register and unfence brokers."""
        for broker_id in broker_ids:
            assert self.register(broker_id, **options).error_code == 0
            assert not self.heartbeat(broker_id).is_fenced

    def fence(self, *broker_ids: int) -> None:
        """Fence brokers, one after the other."""
        for broker_id in broker_ids:
            assert self.heartbeat(broker_id, want_fence=True).is_fenced

    # Topics.

    def create(
        self, name: str, *assignments: Sequence[int], configs: dict[str, str] | None = None
    ) -> m.CreateTopicsResponse.CreatableTopicResult:
        """Create a topic with these replicas."""
        Request = m.CreateTopicsRequest
        return self.create_topic(
            Request.CreatableTopic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=tuple(
                    Request.CreatableReplicaAssignment(
                        partition_index=index, broker_ids=tuple(brokers)
                    )
                    for index, brokers in enumerate(assignments)
                ),
                configs=tuple(
                    Request.CreatableTopicConfig(name=key, value=value)
                    for key, value in (configs or {}).items()
                ),
            )
        )

    def create_topic(
        self, topic: m.CreateTopicsRequest.CreatableTopic
    ) -> m.CreateTopicsResponse.CreatableTopicResult:
        """Create one topic as it is described."""
        response = self.request(m.CreateTopicsRequest(topics=(topic,)))
        result = response.topics[0]
        assert isinstance(result, m.CreateTopicsResponse.CreatableTopicResult)
        return result

    def topic_id(self, name: str) -> UUID:
        """The id of a live topic."""
        topic = self.machine.image.topics.named(name)
        assert topic is not None
        return topic.id

    def partition(self, name: str, index: int = 0) -> PartitionRegistration:
        """A partition's state."""
        found = self.machine.image.topics.partition(self.topic_id(name), index)
        assert found is not None
        return found

    def put(self, name: str, **fields: Any) -> None:
        """Bring partition 0 of a topic into a state, as a record of the log would."""
        partition = replace(self.partition(name), **fields)
        version = self.machine.state.gates.metadata_version
        record = partition.to_record(self.topic_id(name), 0, version, False, self.rules)
        apply_record(self.machine.state, record, self.end)

    def propose(
        self, name: str, isr: Sequence[int], index: int = 0, **fields: Any
    ) -> m.AlterPartitionResponse.PartitionData:
        """An AlterPartition of the partition's leader, with the present epochs unless given."""
        response = self.alter(name, isr, index, **fields)
        assert response.error_code == 0, response
        part = response.topics[0].partitions[0]
        assert isinstance(part, m.AlterPartitionResponse.PartitionData)
        return part

    def alter(
        self, name: str, isr: Sequence[int], index: int = 0, version: int = 3, **fields: Any
    ) -> m.AlterPartitionResponse:
        """As ``propose``, but the whole response."""
        Request = m.AlterPartitionRequest
        partition = self.partition(name, index)
        sender = fields.pop("broker_id", partition.leader)
        epoch = fields.pop("broker_epoch", self.epoch(sender))
        member_epochs = fields.pop("member_epochs", {})
        values: dict[str, Any] = {
            "partition_index": index,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
        }
        if version >= 3:
            values["new_isr_with_epochs"] = tuple(
                Request.BrokerState(broker_id=b, broker_epoch=member_epochs.get(b, self.epoch(b)))
                for b in isr
            )
        else:
            values["new_isr"] = tuple(isr)
        topic = Request.TopicData(
            topic_id=self.topic_id(name),
            topic_name=name,
            partitions=(Request.PartitionData(**(values | fields)),),
        )
        response = self.request(
            Request(broker_id=sender, broker_epoch=epoch, topics=(topic,)), version
        )
        assert isinstance(response, m.AlterPartitionResponse)
        return response

    def epoch(self, broker_id: int) -> int:
        """A broker's registered epoch, -1 if it has none."""
        broker = self.machine.image.cluster.broker(broker_id)
        return -1 if broker is None else broker.epoch

    def set_config(self, kind: int, name: str, key: str, value: str | None) -> int:
        """Set (or with None delete) a config; the error code."""
        Request = m.IncrementalAlterConfigsRequest
        change = Request.AlterableConfig(
            name=key, config_operation=1 if value is None else 0, value=value
        )
        resource = Request.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=(change,)
        )
        response = self.request(Request(resources=(resource,)))
        return int(response.responses[0].error_code)

    def assign_dir(self, broker_id: int, directory: UUID, name: str, index: int) -> ErrorCode:
        """Report the directory of a broker's replica; the partition's error."""
        Request = m.AssignReplicasToDirsRequest
        part = Request.PartitionData(partition_index=index)
        topic = Request.TopicData(topic_id=self.topic_id(name), partitions=(part,))
        request = Request(
            broker_id=broker_id,
            broker_epoch=self.epoch(broker_id),
            directories=(Request.DirectoryData(id=directory, topics=(topic,)),),
        )
        response = self.request(request)
        assert response.error_code == 0
        return ErrorCode(response.directories[0].topics[0].partitions[0].error_code)


def started(*brokers: int, **options: Any) -> Cluster:
    """A cluster whose brokers are registered and unfenced."""
    cluster = Cluster(**options)
    cluster.start(*brokers)
    return cluster


def led(partition: PartitionRegistration) -> tuple[int, tuple[int, ...]]:
    """The leader and the ISR."""
    return partition.leader, partition.isr
