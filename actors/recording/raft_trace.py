"""The trace columns of a quorum node's log: voters as its records name them, and checksums.

The rules compare them with the machine's state, so nothing here reads that state.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minicluster.log.batch import RecordBatch
from minicluster.log.control import control_records
from minicluster.log.log import Log
from minicluster.protocol.records import KRaftVersionRecord, VotersRecord
from minicluster.protocol.uuids import ZERO_UUID, format_uuid
from minicluster.quorum.state.voter_set_history import decode_snapshot_control
from minicluster.quorum.state.voters import VoterSet


class LazyCrc:
    """A batch's checksum, computed when the row is written because encoding is costly."""

    __slots__ = ("_batch",)

    def __init__(self, batch: RecordBatch) -> None:
        self._batch = batch

    def __int__(self) -> int:
        return self._batch.crc

    def __str__(self) -> str:
        return str(self._batch.crc)

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (self._batch.crc,)  # without the batch


def voters_text(voters: VoterSet) -> str:
    """A voter set as a row has it: ``101@<directory id>,102@…``, without unknown directories."""
    return ",".join(
        _voter_text(voter.key.id, voter.key.wire_directory_id) for voter in voters.voters
    )


def _voter_text(voter_id: int, directory_id: Any) -> str:
    has_directory = directory_id != ZERO_UUID
    return f"{voter_id}@{format_uuid(directory_id)}" if has_directory else str(voter_id)


def voter_columns(messages: Iterable[object]) -> dict[str, Any]:
    """The last voters and kraft.version in control records, as columns of a row."""
    columns: dict[str, Any] = {}
    for message in messages:
        if isinstance(message, VotersRecord):
            voters = sorted((v.voter_id, v.voter_directory_id) for v in message.voters)
            columns["voters"] = ",".join(_voter_text(*voter) for voter in voters)
        elif isinstance(message, KRaftVersionRecord):
            columns["kraft_version"] = message.kraft_version
    return columns


def columns_of_batch(batch: RecordBatch) -> dict[str, Any]:
    """The columns of a batch; none for most batches."""
    if not batch.is_control:
        return {}
    return voter_columns(record.message for record in control_records(batch))


def columns_of_snapshot(content: bytes) -> dict[str, Any]:
    """The columns of a snapshot, where no record means kraft.version 0."""
    return {"kraft_version": 0, **voter_columns(decode_snapshot_control(content))}


def columns_of_log(log: Log, end_offset: int) -> dict[str, Any]:
    """The columns of a log with its newest snapshot, up to an offset."""
    columns: dict[str, Any] = {"kraft_version": 0}
    newest = log.latest_snapshot
    if newest is not None:
        columns = columns_of_snapshot(log.snapshots[newest])
    for batch in log.read(0 if newest is None else newest[0], until=end_offset):
        columns |= columns_of_batch(batch)
    return columns
