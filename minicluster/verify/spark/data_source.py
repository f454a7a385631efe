"""``spark.read.format("kraft").load(path)``: metadata logs and checkpoints as a table.

So are the logs of ``__consumer_offsets`` and ``__transaction_state``, by their partition's folder.

One row per record (columns in ``rows.COLUMNS``), one input partition per file, long segments split
between batches. ``load`` takes every form of path that ``minicluster verify`` takes; an explicit
``schema(...)`` with fewer columns is read faster (``data`` costs most). Filters on offset and type
are applied while reading. ``readStream`` follows one growing log, exactly once by offset.

Source:  pyspark.sql.datasource.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import checked_snapshot, parse_checkpoint_name
from minicluster.log.errors import InvalidBatch, LogCorruption, LogError, NotALog
from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.log.heads import NO_LIMIT, batch_heads, byte_ranges
from minicluster.log.locating import locate
from minicluster.log.segment import check_contents, read_batches, read_piece
from minicluster.own_folders import temporary_folder
from minicluster.protocol.coordinator_records.described import record_types_of
from minicluster.values import dataclass, replace
from minicluster.verify.evidence.file_systems import is_uri, on_this_machine, place_of
from minicluster.verify.spark.rows import ARROW_TYPES, SQL_SCHEMA, Rows
from minicluster.verify.spark.travel import Fetched, ship_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_Reader = TypeVar("_Reader", bound="KraftReader")


def register(spark: SparkSession) -> None:
    """Register the format ``kraft`` with a session, and allow filters to be pushed down to it.

    Source:  pyspark.sql.datasource.DataSource.
    """
    ship_package(spark)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(KraftDataSource)


_LOOKED_AT_BYTES = 1024 * 1024  # of a file, for whether it is a log


@dataclass
class Wanted:
    """Offsets and types that the pushed filters leave."""

    first: int = 0
    last: int = NO_LIMIT
    types: tuple[str, ...] | None = None

    def take(self, pushed: Filter) -> bool:
        """Narrow to a filter; False if only Spark can apply it."""
        column = getattr(pushed, "attribute", None)
        if column == ("type",) and isinstance(pushed, EqualTo | In):
            values = (pushed.value,) if isinstance(pushed, EqualTo) else tuple(pushed.value)
            old = values if self.types is None else self.types
            self.types = tuple(value for value in old if value in values)
            return True
        if column != ("offset",):
            return False
        match pushed:
            case EqualTo():
                self.first, self.last = max(self.first, pushed.value), min(self.last, pushed.value)
            case GreaterThan():
                self.first = max(self.first, pushed.value + 1)
            case GreaterThanOrEqual():
                self.first = max(self.first, pushed.value)
            case LessThan():
                self.last = min(self.last, pushed.value - 1)
            case LessThanOrEqual():
                self.last = min(self.last, pushed.value)
            case _:
                return False
        return True

    def keeper(self) -> Callable[[int, str], bool] | None:
        """The test that a row must pass, None if every row does."""
        if self.first == 0 and self.last == NO_LIMIT and self.types is None:
            return None
        first, last, types = self.first, self.last, self.types
        return lambda offset, name: first <= offset <= last and (types is None or name in types)


@dataclass(frozen=True)
class Piece(InputPartition):
    """Some bytes of one file, from one batch boundary to another.

    Shapes:  file: its name in the rows. wanted: which rows of it.
    """

    path: str
    file: str
    wanted: Wanted
    start: int
    end: int
    snapshot_end: int | None
    whole: bool  # a torn tail would be damage, not the end of the log
    origin: str | None = None  # the URI of the file, where it is on another file system


class KraftDataSource(DataSource):
    """Kafka's metadata logs and checkpoints."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "kraft"

    def schema(self) -> str:
        """Every column there is."""
        return SQL_SCHEMA

    def reader(self, schema: StructType) -> KraftReader:
        """Read the files that are there now."""
        with _mistakes_in_one_line():
            return self.reader_of(KraftReader, schema)

    def reader_of(self, kind: type[_Reader], schema: StructType) -> _Reader:
        """A reader of a class."""
        return kind(_path(self.options), _columns(schema), _limits(self.options))

    def streamReader(self, schema: StructType) -> KraftStream:
        """Follow a log as it grows."""
        with _mistakes_in_one_line():
            return KraftStream(_path(self.options), _columns(schema), _limits(self.options))


