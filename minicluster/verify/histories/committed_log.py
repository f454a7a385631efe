"""The committed log, operation by operation: each record to the histories that it is of.

The records of an operation take effect together, at the offset where the last of its batches ends
(``OperationDivider``). Of a log that begins with a snapshot the snapshot's records
come first, and are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minicluster.protocol import records as r
from minicluster.values import Value
from minicluster.verify.evidence.operations import Operation
from minicluster.verify.histories.brokers import BrokerHistories
from minicluster.verify.histories.cluster import Cluster
from minicluster.verify.histories.partitions import (
    PartitionHistories,
    PartitionHistory,
    PartitionStep,
)
from minicluster.verify.histories.timeline import CommittedStates
from minicluster.verify.histories.topics import TopicHistories
from minicluster.verify.judging import Judge
from minicluster.verify.memberships import Memberships
from minicluster.verify.promises import Promises

COUNTS_CONTROL_BATCHES = (3, 6)  # a leader that gives a broker its epoch (KAFKA-15213)


class TransactionMarker(Value, kw_only=True):
    """A metadata transaction begins, ends or is aborted; is_open: one was open before."""

    begins: bool
    is_open: bool


class CommittedLog:
    """Folds a committed log, and gives its steps to the judge.

    Shapes:  timeline: gets every committed state, where something needs them beside a trace; None
             for a log alone, of which there may be a great many.
    """

    def __init__(
        self, judge: Judge, promises: Promises, *, timeline: CommittedStates | None = None
    ) -> None:
        self.cluster = Cluster(promises)
        self._judge = judge
        self._timeline = timeline
        self._memberships = Memberships(self.cluster, judge)
        self.partitions = PartitionHistories(
            self.cluster, self._memberships.on_step if timeline is None else self._on_step
        )
        self._topics = TopicHistories(self.cluster, judge)
        self._brokers = BrokerHistories(
            self.cluster,
            judge,
            on_new_incarnation=self._memberships.on_new_incarnation,
            on_fenced=self._memberships.on_fenced,
            on_lost=self._memberships.on_lost,
            on_regained=self._memberships.on_regained,
            on_changed=self._on_broker,
        )
        self._in_transaction = False
        self._skip_to = 0
        self._kind = ""

    def load(self, records: Iterable[r.VersionedRecord], end_offset: int) -> None:
        """Begin from a snapshot that ends (exclusive) at an offset."""
        cluster = self.cluster
        self._skip_to = end_offset
        cluster.judged, cluster.offset = False, end_offset - 1
        loaded = tuple(records)
        if self._timeline is not None:
            self._timeline.begin(end_offset - 1, end_offset - 1, end_offset - len(loaded))
        for versioned in loaded:  # in a snapshot the settings come last, and hold for all of it
            if isinstance(versioned.record, r.FeatureLevelRecord | r.ConfigRecord):
                self._setting(versioned.record)
        for versioned in loaded:
            self._record(versioned.record, end_offset - 1)
        self._end_of_operation()
        cluster.judged = True

    def take(self, operation: Operation) -> None:
        """Take an operation, without what the snapshot has of it."""
        cluster = self.cluster
        for entry in operation.entries:
            if entry.offset < self._skip_to:
                continue
            cluster.offset = entry.offset
            if self._timeline is not None:
                self._timeline.begin(entry.offset, operation.end, entry.offset)
            record = entry.record
            if isinstance(record, r.PartitionChangeRecord):  # nearly all of a long log
                self.partitions.on_change(record)
                continue
            sees_control = cluster.releases.oldest >= COUNTS_CONTROL_BATCHES
            clean_from = entry.clean_from if sees_control else entry.unseen_from
            self._record(record, clean_from)
        self._end_of_operation()

    def mark(self, offset: int, kind: str) -> None:
        """A metadata transaction begins, ends or is aborted."""
        step = TransactionMarker(begins=kind == "Begin", is_open=self._in_transaction)
        self._judge.take(step, offset)
        self._in_transaction = kind == "Begin"

    def _end_of_operation(self) -> None:
        self._topics.end_of_operation()
        self._memberships.end_of_operation()

    def _on_step(self, partition: PartitionHistory, step: PartitionStep) -> None:
        if self._timeline is not None:
            self._timeline.on_partition(partition, step)
        self._memberships.on_step(partition, step)

    def _on_broker(self, broker: int) -> None:
        if self._timeline is not None:
            self._timeline.on_broker(broker, self.cluster, self._kind)
        self._memberships.on_changed(broker)

    def _setting(self, record: Any) -> None:
        if isinstance(record, r.FeatureLevelRecord):
            self.cluster.on_feature_level(record)
        else:
            self._topics.on_config(record)
            if self._timeline is not None:
                self._timeline.on_config(record)
            self.cluster.on_config(record)

    def _record(self, record: Any, clean_from: int) -> None:
        match record:
            case r.PartitionChangeRecord():
                self.partitions.on_change(record)
            case r.PartitionRecord():
                self._topics.on_partition(record)
                self.partitions.on_partition(record)
            case r.TopicRecord():
                self._topics.on_topic(record)
                if self._timeline is not None:
                    self._timeline.on_topic("Topic", record.topic_id, record.name)
            case r.RemoveTopicRecord():
                topic = self._topics.names(record.topic_id)
                if self._timeline is not None:
                    self._timeline.on_topic("RemoveTopic", record.topic_id, topic.name)
                self.partitions.on_remove_topic(topic)
                self._topics.on_remove_topic(topic)
            case r.ClearElrRecord():
                self.partitions.on_clear_elr(record)
            case r.FeatureLevelRecord() | r.ConfigRecord():
                self._setting(record)
            case r.RegisterBrokerRecord():
                self._kind = "Register"
                self._brokers.on_registration(record, clean_from)
            case r.AccessControlEntryRecord() | r.RemoveAccessControlEntryRecord():
                if self._timeline is not None:
                    self._timeline.on_acl(record)
            case r.RegisterControllerRecord():
                self.cluster.releases.take(self.cluster.offset, record)
            case _:
                self._kind = _BROKER_KINDS.get(type(record), "")
                if self._kind:
                    self._brokers.on_record(record)


_BROKER_KINDS: dict[type, str] = {
    r.FenceBrokerRecord: "Fence",
    r.UnfenceBrokerRecord: "Unfence",
    r.BrokerRegistrationChangeRecord: "Change",
    r.UnregisterBrokerRecord: "Unregister",
}
