"""The ``quorum-state`` file: what a node must remember of elections across a crash.

JSON of version 0 (static voters, kraft.version 0) or 1 (kraft.version 1).

Source:  QuorumStateData, FileQuorumStateStore.
"""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

from minicluster.log.errors import LogError
from minicluster.log.text_files import read_text, write_atomically
from minicluster.protocol.uuids import ZERO_UUID, format_uuid, parse_uuid
from minicluster.values import Value

QUORUM_STATE_NAME = "quorum-state"
NONE = -1


class QuorumState(Value, kw_only=True):
    """An election state as persisted; -1 means none."""

    leader_id: int = NONE
    leader_epoch: int = 0
    voted_id: int = NONE
    voted_directory_id: UUID = ZERO_UUID
    current_voters: tuple[int, ...] = ()
    data_version: int = 1

    def to_json(self) -> dict[str, object]:
        """The file's content, keys in Kafka's order."""
        if self.data_version == 0:
            return {
                "clusterId": "",
                "leaderId": self.leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": self.voted_id,
                "appliedOffset": 0,
                "currentVoters": [{"voterId": voter} for voter in self.current_voters],
                "data_version": 0,
            }
        return {
            "leaderId": self.leader_id,
            "leaderEpoch": self.leader_epoch,
            "votedId": self.voted_id,
            "votedDirectoryId": format_uuid(self.voted_directory_id),
            "data_version": 1,
        }

    @classmethod
    def from_json(cls, value: object, *, file: str = QUORUM_STATE_NAME) -> QuorumState:
        """Read the file's content.

        Errors:  LogError naming the file and the field.
        """
        if not isinstance(value, dict):
            raise LogError(f"{file}: not a JSON object")
        try:
            version = int(value["data_version"])
            if version not in (0, 1):
                raise LogError(f"{file}: data_version {version} is not known (0 or 1)")
            voters = value.get("currentVoters") or ()
            return cls(
                leader_id=int(value["leaderId"]),
                leader_epoch=int(value["leaderEpoch"]),
                voted_id=int(value["votedId"]),
                voted_directory_id=parse_uuid(value.get("votedDirectoryId") or _ZERO),
                current_voters=tuple(int(voter["voterId"]) for voter in voters),
                data_version=version,
            )
        except KeyError as error:
            raise LogError(f"{file}: the field {error.args[0]} is missing") from None
        except (TypeError, ValueError) as error:
            raise LogError(f"{file}: a field does not have its type: {error}") from None


_ZERO = format_uuid(ZERO_UUID)


def read_quorum_state(path: Path) -> QuorumState | None:
    """Read the file, None if there is none."""
    text = read_text(path)
    if text is None:
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise LogError(f"{path}: not JSON: {error.msg} at character {error.pos}") from None
    return QuorumState.from_json(value, file=str(path))


def write_quorum_state(path: Path, state: QuorumState) -> None:
    """Replace the file at once: a crash leaves the old one or the new one."""
    write_atomically(path, json.dumps(state.to_json(), separators=(",", ":")))
