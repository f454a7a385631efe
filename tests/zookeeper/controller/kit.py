"""A ZooKeeper server and the controllers on it, step by step, without actors or time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import minicluster.zoo  # noqa: F401  (the faults that tests plant)
from minicluster.actors.recording.problems import Problems
from minicluster.actors.zookeeper.log import ZooKeeperLog
from minicluster.effects import Effect, FaultHit, Respond
from minicluster.faults import Faults
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.verify.live import LiveZnodeJudge
from minicluster.zookeeper.broker.registration import register
from minicluster.zookeeper.controller.effects import ControlRequest, RequestZooKeeper
from minicluster.zookeeper.controller.machine import ZooKeeperControllerMachine
from minicluster.zookeeper.controller.settings import (
    ReleaseRules,
    ZooKeeperControllerSettings,
)
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.effects import LogTransaction, NotifyWatch
from minicluster.zookeeper.server.machine import ZooKeeperMachine
from minicluster.zookeeper.server.operations import Create, GetData, Multi, Request, Result, SetData
from minicluster.zookeeper.server.watches import WatchEvent
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.cluster import BrokerRegistration, ZnodeEndpoint
from minicluster.zookeeper.znodes.partition_state import PartitionState
from minicluster.zookeeper.znodes.topics import ReplicaAssignment, TopicAssignment, encode_config

TIMEOUT_MS = 6_000


class Kit:
    """Brokers of one level, each with a candidate for the controller."""

    def __init__(
        self,
        level: str = "3.9",
        faults: Faults = Faults.NONE,
        *,
        own_writes_recognized: bool = True,
    ) -> None:
        self.protocol = InterBrokerProtocol.parse(level)
        self.faults = faults
        self.own_writes_recognized = own_writes_recognized
        self.server = ZooKeeperMachine(tick_ms=500)
        self.log = ZooKeeperLog(Problems(lambda: 0))
        self.now_ms = 0
        self.machines: dict[int, ZooKeeperControllerMachine] = {}
        self.sessions: dict[int, int] = {}
        self.epochs: dict[int, int] = {}
        self.sent: list[ControlRequest] = []
        self.responses: list[Any] = []
        self.hits: list[str] = []
        self.before_write: Callable[[], None] | None = None
        self.deaf: set[int] = set()  # brokers whose watch events are late
        self._watches: list[tuple[int, WatchEvent]] = []
        self._ids = 0
        self.admin = self._open()

    def start(self, *brokers: int) -> None:
        """Brokers register, and may become the controller."""
        for broker in brokers:
            self.sessions[broker] = self._open(broker)
            endpoint = ZnodeEndpoint(
                listener="PLAINTEXT",
                security_protocol="PLAINTEXT",
                host=f"node{broker}",
                port=9_090 + broker,
            )
            registration = BrokerRegistration(
                endpoints=(endpoint,), timestamp_ms=0, version=self.protocol.broker_znode_version
            )
            session = self.sessions[broker]
            epoch = self.run(broker, register(broker, registration, "cluster", session))
            assert isinstance(epoch, int)
            self.epochs[broker] = epoch
            self.machines[broker] = ZooKeeperControllerMachine(
                settings=ZooKeeperControllerSettings(
                    broker_id=broker,
                    protocol=self.protocol,
                    release=ReleaseRules.of(self.protocol.release),
                    own_writes_recognized=self.own_writes_recognized,
                ),
                registration=registration,
                new_topic_id=self._new_id,
                faults=self.faults,
            )
            self.perform(broker, self.machines[broker].on_start(self.now_ms))
            self.deliver()

    def end(self, broker: int) -> None:
        """The session of a broker ends, with its process."""
        del self.machines[broker]
        self._take(self.server.on_close("end", self.sessions.pop(broker), self.now_ms))
        self.deliver()

    def create_topic(self, topic: str, *replicas: tuple[int, ...], **configs: str) -> None:
        """The writes of the admin manager."""
        topic_id = self._new_id() if self.protocol.topic_ids_supported else None
        assigned = {n: ReplicaAssignment(one) for n, one in enumerate(replicas)}
        self.do(self.admin, Create(paths.topic_config(topic), encode_config(configs)))
        self.do(
            self.admin, Create(paths.topic(topic), TopicAssignment(assigned, topic_id).encode())
        )
        self.deliver()

    def request(self, broker: int, request: Any, version: int) -> Any:
        """The controller's response to a request."""
        self.responses.clear()
        self.perform(
            broker, self.machines[broker].on_request("token", request, version, self.now_ms)
        )
        self.deliver()
        return self.responses[-1]

    def state(self, topic: str, partition: int = 0) -> PartitionState:
        """The state znode of a partition."""
        path = paths.partition_state(TopicPartition(topic, partition))
        return PartitionState.from_json(self.do(self.admin, GetData(path)).data_and_stat[0])

    def set_state(self, session: int, topic: str, state: PartitionState) -> Result:
        """A leader writes its ISR."""
        path = paths.partition_state(TopicPartition(topic, 0))
        return self.do(session, SetData(path, state.to_json().encode()))

    def do(self, session: int, request: Request) -> Result:
        """One operation of a session."""
        result = self._take(self.server.on_request("do", session, request, self.now_ms))
        assert isinstance(result, Result)
        return result

    def run(self, broker: int, process: Process[Any]) -> Any:
        """A process of a broker to its end."""
        results: tuple[Result, ...] | None = None
        try:
            while True:
                requested = next(process) if results is None else process.send(results)
                results = tuple(self.do(self.sessions[broker], one) for one in requested)
        except StopIteration as ended:
            return ended.value

    def deliver(self) -> None:
        """Deliver watch events until there is none, but to the brokers that are deaf."""
        while self._watches:
            session, event = self._watches.pop(0)
            broker = next((b for b, s in self.sessions.items() if s == session), None)
            if broker in self.machines and broker not in self.deaf:
                assert broker is not None
                self.perform(broker, self.machines[broker].on_watch(event, self.now_ms))

    def perform(self, broker: int, effects: list[Effect]) -> None:
        """Carry out what a controller wants."""
        for effect in effects:
            match effect:
                case ControlRequest():
                    self.sent.append(effect)
                case Respond():
                    self.responses.append(effect.response)
                case FaultHit(fault):
                    self.hits.append(fault)
        for effect in effects:
            if isinstance(effect, RequestZooKeeper) and broker in self.machines:
                writes = any(isinstance(one, Multi | SetData | Create) for one in effect.requests)
                if writes and self.before_write is not None:
                    hook, self.before_write = self.before_write, None
                    hook()
                session = self.sessions[broker]
                results = [self.do(session, one) for one in effect.requests]
                self.perform(broker, self.machines[broker].on_zookeeper(results, self.now_ms))

    def broken(self, after_ms: int = 0) -> set[str]:
        """The rules that the log breaks, judged some time after its end."""
        judge = LiveZnodeJudge(self.protocol)
        for line in self.log.lines:
            judge.on_line(line)
        judge.end(self.now_ms + after_ms)
        return {finding.rule for finding in judge.findings}

    def _new_id(self) -> UUID:
        self._ids += 1
        return UUID(int=1 << 64 | self._ids)

    def _open(self, broker: int | None = None) -> int:
        session = self._take(self.server.on_connect("open", 0, TIMEOUT_MS, self.now_ms))
        assert isinstance(session, int)
        return session

    def _take(self, effects: list[Effect]) -> Any:
        response = None
        for effect in effects:
            match effect:
                case Respond():
                    response = effect.response
                case NotifyWatch():
                    self._watches.append((effect.session, effect.event))
                case LogTransaction():
                    broker = next(
                        (b for b, s in self.sessions.items() if s == effect.session), None
                    )
                    self.log.append(effect, broker)
        return response


def alter(kit: Kit, sender: int, isr: tuple[int, ...], leader_epoch: int, epoch: int) -> ErrorCode:
    """The controller's outcome of AlterPartition v1."""
    response = kit.request(1, alter_request(kit, sender, isr, leader_epoch, epoch), 1)
    return alter_outcome(response)


def alter_request(
    kit: Kit, sender: int, isr: tuple[int, ...], leader_epoch: int, epoch: int
) -> AlterPartitionRequest:
    """A leader's proposal for orders-0."""
    return AlterPartitionRequest(
        broker_id=sender,
        broker_epoch=kit.epochs[sender],
        topics=(
            AlterPartitionRequest.TopicData(
                topic_name="orders",
                partitions=(
                    AlterPartitionRequest.PartitionData(
                        partition_index=0,
                        leader_epoch=leader_epoch,
                        new_isr=isr,
                        partition_epoch=epoch,
                    ),
                ),
            ),
        ),
    )


def alter_outcome(response: Any) -> ErrorCode:
    """The outcome for the only partition of a response."""
    assert isinstance(response, AlterPartitionResponse)
    return ErrorCode(response.topics[0].partitions[0].error_code)
