"""What members of some groups do, drawn from a seed and from the responses that they have had."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from minicluster.coordinator.group.conversion.embedded import assignment_of
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.codec import encode
from minicluster.protocol.records import (
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    VersionedRecord,
)

NAMES = ("orders", "orders-eu", "payments", "logs", "users")
EXPRESSIONS = ("ord.*", "orders|logs", ".*", "pay.*", "nothing", "users", "o.*eu")
BAD_EXPRESSIONS = ("(", "[a-", "*")
GROUPS = ("modern", "classic", "mixed", "simple")
RACKS = ("a", "b", None)
PROTOCOLS = ("range", "roundrobin", "cooperative-sticky")
METADATA_VERSION = 30
UNKNOWN_ID = UUID(int=77)

TopicPartitions = m.ConsumerGroupHeartbeatRequest.TopicPartitions
Protocol = m.JoinGroupRequest.JoinGroupRequestProtocol


@dataclass(frozen=True, slots=True)
class Publish:
    """Topics come, grow or go."""

    records: tuple[VersionedRecord, ...]


@dataclass(frozen=True, slots=True)
class Send:
    """A request of a client."""

    request: Any
    version: int
    client_id: str
    on_response: Callable[[Any], None] | None = None


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """The marker of a transaction."""

    producer_id: int
    epoch: int
    commit: bool


@dataclass(frozen=True, slots=True)
class Advance:
    """Time passes; at 0 ms what is due and what works in the background is done."""

    ms: int


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """A group has configs of its own."""

    group_id: str
    config: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Restart:
    """The coordinator loads its log again."""


Operation = Publish | Send | EndTransaction | Advance | GroupConfig | Restart


@dataclass(slots=True)
class Modern:
    """A member of the consumer protocol."""

    client_id: str
    group_id: str
    version: int
    instance_id: str | None
    member_id: str = ""
    epoch: int = 0
    names: tuple[str, ...] | None = None
    regex: str | None = None
    assigned: dict[UUID, tuple[int, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Classic:
    """A member of the classic protocol."""

    client_id: str
    group_id: str
    instance_id: str | None
    protocol_type: str
    member_id: str = ""
    generation: int = -1
    protocol: str = "range"
    topics: tuple[str, ...] = ()
    members: tuple[str, ...] = ()  # of the generation that it leads
    assigned: dict[str, tuple[int, ...]] = field(default_factory=dict)


class Workload:
    """Draws one operation after the other.

    Shapes:  ``config`` holds for the coordinator of this seed.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.config = self._config()
        self.topics: dict[str, tuple[UUID, int]] = {}
        self._ids = 0
        self._members = 0
        self.modern = [self._modern() for _ in range(6)]
        self.classic = [self._classic() for _ in range(6)]
        self.transactions: set[tuple[int, int]] = set()

    def _config(self) -> dict[str, str]:
        draw = self.draw
        return {
            "group.consumer.assignor.offload.enable": "false",
            "group.consumer.assignment.interval.ms": str(draw.choice((0, 0, 1000))),
            "group.consumer.regex.refresh.interval.ms": str(draw.choice((10_000, 60_000, 600_000))),
            "group.consumer.migration.policy": draw.choice(
                ("bidirectional", "bidirectional", "upgrade", "downgrade", "disabled")
            ),
            "group.initial.rebalance.delay.ms": str(draw.choice((0, 0, 3000))),
            "group.consumer.max.size": str(draw.choice((4, 100))),
            "group.max.size": str(draw.choice((3, 100))),
            "offsets.retention.minutes": str(draw.choice((1, 10))),
            "offsets.retention.check.interval.ms": str(draw.choice((5_000, 60_000))),
            "group.min.session.timeout.ms": "1000",
        }

    def _modern(self) -> Modern:
        draw = self.draw
        self._members += 1
        return Modern(
            client_id=f"m{self._members}",
            group_id=draw.choice(("modern", "modern", "mixed", "mixed", "classic")),
            version=draw.choice((0, 1, 1, 1)),
            instance_id=draw.choice((None, None, f"i{draw.randrange(3)}")),
        )

    def _classic(self) -> Classic:
        draw = self.draw
        self._members += 1
        return Classic(
            client_id=f"k{self._members}",
            group_id=draw.choice(("classic", "classic", "mixed", "mixed", "modern")),
            instance_id=draw.choice((None, None, f"i{draw.randrange(3)}")),
            protocol_type=draw.choice(("consumer",) * 7 + ("connect",)),
        )

    # --- topics -------------------------------------------------------------------------------

    def beginning(self) -> Iterator[Operation]:
        """Brokers, features and the internal topic, then some topics."""
        records: list[Any] = [
            FeatureLevelRecord(name="metadata.version", feature_level=METADATA_VERSION),
            FeatureLevelRecord(name="group.version", feature_level=1),
        ]
        records += [
            RegisterBrokerRecord(
                broker_id=broker,
                broker_epoch=1,
                incarnation_id=UUID(int=900 + broker),
                rack=self.draw.choice(RACKS),
            )
            for broker in (1, 2, 3)
        ]
        internal = UUID(int=99)
        records.append(TopicRecord(name="__consumer_offsets", topic_id=internal))
        records.append(_partition(internal, 0, (1,)))
        yield _publish(records)
        for name in self.draw.sample(NAMES, 3):
            yield self._create(name)

    def _create(self, name: str) -> Publish:
        self._ids += 1
        topic_id = UUID(int=(self._ids << 64) + 1000)
        count = self.draw.randint(1, 5)
        self.topics[name] = topic_id, count
        return _publish(
            [TopicRecord(name=name, topic_id=topic_id), *self._partitions(topic_id, 0, count)]
        )

    def _partitions(self, topic_id: UUID, first: int, end: int) -> list[PartitionRecord]:
        replicas = [tuple(self.draw.sample((1, 2, 3), 2)) for _ in range(first, end)]
        return [_partition(topic_id, first + n, on) for n, on in enumerate(replicas)]

    def _change_topics(self) -> Operation:
        draw = self.draw
        missing = [name for name in NAMES if name not in self.topics]
        kind = draw.choice(("create", "create", "grow", "delete"))
        if kind == "create" and missing:
            return self._create(draw.choice(missing))
        if not self.topics:
            return self._create(draw.choice(NAMES))
        name = draw.choice(sorted(self.topics))
        topic_id, count = self.topics[name]
        if kind == "delete":
            del self.topics[name]
            return _publish([RemoveTopicRecord(topic_id=topic_id)])
        self.topics[name] = topic_id, count + 1
        return _publish(self._partitions(topic_id, count, count + 1))

    # --- operations ---------------------------------------------------------------------------

    def next(self) -> Operation:
        """The next operation."""
        draw = self.draw
        kinds: list[tuple[int, Callable[[], Operation]]] = [
            (40, self._of_modern),
            (40, self._of_classic),
            (6, self._change_topics),
            (12, self._commit),
            (5, self._fetch),
            (4, self._of_transaction),
            (2, self._delete_offsets),
            (8, self._describe),
            (1, self._delete_groups),
            (1, self._group_config),
            (22, self._advance),
            (1, self._restart),
        ]
        weights = [weight for weight, _ in kinds]
        return draw.choices([function for _, function in kinds], weights)[0]()

    def _restart(self) -> Operation:
        return Restart() if self.draw.random() < 0.4 else Advance(0)

    def _advance(self) -> Operation:
        draw = self.draw
        return Advance(
            draw.choices(
                (
                    draw.randint(1, 50),
                    draw.randint(50, 1_500),
                    draw.randint(1_500, 9_000),
                    draw.randint(9_000, 50_000),
                    draw.randint(60_000, 700_000),
                ),
                (40, 30, 20, 8, 2),
            )[0]
        )

    def _group_config(self) -> Operation:
        draw = self.draw
        return GroupConfig(
            draw.choice(GROUPS[:3]),
            (
                ("consumer.session.timeout.ms", str(draw.choice((45_000, 50_000, 60_000)))),
                ("consumer.heartbeat.interval.ms", str(draw.choice((5_000, 7_000)))),
            ),
        )

    # --- consumer protocol --------------------------------------------------------------------

    def _of_modern(self) -> Operation:
        draw = self.draw
        member = draw.choice(self.modern)
        if draw.random() < 0.02:
            self.modern.remove(member)
            self.modern.append(self._modern())
            if member.instance_id is not None:  # another process takes its place
                self.modern[-1].instance_id = member.instance_id
                self.modern[-1].group_id = member.group_id
            return self._of_modern()
        if member.epoch <= 0:
            return self._join(member)
        kind = draw.choices(
            ("beat", "acknowledge", "owned", "subscribe", "full", "odd", "leave", "rejoin"),
            (30, 30, 8, 12, 6, 6, 4, 4),
        )[0]
        if kind == "rejoin":
            return self._join(member)
        if kind == "leave":
            epoch = -1 if member.instance_id is None or draw.random() < 0.4 else -2
            return self._heartbeat(member, epoch)
        if kind == "beat":
            return self._heartbeat(member, member.epoch)
        if kind == "acknowledge":
            return self._heartbeat(member, member.epoch, owned=member.assigned)
        if kind == "owned":
            return self._heartbeat(member, member.epoch, owned=self._some(member.assigned))
        if kind == "subscribe":
            self._subscribe(member)
            return self._heartbeat(
                member,
                member.epoch,
                owned=draw.choice((None, member.assigned)),
                subscribed_topic_names=member.names,
                subscribed_topic_regex=member.regex if member.version else None,
            )
        if kind == "full":
            return self._heartbeat(
                member,
                member.epoch,
                owned=member.assigned,
                subscribed_topic_names=member.names,
                subscribed_topic_regex=member.regex if member.version else None,
                rebalance_timeout_ms=draw.choice((1_000, 5_000, 60_000)),
                rack_id=draw.choice((None, "a", "b")),
                server_assignor=draw.choice((None, "range", "uniform")),
            )
        return self._odd(member)

    def _odd(self, member: Modern) -> Operation:
        draw = self.draw
        return draw.choice(
            (
                lambda: self._heartbeat(member, member.epoch - 1, owned=member.assigned),
                lambda: self._heartbeat(member, member.epoch - 1),
                lambda: self._heartbeat(member, member.epoch + 1),
                lambda: self._heartbeat(member, member.epoch + 1, owned=member.assigned),
                lambda: self._heartbeat(member, member.epoch, server_assignor="unknown"),
                lambda: self._heartbeat(member, -3),
                lambda: self._heartbeat(
                    member,
                    member.epoch,
                    subscribed_topic_regex=draw.choice(BAD_EXPRESSIONS) if member.version else None,
                ),
                lambda: self._heartbeat(member, member.epoch, rack_id=""),
                lambda: self._heartbeat(member, member.epoch, owned={UNKNOWN_ID: (0,)}),
            )
        )()

    def _subscribe(self, member: Modern) -> None:
        draw = self.draw
        kind = draw.random()
        names = tuple(draw.sample(NAMES, draw.randint(0, 3)))
        if member.version == 0 or kind < 0.4:
            member.names = names
            member.regex = "" if member.regex else None
        elif kind < 0.8:
            member.regex = draw.choice(EXPRESSIONS)
            member.names = () if member.names else None
        else:
            member.names, member.regex = names, draw.choice(EXPRESSIONS)

    def _join(self, member: Modern) -> Operation:
        draw = self.draw
        if (not member.names and not member.regex) or draw.random() < 0.3:
            self._subscribe(member)
        if not member.member_id and (member.version or draw.random() < 0.3):
            member.member_id = f"{member.client_id}-{draw.randrange(1000)}"
        names = member.names
        if names is None and not member.regex:
            names = ()
        return self._heartbeat(
            member,
            0,
            owned={},
            subscribed_topic_names=names,
            subscribed_topic_regex=member.regex if member.version else None,
            rebalance_timeout_ms=draw.choice((1_000, 5_000, 60_000)),
            rack_id=draw.choice((None, "a", "b")),
            server_assignor=draw.choice((None, None, "range", "uniform")),
        )

    def _heartbeat(
        self,
        member: Modern,
        epoch: int,
        *,
        owned: dict[UUID, tuple[int, ...]] | None = None,
        **given: Any,
    ) -> Operation:
        request = m.ConsumerGroupHeartbeatRequest(
            group_id=member.group_id,
            member_id=member.member_id,
            member_epoch=epoch,
            instance_id=member.instance_id,
            topic_partitions=None
            if owned is None
            else tuple(TopicPartitions(topic_id=t, partitions=p) for t, p in owned.items()),
            **given,
        )

        def on_response(response: m.ConsumerGroupHeartbeatResponse) -> None:
            if response.error_code == ErrorCode.NONE:
                if response.member_epoch < 0:
                    member.epoch, member.assigned = 0, {}
                    if member.version == 0:
                        member.member_id = ""
                    return
                member.member_id = response.member_id or member.member_id
                member.epoch = response.member_epoch
                if response.assignment is not None:
                    member.assigned = {
                        each.topic_id: each.partitions
                        for each in response.assignment.topic_partitions
                    }
            elif response.error_code in (
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.UNRELEASED_INSTANCE_ID,
                ErrorCode.FENCED_INSTANCE_ID,
                ErrorCode.GROUP_ID_NOT_FOUND,
            ):
                member.epoch, member.assigned = 0, {}
                if self.draw.random() < 0.5 and epoch in (0, member.epoch):
                    member.member_id = ""

        return Send(request, member.version, member.client_id, on_response)

    def _some(self, assigned: dict[Any, tuple[int, ...]]) -> dict[Any, tuple[int, ...]]:
        draw = self.draw
        return {
            topic: kept
            for topic, partitions in assigned.items()
            if (kept := tuple(p for p in partitions if draw.random() < 0.5))
        }

    # --- classic protocol ---------------------------------------------------------------------

    def _of_classic(self) -> Operation:
        draw = self.draw
        member = draw.choice(self.classic)
        if draw.random() < 0.02:
            self.classic.remove(member)
            self.classic.append(self._classic())
            if member.instance_id is not None:
                self.classic[-1].instance_id = member.instance_id
                self.classic[-1].group_id = member.group_id
            return self._of_classic()
        if member.generation < 0:
            return self._join_group(member)
        kind = draw.choices(
            ("beat", "sync", "join", "leave", "stale"),
            (30, 30, 20, 4, 5),
        )[0]
        if kind == "join":
            return self._join_group(member)
        if kind == "sync":
            return self._sync(member, member.generation)
        if kind == "leave":
            return self._leave(member)
        generation = (
            member.generation if kind == "beat" else member.generation + draw.choice((-1, 1))
        )
        if kind == "stale" and draw.random() < 0.3:
            return self._sync(member, generation)
        return self._beat(member, generation)

    def _beat(self, member: Classic, generation: int) -> Operation:
        version = self.draw.choice((0, 3, 4))
        request = m.HeartbeatRequest(
            group_id=member.group_id,
            generation_id=generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id if version >= 3 else None,
        )

        def on_response(response: m.HeartbeatResponse) -> None:
            self._on_error(member, response.error_code)

        return Send(request, version, member.client_id, on_response)

    def _on_error(self, member: Classic, error: int) -> None:
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            if self.draw.random() < 0.7:
                member.generation = -1  # it joins again
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            member.member_id, member.generation = "", -1
            member.members, member.assigned = (), {}
        elif error == ErrorCode.ILLEGAL_GENERATION:
            member.generation = -1

    def _join_group(self, member: Classic) -> Operation:
        draw = self.draw
        if not member.topics or draw.random() < 0.2:
            member.topics = tuple(draw.sample(NAMES, draw.randint(1, 3)))
        lowest = 5 if member.instance_id is not None else 4
        version = draw.choice((lowest, 7, 9)) if draw.random() < 0.9 else draw.choice((0, 2, 3))
        instance_id = member.instance_id if version >= 5 else None
        names = draw.sample(PROTOCOLS, draw.randint(1, 3))
        if "range" not in names and draw.random() < 0.8:
            names.append("range")
        metadata = self._subscription(member)
        request = m.JoinGroupRequest(
            group_id=member.group_id,
            session_timeout_ms=draw.choice((3_000, 10_000, 30_000)),
            rebalance_timeout_ms=draw.choice((2_000, 10_000)) if version else -1,
            member_id=member.member_id,
            group_instance_id=instance_id,
            protocol_type=member.protocol_type,
            protocols=tuple(Protocol(name=name, metadata=metadata) for name in names),
            reason=draw.choice((None, "why")) if version >= 8 else None,
        )

        def on_response(response: m.JoinGroupResponse) -> None:
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                member.member_id = response.member_id
            elif response.error_code == ErrorCode.NONE:
                member.member_id = response.member_id
                member.generation = response.generation_id
                member.protocol = response.protocol_name or ""
                member.members = tuple(each.member_id for each in response.members)
            else:
                self._on_error(member, response.error_code)

        return Send(request, version, member.client_id, on_response)

    def _subscription(self, member: Classic) -> bytes:
        draw = self.draw
        version = draw.choice((0, 1, 2, 3))
        item = m.ConsumerProtocolSubscription.TopicPartition
        owned = member.assigned if draw.random() < 0.7 else self._some(member.assigned)
        value = m.ConsumerProtocolSubscription(
            topics=member.topics,
            owned_partitions=tuple(item(topic=t, partitions=p) for t, p in owned.items())
            if version >= 1
            else (),
            generation_id=member.generation if version >= 2 else -1,
            rack_id=draw.choice((None, "a")) if version >= 3 else None,
        )
        return version.to_bytes(2, "big") + encode(value, version)

    def _sync(self, member: Classic, generation: int) -> Operation:
        draw = self.draw
        version = draw.choice((3, 4, 5))
        item = m.SyncGroupRequest.SyncGroupRequestAssignment
        assignments = tuple(
            item(member_id=each, assignment=self._assignment(member)) for each in member.members
        )
        request = m.SyncGroupRequest(
            group_id=member.group_id,
            generation_id=generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            protocol_type=member.protocol_type if version >= 5 else None,
            protocol_name=member.protocol if version >= 5 else None,
            assignments=assignments,
        )

        def on_response(response: m.SyncGroupResponse) -> None:
            if response.error_code == ErrorCode.NONE and response.assignment:
                value = assignment_of(response.assignment)
                member.assigned = {t.topic: t.partitions for t in value.assigned_partitions}
            self._on_error(member, response.error_code)

        return Send(request, version, member.client_id, on_response)

    def _assignment(self, member: Classic) -> bytes:
        draw = self.draw
        item = m.ConsumerProtocolAssignment.TopicPartition
        partitions = tuple(
            item(topic=name, partitions=tuple(sorted(draw.sample(range(count), 1))))
            for name in member.topics
            if (count := self.topics.get(name, (None, 0))[1])
        )
        value = m.ConsumerProtocolAssignment(assigned_partitions=partitions)
        return (0).to_bytes(2, "big") + encode(value, 0)

    def _leave(self, member: Classic) -> Operation:
        draw = self.draw
        version = draw.choice((0, 2, 3, 5)) if member.instance_id is None else draw.choice((3, 5))
        identity = m.LeaveGroupRequest.MemberIdentity
        if version < 3:
            request = m.LeaveGroupRequest(group_id=member.group_id, member_id=member.member_id)
        else:
            by_instance = member.instance_id is not None and draw.random() < 0.5
            leaving = [
                identity(
                    member_id="" if by_instance else member.member_id,
                    group_instance_id=member.instance_id,
                )
            ]
            if draw.random() < 0.3:
                other = draw.choice(self.classic)
                leaving.append(
                    identity(member_id=other.member_id, group_instance_id=other.instance_id)
                )
            request = m.LeaveGroupRequest(group_id=member.group_id, members=tuple(leaving))

        def on_response(response: m.LeaveGroupResponse) -> None:
            member.member_id, member.generation = "", -1
            member.members, member.assigned = (), {}

        return Send(request, version, member.client_id, on_response)

    # --- offsets ------------------------------------------------------------------------------

    def _who(self) -> tuple[str, str, int, str | None]:
        """Group, member, epoch or generation and instance of a commit."""
        draw = self.draw
        kind = draw.random()
        if kind < 0.35:
            one = draw.choice(self.modern)
            change = draw.choice((0, 0, 0, -1, 1))
            return one.group_id, one.member_id, one.epoch + change, one.instance_id
        if kind < 0.7:
            other = draw.choice(self.classic)
            change = draw.choice((0, 0, 0, -1, 1))
            return other.group_id, other.member_id, other.generation + change, other.instance_id
        return draw.choice(GROUPS), "", -1, None

    def _places(self) -> list[tuple[str, UUID, tuple[int, ...]]]:
        draw = self.draw
        names = draw.sample(sorted(self.topics), min(len(self.topics), draw.randint(1, 2)))
        return [
            (name, self.topics[name][0], tuple(sorted(draw.sample(range(self.topics[name][1]), 1))))
            for name in names
        ]

    def _commit(self) -> Operation:
        draw = self.draw
        if not self.topics:  # nothing of it would reach the coordinator
            return Advance(0)
        group_id, member_id, epoch, instance_id = self._who()
        version = draw.choice((2, 5, 7, 8, 9, 10))
        request_type = m.OffsetCommitRequest
        topic, partition = (
            request_type.OffsetCommitRequestTopic,
            request_type.OffsetCommitRequestPartition,
        )
        topics = tuple(
            topic(
                name=name if version < 10 else "",
                topic_id=topic_id if version >= 10 else UUID(int=0),
                partitions=tuple(
                    partition(
                        partition_index=index,
                        committed_offset=draw.randrange(100),
                        committed_leader_epoch=draw.choice((-1, 0, 3)) if version >= 6 else -1,
                        committed_metadata=draw.choice(("", None, "note", "x" * 4097)),
                    )
                    for index in indexes
                ),
            )
            for name, topic_id, indexes in self._places()
        )
        request = request_type(
            group_id=group_id,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            group_instance_id=instance_id if version >= 7 else None,
            retention_time_ms=draw.choice((-1, -1, 30_000)) if 2 <= version <= 4 else -1,
            topics=topics,
        )
        return Send(request, version, "committer")

    def _fetch(self) -> Operation:
        draw = self.draw
        group_id, member_id, epoch, _ = self._who()
        version = draw.choice((1, 5, 7, 8, 9, 10))
        places = self._places()
        all_topics = version >= 2 and draw.random() < 0.4
        kind = m.OffsetFetchRequest
        if version < 8:
            topics = tuple(
                kind.OffsetFetchRequestTopic(name=name, partition_indexes=(*indexes, 4))
                for name, _, indexes in places
            )
            request = kind(
                group_id=group_id,
                topics=None if all_topics else topics,
                require_stable=version >= 7 and draw.random() < 0.5,
            )
        else:
            several = tuple(
                kind.OffsetFetchRequestTopics(
                    name=name if version < 10 else "",
                    topic_id=topic_id if version >= 10 else UUID(int=0),
                    partition_indexes=(*indexes, 4),
                )
                for name, topic_id, indexes in places
            )
            as_member = version >= 9 and draw.random() < 0.5
            group = kind.OffsetFetchRequestGroup(
                group_id=group_id,
                member_id=member_id if as_member else None,
                member_epoch=epoch if as_member else -1,
                topics=None if all_topics else several,
            )
            other = kind.OffsetFetchRequestGroup(group_id=draw.choice(GROUPS), topics=several)
            request = kind(
                groups=(group, other) if other.group_id != group_id else (group,),
                require_stable=draw.random() < 0.5,
            )
        return Send(request, version, "fetcher")

    def _of_transaction(self) -> Operation:
        draw = self.draw
        if not self.topics:
            return Advance(0)
        if self.transactions and draw.random() < 0.5:
            producer_id, epoch = draw.choice(sorted(self.transactions))
            self.transactions.discard((producer_id, epoch))
            return EndTransaction(producer_id, epoch, draw.random() < 0.6)
        group_id, member_id, epoch, instance_id = self._who()
        version = draw.choice((0, 3, 5))
        producer_id, producer_epoch = draw.choice(((11, 0), (12, 1)))
        kind = m.TxnOffsetCommitRequest
        topics = tuple(
            kind.TxnOffsetCommitRequestTopic(
                name=name,
                partitions=tuple(
                    kind.TxnOffsetCommitRequestPartition(
                        partition_index=index, committed_offset=draw.randrange(100)
                    )
                    for index in indexes
                ),
            )
            for name, _, indexes in self._places()
        )
        request = kind(
            transactional_id=f"t{producer_id}",
            group_id=group_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            generation_id=epoch if version >= 3 else -1,
            member_id=member_id if version >= 3 else "",
            group_instance_id=instance_id if version >= 3 else None,
            topics=topics,
        )

        def on_response(response: m.TxnOffsetCommitResponse) -> None:
            self.transactions.add((producer_id, producer_epoch))

        return Send(request, version, "producer", on_response)

    def _delete_offsets(self) -> Operation:
        kind = m.OffsetDeleteRequest
        topics = tuple(
            kind.OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(
                    kind.OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                ),
            )
            for name, _, indexes in self._places()
        )
        return Send(kind(group_id=self.draw.choice(GROUPS), topics=topics), 0, "admin")

    # --- administrators -----------------------------------------------------------------------

    def _describe(self) -> Operation:
        draw = self.draw
        kind = draw.choice(("classic", "consumer", "consumer", "list"))
        some: Sequence[str] = draw.sample((*GROUPS, "missing"), draw.randint(1, 3))
        if kind == "classic":
            return Send(
                m.DescribeGroupsRequest(groups=tuple(some)), draw.choice((0, 4, 6)), "admin"
            )
        if kind == "consumer":
            request = m.ConsumerGroupDescribeRequest(group_ids=tuple(some))
            return Send(request, draw.choice((0, 1)), "admin")
        states = tuple(draw.sample(("Stable", "Empty", "Reconciling", "PreparingRebalance"), 1))
        version = draw.choice((0, 4, 5))
        listing = m.ListGroupsRequest(
            states_filter=states if version >= 4 and draw.random() < 0.5 else (),
            types_filter=("consumer",) if version >= 5 and draw.random() < 0.3 else (),
        )
        return Send(listing, version, "admin")

    def _delete_groups(self) -> Operation:
        some = self.draw.sample((*GROUPS, "missing"), 2)
        return Send(m.DeleteGroupsRequest(groups_names=tuple(some)), 2, "admin")


def _publish(records: Sequence[Any]) -> Publish:
    return Publish(tuple(VersionedRecord(record, 0) for record in records))


def _partition(topic_id: UUID, index: int, replicas: tuple[int, ...]) -> PartitionRecord:
    return PartitionRecord(
        topic_id=topic_id,
        partition_id=index,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
    )
