"""The promises to clients, judged over a whole run in memory, once its cluster is at rest.

The rules need what comes later: the log of the last leader, the marker that ends a transaction, a
commit that excuses an offset. They are those of ``verify``, by its driver over a whole run. The
trace of a cluster that was used for long is packed for them, as that of a run on disk; a short one
is judged as it lies in memory, which loads no Arrow.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from minicluster import trace
from minicluster.actors.cluster.cluster import ZOOKEEPER
from minicluster.actors.recording.tables import PIECE_ROWS

if TYPE_CHECKING:
    from minicluster.actors.cluster.cluster import Cluster
    from minicluster.log.committed_log import Start
    from minicluster.verify import Finding
    from minicluster.verify.evidence.run_header import RunHeader
    from minicluster.verify.histories.traced_run import Rows

ABOUT_CLIENTS = (
    *("F1", "F2", "F6", "F7", "F9", "F10", "F12"),
    *("H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9"),
)
ABOUT_PROGRAMS = ("P1", "P2", "P3", "P4", "P5", "P6")


def findings_about_clients(cluster: Cluster) -> list[Finding]:
    """The findings of the rules about clients and programs; none where there was neither."""
    recorder = cluster.recorder
    received = recorder.table("client_record")
    sent = (row for row in recorder.table("history") if row["f"] == "send")
    if cluster.programs is None and next(chain(received, sent), None) is None:
        return []
    from minicluster.actors.recording.producer_logs import shortened_logs
    from minicluster.verify.rules.every import ALSO_ON_ZOOKEEPER, BY_ID
    from minicluster.verify.whole import judge_in_memory

    on_zookeeper = cluster.mode == ZOOKEEPER
    rules = [rule for rule in ABOUT_CLIENTS if rule in ALSO_ON_ZOOKEEPER or not on_zookeeper]
    if cluster.programs is not None and not on_zookeeper:
        rules += ABOUT_PROGRAMS
    read = {table for rule in rules for table in BY_ID[rule].tables}
    known = recorder.problems
    rows_of = _rows if recorder.tables.are_in_memory else _packed
    tables = {table: rows_of(cluster, table) for table in trace.TABLES if table in read}
    if recorder.problems != known:  # the brokers' logs are too long to be listed, or are damaged
        return []
    # The log of a partition that was cleaned does not show any more what it held.
    cleaned = {
        place for node in cluster.broker_ids for place in shortened_logs(cluster.disks[node])
    }
    judge = judge_in_memory(
        cluster.run_id,
        [BY_ID[rule] for rule in rules],
        () if on_zookeeper else cluster.committed.batches,
        tables,
        played_by=cluster.rules,
        protocol=cluster.protocol if on_zookeeper else None,
        start=_start(cluster),
        cleaned=cleaned,
        header=_header(cluster),
    )
    if judge.crashes:
        rule, why = next(iter(judge.crashes.items()))
        raise RuntimeError(f"{rule} could not judge: {why}")
    return judge.take_new()


def _header(cluster: Cluster) -> RunHeader:
    """What ``run.json`` would say of programs, and of when the last disturbance ended."""
    from minicluster.actors.cluster.time_bounds import healed_ms
    from minicluster.verify.evidence.run_header import ProgramRun, RunHeader

    programs = () if cluster.programs is None else cluster.programs.to_dict()
    return RunHeader(
        apps=tuple(ProgramRun.of(program) for program in programs),
        healed_ms=healed_ms(cluster),
        ended_at_ms=cluster.now_ms,
    )


def _rows(cluster: Cluster, table: str) -> Rows:
    """The rows of a table as a run folder would have them."""
    from minicluster.actors.cluster.run_folder import AT_END, rows_at_end

    at_end = table in AT_END
    return list(rows_at_end(cluster, table) if at_end else cluster.recorder.table(table))


def _packed(cluster: Cluster, table: str) -> Rows:
    """The same rows, packed: a row takes a kilobyte otherwise."""
    from minicluster.actors.cluster.run_folder import AT_END, rows_at_end
    from minicluster.actors.recording.columns import arrow_tables
    from minicluster.verify.evidence.packed_rows import PackedRows, pack

    content = cluster.recorder.columns(table)
    if table in AT_END:
        content = arrow_tables(table, rows_at_end(cluster, table), PIECE_ROWS)
    return PackedRows([piece for columns in content for piece in pack(columns)])


def _start(cluster: Cluster) -> Start | None:
    """The state from which the committed log begins: of an adopted log, or of deleted records."""
    begin = cluster.committed.start
    if begin is None:
        return None
    from minicluster.log.checkpoint import Snapshot
    from minicluster.log.committed_log import Start
    from minicluster.metadata.snapshot import image_records

    records = tuple(image_records(begin.image, on_loss=lambda _: None))
    snapshot = Snapshot(records=records, last_contained_log_timestamp=begin.time_ms)
    return Start(
        end_offset=begin.end_offset, epoch=begin.epoch, snapshot=snapshot, file="the log's begin"
    )
