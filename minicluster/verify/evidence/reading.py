"""Reading paths as runs: the logs under each, which part of them is committed, what is missing.

Damaged and missing evidence becomes a problem of the run that names the file, never a guess: a file
that is not what the run wrote is left out. A log that begins above 0 is judged from the earliest
snapshot that ends in it.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import Snapshot, parse_checkpoint_name, read_checkpoint
from minicluster.log.committed_log import (
    NO_VOTERS,
    Committed,
    Header,
    NodeLog,
    Start,
    committed_log,
    no_start,
    starting_snapshot,
    uncommitted_note,
    voters_in,
)
from minicluster.log.directory import METADATA_DIRECTORY, MetadataFiles
from minicluster.log.errors import LogCorruption, LogError, NotALog
from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.log.locating import RUN_NAME, Located, locate
from minicluster.log.segment import PlacedBatch, check_contents, read_alone, read_segment
from minicluster.log.written_files import damages
from minicluster.protocol.errors import ProtocolError
from minicluster.trace import OPTIONAL_TABLES, TABLES, ZNODES
from minicluster.values import Value, replace
from minicluster.verify.evidence.run import Extent, Problem, Run
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
    raw = os.fsencode(os.path.realpath(path))  # no file for a loop of links; not an error yet
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
    header = _header(path, located, problems)
    absent = _absent(path, located, header)
    problems += [Problem(evidence=Evidence.LOG, why=why) for why in absent]
    problems += _lacking(header)
    damaged = _damaged_files(path, header, problems)
    logs: list[NodeLog | UnreadLog] = []
    for files in located.logs:
        if _controller_of(path, files) not in damaged:
            logs.append(_node_log(files, alone=path.is_file()))
    only = logs[0] if len(located.logs) == len(logs) == 1 else None
    if isinstance(only, UnreadLog) and only.is_no_log:
        raise NotALog(only.why)
    run, committed = run_of_logs(
        path,
        name,
        header,
        logs,
        problems,
        heads=[log.batches for log in logs if isinstance(log, NodeLog)],
        controllers=len(located.logs) + len(absent),
        content_of=lambda file: read_checkpoint(file, limits),
    )
    znodes: tuple[Named, ...] = ()
    if header is not None and header.protocol is not None:
        try:
            znodes = read_znodes(path, name, header)
        except DamagedZnodeLog as error:
            problems.append(Problem(evidence=Evidence.ZNODES, why=str(error)))
    return replace(
        run,
        committed=() if committed.log is None else committed.log.batches[: committed.batches],
        known_extent=None,
        trace=_trace(path, header, damaged, problems) if header is not None else {},
        znodes=znodes,
        problems=tuple(problems),
    )


def run_of_logs(
    path: Path,
    name: str,
    header: RunHeader | None,
    read: Sequence[NodeLog | UnreadLog],
    problems: list[Problem],
    *,
    heads: Sequence[Iterable[Header]],
    controllers: int,
    content_of: Callable[[Path], Snapshot],
) -> tuple[Run, Committed]:
    """What the logs of some controllers say together, without the batches that are committed.

    Shapes:  heads: of the batches of those that could be read. controllers: how many logs there
             should be. content_of: reads a snapshot. What is wrong is added to the problems.
    """
    logs: list[NodeLog] = []
    notes: list[str] = []
    for log in read:
        if isinstance(log, NodeLog):
            logs.append(log)
            if log.torn is not None:
                notes.append(log.torn)
                if header is not None:  # a run writes whole logs; only a crash tears a tail
                    problems.append(Problem(evidence=Evidence.LOG, why=log.torn))
        elif log.is_no_log:
            notes.append(f"nothing to read: {log.why}")
        else:
            problems.append(Problem(evidence=Evidence.LOG, why=log.why))
    whole = [
        log
        for log in logs
        if (log.has_batches or log.snapshots) and (log.torn is None or header is None)
    ]
    lacks_log = any(problem.evidence is Evidence.LOG for problem in problems)
    committed = committed_log(logs, heads)
    start = None
    try:
        if (chosen := starting_snapshot(logs, committed)) is not None:
            end, epoch, file = chosen
            snapshot = content_of(file)
            start = Start(end_offset=end, epoch=epoch, snapshot=snapshot, file=file.name)
    except (LogError, ProtocolError) as error:
        problems.append(Problem(evidence=Evidence.LOG, why=str(error)))
    if start is None and committed.first > 0 and not problems:
        why = no_start(path, committed.first)
        problems.append(Problem(evidence=Evidence.LOG, why=why, partial=True))
    if start is not None and start.end_offset:
        notes.append(f"judged from the snapshot that ends at offset {start.end_offset}")
    if committed.beyond:
        notes.append(uncommitted_note(committed.beyond))
    run = Run(
        name=name,
        path=path,
        header=header,
        nodes=tuple(logs),
        committed=(),
        start=start,
        uncommitted=committed.beyond,
        lost=lacks_log and 2 * len(whole) <= controllers,
        problems=tuple(problems),
        notes=tuple(notes),
        known_extent=Extent(
            records=committed.records,
            first_offset=committed.first,
            end_offset=committed.end,
            logs=len(logs),
        ),
    )
    return run, committed


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


def header_of(path: Path, limits: ReadLimits = DEFAULT_LIMITS) -> RunHeader | None:
    """The content of ``run.json``; an empty header where it is damaged, None for a plain log."""
    return _header(path, locate(path, partly=True, limits=limits), [])


def _header(path: Path, located: Located, problems: list[Problem]) -> RunHeader | None:
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
    for problem in () if header is None else header.recorder_problems:
        if problem.lacks == ZNODES:
            yield Problem(evidence=Evidence.ZNODES, why=problem.why)
        elif problem.lacks is not None:
            yield Problem(evidence=Evidence.TRACE, why=problem.why, table=problem.lacks)


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


class UnreadLog(Value):
    """A controller's log that is damaged, or that is none: why."""

    why: str
    is_no_log: bool

    @classmethod
    def of(cls, error: LogError | ProtocolError) -> UnreadLog:
        """What reading it has raised."""
        return cls(str(error), isinstance(error, NotALog))


