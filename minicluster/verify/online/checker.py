"""The log-only rules in Python, over committed batches, as they commit.

A second implementation, on purpose: it folds and judges in Python what ``rules`` has in SQL, under
the same rule ids and with the same findings, so that each checks the other. It loads neither Spark
nor Arrow, and stops a bad run at its first bad record.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from minicluster.log.batch import RecordBatch
from minicluster.protocol import records as r
from minicluster.rules import Rules
from minicluster.verify.evidence.operations import Operation, OperationDivider
from minicluster.verify.online.batch_rules import BatchRules
from minicluster.verify.online.broker_rules import on_broker_record, on_registration
from minicluster.verify.online.client_checker import ClientChecker
from minicluster.verify.online.findings import Findings
from minicluster.verify.online.log_state import LogState
from minicluster.verify.online.operation_rules import end_of_operation
from minicluster.verify.online.partition_rules import (
    on_change,
    on_clear_elr,
    on_partition_change,
)
from minicluster.verify.online.share import Share
from minicluster.verify.online.shared_records import (
    CHANGES,
    PlacedChange,
    SharedRecords,
)
from minicluster.verify.online.steps.judgements import judgement_of
from minicluster.verify.online.steps.transitions import Transitions
from minicluster.verify.online.topic_rules import (
    on_config,
    on_feature_level,
    on_partition,
    on_remove_topic,
    on_topic,
)
from minicluster.verify.rules.model import Finding
from minicluster.verify.rules.promises import promises_of


class OnlineChecker:
    """Judges a committed log batch by batch.

    Shapes:  ``commit`` returns the new findings; ``looked_at`` and ``findings`` add up.
             rules: those that the cluster plays by, None where they are not recorded.
             node, begins_well: as in ``BatchRules``; clients: beside this log, what clients of a
             running cluster received. share: of the partitions that are judged, None for all.
    """

    def __init__(
        self,
        run: str = "online",
        *,
        node: int = -1,
        begins_well: bool = True,
        rules: Rules | None = None,
        share: Share | None = None,
    ) -> None:
        self.findings: list[Finding] = []
        self._new = Findings(run, promises_of(rules))
        self.looked_at, self.not_promised = self._new.looked_at, self._new.not_promised
        self._divider = OperationDivider(CHANGES)
        self._batches = BatchRules(self._new, node, begins_well)
        transitions = Transitions(partial(judgement_of, self._new))
        self._state = LogState(self._new, transitions, share)
        self._shared = None if share is None else SharedRecords(share, self._state)
        if share is not None:
            self._new.left_out = share.left_out
        self.clients = ClientChecker(run, self._state)
        self._in_transaction = False
        self._skip_to = 0

    def load(self, records: Iterable[r.VersionedRecord], end_offset: int) -> list[Finding]:
        """Begin from a snapshot that ends (exclusive) at an offset."""
        self._skip_to = end_offset
        self._state.judged, self._new.offset = False, end_offset - 1
        loaded = tuple(records)
        for versioned in loaded:  # in a snapshot the settings come last, and hold for all of it
            if isinstance(versioned.record, r.FeatureLevelRecord | r.ConfigRecord):
                self._record(versioned.record)
        for versioned in loaded:
            self._record(versioned.record)
        end_of_operation(self._state)
        self._state.judged = True
        return self._flush()

    def commit(self, batch: RecordBatch) -> list[Finding]:
        """Judge one committed batch.

        Errors:  InvalidBatch, ProtocolError for a batch that does not hold metadata records.
        """
        records = None if self._shared is None else self._shared.of(batch)
        self._batches.on_batch(batch)
        operation = self._divider.on_batch(batch, records)
        if operation is not None:
            self._operation(operation)
        for offset, kind in self._divider.markers:
            if offset >= self._skip_to:
                self._marker(offset, kind)
        self._divider.markers.clear()
        return self._flush()

    def _flush(self) -> list[Finding]:
        new = self._new.take_new()
        self.findings += new
        return new

    def _operation(self, operation: Operation) -> None:
        state = self._state
        for entry in operation.entries:
            if entry.offset >= self._skip_to:
                self._new.offset = entry.offset
                state.clean_from = entry.unseen_from if state.mv is None else entry.clean_from
                self._record(entry.record)
        end_of_operation(state)

    def _marker(self, offset: int, kind: str) -> None:
        """A metadata transaction begins, ends or is aborted (E30)."""
        self._new.look("E30", 0, None)
        if (kind == "Begin") == self._in_transaction:
            self._new.find("E30", 0, offset=offset)
        self._in_transaction = kind == "Begin"

    def _record(self, record: Any) -> None:
        match record:
            case PlacedChange():
                on_change(self._state, record.history, record.change)
            case r.PartitionChangeRecord():
                on_partition_change(self._state, record)
            case r.PartitionRecord():
                on_partition(self._state, record)
            case r.TopicRecord():
                on_topic(self._state, record)
            case r.RemoveTopicRecord():
                on_remove_topic(self._state, record)
            case r.ClearElrRecord():
                on_clear_elr(self._state, record)
            case r.FeatureLevelRecord():
                on_feature_level(self._state, record)
            case r.ConfigRecord():
                on_config(self._state, record)
            case r.RegisterBrokerRecord():
                on_registration(self._state, record)
            case _:
                on_broker_record(self._state, record)
