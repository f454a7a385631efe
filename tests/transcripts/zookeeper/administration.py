"""Requests of administrators: the writes of the broker that serves them, and its responses.

The draws of Kafka (the id of a new topic, the brokers of its replicas) are taken from the znodes
that were recorded. A response waits for the metadata; its time is no part of what is compared, nor
are configs of topics that are not in both releases with the same default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from minicluster.broker.requests.alter_configs import Preprocessed
from minicluster.configs.effective import BrokerLevels
from minicluster.effects import Respond
from minicluster.metadata.image.topics import TopicsImage
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.rules import Rules
from minicluster.values import replace
from minicluster.zookeeper.broker.admin_requests import process_admin
from minicluster.zookeeper.broker.admin_state import AdminState
from minicluster.zookeeper.broker.alter_configs import preprocessed
from minicluster.zookeeper.broker.control_requests import ControlRequests
from minicluster.zookeeper.broker.delayed_topic_operations import (
    RESULTS,
    DelayedTopicOperations,
    promised,
    timed_out,
)
from minicluster.zookeeper.broker.refusals import BY_ANY_BROKER, refusal_of
from minicluster.zookeeper.controller.settings import ReleaseRules
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Exists, GetChildren, GetData, Request, Result
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.cluster import decode_controller
from minicluster.zookeeper.znodes.topics import TopicAssignment, decode_config
from tests.transcripts.report import AGREE, DIFFER, Outcome
from tests.transcripts.zookeeper.controllers import machine_of
from tests.transcripts.zookeeper.forms import comparable, read_message
from tests.transcripts.zookeeper.recording import Recorded, Recording, Transaction
from tests.transcripts.zookeeper.znodes import Znodes

ADMIN_APIS = (
    "CREATE_TOPICS", "DELETE_TOPICS", "CREATE_PARTITIONS", "ALTER_CONFIGS",
    "INCREMENTAL_ALTER_CONFIGS",
)  # fmt: skip
OTHER_DEFAULTS = frozenset({"message.timestamp.after.max.ms"})  # since 4.0 (KIP-1030)
LOG_LAG_MS = 2
READS = (GetData, Exists, GetChildren)


@dataclass(slots=True)
class _Served:
    """One request while its broker works on it."""

    recorded: Recorded
    process: Process[Any] | None = None
    response: Any = None
    checked: Preprocessed | None = None
    waits_for: list[Request] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Configs:
    """What the checks of configs need of the broker that does them."""

    state: AdminState
    broker: int

    @property
    def config(self) -> Any:
        return SimpleNamespace(broker_id=self.broker)

    @property
    def broker_levels(self) -> BrokerLevels:
        return self.state.broker

    @property
    def rules(self) -> Rules:
        return Rules.KAFKA_3_9


class _Administration:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._znodes = Znodes()
        self._metadata: dict[int, ControlRequests] = {}
        self._served: list[_Served] = []
        self._where = recording.path.name
        settings = {name: str(value) for name, value in recording.summary["settings"].items()}
        self._static = settings

    def play(self) -> Iterator[Outcome]:
        """Play all that happened, in the order of time; ZooKeeper's own order goes first."""
        for _, _, _, event in sorted(self._events(), key=lambda one: one[:3]):
            match event:
                case int():
                    release = ReleaseRules.of(self._recording.release_of(event))
                    self._metadata[event] = ControlRequests(event, release)
                case Transaction():
                    yield from self._transaction(event)
                case Recorded() if event.api in ADMIN_APIS:
                    yield from self._begin(event)
                case Recorded():
                    self._update(event)
        for one in self._served:
            yield self._outcome(f"admin {one.recorded.api}", DIFFER, one, "its writes are missing")

    def _events(self) -> Iterator[tuple[int, int, int, Any]]:
        for broker, starts in self._recording.starts.items():
            yield from ((ms, 0, 0, broker) for ms in starts)
        for one in self._recording.transactions:
            yield one.ms, 1, one.zxid, one
        for request in self._recording.requests:
            if request.api == "UPDATE_METADATA":
                yield request.received_ms, 2, request.number, request
            elif request.api in ADMIN_APIS and request.response is not None:
                # The time is that of the log less the duration: its writes may look earlier.
                yield request.received_ms - LOG_LAG_MS, 3, request.number, request

    def _update(self, recorded: Recorded) -> None:
        """The metadata of a broker; the registration that a request is for does not matter."""
        request = read_message(recorded.api, "Request", recorded.version, recorded.request)
        if recorded.response is not None and recorded.response.get("errorCode") == ErrorCode.NONE:
            self._metadata[recorded.broker].update_metadata(replace(request, broker_epoch=-1))

    # Requests.

    def _begin(self, recorded: Recorded) -> Iterator[Outcome]:
        served = _Served(recorded)
        request = read_message(recorded.api, "Request", recorded.version, recorded.request)
        data = self._znodes.tree.data_of(paths.CONTROLLER)
        is_controller = data is not None and decode_controller(data) == recorded.broker
        refusal = refusal_of(request, recorded.version, is_controller=is_controller)
        if refusal is not None:
            served.response = refusal
            yield self._ended(served)
            return
        state = self._state(recorded)
        request = self._drawn(recorded, request)
        if isinstance(request, BY_ANY_BROKER):
            release = state.controller.settings.release
            configs: Any = _Configs(state, recorded.broker)
            served.checked = preprocessed(configs, request, release)
            request = served.checked.request
        served.process = process_admin(state, request, recorded.version)
        self._advance(served, None)
        if served.process is None:
            yield self._ended(served)
        else:
            self._served.append(served)

    def _state(self, recorded: Recorded) -> AdminState:
        controller = machine_of(self._recording, recorded.broker).state
        marked = self._znodes.tree.read(GetChildren(paths.DELETE_TOPICS)).children
        controller.context.topics_to_delete.update(dict.fromkeys(marked))
        for topic in self._znodes.tree.read(GetChildren(paths.TOPICS)).children:
            topic_id = TopicAssignment.decode(
                self._znodes.tree.data_of(paths.topic(topic))
            ).topic_id
            if topic_id is not None:
                controller.context.add_topic_id(topic, topic_id)
        metadata = self._metadata[recorded.broker]
        levels = BrokerLevels(self._configs(str(recorded.broker)), self._configs(""), self._static)
        return AdminState(controller, metadata.shown, levels, self._ids(recorded))

    def _configs(self, broker: str) -> dict[str, str]:
        return decode_config(self._znodes.tree.data_of(paths.broker_config(broker)))

    def _drawn(self, recorded: Recorded, request: Any) -> Any:
        """The request with the replicas that were placed, in place of the sizes."""
        if not isinstance(request, m.CreateTopicsRequest):
            return request
        topics = []
        for topic in request.topics:
            made = self._made(recorded, topic.name)
            if made is not None and not topic.assignments:
                assignments = tuple(
                    m.CreateTopicsRequest.CreatableReplicaAssignment(
                        partition_index=index, broker_ids=replicas.replicas
                    )
                    for index, replicas in sorted(made.partitions.items())
                )
                assert topic.num_partitions in (len(assignments), -1), topic
                assert topic.replication_factor in (len(made.partitions[0].replicas), -1), topic
                topic = replace(
                    topic, num_partitions=-1, replication_factor=-1, assignments=assignments
                )
            topics.append(topic)
        return replace(request, topics=tuple(topics))

    def _ids(self, recorded: Recorded) -> Callable[[], UUID]:
        """The ids of the topics that a request creates, in the order of their znodes."""
        names = {topic.get("name") for topic in recorded.request.get("topics", ())}
        ids = [
            TopicAssignment.decode(one.entries[0].data).topic_id or ZERO_UUID
            for one in self._recording.transactions
            if recorded.received_ms - 1 <= one.ms <= recorded.ms + 1
            and one.broker == recorded.broker
            and one.entries[0].op == "create"
            and one.entries[0].path in {paths.topic(name) for name in names if name}
        ]
        return lambda: ids.pop(0) if ids else ZERO_UUID

    def _made(self, recorded: Recorded, name: str) -> TopicAssignment | None:
        """The znode that the request has made."""
        for one in self._recording.transactions:
            in_time = recorded.received_ms - 1 <= one.ms <= recorded.ms + 1
            first = one.entries[0]
            if in_time and (first.op, first.path) == ("create", paths.topic(name)):
                return TopicAssignment.decode(first.data)
        return None

    # Writes.

    def _transaction(self, transaction: Transaction) -> Iterator[Outcome]:
        for served in self._served:
            if served.recorded.broker != transaction.broker or not served.waits_for:
                continue
            result = self._znodes.result_of(served.waits_for[0], transaction)
            if result is None:
                continue
            api = served.recorded.api
            yield self._outcome(f"admin write of {api}", AGREE, served, "")
            served.waits_for.pop(0)
            served.results.append(result)
            if not served.waits_for:
                self._advance(served, tuple(served.results))
            if served.process is None:
                self._served.remove(served)
                yield self._ended(served)
            return
        self._znodes.apply(transaction)

    def _advance(self, served: _Served, results: tuple[Result, ...] | None) -> None:
        """Go on to the next write, or to the response; reads are done at once."""
        assert served.process is not None
        try:
            while True:
                requests = served.process.send(results)  # type: ignore[arg-type]
                if not all(isinstance(one, READS) for one in requests):
                    served.waits_for, served.results = list(requests), []
                    return
                results = tuple(self._znodes.tree.read(one) for one in requests)
        except StopIteration as ended:
            served.process, served.response = None, ended.value
            if served.checked is not None:
                served.response = served.checked.whole_response(ended.value)

    # Responses.

    def _ended(self, served: _Served) -> Outcome:
        recorded = served.recorded
        wanted = read_message(recorded.api, "Response", recorded.version, recorded.response or {})
        request = read_message(recorded.api, "Request", recorded.version, recorded.request)
        given = _in_time(request, served.response, wanted)
        ours = comparable(given, recorded.version)
        theirs = comparable(wanted, recorded.version)
        _keep_common_configs(ours, theirs)
        detail = f"  {recorded.request}\n  recorded {theirs}\n  ours     {ours}"
        verdict = AGREE if ours == theirs else DIFFER
        return self._outcome(f"admin {recorded.api}", verdict, served, detail)

    def _outcome(self, operation: str, verdict: str, served: _Served, detail: str) -> Outcome:
        where = f"{self._where} request {served.recorded.number}"
        return Outcome(operation, verdict, where, detail)


def _in_time(request: Any, response: Any, wanted: Any) -> Any:
    """The response when its time has passed, without the topics that the recording has in time."""
    names = [name for name in promised(request, response) if request.timeout_ms > 0]
    if not names:
        delayed = DelayedTopicOperations().add(None, request, response, TopicsImage(), 0)
        return next(one.response for one in delayed if isinstance(one, Respond))
    late = {
        result.name
        for result in getattr(wanted, RESULTS[type(wanted)])
        if result.error_code == ErrorCode.REQUEST_TIMED_OUT
    }
    return timed_out(response, [name for name in names if name in late])


def _keep_common_configs(ours: Any, theirs: Any) -> None:
    for pair in zip(ours.get("topics", ()), theirs.get("topics", ()), strict=False):
        names = [{config["name"] for config in topic.get("configs") or ()} for topic in pair]
        common = (names[0] & names[1]) - OTHER_DEFAULTS
        for topic in pair:
            configs = topic.get("configs") or ()
            topic["configs"] = [config for config in configs if config["name"] in common]


def compare_administration(recording: Recording) -> Iterator[Outcome]:
    """One outcome for each write, and for each response, of CreateTopics and the like."""
    return _Administration(recording).play()
