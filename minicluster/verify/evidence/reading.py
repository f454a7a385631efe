"""Reading paths as runs: the logs under each, which part of them is committed, what is missing.

Damaged and missing evidence becomes a problem of the run that names the file, never a guess: a file
that is not what the run wrote is left out. A log that begins above 0 is judged from the earliest
snapshot that ends in it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import parse_checkpoint_name
from minicluster.log.committed_log import (
    NodeLog,
    committed_log,
    no_start,
    starting_snapshot,
    uncommitted_note,
)
from minicluster.log.directory import METADATA_DIRECTORY, MetadataFiles
from minicluster.log.errors import LogCorruption, LogError, NotALog
from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.log.locating import RUN_NAME, Located, locate
from minicluster.log.segment import PlacedBatch, check_contents, read_alone, read_segment
from minicluster.log.written_files import damages
from minicluster.protocol.errors import ProtocolError
from minicluster.trace import OPTIONAL_TABLES, TABLES, ZNODES
from minicluster.verify.evidence.operations import history_of
from minicluster.verify.evidence.run import Problem, Run
from minicluster.verify.evidence.run_header import DamagedHeader, NotARun, RunHeader, read_header
from minicluster.verify.evidence.trace_tables import file_damage
from minicluster.verify.evidence.znode_log import LOG_PATH, DamagedZnodeLog, read_znodes
from minicluster.verify.model import Evidence
from minicluster.zookeeper.log.reader import Named

_OFFSET_MAX = 2**63 - 1


def read_runs(paths: Sequence[Path | str], limits: ReadLimits = DEFAULT_LIMITS) -> list[Run]:
    """Read every path as one run each, or as a folder of runs, with distinct names.

    Errors:  UserError: NotALog for a path that holds nothing to judge, NotARun for one whose
             header, names or trace no run has.
    """
    return [read_run(path, name, limits) for path, name in named_paths(paths)]


def named_paths(paths: Sequence[Path | str]) -> list[tuple[Path, str]]:
    """Each path with the name of its run, all of them distinct.

    Errors:  UserError where there is none, NotARun for a name that is not UTF-8.
    """
    if not paths:
        raise UserError("verify: give at least one run folder or log")
    named: list[tuple[Path, str]] = []
    taken: Counter[str] = Counter()
    for path in [run for named in paths for run in _runs_in(Path(named))]:
        _check_name(path)
        name = _name(path)
        taken[name] += 1
        named.append((path, name if taken[name] == 1 else f"{name}#{taken[name]}"))
    return named


def _runs_in(path: Path) -> list[Path]:
    """The runs and logs in a folder of such, by name; any other path is one itself."""
    if not path.is_dir() or _is_one(path):
        return [path]
    inside = (child for child in path.glob("[!.]*") if child.is_dir())
    return sorted(child for child in inside if _is_one(child)) or [path]


def _is_one(folder: Path) -> bool:
    """A run folder, or one with the metadata logs of some controllers."""
    return (
        (folder / RUN_NAME).exists()
        or (folder / METADATA_DIRECTORY).is_dir()
        or any(folder.glob("controller-*"))
    )


def _check_name(path: Path) -> None:
    raw = os.fsencode(os.path.realpath(path))  # a loop of links has no file, and is no error yet
    try:
        raw.decode()
    except UnicodeDecodeError:
        shown = raw.decode("utf-8", "backslashreplace")
        raise NotARun(f"{shown}: the path is not UTF-8; rename the folder") from None


def _name(path: Path) -> str:
    resolved = Path(os.path.realpath(path))
    parts = [resolved.name]
    if resolved.suffix in (".log", ".checkpoint") or resolved.name.startswith("__cluster"):
        parts.insert(0, resolved.parent.name)
    if parts[0].startswith(("__cluster", "controller-")):
        parts.insert(0, resolved.parents[len(parts) - 1].name)
    return "/".join(part for part in parts if part)


def read_run(path: Path, name: str, limits: ReadLimits = DEFAULT_LIMITS) -> Run:
    """Read one path.

    Errors:  NotALog if there is nothing to judge, NotARun; damage becomes a problem of the run.
    """
    located = locate(path, partly=True, limits=limits)
    problems: list[Problem] = []
    notes: list[str] = []
    header = _header(path, located, problems)
    absent = _absent(path, located, header)
    problems += [Problem(evidence=Evidence.LOG, why=why) for why in absent]
    problems += _lacking(header)
    damaged = _damaged_files(path, header, problems)
    nodes: list[NodeLog] = []
    for files in located.logs:
        if _controller_of(path, files) in damaged:
            continue
        try:
            node = _node_log(files, alone=path.is_file())
            nodes.append(node)
            if node.torn is not None:
                notes.append(node.torn)
                if header is not None:  # a run writes whole logs; only a crash tears a tail
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
    lacks_log = any(problem.evidence is Evidence.LOG for problem in problems)
    committed, reference, uncommitted = committed_log(nodes)
    znodes: tuple[Named, ...] = ()
    if header is not None and header.protocol is not None:
        try:
            znodes = read_znodes(path, name, header)
        except DamagedZnodeLog as error:
            problems.append(Problem(evidence=Evidence.ZNODES, why=str(error)))
    start = None
    try:
        start = starting_snapshot(reference, nodes, committed) if reference else None
    except (LogError, ProtocolError) as error:
        problems.append(Problem(evidence=Evidence.LOG, why=str(error)))
    if start is None and committed and committed[0].base_offset > 0 and not problems:
        why = no_start(path, committed[0].base_offset)
        problems.append(Problem(evidence=Evidence.LOG, why=why, partial=True))
    if start is not None and start.end_offset:
        notes.append(f"judged from the snapshot that ends at offset {start.end_offset}")
    if uncommitted:
        notes.append(uncommitted_note(uncommitted))
    return Run(
        name=name,
        path=path,
        header=header,
        nodes=tuple(nodes),
        committed=committed,
        history=history_of(committed),
        start=start,
        uncommitted=uncommitted,
        lost=lacks_log and 2 * len(whole) <= len(located.logs) + len(absent),
        trace=_trace(path, header, damaged, problems) if header is not None else {},
        znodes=znodes,
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _absent(path: Path, located: Located, header: RunHeader | None) -> list[str]:
    """Controllers' logs that the run should have and that are not there."""
    absent = list(located.missing)
    for node_id in header.controllers if header is not None else ():
        folder = path / f"controller-{node_id}"
        if not folder.is_dir():
            absent.append(f"{folder}: there is no such folder")
    has_logs = header is not None and header.protocol is None
    if has_logs and not located.logs and not absent:
        absent.append(f"{path}: no controller-<id> folder")
    return absent


