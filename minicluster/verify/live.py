"""The driver over a running cluster: events as they come, findings as they are found.

It runs the folds, histories and rules of the other drivers. A rule that needs to know what comes
later, such as the log of the last leader, is not here: it is judged when the run is over, at_end.
It loads neither Spark nor Arrow, and its memory does not grow with the run (each history, and the
driver of each kind of folds, says its bound).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from minicluster.log.batch import RecordBatch
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.protocol import records as r
from minicluster.protocol.uuids import parse_uuid
from minicluster.rules import Rules
from minicluster.verify.histories.timeline import CommittedPartition, CommittedStates
from minicluster.verify.judging import Judge
from minicluster.verify.log_fold import LogFold
from minicluster.verify.model import FROM_ELR, Finding
from minicluster.verify.partition.driver import GONE_MAX, Partitions
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.setting import Setting
from minicluster.verify.promises import promises_of
from minicluster.verify.quorum.quorum import Quorum, RaftEvent
from minicluster.verify.rules.every import ON_ZOOKEEPER, RULES
from minicluster.verify.rules.rule import Rule
from minicluster.verify.znodes import ZnodeLog
from minicluster.zookeeper.log.reader import Line

Row = Mapping[str, Any]
LIVE_RULES = tuple(rule for rule in RULES if not rule.at_end)
COMMITTED = -1  # the committed log belongs to no single controller


def is_judged_live(rule: Rule, *, on_zookeeper: bool = False) -> bool:
    """The rule is judged while a cluster runs."""
    return not rule.at_end and (not on_zookeeper or rule in ON_ZOOKEEPER)


class _Elections(CommittedStates):
    """Tells the partitions what is committed of them."""

    def __init__(self, partitions: Partitions) -> None:
        super().__init__()
        self._partitions = partitions

    def take_partition(self, state: CommittedPartition) -> None:
        """A record has changed a partition."""
        self._partitions.on_commit(state)


class LiveJudge:
    """Judges a run while it is played; each method returns the new findings.

    Shapes:  rules: those that the cluster plays by, None where they are not recorded. begins_well:
             the first batch is at offset 0, or a snapshot covers the records before it. Rows are
             those of the trace, with the number of their event (``seq``).
    """

    def __init__(
        self, run: str = "live", *, rules: Rules | None = None, begins_well: bool = True
    ) -> None:
        promises = promises_of(rules)
        self.findings: list[Finding] = []
        self.judge = Judge(run, LIVE_RULES)
        setting = Setting(self._has_partition, promises.new_incarnation_leaves_from)
        self._partitions = Partitions(self.judge, setting, gone_max=GONE_MAX)
        self._log = LogFold(self.judge, promises, timeline=_Elections(self._partitions))
        self._log.begin(COMMITTED, begins_well=begins_well)
        self._quorum = Quorum()

    @property
    def looked_at(self) -> Mapping[str, int]:
        """The cases of each rule so far."""
        return {rule: tally.looked_at for rule, tally in self.judge.tallies.items()}

    @property
    def not_promised(self) -> Mapping[str, int]:
        """The cases so far, by rule, in which it promises nothing."""
        return {rule: tally.not_promised for rule, tally in self.judge.tallies.items()}

    def load(self, records: Iterable[r.VersionedRecord], end_offset: int) -> list[Finding]:
        """Begin from a snapshot that ends (exclusive) at an offset."""
        self._log.load(tuple(records), end_offset)
        return self._new()

    def commit(self, batch: RecordBatch) -> list[Finding]:
        """The next batch of the metadata log is committed.

        Errors:  InvalidBatch, ProtocolError for a batch that does not hold metadata records.
        """
        self._log.commit(batch)
        self._log.copy(COMMITTED, batch)
        return self._new()

    def on_partition_event(self, row: Row) -> list[Finding]:
        """An event of a replica, a row of ``partition_event``."""
        self._partitions.on_event(row)
        return self._new()

    def on_raft_event(self, row: Row) -> list[Finding]:
        """An event of the quorum, a row of ``raft_event``."""
        self.judge.hear(self._quorum.on_event(RaftEvent(row)))
        return self._new()

    def on_response(self, rows: Iterable[Row]) -> list[Finding]:
        """A response to a client leaves: its rows of ``client_record``."""
        for row in rows:
            self._partitions.on_response(row)
        return self._new()

    def end(self, now_ms: int = 0) -> list[Finding]:
        """The run has ended at a time."""
        self._partitions.at_end()
        return self._new()

    def _has_partition(self, place: Place) -> bool:
        topic_id, partition = place
        return self._log.committed.partitions.get(parse_uuid(topic_id), partition) is not None

    def _new(self) -> list[Finding]:
        new = self.judge.take_new()
        self.findings += new
        if self.judge.crashes:
            _raise_crash(self.judge)
        return new


class LiveZnodeJudge:
    """Judges the transaction log of ZooKeeper line by line, and the events of the replicas of its
    brokers; each method returns what is new.

    Shapes:  members_checked and left_out as ``ZnodeLogReader`` has them; a finding's offset is the
             zxid.
    Errors:  as ``ZnodeLogReader.take``; RuntimeError where a rule could not judge.
    """

    def __init__(
        self,
        protocol: InterBrokerProtocol,
        run: str = "live",
        *,
        members_checked: bool = True,
        left_out: Iterable[str] = (),
    ) -> None:
        self.findings: list[Finding] = []
        self.judge = Judge(run, [rule for rule in ON_ZOOKEEPER if not rule.at_end])
        self._log = ZnodeLog(
            self.judge, protocol, members_checked=members_checked, left_out=left_out
        )
        setting = Setting(lambda place: False, FROM_ELR, on_zookeeper=True)
        self._partitions = Partitions(self.judge, setting, gone_max=GONE_MAX)

    @property
    def looked_at(self) -> Mapping[str, int]:
        """The cases of each rule so far."""
        return {rule: tally.looked_at for rule, tally in self.judge.tallies.items()}

    def on_line(self, line: Line) -> list[Finding]:
        """The next line of the log."""
        return self._new(self._log.on_line(line))

    def on_partition_event(self, row: Row) -> list[Finding]:
        """An event of a replica, a row of ``partition_event``."""
        self._partitions.on_event(row)
        return self._new(self.judge.take_new())

    def end(self, now_ms: int) -> list[Finding]:
        """The log has ended at a time."""
        findings = self._log.end(now_ms)
        self._partitions.at_end()
        return self._new(findings + self.judge.take_new())

    def _new(self, findings: list[Finding]) -> list[Finding]:
        self.findings += findings
        _raise_crash(self.judge)
        return findings


def _raise_crash(judge: Judge) -> None:
    """A rule that raised has stopped; while a cluster runs, somebody must see that at once.

    Errors:  RuntimeError.
    """
    for rule, why in judge.crashes.items():
        raise RuntimeError(f"{rule} could not judge: {why}")
