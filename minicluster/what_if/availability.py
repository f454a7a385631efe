"""Availability of each partition while a cluster runs: a follower of commits and of processes.

Replicas count as in sync where the committed ISR has them and their process runs. So a partition
lacks its leader from the moment at which the leader dies, not only once the controller has fenced
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

from minicluster.log.batch import RecordBatch
from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT, MIN_ISR, TOPIC
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.protocol.records import (
    ConfigRecord,
    RemoveTopicRecord,
)
from minicluster.what_if.outcome import (
    Level,
    PartitionLeft,
    Stage,
    TopicOutcome,
    Triple,
)

LEFT_MAX = 50  # partitions that a stage names


class Availability:
    """The levels of all partitions, and how long each partition has been at each.

    Shapes:  running: the brokers whose processes run; clock: the cluster's time in ms.
    """

    def __init__(
        self,
        image: MetadataImage,
        folds: SharedFolds,
        running: Iterable[int],
        clock: Callable[[], int],
        default_min_isr: int = 1,
    ) -> None:
        self.image = image
        self._folds = folds
        self._running = set(running)
        self._clock = clock
        self._default_min_isr = default_min_isr
        self._topics: dict[UUID, _Topic] = {}
        self._on_broker: dict[int, dict[UUID, set[int]]] = {}  # partitions with a replica there
        self._out_of_order = 0
        self._judged: dict[tuple[object, ...], tuple[bool, Level]] = {}  # of alike partitions
        self._counts = [0, 0, 0, 0]
        self._series: list[tuple[int, Triple]] = []
        self._began_ms = clock()
        for topic in image.topics:
            self._refresh_topic(topic)
        self.begin_stage()

    # What happens.

    def on_committed(self, batch: RecordBatch) -> None:
        """Follow a committed batch."""
        for run in self._folds.runs(self.image, batch.metadata_records, batch.base_offset):
            self.image, message = run.after, run.message
            for created in run.created:
                self._topics[created.topic_id] = _Topic(created.topic_id, created.name)
            for topic_id, index, _, state in run.steps:
                self._refresh(self._topics[topic_id], index, state)
            if isinstance(message, RemoveTopicRecord):
                self._remove(self._topics.get(message.topic_id))
            elif isinstance(message, ConfigRecord) and message.name == MIN_ISR:
                for topic_seen in self._topics.values():
                    topic_seen.min_isr = None
                named = self.image.topics.named(message.resource_name)
                for topic in (named,) if message.resource_type == TOPIC else self.image.topics:
                    if topic is not None:
                        self._refresh_topic(topic)

    def close(self) -> None:
        """Nothing to free."""

    def on_process(self, broker: int, runs: bool) -> None:
        """A broker's process has started or gone on, or it has ended or been paused."""
        if runs == (broker in self._running):
            return
        (self._running.add if runs else self._running.discard)(broker)
        self._judged.clear()
        for topic_id, indexes in self._on_broker.get(broker, {}).items():
            rows, topic = self.image.topics.by_id[topic_id].partitions, self._topics[topic_id]
            for index in indexes:
                self._refresh(topic, index, rows[index])

    @property
    def is_in_order(self) -> bool:
        """Every partition that can has a leader, and all its replicas that run in the ISR."""
        return not self._out_of_order

    # Stages.

    def begin_stage(self) -> None:
        """Measure from now on; what is not fine now counts from now."""
        now_ms = self._clock()
        self._began_ms = now_ms
        for topic in self._topics.values():
            topic.totals = {}
            topic.levels = {index: (level, now_ms) for index, (level, _) in topic.levels.items()}
            topic.most = list(topic.counts)
        self._series = [(now_ms, _triple(self._counts))]

    def end_stage(self, text: str) -> Stage:
        """The outcome of the stage that ends now."""
        now_ms = self._clock()
        longest = {topic.id: topic.longest(now_ms) for topic in self._topics.values()}
        topics = tuple(
            TopicOutcome(
                name=topic.name,
                partitions=topic.partitions,
                most=_triple(topic.most),
                at_end=_triple(topic.counts),
                longest_ms=_triple(longest[topic_id]),
            )
            for topic_id, topic in sorted(self._topics.items(), key=lambda item: item[1].name)
        )
        most = [max(counts[n] for _, counts in self._series) for n in range(3)]
        return Stage(
            text=text,
            began_ms=self._began_ms,
            ended_ms=now_ms,
            all=TopicOutcome(
                name="all topics",
                partitions=sum(topic.partitions for topic in topics),
                most=(most[0], most[1], most[2]),
                at_end=_triple(self._counts),
                longest_ms=_triple(
                    [max((t[n] for t in longest.values()), default=0) for n in range(4)]
                ),
            ),
            topics=topics,
            series=tuple(self._series),
            left=tuple(self._left()),
        )

    def _left(self) -> Iterator[PartitionLeft]:
        """The partitions that lack a leader or members of the ISR now, the gravest first."""
        named = sorted(
            (-level, topic.name, index, topic.id)
            for topic in self._topics.values()
            for index, (level, _) in topic.levels.items()
            if level > Level.AT_RISK
        )
        for level, name, index, topic_id in named[:LEFT_MAX]:
            state = self.image.topics.partition(topic_id, index)
            if state is not None:
                yield PartitionLeft(
                    name=f"{name}-{index}",
                    level=Level(-level),
                    leader=state.leader,
                    isr=state.isr,
                    replicas=state.replicas,
                    down=tuple(node for node in state.replicas if node not in self._running),
                )

    # One partition.

    def _refresh_topic(self, topic: TopicImage) -> None:
        seen = self._topics.setdefault(topic.id, _Topic(topic.id, topic.name))
        for index, state in topic.partitions.items():
            self._refresh(seen, index, state)

    def _refresh(self, topic: _Topic, index: int, state: PartitionRegistration) -> None:
        before = topic.replicas.get(index)
        if before is not state.replicas and before != state.replicas:
            topic.min_isr = None
            for replica in before or ():
                self._on_broker[replica][topic.id].discard(index)
            for replica in state.replicas:
                self._on_broker.setdefault(replica, {}).setdefault(topic.id, set()).add(index)
            topic.replicas[index] = state.replicas
        min_isr = topic.min_isr
        if min_isr is None:
            min_isr = topic.min_isr = self._find_min_isr(topic)
        alike = (state.leader, state.isr, state.elr, state.replicas, min_isr)
        judged = self._judged.get(alike)
        if judged is None:
            judged = self._judged[alike] = self._is_in_order(state), self._level(state, min_isr)
        if judged[0] is (index in topic.out_of_order):
            self._out_of_order += -1 if judged[0] else 1
            (topic.out_of_order.discard if judged[0] else topic.out_of_order.add)(index)
        self._set(topic, index, judged[1])

    def _is_in_order(self, state: PartitionRegistration) -> bool:
        running = self._running
        if not any(member in running for member in (*state.isr, *state.elr)):
            return True  # nobody there may lead it
        missing = (r for r in state.replicas if r in running and r not in state.isr)
        return state.leader >= 0 and next(missing, None) is None

    def _level(self, state: PartitionRegistration, min_isr: int) -> Level:
        running = self._running
        if state.leader not in running:
            return Level.NO_LEADER
        in_sync = sum(member in running for member in state.isr)
        if in_sync < min_isr:
            return Level.UNDER_MIN_ISR
        return Level.AT_RISK if in_sync == max(min_isr, 1) else Level.FINE

    def _find_min_isr(self, topic: _Topic) -> int:
        """The effective min.insync.replicas; ClusterState.min_isr has the controller's."""
        configs = self.image.configs
        text = configs.value(TOPIC, topic.name, MIN_ISR)
        if text is None:
            text = configs.value(BROKER, CLUSTER_DEFAULT, MIN_ISR)
        wanted = int(text) if text is not None and text.isdecimal() else self._default_min_isr
        first = self.image.topics.partition(topic.id, 0)
        return wanted if first is None else min(wanted, len(first.replicas))

    def _set(self, topic: _Topic, index: int, level: Level) -> None:
        old, since_ms = topic.levels.get(index, _FINE)
        if level is old:
            return
        now_ms = self._clock()
        if old:
            topic.totals.setdefault(index, [0, 0, 0, 0])[old] += now_ms - since_ms
        for counts in (topic.counts, self._counts):
            counts[old] -= 1
            counts[level] += 1
        if level:
            topic.levels[index] = level, now_ms
            topic.most[level] = max(topic.most[level], topic.counts[level])
        else:
            topic.levels.pop(index)
        if self._series and self._series[-1][0] == now_ms:
            self._series[-1] = now_ms, _triple(self._counts)
        else:
            self._series.append((now_ms, _triple(self._counts)))

    def _remove(self, topic: _Topic | None) -> None:
        if topic is None:
            return
        for index in topic.replicas:
            self._set(topic, index, Level.FINE)
        self._out_of_order -= len(topic.out_of_order)
        for on_broker in self._on_broker.values():
            on_broker.pop(topic.id, None)
        self._topics.pop(topic.id)