def _node_log(files: MetadataFiles, *, alone: bool) -> NodeLog | UnreadLog:
    """A log that is held."""
    reading = LogReading(files, alone=alone)
    try:
        batches = tuple(reading.batches())
    except (LogError, ProtocolError) as error:
        return UnreadLog.of(error)
    return replace(reading.log, batches=batches)


class LogReading:
    """The reading of one controller's log.

    Shapes:  log: what is known of it, once its batches have been read.
    """

    def __init__(self, files: MetadataFiles, *, alone: bool) -> None:
        named = [(parse_checkpoint_name(file.name) or (0, 0), file) for file in files.checkpoints]
        is_start = not files.segments  # the snapshot that ends at 0 is empty beside a log
        self._files = files
        self.log = NodeLog(
            node=-1 if files.node_id is None else files.node_id,
            files=files,
            start=0,
            has_batches=False,
            voters=NO_VOTERS,
            snapshots=tuple(
                sorted((end, epoch, file) for (end, epoch), file in named if end > 0 or is_start)
            ),
            alone=alone,
        )

    def batches(self) -> Iterator[RecordBatch]:
        """The batches, each of which holds the records of its header.

        Errors:  LogError, ProtocolError, also behind batches that are sound.
        """
        files, start, voters = self._files, -1, NO_VOTERS
        torn: str | None = None
        for segment in files.segments:
            is_last = segment == files.segments[-1]
            read = read_alone if segment == files.path else read_segment
            content = read(segment, whole=not is_last, limits=files.limits)
            torn = None if content.torn is None else str(content.torn)
            placed_batches = deque(content.batches)
            del content  # each batch is dropped once it is taken, with its decoded records
            while placed_batches:
                placed = placed_batches.popleft()
                check_batch(segment, placed)
                start = placed.batch.base_offset if start < 0 else start
                named = voters_in(placed.batch)
                voters = named if named[0] > voters[0] else voters
                yield placed.batch
        self.log = replace(
            self.log, start=max(start, 0), has_batches=start >= 0, voters=voters, torn=torn
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
