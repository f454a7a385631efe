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
    TopicRecord,
)
from minicluster.verify.what_if.outcome import (
    Level,
    PartitionLeft,
    Stage,
    TopicOutcome,
    Triple,
)

Key = tuple[UUID, int]
_GRAVE = (Level.AT_RISK, Level.UNDER_MIN_ISR, Level.NO_LEADER)
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
        self._levels: dict[Key, tuple[Level, int]] = {}  # with the time since when; FINE: absent
        self._totals: dict[Key, list[int]] = {}  # ms at each level in this stage
        self._on_broker: dict[int, set[Key]] = {}  # broker -> partitions with a replica there
        self._replicas: dict[Key, tuple[int, ...]] = {}
        self._unsettled: set[Key] = set()
        self._min_isrs: dict[UUID, int] = {}  # since the configs or replicas changed
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
            for step in run.steps:
                self._refresh(self.image.topics.by_id[step.topic_id], step.partition_id, step.new)
            if isinstance(message, TopicRecord):
                self._topics[message.topic_id] = _Topic(message.name)
            elif isinstance(message, RemoveTopicRecord):
                self._remove(run.before.topics.get(message.topic_id))
            elif isinstance(message, ConfigRecord) and message.name == MIN_ISR:
                self._min_isrs.clear()
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
        for topic_id, index in list(self._on_broker.get(broker, ())):
            topic = self.image.topics.get(topic_id)
            if topic is not None:
                self._refresh(topic, index, topic.partitions[index])

    @property
    def is_settled(self) -> bool:
        """Every partition that can has a leader, and all its replicas that run in the ISR."""
        return not self._unsettled

    # Stages.

    def begin_stage(self) -> None:
        """Measure from now on; what is not fine now counts from now."""
        now_ms = self._clock()
        self._began_ms = now_ms
        self._totals = {}
        self._levels = {key: (level, now_ms) for key, (level, _) in self._levels.items()}
        for topic in self._topics.values():
            topic.most = list(topic.counts)
        self._series = [(now_ms, _triple(self._counts))]

    def end_stage(self, text: str) -> Stage:
        """The outcome of the stage that ends now."""
        now_ms = self._clock()
        longest: dict[UUID, list[int]] = {}
        for key, total in self._ended(now_ms):
            of_topic = longest.setdefault(key[0], [0, 0, 0, 0])
            for level in _GRAVE:
                of_topic[level] = max(of_topic[level], total[level])
        topics = tuple(
            TopicOutcome(
                name=topic.name,
                partitions=topic.partitions,
                most=_triple(topic.most),
                at_end=_triple(topic.counts),
                longest_ms=_triple(longest.get(topic_id, (0, 0, 0, 0))),
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

    def _ended(self, now_ms: int) -> Iterator[tuple[Key, list[int]]]:
        """The totals of each partition that was not fine, up to now."""
        totals = {key: list(total) for key, total in self._totals.items()}
        for key, (level, since_ms) in self._levels.items():
            totals.setdefault(key, [0, 0, 0, 0])[level] += now_ms - since_ms
        return iter(totals.items())

    def _left(self) -> Iterator[PartitionLeft]:
        """The partitions that lack a leader or members of the ISR now, the gravest first."""
        grave = [(k, level) for k, (level, _) in self._levels.items() if level > Level.AT_RISK]
        named = sorted((-level, self._topics[key[0]].name, key[1], key[0]) for key, level in grave)
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
        self._topics.setdefault(topic.id, _Topic(topic.name))
        for index, state in topic.partitions.items():
            self._refresh(topic, index, state)

    def _refresh(self, topic: TopicImage, index: int, state: PartitionRegistration) -> None:
        key = topic.id, index
        before = self._replicas.get(key)
        if before != state.replicas:
            self._min_isrs.pop(topic.id, None)
            for replica in before or ():
                self._on_broker[replica].discard(key)
            for replica in state.replicas:
                self._on_broker.setdefault(replica, set()).add(key)
            if before is None:
                self._topics[topic.id].partitions += 1
            self._replicas[key] = state.replicas
        (self._unsettled.discard if self._settled(state) else self._unsettled.add)(key)
        self._set(key, self._level(state, self._min_isr(topic)))

    def _settled(self, state: PartitionRegistration) -> bool:
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

    def _min_isr(self, topic: TopicImage) -> int:
        """The effective min.insync.replicas; ClusterState.min_isr has the controller's."""
        found = self._min_isrs.get(topic.id)
        if found is None:
            found = self._min_isrs[topic.id] = self._find_min_isr(topic)
        return found

    def _find_min_isr(self, topic: TopicImage) -> int:
        configs = self.image.configs
        text = configs.value(TOPIC, topic.name, MIN_ISR)
        if text is None:
            text = configs.value(BROKER, CLUSTER_DEFAULT, MIN_ISR)
        wanted = int(text) if text is not None and text.isdecimal() else self._default_min_isr
        first = topic.partitions.get(0)
        return wanted if first is None else min(wanted, len(first.replicas))

    def _set(self, key: Key, level: Level) -> None:
        old, since_ms = self._levels.get(key, (Level.FINE, 0))
        if level is old:
            return
        now_ms, topic = self._clock(), self._topics[key[0]]
        if old:
            self._totals.setdefault(key, [0, 0, 0, 0])[old] += now_ms - since_ms
        for one, change in ((old, -1), (level, 1)):
            topic.counts[one] += change
            self._counts[one] += change
        if level:
            self._levels[key] = level, now_ms
            topic.most[level] = max(topic.most[level], topic.counts[level])
        else:
            self._levels.pop(key)
        if self._series and self._series[-1][0] == now_ms:
            self._series[-1] = now_ms, _triple(self._counts)
        else:
            self._series.append((now_ms, _triple(self._counts)))

    def _remove(self, topic: TopicImage | None) -> None:
        for index in () if topic is None else topic.partitions:
            assert topic is not None
            key = topic.id, index
            self._set(key, Level.FINE)
            self._unsettled.discard(key)
            for replica in self._replicas.pop(key, ()):
                self._on_broker[replica].discard(key)
        if topic is not None:
            self._topics.pop(topic.id, None)
            self._min_isrs.pop(topic.id, None)


class _Topic:
    """The counts of one topic's partitions by level, now and at most in the stage."""

    __slots__ = ("counts", "most", "name", "partitions")

    def __init__(self, name: str) -> None:
        self.name, self.partitions = name, 0
        self.counts, self.most = [0, 0, 0, 0], [0, 0, 0, 0]


def _triple(by_level: Iterable[int]) -> Triple:
    _, at_risk, under, none = by_level
    return none, under, at_risk