_FINE = (Level.FINE, 0)


class _Topic:
    """A topic's partitions: their replicas, and those that are not fine.

    Shapes:  counts, most: partitions by level, now and at most in the stage; levels: with the time
             since when; totals: ms at each level in the stage; min_isr: None after a change.
    """

    __slots__ = (
        "counts",
        "id",
        "levels",
        "min_isr",
        "most",
        "name",
        "out_of_order",
        "replicas",
        "totals",
    )

    def __init__(self, topic_id: UUID, name: str) -> None:
        self.id, self.name = topic_id, name
        self.counts, self.most = [0, 0, 0, 0], [0, 0, 0, 0]
        self.replicas: dict[int, tuple[int, ...]] = {}
        self.levels: dict[int, tuple[Level, int]] = {}
        self.totals: dict[int, list[int]] = {}
        self.out_of_order: set[int] = set()
        self.min_isr: int | None = None

    @property
    def partitions(self) -> int:
        """The number of its partitions."""
        return len(self.replicas)

    def longest(self, now_ms: int) -> list[int]:
        """The longest time of one partition at each level, up to now."""
        totals = {index: list(total) for index, total in self.totals.items()}
        for index, (level, since_ms) in self.levels.items():
            totals.setdefault(index, [0, 0, 0, 0])[level] += now_ms - since_ms
        return [max((total[n] for total in totals.values()), default=0) for n in range(4)]


def _triple(by_level: Iterable[int]) -> Triple:
    _, at_risk, under, none = by_level
    return none, under, at_risk
