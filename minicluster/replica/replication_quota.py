"""The throttles of replication: bytes per second that an operator leaves to moving replicas.

A topic names the replicas that are throttled (``leader.replication.throttled.replicas``,
``follower.replication.throttled.replicas``), a broker its rate. Once more has moved than that, the
leader sends nothing of a throttled partition to a replica outside of the ISR, and a follower does
not ask for it. A member of the ISR is never held back: it would leave the ISR, and come back, and
leave again. What it moves counts all the same. A move between the directories of a broker has a
rate of its own, which holds for every partition.

    leader    requests/fetch: what is read, what a fetch waits for, what its response takes
    follower  fetching/fetcher: the partitions of its next fetch, what it appends
    move      log_directories: whether the next part is copied

Source:  KIP-73, KIP-113; ReplicationQuotaManager, TopicConfigHandler, BrokerConfigHandler;
         SimpleRate, SampledStat.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

_ALL = frozenset({-1})


def throttled_replicas(text: str | None, broker_id: int) -> frozenset[int]:
    """The partitions whose replica on a broker is throttled.

    Shapes:  text: ``partition:broker,partition:broker``, or ``*`` for all -> a set for
             ``ReplicationQuota.throttle``.
    Source:  TopicConfigHandler.parseThrottledPartitions.
    """
    entries = [entry.strip() for entry in (text or "").split(",") if entry.strip()]
    if entries == ["*"]:
        return _ALL
    pairs = (entry.split(":") for entry in entries)
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)


class ReplicationQuota:
    """The bytes that one kind of replication has moved lately, and how many it may.

    Units:   bytes_per_second is None where there is no bound.
    """

    def __init__(self, samples: int, window_s: int) -> None:
        self.bytes_per_second: int | None = None
        self._rate = _SimpleRate(samples, window_s * 1_000)
        self._throttled: dict[str, Container[int]] = {}

    def throttle(self, topic: str, partitions: frozenset[int]) -> None:
        """Throttle these partitions of a topic, and no other ones of it."""
        if partitions:
            self._throttled[topic] = partitions
        else:
            self._throttled.pop(topic, None)

    @property
    def throttles(self) -> bool:
        """There is a bound, and a partition that it may hold back."""
        return self.bytes_per_second is not None and bool(self._throttled)

    def is_throttled(self, topic: str, partition: int) -> bool:
        """The partition is among those that count and may be held back."""
        partitions = self._throttled.get(topic, ())
        return partitions is _ALL or partition in partitions

    def is_exceeded(self, now_ms: int) -> bool:
        """More has moved than may."""
        bound = self.bytes_per_second
        return bound is not None and self._rate.per_second(now_ms) > bound

    def record(self, size: int, now_ms: int) -> None:
        """Count bytes that have moved; the bound does not keep them from it."""
        self._rate.record(size, now_ms)


class ReplicationQuotas:
    """The three quotas of a broker.

    Shapes:  replication, alter_log_dirs: how many samples of how many seconds.
    Source:  QuotaFactory.QuotaManagers.
    """

    def __init__(self, replication: tuple[int, int], alter_log_dirs: tuple[int, int]) -> None:
        self.leader = ReplicationQuota(*replication)
        self.follower = ReplicationQuota(*replication)
        self.alter_log_dirs = ReplicationQuota(*alter_log_dirs)


class _Sample(Struct):
    start_ms: int
    last_ms: int
    value: int = 0


class _SimpleRate:
    """Bytes per second since the oldest sample, which counts as one window at least."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self._kept = samples
        self._window_ms = window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: int, now_ms: int) -> None:
        self._begin(now_ms)
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def per_second(self, now_ms: int) -> float:
        # A rate that is asked for begins: the time before the first bytes counts.
        self._begin(now_ms)
        for sample in self._samples:
            if now_ms - sample.last_ms >= self._kept * self._window_ms:
                sample.start_ms = sample.last_ms = now_ms
                sample.value = 0
        oldest_ms = min(sample.start_ms for sample in self._samples)
        elapsed_ms = max(now_ms - oldest_ms, self._window_ms)
        return sum(sample.value for sample in self._samples) * 1_000 / elapsed_ms

    def _begin(self, now_ms: int) -> None:
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))

    def _advance(self, now_ms: int) -> _Sample:
        """Begin the next sample; one more is kept, which overlaps the first window of all."""
        self._current = (self._current + 1) % (self._kept + 1)
        sample = _Sample(now_ms, now_ms)
        if self._current == len(self._samples):
            self._samples.append(sample)
        else:
            self._samples[self._current] = sample
        return sample