@contextmanager
def _mistakes_in_one_line() -> Iterator[None]:
    """Let Spark report a user's mistake without our traceback, of 18 lines in a wrong path.

    Spark's worker adds the traceback unless its environment forbids it. That is changed only where
    the process plans one query and ends with it; elsewhere it would hide tracebacks of others.
    """
    try:
        yield
    except (UserError, LogError):
        module = getattr(sys.modules["__main__"], "__spec__", None)
        started_as = [getattr(module, "name", ""), *sys.argv[1:2]]  # or by pyspark.daemon
        if any(name.startswith("pyspark.sql.worker.") for name in started_as):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


def _path(options: Any) -> str:
    path = options.get("path")
    if not path:
        raise UserError('kraft: give a path: spark.read.format("kraft").load(path)')
    return str(on_this_machine(path))


def _check_is_log(file: Path, limits: ReadLimits) -> None:
    """Reject a file that is something else while the query is planned, in one line.

    Errors:  NotALog. Damage of a log is reported with its place, where the batches are read.
    """
    try:
        read_piece(file, 0, min(file.stat().st_size, _LOOKED_AT_BYTES), whole=False, limits=limits)
    except NotALog:
        raise
    except (LogError, UserError):
        pass


def _limits(options: Any) -> ReadLimits:
    """The limits of reading: the options ``maxBatch`` and ``maxUnpacked``, in bytes.

    Errors:  UserError for anything but a number of bytes.
    """
    limits = {
        "batch_bytes": options.get("maxBatch", DEFAULT_LIMITS.batch_bytes),
        "decompressed_bytes": options.get("maxUnpacked", DEFAULT_LIMITS.decompressed_bytes),
    }
    for name, value in limits.items():
        if not re.fullmatch(r"[0-9]{1,12}", str(value)):
            raise UserError(f"kraft: {name}: {value!r} is not a number of bytes")
    return ReadLimits(**{name: int(value) for name, value in limits.items()})


def _columns(schema: StructType) -> tuple[str, ...]:
    names = tuple(field.name for field in schema.fields)
    for name in names:
        if name not in ARROW_TYPES:
            raise UserError(f"kraft: there is no column {name!r}; see the format's schema")
    return names


class KraftReader(DataSourceReader):
    """A reader of everything under a path."""

    def __init__(self, path: str, columns: tuple[str, ...], limits: ReadLimits) -> None:
        self._path = path
        self._limits = limits
        self._columns = columns
        self._wanted = Wanted()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters on offset and type; leave the others to Spark."""
        for pushed in filters:
            if not self._wanted.take(pushed):
                yield pushed

    def partitions(self) -> Sequence[Piece]:
        """One piece per file, several for a long segment; none that holds no wanted offset."""
        if not is_uri(self._path):
            with _mistakes_in_one_line():
                return self._pieces(Path(self._path))
        with _mistakes_in_one_line(), temporary_folder("fetched") as folder:
            # executors read pieces of the files there
            here = Fetched(folder.path)
            (path,) = here.paths([self._path])
            pieces = self._pieces(Path(path))
            return [replace(piece, origin=here.origin(Path(piece.path))) for piece in pieces]

    def _pieces(self, root: Path) -> list[Piece]:
        located = locate(root)
        if root.is_file():
            _check_is_log(root, self._limits)
        pieces: list[Piece] = []
        for files in located.logs:
            for path in files.checkpoints:
                end = (parse_checkpoint_name(path.name) or (0, 0))[0]
                size = path.stat().st_size
                file = _shown(path, located.path)
                pieces.append(Piece(str(path), file, self._wanted, 0, size, end, True))
            for path, start, stop, whole in _parts(files.segments, self._wanted):
                file = _shown(path, located.path)
                pieces.append(Piece(str(path), file, self._wanted, start, stop, None, whole))
        return pieces

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Decode one piece into Arrow batches."""
        assert isinstance(partition, Piece)
        yield from _rows_of(partition, self._columns, self._limits)


