"""What an operator and a producer do to a cluster, as methods; all of it goes over the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minicluster.actors.cluster.chaos import Duration, Nodes, milliseconds
from minicluster.actors.cluster.client import (
    Acks,
    AdminOperation,
    Client,
    Load,
    Operation,
    ProduceOperation,
    Producer,
)
from minicluster.actors.cluster.topic_configs import check_topic_configs
from minicluster.actors.cluster.views import Node, Partition, Topic
from minicluster.errors import UserError
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.api_versions import highest_version

if TYPE_CHECKING:
    from minicluster.actors.recording.recorder import Recorder
    from minicluster.actors.runtime.runtime import Runtime
    from minicluster.rules import Rules

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1
ELECTION_TYPES = {"PREFERRED": 0, "UNCLEAN": 1}
DEFAULT_WITHIN = "30s"
DELIVERY_WITHIN = "2m"  # delivery.timeout.ms


class RequestRefused(UserError):
    """The cluster answered an administrative request with an error."""

    def __init__(self, what: str, error: ErrorCode, message: str | None) -> None:
        super().__init__(f"{what}: {error.name}{f': {message}' if message else ''}")
        self.error = error


class NotAnswered(UserError):
    """No controller answered in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """A move that is under way: all replicas, and which of them come and go."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class Administration:
    """What a test can ask of the cluster; mixed into it."""

    rt: Runtime
    rules: Rules
    recorder: Recorder
    _client: Client
    _loads: list[Load]

    @property
    def image(self) -> MetadataImage:
        """What is committed."""
        raise NotImplementedError

    def _ids(self, nodes: Nodes) -> tuple[int, ...]:
        raise NotImplementedError

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        """Let the cluster run until a condition holds, or the time is over; whether it held."""
        raise NotImplementedError

    # Topics and configs.

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int = 3,
        min_isr: int | None = None,
        unclean: bool | None = None,
        assignment: Sequence[Sequence[Node | int]] | None = None,
        configs: Mapping[str, str | None] | None = None,
        within: Duration = DEFAULT_WITHIN,
    ) -> Topic:
        """Create a topic and wait for the answer.

        Errors:  RequestRefused with the controller's reason; NotAnswered.
        """
        settings = {key: value for key, value in (configs or {}).items() if value is not None}
        check_topic_configs(settings)
        if min_isr is not None:
            settings["min.insync.replicas"] = str(min_isr)
        if unclean is not None:
            settings["unclean.leader.election.enable"] = str(unclean).lower()
        request = m.CreateTopicsRequest
        assignments = tuple(
            request.CreatableReplicaAssignment(
                partition_index=index, broker_ids=self._ids(tuple(brokers))
            )
            for index, brokers in enumerate(assignment or ())
        )
        topic = request.CreatableTopic(
            name=name,
            num_partitions=-1 if assignments else partitions,
            replication_factor=-1 if assignments else replicas,
            assignments=assignments,
            configs=tuple(
                request.CreatableTopicConfig(name=key, value=value)
                for key, value in settings.items()
            ),
        )
        response = self._ask(request(topics=(topic,)), within, f"create topic {name}")
        answer = response.topics[0]
        self._refuse(f"create topic {name}", answer.error_code, answer.error_message)
        self._see(lambda: self.image.topics.named(name) is not None)
        return Topic(self, name)  # type: ignore[arg-type]

    def delete_topic(self, name: str | Topic, *, within: Duration = DEFAULT_WITHIN) -> None:
        """Delete a topic."""
        name = name.name if isinstance(name, Topic) else name
        state = m.DeleteTopicsRequest.DeleteTopicState(name=name)
        request = m.DeleteTopicsRequest(topics=(state,))
        response = self._ask(request, within, f"delete topic {name}")
        answer = response.responses[0]
        self._refuse(f"delete topic {name}", answer.error_code, answer.error_message)
        self._see(lambda: self.image.topics.named(name) is None)

    def recreate_topic(self, name: str | Topic, *, within: Duration = DEFAULT_WITHIN) -> Topic:
        """Delete a topic and create it again where it was, with its configs; its id is new.

        Errors:  UserError if there is no such topic; RequestRefused; NotAnswered.
        """
        name = name.name if isinstance(name, Topic) else name
        found = self.image.topics.named(name)
        if found is None:
            raise UserError(f"recreate topic {name}: there is no such topic")
        configs = self.image.configs.of(TOPIC_RESOURCE, name)
        assignment = [found.partitions[index].replicas for index in range(len(found))]
        self.delete_topic(name, within=within)
        return self.create_topic(name, assignment=assignment, configs=configs, within=within)

    def add_partitions(
        self, name: str | Topic, total: int, *, within: Duration = DEFAULT_WITHIN
    ) -> None:
        """Let a topic have so many partitions in all (CreatePartitions).

        Errors:  RequestRefused, also for a total that is not more than there are; NotAnswered.
        """
        name = name.name if isinstance(name, Topic) else name
        wanted = m.CreatePartitionsRequest.CreatePartitionsTopic(
            name=name, count=total, assignments=None
        )
        what = f"add partitions to {name}"
        response = self._ask(m.CreatePartitionsRequest(topics=(wanted,)), within, what)
        [answer] = response.results
        self._refuse(what, answer.error_code, answer.error_message)

    def reassign(
        self,
        partitions: Partition | str | Iterable[Partition | str],
        replicas: Nodes,
        *,
        within: Duration = DEFAULT_WITHIN,
    ) -> None:
        """Move partitions to other replicas, the preferred leader first; None cancels a move.

        The answer comes when the move has begun; ``Partition.is_reassigning`` says how long it
        lasts.

        Errors:  RequestRefused with the controller's reason; NotAnswered.
        Source:  KIP-455.
        """
        target = None if replicas is None else self._ids(replicas)
        request = m.AlterPartitionReassignmentsRequest
        topics = tuple(
            request.ReassignableTopic(
                name=topic,
                partitions=tuple(
                    request.ReassignablePartition(partition_index=index, replicas=target)
                    for index in indexes
                ),
            )
            for topic, indexes in _by_topic(partitions).items()
        )
        response = self._ask(request(topics=topics), within, "reassign")
        self._refuse("reassign", response.error_code, response.error_message)
        for answer in response.responses:
            for one in answer.partitions:
                what = f"reassign {answer.name}-{one.partition_index}"
                self._refuse(what, one.error_code, one.error_message)

    def reassignments(self, *, within: Duration = DEFAULT_WITHIN) -> dict[str, Reassignment]:
        """The moves that are under way, by partition (ListPartitionReassignments)."""
        request = m.ListPartitionReassignmentsRequest(topics=None)
        response = self._ask(request, within, "list reassignments")
        self._refuse("list reassignments", response.error_code, response.error_message)
        return {
            f"{topic.name}-{one.partition_index}": Reassignment(
                replicas=one.replicas, adding=one.adding_replicas, removing=one.removing_replicas
            )
            for topic in response.topics
            for one in topic.partitions
        }

    def set_config(
        self,
        key: str,
        value: str | int | bool | None,
        *,
        topic: str | Topic | None = None,
        broker: Nodes = None,
        within: Duration = DEFAULT_WITHIN,
    ) -> None:
        """Set a config of a topic, of brokers or, with neither, of the cluster; None removes it."""
        if topic is not None:
            check_topic_configs([key])
            kind, names = TOPIC_RESOURCE, [topic.name if isinstance(topic, Topic) else topic]
        else:
            kind = BROKER_RESOURCE
            names = [""] if broker is None else [str(node) for node in self._ids(broker)]
        text = str(value).lower() if isinstance(value, bool) else str(value)
        request = m.IncrementalAlterConfigsRequest
        config = request.AlterableConfig(
            name=key,
            config_operation=DELETE if value is None else SET,
            value=None if value is None else text,
        )
        resources = tuple(
            request.AlterConfigsResource(resource_type=kind, resource_name=name, configs=(config,))
            for name in names
        )
        response = self._ask(request(resources=resources), within, f"set {key}")
        for answer in response.responses:
            self._refuse(f"set {key}", answer.error_code, answer.error_message)

    def elect(
        self,
        partitions: Partition | str | Iterable[Partition | str],
        type: str = "PREFERRED",
        *,
        within: Duration = DEFAULT_WITHIN,
    ) -> dict[str, ErrorCode]:
        """Elect leaders (ElectLeaders); says what became of each partition."""
        if type not in ELECTION_TYPES:
            raise UserError(f"elect: {type!r} is not one of {', '.join(ELECTION_TYPES)}")
        request = m.ElectLeadersRequest(
            election_type=ELECTION_TYPES[type],
            topic_partitions=tuple(
                m.ElectLeadersRequest.TopicPartitions(topic=topic, partitions=tuple(indexes))
                for topic, indexes in _by_topic(partitions).items()
            ),
        )
        response = self._ask(request, within, "elect")
        self._refuse("elect", response.error_code, None)
        return {
            f"{result.topic}-{partition.partition_id}": ErrorCode.for_code(partition.error_code)
            for result in response.replica_election_results
            for partition in result.partition_result
        }

    def unregister(self, broker: Nodes, *, within: Duration = DEFAULT_WITHIN) -> None:
        """Remove the registrations of brokers."""
        for broker_id in self._ids(broker):
            response = self._ask(
                m.UnregisterBrokerRequest(broker_id=broker_id), within, f"unregister {broker_id}"
            )
            self._refuse(f"unregister {broker_id}", response.error_code, response.error_message)

    def admin(self, request: Any, *, within: Duration = DEFAULT_WITHIN) -> Any:
        """Send any request to the active controller and give its response."""
        return self._ask(request, within, type(request).__name__)

    # Load.

    def produce(
        self,
        topic: str | Topic | Partition,
        partition: int = 0,
        *,
        count: int | None = None,
        rate: float | None = None,
        acks: Acks | int = "all",
        lasting: Duration | None = None,
        to: Nodes = None,
        idempotent: bool = False,
        within: Duration | None = None,
    ) -> list[ProduceOperation]:
        """Produce ``count`` records and wait for the outcomes, or go on at a ``rate``.

        Shapes:  without a rate: one record unless count says otherwise; the list holds an outcome
                 each. With a rate: records per second, for ``lasting`` or until ``pause_load``;
                 the list fills while they are sent. ``idempotent`` numbers the records of a count,
                 so that they can be sent again without coming twice (KIP-98). Each try has 30s; a
                 record has as long, or 2m if it is sent again, unless ``within`` says otherwise.
        """
        if idempotent and rate is not None:
            raise UserError("produce: idempotent goes with a count, not with a rate")
        if isinstance(topic, Partition):
            name, partition = topic.topic, topic.index
        else:
            name = topic.name if isinstance(topic, Topic) else topic
        word = _acks_word(acks)
        if rate is not None:
            return self._start_load(name, partition, rate, word, lasting)
        longest = within or (DELIVERY_WITHIN if idempotent else DEFAULT_WITHIN)
        deadline_ms = self.rt.now() + milliseconds(longest, what="produce: within")
        target = None if to is None else self._ids(to)[0]
        operations: list[ProduceOperation] = []
        producer = Producer() if idempotent else None
        for _ in range(1 if count is None else count):
            operation = self._client.new_operation(
                name, partition, acks=word, deadline_ms=deadline_ms, to=target, producer=producer
            )
            if operations:
                operations[-1].then = operation
            operations.append(operation)
        if operations:
            self._client.hear(operations[0])
        self._settle(operations, deadline_ms + 60_000)
        return operations

    def pause_load(self) -> None:
        """Stop every load in the background."""
        for load in self._loads:
            load.stopped = True
        self._loads.clear()

    def _start_load(
        self, topic: str, partition: int, rate: float, acks: Acks, lasting: Duration | None
    ) -> list[ProduceOperation]:
        if rate <= 0:
            raise UserError(f"produce: a rate of {rate} records per second is none")
        forever_ms = 10**12
        lasting_ms = forever_ms if lasting is None else milliseconds(lasting, what="lasting")
        load = Load(
            topic=topic,
            partition=partition,
            period_ms=max(1, round(1000 / rate)),
            until_ms=self.rt.now() + lasting_ms,
            acks=acks,
        )
        self._loads.append(load)
        self._client.hear(load)
        return load.operations

    # How it is done.

    def _ask(self, request: Any, within: Duration, what: str) -> Any:
        deadline_ms = self.rt.now() + milliseconds(within, what=f"{what}: within")
        version = highest_version(self.rules, request.api_key)
        operation = AdminOperation(deadline_ms=deadline_ms, request=request, version=version)
        self._client.hear(operation)
        self._settle([operation], deadline_ms + 1_000)
        if operation.response is None:
            why = operation.failure or "no answer"
            raise NotAnswered(f"{what}: no controller answered within {within} ({why})")
        return operation.response

    def _settle(self, operations: Sequence[Operation], until_ms: int) -> None:
        within_ms = max(1, until_ms - self.rt.now())
        self.run_until(lambda: all(operation.done for operation in operations), within_ms)

    def _see(self, condition: Callable[[], bool]) -> None:
        """Wait for what was answered, which a planted fault (S26) may answer before the commit."""
        self.run_until(condition, 5_000)

    def _refuse(self, what: str, code: int, message: str | None) -> None:
        if code != ErrorCode.NONE:
            raise RequestRefused(what, ErrorCode.for_code(code), message)


def _partition_of(partition: Partition | str) -> tuple[str, int]:
    if isinstance(partition, Partition):
        return partition.topic, partition.index
    topic, dash, index = partition.rpartition("-")
    if not dash or not index.isdecimal():
        raise UserError(f"{partition!r} is not a partition; write topic-index: orders-0")
    return topic, int(index)


def _by_topic(partitions: Partition | str | Iterable[Partition | str]) -> dict[str, list[int]]:
    wanted: dict[str, list[int]] = {}
    for topic, index in map(_partition_of, _as_list(partitions)):
        wanted.setdefault(topic, []).append(index)
    return wanted


def _as_list(partitions: Partition | str | Iterable[Partition | str]) -> list[Partition | str]:
    if isinstance(partitions, Partition | str):
        return [partitions]
    return list(partitions)


def _acks_word(acks: Acks | int) -> Acks:
    words: dict[str, Acks] = {"0": "0", "1": "1", "-1": "all", "all": "all"}
    found = words.get(str(acks))
    if found is None:
        raise UserError(f"produce: acks {acks!r} is not one of 0, 1, all")
    return found
