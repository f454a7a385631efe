"""Row J05: the quorum-state file is replaced at once, and can be cleared."""

from __future__ import annotations

from pathlib import Path

from minicluster.log.quorum_state import (
    QUORUM_STATE_NAME,
    QuorumState,
    read_quorum_state,
    write_quorum_state,
)


def test_j05_writing_leaves_no_temporary_file_and_clearing_leaves_none(tmp_path: Path) -> None:
    path = tmp_path / QUORUM_STATE_NAME
    assert read_quorum_state(path) is None
    first = QuorumState(leader_id=1, leader_epoch=4, data_version=1)
    second = QuorumState(leader_epoch=5, voted_id=3, current_voters=(1, 2, 3), data_version=0)
    for state in (first, second):
        write_quorum_state(path, state)
        assert read_quorum_state(path) == state
        assert [each.name for each in tmp_path.iterdir()] == [QUORUM_STATE_NAME]
    path.unlink()
    assert read_quorum_state(path) is None
    assert list(tmp_path.iterdir()) == []