class KraftStream(DataSourceStreamReader):
    """A reader that follows one controller's segments; its position is the next offset."""

    def __init__(self, path: str, columns: tuple[str, ...], limits: ReadLimits) -> None:
        self._path = path
        self._limits = limits
        self._columns = columns

    def initialOffset(self) -> dict[str, int]:
        """Where a new stream begins: at the first record that the log still has."""
        return {"offset": self._first()}

    def _first(self) -> int:
        """The first offset of the log, by the name of its first segment."""
        return min((int(path.stem) for path in self._segments()), default=0)

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        """The end of the last whole batch."""
        segments = self._segments()
        ends = [_end_of(path, may_be_torn=path == segments[-1]) for path in segments]
        known = start["offset"] if isinstance(start, dict) and "offset" in start else 0
        end = max(ends, default=0)
        if end < known:
            what = f"the log ends at offset {end}, below {known}, where the stream is"
            raise LogError(f"{self._path}: {what}: it was truncated; begin a new stream")
        return {"offset": end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Piece]:
        """One piece per segment with offsets between the two positions."""
        wanted = Wanted(start["offset"], end["offset"] - 1)
        if (begins := self._first()) > wanted.first:
            offsets = f"offsets {wanted.first} to {begins - 1}"
            what = f"{offsets} are deleted, and the stream has not read them"
            raise LogError(f"{self._path}: {what}; begin a new stream from a snapshot")
        return [
            Piece(str(path), path.name, wanted, begin, stop, None, whole)
            for path, begin, stop, whole in _parts(self._segments(), wanted)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Decode one piece into Arrow batches."""
        assert isinstance(partition, Piece)
        yield from _rows_of(partition, self._columns, self._limits)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to remember: the log keeps what it has."""

    def stop(self) -> None:
        """Nothing to close."""

    def _segments(self) -> tuple[Path, ...]:
        if is_uri(self._path):
            raise UserError(f"kraft: {self._path}: a stream follows a log of this machine's")
        located = locate(Path(self._path))
        if len(located.logs) != 1:
            raise UserError(f"kraft: {self._path}: a stream follows one controller's log")
        return located.logs[0].segments


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if root.is_dir() else path.name


def batches_of(piece: Piece, limits: ReadLimits) -> Iterator[RecordBatch]:
    """The batches of a piece, their records decoded.

    Errors:  LogError with the file, and LogCorruption with the byte in it and the offset.
    """
    path = Path(piece.path)
    place = None if piece.origin is None else place_of(piece.origin)
    if place is None:
        content = read_piece(path, piece.start, piece.end, whole=piece.whole, limits=limits)
    else:
        encoded = place.read(piece.start, piece.end)
        content = read_batches(path, encoded, whole=piece.whole, limits=limits, start=piece.start)
    if piece.snapshot_end is not None:
        checked_snapshot(content)  # one without header or footer is not whole
    for placed in content.batches:
        check_contents(path, placed)
        yield placed.batch


def _rows_of(piece: Piece, columns: Sequence[str], limits: ReadLimits) -> Iterator[pa.RecordBatch]:
    return Rows(columns).of(
        batches_of(piece, limits),
        file=piece.file,
        snapshot_end=piece.snapshot_end,
        keep=piece.wanted.keeper(),
        types=record_types_of(Path(piece.path)),
    )


def _parts(segments: Sequence[Path], wanted: Wanted) -> Iterator[tuple[Path, int, int, bool]]:
    """The byte ranges of a log that hold wanted offsets.

    Shapes:  -> segment, start, end, and whether it is whole: only a log's end may be torn.
    """
    for path in segments:
        size = path.stat().st_size  # before the ranges are read, since the log may grow
        for start, end in byte_ranges(path, wanted.first, wanted.last):
            yield path, start, end, path != segments[-1] or end < size


def _end_of(path: Path, *, may_be_torn: bool) -> int:
    """The offset after the last whole, undamaged batch of a segment.

    Errors:  LogCorruption for a damaged batch at the end of a segment that has no torn tail.
    """
    for head in reversed(list(batch_heads(path))):
        with path.open("rb") as file:
            file.seek(head.position)
            content = file.read(head.end - head.position)
        try:
            RecordBatch.decode(content)
        except InvalidBatch as error:
            if not may_be_torn:
                at, offset = head.position, head.base_offset
                raise LogCorruption(
                    file=str(path), position=at, base_offset=offset, why=str(error)
                ) from None
        else:
            return head.last_offset + 1
    return 0