def _header(path: Path, located: Located, problems: list[Problem]) -> RunHeader | None:
    """The content of ``run.json``; None for a plain log, which has no such file."""
    if located.run_json is not None:
        try:
            return read_header(located.run_json)
        except DamagedHeader as error:
            problems.append(Problem(evidence=Evidence.META, why=str(error)))
            return RunHeader()
    if not path.is_dir() or not any(path.glob("trace/*.parquet")):
        return None
    why = f"{path / RUN_NAME}: there is no such file, but a trace"
    problems.append(Problem(evidence=Evidence.META, why=why))
    return RunHeader()


def _lacking(header: RunHeader | None) -> Iterator[Problem]:
    """The evidence that the recorder of the run failed to record."""
    for lacks, why in () if header is None else header.recorder_problems:
        if lacks == ZNODES:
            yield Problem(evidence=Evidence.ZNODES, why=why)
        elif lacks is not None:
            yield Problem(evidence=Evidence.TRACE, why=why, table=lacks)


def _damaged_files(path: Path, header: RunHeader | None, problems: list[Problem]) -> set[str]:
    """Controllers' folders and trace tables with a file that is not what the run wrote."""
    damaged: set[str] = set()
    written = {} if header is None else header.written or {}
    for name, why in (damages(path, written) if written else {}).items():
        first, last = PurePosixPath(name).parts[0], PurePosixPath(name).stem
        if name == LOG_PATH:
            problems.append(Problem(evidence=Evidence.ZNODES, why=why))
        elif first != "trace":
            damaged.add(first)
            if (path / first).is_dir():  # else it is absent as a whole
                problems.append(Problem(evidence=Evidence.LOG, why=why))
        elif last in TABLES:
            damaged.add(f"trace/{last}")
            problems.append(Problem(evidence=Evidence.TRACE, why=why, table=last))
    return damaged


def _controller_of(path: Path, files: MetadataFiles) -> str:
    """The first folder on the way from a run folder to a log."""
    inside = files.path.relative_to(path).parts if files.path.is_relative_to(path) else ()
    return inside[0] if inside else ""


def _trace(
    path: Path, header: RunHeader, damaged: set[str], problems: list[Problem]
) -> dict[str, Path]:
    tables: dict[str, Path] = {}
    for table in TABLES:
        if f"trace/{table}" in damaged:
            continue
        file = path / "trace" / f"{table}.parquet"
        if table in OPTIONAL_TABLES and table not in header.trace_rows and not file.exists():
            continue
        why = file_damage(file, table, header.trace_rows.get(table))
        if why is None:
            tables[table] = file
        else:
            problems.append(Problem(evidence=Evidence.TRACE, why=why, table=table))
    return tables


def _node_log(files: MetadataFiles, *, alone: bool) -> NodeLog:
    batches: list[RecordBatch] = []
    torn: str | None = None
    for index, segment in enumerate(files.segments):
        last = index == len(files.segments) - 1
        read = read_alone if segment == files.path else read_segment
        content = read(segment, whole=not last, limits=files.limits)
        torn = None if content.torn is None else str(content.torn)
        for placed in content.batches:
            check_batch(segment, placed)
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
        snapshots=tuple(sorted(snapshots)),
        alone=alone,
        torn=torn,
    )


def check_batch(segment: Path, placed: PlacedBatch) -> None:
    """Decode the records of a batch of a metadata log, after which an offset is left.

    Errors:  LogCorruption.
    """
    check_contents(segment, placed)
    if placed.batch.last_offset >= _OFFSET_MAX:
        raise LogCorruption(
            file=str(segment),
            position=placed.position,
            base_offset=placed.batch.base_offset,
            why="no offset is left after its last record",
        )
