"""From paths to runs: which logs there are, which part of them is committed, what is missing.

Several controllers' logs of one run are compared: the committed log is what a majority of the
voters holds. One log alone is taken as it is. A log that begins above 0 is judged from the
earliest snapshot that reaches into it; damage and missing parts become a reason, never a guess.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import parse_checkpoint_name, read_checkpoint
from minicluster.log.control import control_records
from minicluster.log.directory import RUN_NAME, Located, MetadataFiles, locate
from minicluster.log.errors import LogError, NotALog
from minicluster.log.segment import check_contents, read_alone, read_segment
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import LeaderChangeMessage, VersionedRecord, VotersRecord
from minicluster.rules import FailedReplicas, Rules
from minicluster.trace import TABLES
from minicluster.verify.rules.model import Evidence

BatchKey = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Evidence that is damaged or missing where the run should have it."""

    evidence: Evidence
    why: str
    table: str | None = None
    partial: bool = False  # the log's own structure can still be judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The state that a log begins from: a snapshot's records and where the log goes on."""

    end_offset: int
    epoch: int
    records: tuple[VersionedRecord, ...]
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLog:
    """One controller's log as it lies on disk."""

    node: int
    files: MetadataFiles
    batches: tuple[RecordBatch, ...]
    sources: tuple[tuple[int, str], ...]  # (first offset, file), for findings
    snapshots: tuple[tuple[int, int, Path], ...]  # (end offset, epoch, file)
    alone: bool  # one segment, given as a file: what comes before it cannot be known
    torn: str | None = None  # what recovery cut

    @property
    def start(self) -> int:
        """Its first offset."""
        return self.batches[0].base_offset if self.batches else 0

    @property
    def begins_well(self) -> bool:
        """Whether it begins at 0, or a snapshot reaches into it or meets it."""
        return (
            self.alone or self.start == 0 or any(end >= self.start for end, _, _ in self.snapshots)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is judged together: one run's logs, its committed log, its trace, its header."""

    name: str
    path: Path
    header: dict[str, Any] | None
    nodes: tuple[NodeLog, ...]
    committed: tuple[RecordBatch, ...]
    start: Start | None
    uncommitted: int  # records on some log that never committed
    lost: bool = False  # no majority of its logs is whole: what was committed cannot be known
    trace: dict[str, Path] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def foldable(self) -> bool:
        """Whether the state that its committed log begins from is known."""
        return self.start is not None or not self.committed or self.committed[0].base_offset == 0

    @property
    def is_run(self) -> bool:
        """Whether it is a run of minicluster, which has a header and a trace."""
        return self.header is not None

    @property
    def rules(self) -> Rules | None:
        """The rules that it says it was played under."""
        try:
            return None if self.header is None else Rules.named(str(self.header["rules"]))
        except (KeyError, UserError):
            return None

    @property
    def failures_are_in_log(self) -> bool:
        """Whether its metadata log tells which replicas have failed; KIP-589 tells nobody else."""
        by_report, rules = FailedReplicas.ALTER_REPLICA_STATE, self.rules
        return rules is None or rules.failed_replicas_reported_by is not by_report

    @property
    def records(self) -> int:
        """How many records its committed log holds."""
        return sum(batch.count for batch in self.committed)


def read_runs(paths: Sequence[Path | str]) -> list[Run]:
    """Read every path as one run each, with distinct names.

    Errors:  UserError (NotALog) for a path that holds nothing to judge.
    """
    if not paths:
        raise UserError("verify: give at least one run folder or log")
    runs: list[Run] = []
    taken: Counter[str] = Counter()
    for given in paths:
        path = Path(given)
        name = _name(path)
        taken[name] += 1
        runs.append(read_run(path, name if taken[name] == 1 else f"{name}#{taken[name]}"))
    return runs


def _name(path: Path) -> str:
    resolved = path.resolve()
    parts = [resolved.name]
    if resolved.suffix in (".log", ".checkpoint") or resolved.name.startswith("__cluster"):
        parts.insert(0, resolved.parent.name)
    if parts[0].startswith(("__cluster", "controller-")):
        parts.insert(0, resolved.parents[len(parts) - 1].name)
    return "/".join(part for part in parts if part)


def read_run(path: Path, name: str) -> Run:
    """Read one path.

    Errors:  NotALog if there is nothing to judge; damage becomes a problem of the run instead.
    """
    located = locate(path, partly=True)
    problems: list[Problem] = []
    notes: list[str] = []
    header = _header(path, located, problems)
    absent = _absent(path, located, header)
    problems += [Problem(evidence=Evidence.LOG, why=why) for why in absent]
    nodes: list[NodeLog] = []
    for files in located.logs:
        try:
            node = _node_log(files, alone=path.is_file())
            nodes.append(node)
            if node.torn is not None:  # a crash leaves that; who writes a run leaves whole logs
                notes.append(node.torn)
                if header is not None:
                    problems.append(Problem(evidence=Evidence.LOG, why=node.torn))
        except NotALog as error:
            if len(located.logs) == 1:
                raise
            notes.append(f"nothing to read: {error}")
        except (LogError, ProtocolError) as error:
            problems.append(Problem(evidence=Evidence.LOG, why=str(error)))
    whole = [
        node
        for node in nodes
        if (node.batches or node.snapshots) and (node.torn is None or header is None)
    ]
    damaged = any(problem.evidence is Evidence.LOG for problem in problems)
    committed, reference, uncommitted = committed_log(nodes)
    start = None
    try:
        start = _start(reference, nodes, committed) if reference else None
    except (LogError, ProtocolError) as error:
        problems.append(Problem(evidence=Evidence.LOG, why=str(error)))
    if start is None and committed and committed[0].base_offset > 0 and not problems:
        what = f"the log begins at offset {committed[0].base_offset}, no snapshot reaches into it"
        problems.append(Problem(evidence=Evidence.LOG, why=what, partial=True))
    if start is not None and start.end_offset:
        notes.append(f"judged from the snapshot that ends at offset {start.end_offset}")
    if uncommitted:
        notes.append(f"{uncommitted} records at the end of some log were never committed")
    return Run(
        name=name,
        path=path,
        header=header,
        nodes=tuple(nodes),
        committed=committed,
        start=start,
        uncommitted=uncommitted,
        lost=damaged and 2 * len(whole) <= len(located.logs) + len(absent),
        trace=_trace(path, header, problems) if header is not None else {},
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _absent(path: Path, located: Located, header: dict[str, Any] | None) -> list[str]:
    """Which controllers' logs are not where the run should have them."""
    absent = list(located.missing)
    told = (header or {}).get("controllers")
    for node_id in told if isinstance(told, list) else ():
        folder = path / f"controller-{node_id}"
        if not folder.is_dir():
            absent.append(f"{folder}: there is no such folder")
    if header is not None and not located.logs and not absent:
        absent.append(f"{path}: no controller-<id> folder")
    return absent


def _header(path: Path, located: Located, problems: list[Problem]) -> dict[str, Any] | None:
    """What run.json says; nothing for a plain log, which has none."""
    if located.run_json is not None:
        return _read_header(located.run_json, problems)
    if not path.is_dir() or not any(path.glob("trace/*.parquet")):
        return None
    why = f"{path / RUN_NAME}: there is no such file, but a trace"
    problems.append(Problem(evidence=Evidence.META, why=why))
    return {}


def _read_header(path: Path, problems: list[Problem]) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return content
        why = "it is no JSON object"
    except (OSError, ValueError) as error:
        why = str(error)
    problems.append(Problem(evidence=Evidence.META, why=f"{path}: {why}"))
    return {}


def _trace(path: Path, header: dict[str, Any], problems: list[Problem]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    rows = header.get("trace_rows")
    told = rows if isinstance(rows, dict) else {}
    for table in TABLES:
        file = path / "trace" / f"{table}.parquet"
        if file.is_file():
            why = _parquet_damage(file, TABLES[table], told.get(table))
            if why is None:
                found[table] = file
            else:
                problems.append(Problem(evidence=Evidence.TRACE, why=why, table=table))
        else:
            why = f"{file}: there is no such file"
            problems.append(Problem(evidence=Evidence.TRACE, why=why, table=table))
    return found


def _parquet_damage(file: Path, columns: Iterable[str], rows: int | None) -> str | None:
    """What makes a trace table unfit: it is no Parquet, or it has lost columns or rows."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        found = parquet.read_metadata(file)
    except (OSError, pa.ArrowException) as error:
        return f"{file}: {str(error).splitlines()[0]}"
    there = found.schema.to_arrow_schema().names
    if lacks := [name for name in columns if name not in there]:
        return f"{file}: there is no column {', '.join(lacks)}"
    if rows is not None and found.num_rows != rows:
        return f"{file}: {found.num_rows} rows, where the run wrote {rows}"
    return None


def _node_log(files: MetadataFiles, *, alone: bool) -> NodeLog:
    batches: list[RecordBatch] = []
    sources: list[tuple[int, str]] = []
    torn: str | None = None
    for index, segment in enumerate(files.segments):
        last = index == len(files.segments) - 1
        read = read_alone if segment == files.path else read_segment
        content = read(segment, whole=not last)
        torn = None if content.torn is None else str(content.torn)
        for placed in content.batches:
            if not batches or sources[-1][1] != segment.name:
                sources.append((placed.batch.base_offset, segment.name))
            check_contents(segment, placed)
            batches.append(placed.batch)
    snapshots = []
    for checkpoint in files.checkpoints:
        end, epoch = parse_checkpoint_name(checkpoint.name) or (0, 0)
        if end > 0 or not files.segments:
            snapshots.append((end, epoch, checkpoint))
    return NodeLog(
        node=-1 if files.node_id is None else files.node_id,
        files=files,
        batches=tuple(batches),
        sources=tuple(sources),
        snapshots=tuple(sorted(snapshots)),
        alone=alone,
        torn=torn,
    )


def batch_key(batch: RecordBatch) -> BatchKey:
    """What makes a batch the same on two nodes."""
    return batch.base_offset, batch.leader_epoch, batch.crc


def committed_log(
    nodes: Sequence[NodeLog],
) -> tuple[tuple[RecordBatch, ...], NodeLog | None, int]:
    """The batches that a majority holds, the log they are taken from, the records beyond them."""
    if len(nodes) <= 1:
        only = nodes[0] if nodes else None
        return (only.batches if only else ()), only, 0
    needed = min(len(_voters(nodes)) // 2 + 1, len(nodes))
    holders = Counter(batch_key(batch) for node in nodes for batch in node.batches)
    starts = sorted(node.start for node in nodes)

    def held(batch: RecordBatch) -> bool:
        later = sum(1 for start in starts if start > batch.base_offset)
        return holders[batch_key(batch)] + later >= needed

    prefixes: list[tuple[tuple[RecordBatch, ...], NodeLog]] = []
    for node in nodes:
        length = next(
            (i for i, batch in enumerate(node.batches) if not held(batch)), len(node.batches)
        )
        prefixes.append((node.batches[:length], node))
    ends = [prefix[-1].last_offset if prefix else -1 for prefix, _ in prefixes]
    usable = [one for one, end in zip(prefixes, ends, strict=True) if end == max(ends)]
    best, reference = min(usable, key=lambda one: (not one[1].begins_well, one[1].start))
    certain = {batch_key(batch) for batch in best}
    beyond: dict[BatchKey, int] = {}
    for node in nodes:
        for batch in node.batches:
            if batch_key(batch) not in certain and batch.base_offset >= reference.start:
                beyond[batch_key(batch)] = batch.count
    return best, reference, sum(beyond.values())


def _voters(nodes: Sequence[NodeLog]) -> list[int]:
    """The voters that the logs name last, or the nodes themselves."""
    latest: tuple[int, list[int]] = (-1, [])
    for node in nodes:
        for batch in node.batches:
            for control in control_records(batch):
                message = control.message
                if isinstance(message, LeaderChangeMessage | VotersRecord):
                    voters = [voter.voter_id for voter in message.voters]
                    if voters and batch.base_offset > latest[0]:
                        latest = (batch.base_offset, voters)
    return latest[1] or [node.node for node in nodes]


def _start(
    reference: NodeLog, nodes: Sequence[NodeLog], committed: tuple[RecordBatch, ...]
) -> Start | None:
    """The earliest snapshot from which the committed log can be read."""
    if committed and committed[0].base_offset == 0:
        return None
    first = committed[0].base_offset if committed else 0
    end_offset = committed[-1].next_offset if committed else 2**62
    every = sorted(one for node in nodes for one in node.snapshots)
    usable = [one for one in every if first <= one[0] <= end_offset]
    if not usable:
        return None
    end, epoch, file = usable[0] if committed else usable[-1]
    snapshot = read_checkpoint(file)
    return Start(end_offset=end, epoch=epoch, records=snapshot.records, file=file.name)
