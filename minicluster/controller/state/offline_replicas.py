"""The replicas that brokers have reported as offline (KIP-589): soft state, in no record.

    AlterReplicaState --checked, response sent--> waiting --a moment later--> offline, ISRs changed

A report can be lost with the controller after its response; brokers report to the next one again.

**Invariant:** a report counts for the broker epoch it was sent with, so nothing of an earlier
incarnation outlives a registration (tests/controller/test_alter_replica_state.py).
"""

from __future__ import annotations

from collections import deque
from uuid import UUID

from minicluster.metadata.image.cluster import BrokerRegistration
from minicluster.values import Value

TopicPartition = tuple[UUID, int]


class ReplicasReported(Value):
    """A broker's report, checked and not yet acted upon. A soft change."""

    broker_id: int
    broker_epoch: int
    partitions: tuple[TopicPartition, ...]


class ReportHandled(Value):
    """The report's replicas count as offline from now on. A soft change."""

    report: ReplicasReported


ReplicaStateChange = ReplicasReported | ReportHandled


class OfflineReplicas:
    """The reports that wait, and the replicas that count as offline."""

    __slots__ = ("_offline", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[ReplicasReported] = deque()
        self._offline: dict[int, tuple[int, dict[TopicPartition, None]]] = {}

    def next_report(self) -> ReplicasReported | None:
        """The oldest report that has not been acted upon."""
        return self._waiting[0] if self._waiting else None

    @property
    def is_reported(self) -> bool:
        """True when any replica may count as offline."""
        return bool(self._offline)

    def is_offline(self, broker: BrokerRegistration, key: TopicPartition) -> bool:
        """True when this incarnation of a broker has lost its replica."""
        epoch, lost = self._offline.get(broker.id, (-1, {}))
        return epoch == broker.epoch and key in lost

    def apply(self, change: ReplicaStateChange) -> None:
        """Take a soft change."""
        if isinstance(change, ReplicasReported):
            self._waiting.append(change)
            return
        report = change.report
        if self._waiting and self._waiting[0] is report:
            self._waiting.popleft()
        epoch, lost = self._offline.get(report.broker_id, (-1, {}))
        if report.broker_epoch > epoch:
            epoch, lost = report.broker_epoch, {}
        if report.broker_epoch == epoch:
            lost.update(dict.fromkeys(report.partitions))
            self._offline[report.broker_id] = (epoch, lost)
