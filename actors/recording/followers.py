"""The followers of a running cluster: checks of its log and clients, and streams onto disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from minicluster.actors.recording.exchange import Exchange
from minicluster.actors.runtime.runtime import Runtime
from minicluster.actors.runtime.threaded import one_at_a_time
from minicluster.errors import MiniclusterError, UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.log.segment import segment_name
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.metadata.snapshot import image_records
from minicluster.rules import Rules

if TYPE_CHECKING:
    from minicluster.verify import Finding
    from minicluster.verify.evidence.log_end import LogEnd
    from minicluster.verify.spark.sink import ParquetSink


class InvariantViolated(MiniclusterError, AssertionError):
    """The run breaks a rule; ``findings`` name the rule, and the offset or the partition."""

    def __init__(self, findings: list[Finding], seed: int) -> None:
        first = findings[0]
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        where = f"at offset {first.offset}"
        if first.offset < 0:  # only the trace shows it
            where = f"in {first.topic}-{first.partition}"
        super().__init__(f"rule {first.rule} is broken {where}: {first.message}{more}; seed {seed}")
        self.findings = findings


class OnlineChecks:
    """The rules over every batch as it commits and every response to a client as it leaves.

    The first finding ends the run.
    """

    def __init__(self, rt: Runtime, run: str, *, rules: Rules) -> None:
        from minicluster.verify import OnlineChecker
        from minicluster.verify.online.quorum_checker import QuorumChecker
        from minicluster.verify.online.replica_checker import ReplicaChecker
        from minicluster.verify.rules.promises import promises_of

        self.checker = OnlineChecker(run, rules=rules)
        self.quorum = QuorumChecker(run, promises_of(rules))
        self.replicas = ReplicaChecker(run, promises_of(rules))
        self._rt, self._run = rt, run
        self._interrupted = False

    def begin_after(self, end: LogEnd) -> None:
        """Judge from the end of an adopted log on; what it holds counts as given."""
        self.checker.load(image_records(end.image, on_loss=lambda _: None), end.end_offset)

    def on_committed(self, batch: RecordBatch) -> None:
        """Judge the batch; the first finding interrupts the test's thread."""
        self._interrupt([*self.checker.commit(batch), *self.checker.clients.on_commit()])

    def on_partition_event(self, row: Mapping[str, Any]) -> None:
        """Judge what a replica is, beside what clients received before and what others hold."""
        found = self.checker.clients.on_partition_event(row)
        lacking = self.replicas.on_partition_event(row)
        if found or lacking:
            self._interrupt([*found, *lacking])

    def on_raft_event(self, row: Mapping[str, Any]) -> None:
        """Judge what the quorum counts as committed."""
        self._interrupt(self.quorum.on_raft_event(row))

    def on_response(self, exchange: Exchange) -> None:
        """Judge what a client receives."""
        from minicluster.actors.recording.client_records import client_rows

        rows = client_rows(exchange, of_batches=True)
        self._interrupt(self.checker.clients.on_response(rows))

    def check_values(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Judge the records that clients received in the whole run.

        Errors:  InvariantViolated for the first finding of the run.
        """
        self._end(self.checker.clients.on_values(rows))

    def check_histories(
        self,
        received: Iterable[Mapping[str, Any]],
        table: Callable[[str], Iterable[Mapping[str, Any]]],
        shortened: Iterable[tuple[str, int]],
    ) -> None:
        """Judge groups and transactions over the whole run, in which nothing moves now.

        Shapes:  received: the rows of clients, at least one; table: the rows of a table of the
                 trace, by its name; shortened: topic ids and partitions whose logs were cleaned.
        Errors:  InvariantViolated for the first finding of the run.
        """
        from minicluster.verify.online.histories import judge_histories, rules_of_histories

        rules = rules_of_histories(received)
        if rules and not self._interrupted:
            lost = {*self.checker.clients.lost_records(), *shortened}
            self._end(judge_histories(self._run, rules, table, lost))

    def _end(self, findings: list[Finding]) -> None:
        """The run has ended: its first finding is raised where the test is."""
        if findings and not self._interrupted:
            self._interrupted = True
            raise InvariantViolated(findings, self._rt.seed)

    def _interrupt(self, findings: list[Finding]) -> None:
        if findings and not self._interrupted:
            self._interrupted = True
            self._rt.interrupted(InvariantViolated(findings, self._rt.seed))

    def close(self) -> None:
        """Nothing to free."""


class ThreadedOnlineChecks(OnlineChecks):
    """The same, where actors on threads report to it: each call is one step."""

    def __init__(self, rt: Runtime, run: str, *, rules: Rules) -> None:
        super().__init__(rt, run, rules=rules)
        self.lock = threading.RLock()

    begin_after = one_at_a_time(OnlineChecks.begin_after)
    on_committed = one_at_a_time(OnlineChecks.on_committed)
    on_partition_event = one_at_a_time(OnlineChecks.on_partition_event)
    on_raft_event = one_at_a_time(OnlineChecks.on_raft_event)
    on_response = one_at_a_time(OnlineChecks.on_response)
    check_values = one_at_a_time(OnlineChecks.check_values)


class OnlineZnodeChecks:
    """The rules of ZooKeeper's log over every transaction as it commits; the first finding ends
    the run.
    """

    def __init__(self, rt: Runtime, run: str, protocol: InterBrokerProtocol) -> None:
        from minicluster.controller.zookeeper.state.settings import ReleaseRules
        from minicluster.verify.zookeeper.checker import ZnodeChecker

        refused = ReleaseRules.of(protocol.release).ineligible_members_refused
        self.checker = ZnodeChecker(protocol, run=run, members_checked=refused)
        self._rt = rt

    def on_line(self, line: Mapping[str, Any]) -> None:
        """Judge a line of the log."""
        known = bool(self.checker.findings)
        findings = self.checker.on_line(line)
        if findings and not known:
            self._rt.interrupted(InvariantViolated(findings, self._rt.seed))


class LogStream:
    """Writes the log as one growing segment in Kafka's format, which ``readStream`` can follow."""

    lag = 0  # each batch is written as it is committed

    def __init__(self, folder: Path) -> None:
        self.path = folder / METADATA_DIRECTORY
        self.path.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO | None = (self.path / segment_name(0)).open("wb")

    def on_committed(self, batch: RecordBatch) -> None:
        """Append the batch, flushed so that readers see it."""
        if self._file is not None:
            self._file.write(batch.encoded)
            self._file.flush()

    def close(self) -> None:
        """Close the segment."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _parquet(folder: Path) -> ParquetSink:
    from minicluster.verify.spark.sink import ParquetSink

    return ParquetSink(folder)


FORMS: dict[str, Callable[[Path], LogStream | ParquetSink]] = {
    "parquet": _parquet,
    "log": LogStream,
}


def stream(form: str, folder: Path) -> LogStream | ParquetSink:
    """A stream of one form into a folder.

    Errors:  UserError for another form.
    """
    if form not in FORMS:
        raise UserError(f"ingest: {form!r} is not one of {', '.join(FORMS)}")
    return FORMS[form](folder)
