"""Online rules about the log itself: offsets, epochs and elected leaders (E01 to E03)."""

from __future__ import annotations

from dataclasses import field

from minicluster.lazy_dataclass import dataclass
from minicluster.log.batch import RecordBatch
from minicluster.log.control import control_records
from minicluster.protocol import records as r
from minicluster.verify.online.findings import Findings


@dataclass(slots=True)
class BatchRules:
    """Judges each committed batch against the batch before.

    Shapes:  node: the controller of the log, -1 for the committed log of several; begins_well: the
             first batch is at offset 0, or a snapshot covers the records before it.
    """

    findings: Findings
    node: int
    begins_well: bool
    before: RecordBatch | None = None
    elected: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def on_batch(self, batch: RecordBatch) -> None:
        """Judge the next batch."""
        before, self.before = self.before, batch
        base, epoch, node = batch.base_offset, batch.leader_epoch, self.node
        if before is None:
            self.findings.look("E01", 1, None)
            if not self.begins_well:
                self.findings.find("E01", 1, offset=base, broker=node)
        else:
            self.findings.look("E01", 0, None)
            due = before.next_offset
            if base != due:
                self.findings.find("E01", 0, offset=base, broker=node, number=due)
        self.findings.look("E02", 0, None)
        if before is not None and epoch < before.leader_epoch:
            self.findings.find("E02", 0, offset=base, broker=node, number=epoch)
        controls = control_records(batch)
        first = controls[0].message if controls else None
        elected = first.leader_id if isinstance(first, r.LeaderChangeMessage) else None
        if (base == 0) if before is None else (epoch != before.leader_epoch):
            self.findings.look("E03", 0, None)
            if elected is None:
                self.findings.find("E03", 0, offset=base, broker=node, number=epoch)
        if elected is not None:
            self._leader_of(epoch, base, elected)

    def _leader_of(self, epoch: int, base: int, elected: int) -> None:
        known = self.elected.setdefault(epoch, [])
        agreed = len({leader for _, leader in known}) < 2
        known.append((base, elected))
        if len({leader for _, leader in known}) > 1:
            for offset, leader in known if agreed else known[-1:]:
                self.findings.find("E03", 1, offset=offset, broker=leader, number=epoch)
