"""Metadata logs that are too long to hold: what of them is committed, by the headers of batches.

The headers of all controllers' logs are walked side by side, so that memory does not grow with the
logs. What is committed is what ``committed_log`` says of logs that are held: the batches that a
majority of the voters has. Bodies are read by others, piece by piece; who finds damage there has
the logs planned again ``checked``: then each is read to its end first, and left out if it is bad.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from minicluster.log import heads
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import parse_checkpoint_name, read_checkpoint
from minicluster.log.committed_log import no_start, uncommitted_note
from minicluster.log.control import control_records
from minicluster.log.directory import MetadataFiles
from minicluster.log.errors import InvalidBatch, LogError, NotALog
from minicluster.log.format.limits import ReadLimits
from minicluster.log.heads import BatchHead, batch_heads
from minicluster.log.locating import Located
from minicluster.log.segment import PlacedBatch, read_piece
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import LeaderChangeMessage, VotersRecord
from minicluster.values import dataclass
from minicluster.verify.evidence.reading import check_batch
from minicluster.verify.evidence.run import Extent, LogFacts, Problem, Run
from minicluster.verify.model import Evidence

_TAIL_BATCHES = 64  # so many at the end are looked through for the last whole one
_Key = tuple[int, int, int]
_Snapshot = tuple[int, int, Path]  # end offset, epoch, file


class MustBeHeld(Exception):
    """Logs whose offsets descend from one segment to the next."""


class Unsure(Exception):
    """The headers alone do not tell where a log ends: it has to be read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of one segment, which one task reads.

    Shapes:  node: of the log that it is of. bounds: between batches, about two MiB apart; nothing
             in it is torn. place: the number of its first record in the log.
             last_offset: of the batch before in the segment. control_from: the first offset of the
             control batches right before. committed_to: records below are judged; None: none.
             decoded_from: batches from there on have to be decoded to see whether they are sound.
             ends: the next offsets of batches with which snapshots end.
    """

    node: int
    segment: Path
    bounds: tuple[int, ...]
    place: int
    last_offset: int
    control_from: int
    committed_to: int | None
    decoded_from: int
    ends: frozenset[int]


@dataclass(frozen=True, slots=True)
class LongLogs:
    """The logs of a run as they are read.

    Shapes:  run: without contents, with its problems and notes. start: the snapshot from which the
             committed log is judged.
    """

    run: Run
    pieces: tuple[Piece, ...]
    start: _Snapshot | None
    facts: tuple[LogFacts, ...]


def plan_logs(
    path: Path, name: str, located: Located, limits: ReadLimits, tasks: int, *, checked: bool
) -> LongLogs:
    """Find what is committed, and divide the logs into pieces for about so many tasks.

    Shapes:  checked: every batch is decoded first, so that damage is known.
    Errors:  NotALog for a log alone that is none; MustBeHeld; Unsure where it is not checked.
    """
    damage: dict[int, LogError | ProtocolError] = {}
    for place, files in enumerate(located.logs if checked else ()):
        error = _damage(files, limits)
        if error is not None:
            damage[place] = error
    if len(located.logs) == 1 and isinstance(damage.get(0), NotALog):
        raise damage[0]
    sides = [
        _Side(place, files, limits)
        for place, files in enumerate(located.logs)
        if place not in damage
    ]
    quorum = _Quorum(sides)
    quorum.walk()
    return _Plan(path, name, located, limits, quorum, damage).made(tasks)


def _damage(files: MetadataFiles, limits: ReadLimits) -> LogError | ProtocolError | None:
    """The damage that a reader finds first who reads the batches of a segment, then its records."""
    try:
        for segment in files.segments:
            deque(segment_batches(files, segment, limits), maxlen=0)
            for placed in segment_batches(files, segment, limits):
                check_batch(segment, placed)
    except (LogError, ProtocolError) as error:
        return error
    return None


def segment_batches(
    files: MetadataFiles, segment: Path, limits: ReadLimits
) -> Iterator[PlacedBatch]:
    """The batches of a segment, a piece at a time.

    Errors:  LogError.
    """
    size, last_offset = segment.stat().st_size, -1
    for start, end in heads.byte_ranges(segment):
        whole = segment != files.segments[-1] or end < size  # only a log's end may be torn
        content = read_piece(
            segment, start, end, whole=whole, limits=limits, last_offset=last_offset
        )
        yield from content.batches
        if content.batches:
            last_offset = content.batches[-1].batch.last_offset


class _Side:
    """One controller's log: the header that comes next, and how far so many controllers hold it.

    Shapes:  ends: of each segment, the byte at which its last whole batch ends. held: by the number
             of controllers, the offset up to which at least so many hold this log, and its records
             up to there. beyond: likewise the records on any log, from where this one begins, that
             are not in it.
    """

    def __init__(self, place: int, files: MetadataFiles, limits: ReadLimits) -> None:
        self.place = place
        self.files = files
        self.node = -1 if files.node_id is None else files.node_id
        self.limits = limits
        self.ends: dict[Path, int] = {}
        self.torn: str | None = None
        self.start = self.end = self.records = 0
        self.has_batches = False
        self.holders = 0
        self.held: dict[int, tuple[int, int]] = {}
        self.beyond: dict[int, int] = {}
        self.snapshots = _snapshots(files)
        self._heads: Iterator[tuple[Path, BatchHead]] = iter(())
        self.next: tuple[Path, BatchHead] | None = None

    @property
    def begins_well(self) -> bool:
        """It begins at 0, or a snapshot ends at its first offset or later."""
        is_alone = self.files.path.is_file()
        return is_alone or self.start == 0 or any(end >= self.start for end, _, _ in self.snapshots)

    def open(self, count: int) -> None:
        """Go to the first header.

        Errors:  LogError, Unsure.
        """
        for segment in self.files.segments:
            self.ends[segment] = self._end_of(segment)
        self.holders = count
        self.beyond = dict.fromkeys(range(1, count + 1), 0)
        self._heads = self.heads()
        self.next = next(self._heads, None)
        if self.next is not None:
            self.has_batches = True
            self.start = self.end = self.next[1].base_offset

    def heads(self) -> Iterator[tuple[Path, BatchHead]]:
        """The headers of all whole batches, with their segments.

        Errors:  MustBeHeld, Unsure.
        """
        last = -1
        for segment in self.files.segments:
            for number, head in enumerate(batch_heads(segment)):
                if head.end > self.ends[segment]:
                    break
                if not 0 <= head.base_offset <= head.last_offset or head.count < 0:
                    raise Unsure
                if head.base_offset <= last:
                    raise Unsure if number else MustBeHeld
                last = head.last_offset
                yield segment, head

    def _end_of(self, segment: Path) -> int:
        """The byte at which the last whole batch ends; the rest is a torn tail.

        Errors:  LogError, Unsure.
        """
        last = deque(batch_heads(segment), maxlen=_TAIL_BATCHES)
        size = segment.stat().st_size
        before = -1
        while last:
            head = last.pop()
            try:
                batch = RecordBatch.decode(_bytes(segment, head))
            except InvalidBatch:
                size, before = head.position, -1
                continue
            before = batch.last_offset
            size = head.end
            break
        else:
            if size:  # many batches in a row are damaged, or the first
                raise Unsure
        if size < segment.stat().st_size:
            self._note_tail(segment, size, before)
        return size

    def _note_tail(self, segment: Path, start: int, last_offset: int) -> None:
        size = segment.stat().st_size
        whole = segment != self.files.segments[-1]
        content = read_piece(
            segment, start, size, whole=whole, limits=self.limits, last_offset=last_offset
        )
        if content.batches or content.torn is None:
            raise Unsure
        self.torn = str(content.torn)

    def take(self, holders: int) -> None:
        """Go past the next batch, which so many controllers hold."""
        assert self.next is not None
        head = self.next[1]
        for number in range(holders + 1, self.holders + 1):
            self.held[number] = self.end, self.records
        self.holders = min(self.holders, holders)
        self.end, self.records = head.last_offset + 1, self.records + head.count
        self.next = next(self._heads, None)

    def finish(self) -> None:
        """The log is over."""
        for number in range(1, self.holders + 1):
            self.held[number] = self.end, self.records


class _Quorum:
    """The headers of the logs of all controllers, side by side.

    Shapes:  same_to: below this offset all logs hold the same, as far back as they go.
    """

    def __init__(self, sides: Sequence[_Side]) -> None:
        self.sides = sides
        self.same_to = 2**63 - 1
        self._voters: tuple[int, list[int]] = (-1, [side.node for side in sides])

    def walk(self) -> None:
        """Walk all logs to their ends.

        Errors:  LogError, MustBeHeld, Unsure.
        """
        for side in self.sides:
            side.open(len(self.sides))
        if len(self.sides) == 1:  # taken as it is
            while self.sides[0].next is not None:
                self.sides[0].take(1)
        while offsets := [s.next[1].base_offset for s in self.sides if s.next is not None]:
            self._step(min(offsets))
        for side in self.sides:
            side.finish()

    @property
    def needed(self) -> int:
        """The number of controllers that commit a batch."""
        return min(len(self._voters[1]) // 2 + 1, len(self.sides))

    def _step(self, offset: int) -> None:
        """Take the batches that begin at an offset, the lowest that is left."""
        count = len(self.sides)
        present = [
            (side, *side.next)
            for side in self.sides
            if side.next is not None and side.next[1].base_offset == offset
        ]
        later = sum(side.start > offset for side in self.sides)
        holders = Counter(_key(head) for _, _, head in present)
        keys = {side.place: _key(head) for side, _, head in present}
        records = {_key(head): head.count for _, _, head in present}
        if len(holders) > 1 or len(present) + later < count:
            self.same_to = min(self.same_to, offset)
        for side, segment, head in present:
            if head.is_control and count > 1:
                self._note_voters(_bytes(segment, head))
            side.take(holders[keys[side.place]] + later)
        if self.same_to > offset:
            return
        for side in self.sides:
            for number in side.beyond if side.start <= offset else ():
                own = keys.get(side.place) if side.holders >= number else None
                side.beyond[number] += sum(n for key, n in records.items() if key != own)

    def _note_voters(self, content: bytes) -> None:
        try:
            batch = RecordBatch.decode(content)
            controls = control_records(batch)
        except (InvalidBatch, ProtocolError):
            raise Unsure from None
        for control in controls:
            if isinstance(control.message, LeaderChangeMessage | VotersRecord):
                voters = [voter.voter_id for voter in control.message.voters]
                if voters and batch.base_offset > self._voters[0]:
                    self._voters = batch.base_offset, voters


class _Plan:
    """The run and its pieces, once the headers have been walked."""

    def __init__(
        self,
        path: Path,
        name: str,
        located: Located,
        limits: ReadLimits,
        quorum: _Quorum,
        damage: Mapping[int, LogError | ProtocolError],
    ) -> None:
        self._path, self._name, self._limits = path, name, limits
        self._located, self._quorum, self._damage = located, quorum, damage
        needed = quorum.needed if quorum.sides else 0
        holding = [side for side in quorum.sides if side.held[needed][1]]
        end = max((side.held[needed][0] for side in holding), default=0)
        usable = [side for side in holding if side.held[needed][0] == end] or list(quorum.sides)
        self._of = min(usable, key=lambda side: (not side.begins_well, side.start), default=None)
        self._records = self._first = self._end = self._uncommitted = 0
        if self._of is not None:
            self._end, self._records = self._of.held[needed]
            self._first = self._of.start if self._records else 0
            self._end = self._end if self._records else 0
            self._uncommitted = self._of.beyond[needed]

    def made(self, tasks: int) -> LongLogs:
        """The result, with pieces for about so many tasks."""
        sides = self._quorum.sides
        problems, notes = self._problems()
        lacks_log = bool(problems)
        start = self._start()
        if start is not None:
            try:
                read_checkpoint(start[2], self._limits)
            except (LogError, ProtocolError) as error:
                problems.append(Problem(evidence=Evidence.LOG, why=str(error)))
                start = None
        if start is None and self._first > 0 and not problems:
            why = no_start(self._path, self._first)
            problems.append(Problem(evidence=Evidence.LOG, why=why, partial=True))
        if start is not None and start[0]:
            notes.append(f"judged from the snapshot that ends at offset {start[0]}")
        if self._uncommitted:
            notes.append(uncommitted_note(self._uncommitted))
        is_foldable = start is not None or self._first == 0
        size = sum(end for side in sides for end in side.ends.values())
        piece_bytes = max(heads.SPLIT_BYTES, size // max(1, tasks))
        return LongLogs(
            run=self._run(problems, notes, lacks_log),
            pieces=tuple(
                piece for side in sides for piece in self._pieces(side, is_foldable, piece_bytes)
            ),
            start=start,
            facts=tuple(
                LogFacts(
                    node=side.node,
                    files=side.files,
                    alone=self._path.is_file(),
                    torn=side.torn,
                    snapshots=tuple(side.snapshots),
                )
                for side in sides
            ),
        )

    def _problems(self) -> tuple[list[Problem], list[str]]:
        """Logs that are missing or damaged, and notes in the order of the logs."""
        problems = [Problem(evidence=Evidence.LOG, why=why) for why in self._located.missing]
        notes = {side.place: side.torn for side in self._quorum.sides if side.torn is not None}
        for place, error in self._damage.items():
            if isinstance(error, NotALog):
                notes[place] = f"nothing to read: {error}"
            else:
                problems.append(Problem(evidence=Evidence.LOG, why=str(error)))
        return problems, [notes[place] for place in sorted(notes)]

    def _start(self) -> _Snapshot | None:
        """The snapshot that ``starting_snapshot`` finds."""
        every = sorted(snapshot for side in self._quorum.sides for snapshot in side.snapshots)
        if not self._records:
            return every[-1] if every else None
        usable = [snapshot for snapshot in every if self._first <= snapshot[0] <= self._end]
        return usable[0] if self._first and usable else None

    def _run(self, problems: Sequence[Problem], notes: Sequence[str], lacks_log: bool) -> Run:
        sides, located = self._quorum.sides, self._located
        whole = sum(bool(side.has_batches or side.snapshots) for side in sides)
        return Run(
            name=self._name,
            path=self._path,
            header=None,
            nodes=(),
            committed=(),
            start=None,
            uncommitted=self._uncommitted,
            lost=lacks_log and 2 * whole <= len(located.logs) + len(located.missing),
            problems=tuple(problems),
            notes=tuple(notes),
            known_extent=Extent(
                records=self._records,
                first_offset=self._first,
                end_offset=self._end,
                logs=len(sides),
            ),
        )

    def _pieces(self, side: _Side, is_foldable: bool, piece_bytes: int) -> Iterator[Piece]:
        """A log in pieces; of the one that is judged, those that are committed are to be."""
        committed_to = self._end if side is self._of and is_foldable and self._records else None
        decoded_from = self._end if side is self._of else self._quorum.same_to
        ends = frozenset(end for other in self._quorum.sides for end, _, _ in other.snapshots)
        place, last_offset, control_from = 0, -1, -1
        at: Path | None = None
        bounds: list[int] = []
        state = (0, -1, -1)

        def piece() -> Piece:
            assert at is not None
            return Piece(side.node, at, tuple(bounds), *state, committed_to, decoded_from, ends)

        for segment, head in side.heads():
            if segment != at or bounds[-1] - bounds[0] >= piece_bytes:
                if bounds:
                    yield piece()
                last_offset = last_offset if segment == at else -1
                at, bounds, state = segment, [head.position], (place, last_offset, control_from)
                bounds.append(head.end)
            elif bounds[-1] - bounds[-2] >= heads.SPLIT_BYTES:
                bounds.append(head.end)
            else:
                bounds[-1] = head.end
            if head.is_control:
                control_from = head.base_offset if control_from < 0 else control_from
            else:
                control_from = -1
            place += head.count
            last_offset = head.last_offset
        if bounds:
            yield piece()


def _key(head: BatchHead) -> _Key:
    return head.base_offset, head.leader_epoch, head.crc


def _bytes(segment: Path, head: BatchHead) -> bytes:
    with segment.open("rb") as file:
        file.seek(head.position)
        return file.read(head.end - head.position)


def _snapshots(files: MetadataFiles) -> list[_Snapshot]:
    named = [(parse_checkpoint_name(file.name) or (0, 0), file) for file in files.checkpoints]
    return sorted(
        (end, epoch, file) for (end, epoch), file in named if end > 0 or not files.segments
    )
