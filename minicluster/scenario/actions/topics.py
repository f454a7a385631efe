"""The actions on topics, configs and records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Annotated, Any, Literal

from minicluster.errors import UserError, counted
from minicluster.scenario.actions.action import ADMIN_WITHIN, Action, Refusable
from minicluster.scenario.actions.arguments import (
    ACKS,
    Assignment,
    Configs,
    Duration,
    Flag,
    Nodes,
    OfTopic,
    Partitions,
    Rate,
    Text,
    TopicName,
    TopicNames,
    Value,
    whole,
)
from minicluster.scenario.actions.record_contents import (
    Headers,
    Keys,
    Timestamps,
    Values,
    is_list,
)
from minicluster.scenario.checks import limits
from minicluster.values import dataclass

ElectionType = Literal["PREFERRED", "UNCLEAN"]
AcksWord = Literal["0", "1", "all"]
Acks = Annotated[AcksWord | int, ACKS]
Replicas = Annotated[int, whole(1, limits.REPLICAS_MAX)]
PartitionCount = Annotated[int, whole(1, limits.PARTITIONS_MAX)]
PartitionIndex = Annotated[int, whole(0, limits.PARTITIONS_MAX - 1)]
Records = Annotated[int, whole(0, limits.RECORDS_MAX)]
Offset = Annotated[int, whole(0, limits.OFFSET_MAX)]
BatchSize = Annotated[int, whole(1, limits.BATCH_MAX)]
_PARTITIONS = 1  # of a topic for which nothing else is asked
REPLICAS_USUAL = 3  # where there are as many brokers
_CONFIGS = {"min_isr": "min.insync.replicas", "unclean": "unclean.leader.election.enable"}


@dataclass(frozen=True, slots=True)
class CreateTopic(Refusable):
    """Create a topic.

    Without ``replicas`` there are three of each partition, or as many as brokers where these are
    fewer. An assignment has the partitions and replicas in it; ``min_isr`` and ``unclean`` are
    configs.

    Errors:  UserError where two arguments contradict each other; RequestRejected with the
             controller's reason; NoResponse.
    """

    name: Text
    _: KW_ONLY
    partitions: PartitionCount = _PARTITIONS
    replicas: Replicas | None = None
    min_isr: Replicas | None = None
    unclean: Flag | None = None
    assignment: Assignment | None = None
    configs: Configs | None = None
    within: Duration = ADMIN_WITHIN

    def __post_init__(self) -> None:
        Refusable.__post_init__(self)
        for name, other in self._contradictions():
            value = getattr(self, name)
            raise UserError(f"create_topic: {name} is {value}, and {other}; leave one of them out")

    def replicas_on(self, brokers: int) -> int:
        """The replicas of a partition in a cluster of so many brokers."""
        return self.replicas or max(1, min(REPLICAS_USUAL, brokers))

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        if self.assignment:
            lists = [*self.assignment]
            if self.partitions not in (_PARTITIONS, len(lists)):
                yield "partitions", f"assignment has {counted(len(lists), 'partition')}"
            if any(self.replicas not in (None, len(replicas)) for replicas in lists):
                yield "replicas", "assignment has another number of them"
        for name, key in _CONFIGS.items():
            value, config = getattr(self, name), (self.configs or {}).get(key)
            if None not in (value, config) and str(value).lower() != str(config).lower():
                yield name, f"configs has {key}: {config}"


@dataclass(frozen=True, slots=True)
class DeleteTopic(Refusable):
    """Delete a topic, or several by one request.

    Errors:  RequestRejected with the controller's reason for the first that it rejects; NoResponse.
    """

    name: TopicNames
    _: KW_ONLY
    within: Duration = ADMIN_WITHIN


@dataclass(frozen=True, slots=True)
class RecreateTopic(Refusable):
    """Delete a topic and create it with the same replicas and configs, under a new id.

    Errors:  UserError if there is no such topic; RequestRejected; NoResponse.
    """

    name: TopicName
    _: KW_ONLY
    within: Duration = ADMIN_WITHIN


@dataclass(frozen=True, slots=True)
class AddPartitions(Refusable):
    """Raise the number of a topic's partitions to a total (CreatePartitions).

    Arguments:  assignment: the replicas of each new partition, the preferred leader first.
    Errors:  RequestRejected, also for a total that is not more than there are; NoResponse.
    """

    name: TopicName
    total: PartitionCount
    _: KW_ONLY
    assignment: Assignment | None = None
    within: Duration = ADMIN_WITHIN


@dataclass(frozen=True, slots=True)
class Reassign(Refusable):
    """Move partitions to other replicas, the preferred leader first; null cancels a move.

    The response comes when the move has begun; ``Partition.is_reassigning`` holds while it lasts.

    Errors:  RequestRejected with the controller's reason; NoResponse.
    Source:  KIP-455.
    """

    partitions: Partitions
    replicas: Nodes | None
    _: KW_ONLY
    within: Duration = ADMIN_WITHIN


@dataclass(frozen=True, slots=True)
class SetConfig(Refusable):
    """Set a config of a topic, of brokers or, with neither, of the cluster; null removes it."""

    key: Text
    value: Value | None
    _: KW_ONLY
    topic: TopicName | None = None
    broker: Nodes | None = None
    within: Duration = ADMIN_WITHIN


@dataclass(frozen=True, slots=True)
class Elect(Refusable):
    """Elect leaders (ElectLeaders).

    Arguments:  -> the error of each partition, by its name.
    """

    partitions: Partitions
    election_type: ElectionType = "PREFERRED"
    _: KW_ONLY
    within: Duration = ADMIN_WITHIN


@dataclass(frozen=True, slots=True)
class DeleteRecords(Refusable):
    """Delete the first records of partitions (DeleteRecords): those below an offset, or all.

    Arguments:  before: an offset at or below the high watermark, which is what none names. -> the
                low watermark of each partition, by its name.
    Errors:  RequestRejected with the leader's reason; NoResponse.
    Source:  KIP-107.
    """

    partitions: Partitions
    before: Offset | None = None
    _: KW_ONLY
    within: Duration = ADMIN_WITHIN


@dataclass(frozen=True, slots=True)
class Unregister(Refusable):
    """Remove the registration of brokers that are down (UnregisterBroker)."""

    broker: Nodes
    _: KW_ONLY
    within: Duration = ADMIN_WITHIN


@dataclass(frozen=True, slots=True)
class Produce(Action):
    """Produce records and wait for the outcomes, or keep on at a rate per second.

    Without a rate: ``values``, or ``count`` records with values of their own; the list holds an
    outcome for each. With a rate: records per second, for ``lasting`` or to the end of the run; the
    list fills while they are sent.

    Arguments:  values: text or bytes; None is a tombstone. keys, headers, timestamps: one of all
                records, or a list with one for each; a compacted topic needs keys. idempotent: the
                records are numbered, so that they can be sent again without coming twice (KIP-98).
                to: a node to send to, leader or not. batch: how many of the records come in one
                batch. as_user: whose rights count, such as alice.
    Units:   timestamps: milliseconds since 1970, or of a simulated cluster's clock (``now_ms``),
             which is their default. Each try has 30s; a record has as long, or 2m if it is sent
             again, or ``within``.
    """

    topic: TopicName | OfTopic
    partition: PartitionIndex = 0
    _: KW_ONLY
    values: Values | None = None
    keys: Keys | None = None
    headers: Headers | None = None
    timestamps: Timestamps | None = None
    count: Records | None = None
    rate: Rate | None = None
    batch: BatchSize = 1
    acks: Acks = "all"
    idempotent: Flag = False
    lasting: Duration | None = None
    to: Nodes | None = None
    as_user: Text | None = None
    within: Duration | None = None

    def __post_init__(self) -> None:
        topic: Any = self.topic
        if not isinstance(topic, str) and hasattr(topic, "topic"):
            object.__setattr__(self, "partition", topic.index)
            object.__setattr__(self, "topic", topic.topic)
        Action.__post_init__(self)
        of_a_count = {
            "count": self.count,
            "to": self.to,
            "within": self.within,
            **{name: value for name, value in self._contents() if is_list(value)},
        }
        if self.rate is None and self.lasting is not None:
            raise UserError("produce: lasting needs a rate: records per second")
        if self.rate is not None:
            if self.idempotent:
                raise UserError("produce: idempotent does not go with a rate")
            for name, value in of_a_count.items():
                if value is not None:
                    raise UserError(f"produce: {name} does not go with a rate")
        self._check_lengths()

    def _contents(self) -> tuple[tuple[str, Any], ...]:
        return (
            ("values", self.values),
            ("keys", self.keys),
            ("headers", self.headers),
            ("timestamps", self.timestamps),
        )

    def _check_lengths(self) -> None:
        """Lists have an entry for each record.

        Errors:  UserError that names the two that differ.
        """
        lengths = [("count", self.count)] if self.count is not None else []
        lengths += [(name, len(value)) for name, value in self._contents() if is_list(value)]
        for name, length in lengths[1:]:
            first, others = lengths[0]
            if length != others:
                known = f"count is {others:,}" if first == "count" else f"{first} has {others:,}"
                raise UserError(f"produce: {known}, and {name} has {length:,}")

    @property
    def records(self) -> int:
        """How many records are produced: without any list and count, one."""
        if self.count is not None:
            return self.count
        return next((len(value) for _, value in self._contents() if is_list(value)), 1)

    def content(self, place: int) -> dict[str, Any]:
        """The contents of one of the records; without values it has one of its own."""
        fields = ("value", "key", "headers", "timestamp")
        return {
            field: given[place] if is_list(given) else given
            for field, (_, given) in zip(fields, self._contents(), strict=True)
            if given is not None
        }
