"""The checks of a running cluster: its log as it commits, its replicas, what clients receive."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minicluster.actors.recording.problems import Problems
from minicluster.actors.runtime.runtime import Runtime
from minicluster.errors import MiniclusterError
from minicluster.log.batch import RecordBatch
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.metadata.snapshot import image_records
from minicluster.rules import Rules

if TYPE_CHECKING:
    from minicluster.metadata.log_end import LogEnd
    from minicluster.verify import Finding
    from minicluster.verify.live import LiveJudge, LiveZnodeJudge


LIVE_CHECKS = "the live checks"
TOLD_AT_THE_END = frozenset({"F8"})
"""Rules whose finding does not end the run: what a too early acknowledgement costs, the records
that are lost with the leader, comes later, and is the headline of such a run (F1)."""
TOLD_AT_THE_END_MAX = 100  # a leader that acknowledges too early does so with every request


class InvariantViolated(MiniclusterError, AssertionError):
    """The run breaks a rule; ``findings`` name the rule, and the offset or the partition."""

    def __init__(self, findings: list[Finding], seed: int) -> None:
        first = findings[0]
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        where = f" at offset {first.offset}"
        if first.offset < 0:  # only the trace shows it
            where = f" in {first.topic}-{first.partition}" if first.topic else ""
        super().__init__(f"rule {first.rule} is broken{where}: {first.message}{more}; seed {seed}")
        self.findings = findings


class LiveChecks:
    """The rules over every batch as it commits, every event, and every response to a client.

    The first finding ends the run, but for rules of which the end tells more. An error of the
    checks themselves ends the checks, not the cluster: from there on nothing is judged while it
    runs, and the run is unknown.

    Shapes:  judge: that of a cluster with a metadata log, or of one on ZooKeeper.
    """

    judge: LiveJudge | LiveZnodeJudge

    def __init__(self, rt: Runtime, problems: Problems) -> None:
        self._rt, self._problems = rt, problems
        self._lock = threading.Lock()  # actors on threads report to it
        self._interrupted = False
        self._told_at_the_end: list[Finding] = []
        self.crashed = False

    def _judged(self, judge: Callable[[Any], list[Finding]], event: Any) -> None:
        """Let the judge take an event; the first finding interrupts the test's thread."""
        with self._lock:
            if self.crashed:
                return
            try:
                findings = judge(event)
            except Exception as error:
                # Judge nothing more: what the checks know is no longer what has happened.
                self.crashed = True
                self._problems.add(LIVE_CHECKS, error)
                return
            if findings:
                self._tell(findings)

    def _tell(self, findings: list[Finding]) -> None:
        later = [finding for finding in findings if finding.rule in TOLD_AT_THE_END]
        self._told_at_the_end += later[: TOLD_AT_THE_END_MAX - len(self._told_at_the_end)]
        if len(later) < len(findings) and not self._interrupted:
            self._interrupted = True
            self._rt.interrupted(InvariantViolated(findings, self._rt.seed))

    @property
    def looked_at(self) -> Mapping[str, int]:
        """The cases of each rule so far."""
        return self.judge.looked_at

    def on_partition_event(self, row: Mapping[str, Any]) -> None:
        """Judge what a replica is, beside what clients received before and what others hold."""
        self._judged(self.judge.on_partition_event, row)

    def on_raft_event(self, row: Mapping[str, Any]) -> None:
        """Judge what the quorum counts as committed; on ZooKeeper there is no quorum."""

    def on_response(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Judge what a client receives; on ZooKeeper that is judged when the run is over."""

    def judged_at_end(self, findings: list[Finding]) -> None:
        """The run has ended: what was found is raised where the test is, lost records first.

        Errors:  InvariantViolated.
        """
        findings = [*findings, *self._told_at_the_end]
        if findings and not self._interrupted:
            self._interrupted = True
            raise InvariantViolated(findings, self._rt.seed)

    def close(self) -> None:
        """Nothing to free."""


class LogChecks(LiveChecks):
    """The live judge of a cluster with a metadata log (``verify.live``)."""

    def __init__(self, rt: Runtime, run: str, *, rules: Rules, problems: Problems) -> None:
        from minicluster.verify.live import LiveJudge

        super().__init__(rt, problems)
        self.judge: LiveJudge = LiveJudge(run, rules=rules)

    def begin_after(self, end: LogEnd) -> None:
        """Judge from the end of an adopted log on; what it holds counts as given."""
        self.judge.load(image_records(end.image, on_loss=lambda _: None), end.end_offset)

    def on_committed(self, batch: RecordBatch) -> None:
        """Judge a batch of the metadata log."""
        self._judged(self.judge.commit, batch)

    def on_raft_event(self, row: Mapping[str, Any]) -> None:
        """Judge what the quorum counts as committed."""
        self._judged(self.judge.on_raft_event, row)

    def on_response(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Judge what a client receives."""
        self._judged(self.judge.on_response, rows)


class ZnodeChecks(LiveChecks):
    """The rules of ZooKeeper's log over every transaction as it commits, and those of replicas."""

    def __init__(
        self, rt: Runtime, run: str, protocol: InterBrokerProtocol, *, problems: Problems
    ) -> None:
        from minicluster.verify.live import LiveZnodeJudge
        from minicluster.zookeeper.controller.settings import ReleaseRules

        super().__init__(rt, problems)
        are_checked = ReleaseRules.of(protocol.release).ineligible_members_rejected
        self.judge: LiveZnodeJudge = LiveZnodeJudge(protocol, run, members_checked=are_checked)

    def on_line(self, line: Mapping[str, Any]) -> None:
        """Judge a line of the log."""
        self._judged(self.judge.on_line, line)
