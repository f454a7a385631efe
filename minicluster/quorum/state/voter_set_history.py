"""The voter set and kraft.version that hold at an offset, read from control records.

The latest set counts from its append on, before it is committed (KIP-853): the majority that
commits it is a majority of the new set. So a truncation takes voter sets back, and a snapshot must
carry the set as of its own end, not the latest.

Source:  KRaftControlRecordStateMachine, VoterSetHistory.
"""

from __future__ import annotations

from minicluster.log.batch import RecordBatch
from minicluster.log.control import control_records
from minicluster.log.log import SnapshotId
from minicluster.protocol.records import KRaftVersionRecord, VotersRecord
from minicluster.quorum.state.raft_log import RaftLog
from minicluster.quorum.state.voters import ReplicaKey, VoterSet

BEFORE_THE_LOG = -1


class VoterSetHistory:
    """The voter sets and kraft.versions of one log's control records, committed or not.

    Shapes:  ``voters``, ``kraft_version`` and ``state``, which is both, are the latest;
             ``is_voter``: the node's own replica is in the latest voter set.
    """

    def __init__(self, log: RaftLog, static_voters: VoterSet, own: ReplicaKey) -> None:
        self._log = log
        self._static = static_voters
        self._own = own
        self._voters: list[tuple[int, VoterSet]] = []
        self._versions: list[tuple[int, int]] = []
        self._next_offset = 0
        self._snapshot_read: SnapshotId | None = None
        self._hold_latest()

    def _hold_latest(self) -> None:
        """Hold what is latest: every turn of a node looks at it, and it seldom changes."""
        self.voters = self._voters[-1][1] if self._voters else self._static
        self.kraft_version = self._versions[-1][1] if self._versions else 0
        self.state = (self.voters, self.kraft_version)
        self.is_voter = self.voters.is_voter(self._own)

    # --- past -------------------------------------------------------------------------------

    @property
    def voters_offset(self) -> int | None:
        """The offset of the latest voter set; -1 in a bootstrap checkpoint; None: in no record."""
        return self._voters[-1][0] if self._voters else None

    def voters_at(self, offset: int) -> VoterSet | None:
        """The voter set as of an offset (inclusive), None without a record of one."""
        return next((v for at, v in reversed(self._voters) if at <= offset), None)

    def kraft_version_at(self, offset: int) -> int:
        """The kraft.version as of an offset (inclusive)."""
        return next((v for at, v in reversed(self._versions) if at <= offset), 0)

    # --- changes ----------------------------------------------------------------------------

    def update(self) -> None:
        """Read what is new in the log, and first a snapshot before it."""
        self._read_snapshot()
        log = self._log.log
        for batch in log.read(self._next_offset) if self._next_offset < log.end_offset else ():
            self._next_offset = batch.next_offset
            if batch.is_control:
                for i, record in enumerate(control_records(batch)):
                    self._add(batch.base_offset + i, record.message)
                self._hold_latest()

    def truncate(self, end_offset: int, *, keep_position: bool) -> None:
        """Forget the records at and after an offset.

        Shapes:  ``keep_position`` is Kafka's fault Z61: what is written there later is missed.
        """
        self._voters = [entry for entry in self._voters if entry[0] < end_offset]
        self._versions = [entry for entry in self._versions if entry[0] < end_offset]
        self._hold_latest()
        # Otherwise voters that the new leader wrote below the old end would never be read.
        if not keep_position:
            self._next_offset = min(self._next_offset, end_offset)

    def start_over(self) -> None:
        """Forget everything: a snapshot has replaced the log."""
        self._voters, self._versions = [], []
        self._next_offset, self._snapshot_read = 0, None
        self._hold_latest()

    def _read_snapshot(self) -> None:
        latest = self._log.latest_snapshot
        if latest is None or latest == self._snapshot_read:
            return
        first_time = self._snapshot_read is None and self._next_offset == 0
        if not first_time and self._next_offset >= self._log.start_offset:
            return
        self._snapshot_read = latest
        self._voters, self._versions = [], []
        at = latest[0] - 1
        for message in decode_snapshot_control(self._log.log.snapshots[latest]):
            self._add(at, message)
        self._hold_latest()
        self._next_offset = latest[0]

    def _add(self, offset: int, message: object) -> None:
        if isinstance(message, VotersRecord):
            self._voters.append((offset, VoterSet.from_record(message)))
        elif isinstance(message, KRaftVersionRecord):
            self._versions.append((offset, message.kraft_version))


def decode_snapshot_control(content: bytes) -> tuple[object, ...]:
    """The control records of a snapshot, without decoding its data records."""
    messages: list[object] = []
    position = 0
    while position < len(content):
        batch = RecordBatch.decode(content, position)
        position += len(batch.encoded)
        messages.extend(record.message for record in control_records(batch))
    return tuple(messages)
