"""What clients were promised, judged over a whole run in memory, once its cluster is at rest.

The rules need what comes later: the log of the last leader, the marker that ends a transaction, a
commit that excuses an offset. They are those of ``verify``, by its driver over a whole run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from minicluster import trace
from minicluster.actors.cluster.cluster import ZOOKEEPER

if TYPE_CHECKING:
    from minicluster.actors.cluster.cluster import Cluster
    from minicluster.verify import Finding
    from minicluster.verify.evidence.run import Start

ABOUT_CLIENTS = (
    *("F1", "F2", "F6", "F7", "F9", "F10", "F12"),
    *("H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9"),
)


def findings_about_clients(cluster: Cluster) -> list[Finding]:
    """The findings of the rules about clients; none where no client has sent anything."""
    recorder = cluster.recorder
    received = list(recorder.table("client_record"))
    own = [row for row in recorder.table("history") if row["f"] == "send"]
    if not received and not own:
        return []
    from minicluster.actors.recording.producer_logs import shortened_logs
    from minicluster.verify.rules.every import ALSO_ON_ZOOKEEPER, BY_ID
    from minicluster.verify.whole import judge_in_memory

    on_zookeeper = cluster.mode == ZOOKEEPER
    rules = [
        rule for rule in ABOUT_CLIENTS if rule in ALSO_ON_ZOOKEEPER or not on_zookeeper
    ]  # fmt: skip
    tables: dict[str, list[dict[str, Any]]] = {"client_record": received}
    read = {table for rule in rules for table in BY_ID[rule].tables}
    for table in trace.TABLES:
        if table in read and table not in tables:
            tables[table] = list(_rows(cluster, table))
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
    )
    if judge.crashes:
        rule, why = next(iter(judge.crashes.items()))
        raise RuntimeError(f"{rule} could not judge: {why}")
    return judge.take_new()


def _rows(cluster: Cluster, table: str) -> Iterable[dict[str, Any]]:
    """The rows of a table as a run folder would have them."""
    from minicluster.actors.cluster.run_folder import AT_END, rows_at_end

    if table not in AT_END:
        return cluster.recorder.table(table)
    end = {"vt": cluster.now_ms, "seq": cluster.recorder.sequence}
    return ({**trace.row(table, row), **end} for row in rows_at_end(cluster, table))


def _start(cluster: Cluster) -> Start | None:
    """The state from which the committed log begins: of an adopted log, or of deleted records."""
    begin = cluster.committed.start
    if begin is None:
        return None
    from minicluster.log.checkpoint import Snapshot
    from minicluster.metadata.snapshot import image_records
    from minicluster.verify.evidence.run import Start

    records = tuple(image_records(begin.image, on_loss=lambda _: None))
    snapshot = Snapshot(records=records, last_contained_log_timestamp=begin.time_ms)
    return Start(
        end_offset=begin.end_offset, epoch=begin.epoch, snapshot=snapshot, file="the log's begin"
    )
