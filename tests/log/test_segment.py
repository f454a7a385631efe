"""A torn tail is truncated and reported; damage in the middle is an error with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.log.batch import RecordBatch, metadata_batch
from minicluster.log.checkpoint import (
    Snapshot,
    checkpoint_name,
    encode_snapshot,
    parse_checkpoint_name,
    read_checkpoint,
)
from minicluster.log.directory import read_metadata_log
from minicluster.log.errors import LogCorruption, LogError, NotALog
from minicluster.log.locating import locate
from minicluster.log.segment import read_piece, read_segment, segment_name, write_segment
from minicluster.protocol.records import (
    FeatureLevelRecord,
    KRaftVersionRecord,
    NoOpRecord,
    VersionedRecord,
)

NO_OP = VersionedRecord(NoOpRecord(), 0)


def some_batches(count: int = 4, start: int = 0) -> list[RecordBatch]:
    return [metadata_batch(start + 2 * i, 1, 1_000 + i, [NO_OP, NO_OP]) for i in range(count)]


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / segment_name(0)
    write_segment(path, some_batches())
    return path


def test_a_torn_tail_is_reported(segment: Path) -> None:
    whole = segment.read_bytes()
    last = some_batches()[-1]
    segment.write_bytes(whole[:-5])

    content = read_segment(segment)

    assert [p.batch.base_offset for p in content.batches] == [0, 2, 4]
    assert content.torn is not None
    assert (content.torn.position, content.torn.lost_bytes) == (
        len(whole) - last.size,
        last.size - 5,
    )
    assert "torn tail" in str(content.torn) and "log end 6" in str(content.torn)


def test_a_damaged_last_batch_is_a_torn_tail(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    data[-1] ^= 0xFF
    segment.write_bytes(data)
    torn = read_segment(segment).torn
    assert torn is not None and "checksum" in torn.why


def test_zeros_after_the_last_batch_are_a_torn_tail(segment: Path) -> None:
    segment.write_bytes(segment.read_bytes() + bytes(4096))
    torn = read_segment(segment).torn
    assert torn is not None and torn.lost_bytes == 4096


@pytest.mark.parametrize("at", [8, 16, 30, 70])
def test_damage_in_the_middle_names_file_batch_and_place(segment: Path, at: int) -> None:
    second = some_batches()[0].size
    data = bytearray(segment.read_bytes())
    data[second + at] ^= 0x55
    segment.write_bytes(data)
    with pytest.raises(LogCorruption) as caught:
        read_segment(segment)
    error = caught.value
    assert (error.position, error.base_offset) == (second, 2)
    assert str(segment) in str(error) and "\n" not in str(error)


@pytest.mark.parametrize("start", [2, 5])
def test_a_batch_that_repeats_offsets_is_damage(start: int, tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    again = some_batches(2, start=start)
    write_segment(path, [*some_batches(3), *again, *some_batches(2, start=20)])
    with pytest.raises(LogCorruption, match=f"offset {start} comes after 5"):
        read_segment(path)


def test_a_wrong_base_offset_is_damage_though_all_later_offsets_are_below_it(
    segment: Path,
) -> None:
    """No checksum covers a base offset; as a torn tail the good batches behind it were dropped."""
    data = bytearray(segment.read_bytes())
    second = some_batches()[0].size
    data[second + 1] ^= 0x55
    segment.write_bytes(data)
    with pytest.raises(LogCorruption, match="offset 4 comes after"):
        read_segment(segment)


def test_a_piece_whose_only_batch_is_no_batch_is_damaged_where_the_file_has_others(
    segment: Path,
) -> None:
    """The first piece of a long log says the same of it as who reads the whole file."""
    data = bytearray(segment.read_bytes())
    data[16] ^= 0xFF  # the magic of the first batch
    segment.write_bytes(data)
    with pytest.raises(LogCorruption) as of_the_file:
        read_segment(segment)
    with pytest.raises(LogCorruption) as of_the_piece:
        read_piece(segment, 0, some_batches()[0].size, whole=True)
    assert str(of_the_piece.value) == str(of_the_file.value)


@pytest.mark.parametrize("noise", [b"hello", b"\x00" * 300, b"\x02" * 300, b"PK\x03\x04" * 50])
def test_a_file_that_is_no_log_is_called_that(tmp_path: Path, noise: bytes) -> None:
    path = tmp_path / "file.log"
    path.write_bytes(noise)
    with pytest.raises(NotALog, match="not a Kafka log"):
        read_segment(path)


def test_paths_that_hold_nothing_get_one_clear_line(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    nothing = tmp_path / "nothing.log"
    nothing.touch()
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("x")
    for path, message in (
        (tmp_path / "gone", "there is no such file or folder"),
        (empty, "is empty"),
        (nothing, "the file is empty"),
        (other, "holds no metadata log"),
    ):
        with pytest.raises(NotALog, match=message) as caught:
            locate(path)
        assert "\n" not in str(caught.value)


def test_a_gap_between_segments_is_damage(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    write_segment(folder / segment_name(0), some_batches(2))
    write_segment(folder / segment_name(6), some_batches(2, start=6))
    with pytest.raises(LogCorruption, match="the segment before ends at offset 4"):
        read_metadata_log(locate(folder).logs[0])


def test_a_torn_tail_before_the_last_segment_is_damage(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    first = folder / segment_name(0)
    write_segment(first, some_batches(2))
    first.write_bytes(first.read_bytes()[:-3])
    write_segment(folder / segment_name(4), some_batches(2, start=4))
    with pytest.raises(LogCorruption):
        read_metadata_log(locate(folder).logs[0])


def test_a_snapshot_reads_back_in_batches_of_1024(tmp_path: Path) -> None:
    records = tuple(
        VersionedRecord(FeatureLevelRecord(name=f"f{i}", feature_level=i % 9), 0)
        for i in range(2_500)
    )
    control = (KRaftVersionRecord(version=0, kraft_version=1),)
    snapshot = Snapshot(records, last_contained_log_timestamp=77, control=control)
    path = tmp_path / checkpoint_name((4711, 3))
    path.write_bytes(encode_snapshot(snapshot, epoch=3, timestamp_ms=99))

    assert read_checkpoint(path) == snapshot
    assert parse_checkpoint_name(path.name) == (4711, 3)
    counts = [p.batch.count for p in read_segment(path).batches]
    assert counts == [2, 1024, 1024, 452, 1]


def test_a_snapshot_without_its_footer_is_damaged(tmp_path: Path) -> None:
    snapshot = Snapshot((NO_OP,), last_contained_log_timestamp=0)
    data = encode_snapshot(snapshot, epoch=1, timestamp_ms=1)
    path = tmp_path / checkpoint_name((10, 1))
    footer = 75
    path.write_bytes(data[:-footer])
    with pytest.raises(LogCorruption, match="footer"):
        read_checkpoint(path)
    path.write_bytes(data[:-5])
    with pytest.raises(LogCorruption):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"data_version": 1, "leaderId": 1}', "leaderEpoch is missing"),
        ('{"data_version": 9}', "data_version 9"),
        ('{"data_version": 0, "leaderId": "x", "leaderEpoch": 1}', "a field does not have"),
    ],
)
def test_a_damaged_quorum_state_is_an_error_that_names_the_damage(
    tmp_path: Path, text: str, message: str
) -> None:
    from minicluster.log.quorum_state import read_quorum_state

    path = tmp_path / "quorum-state"
    path.write_text(text)
    with pytest.raises(LogError, match=message):
        read_quorum_state(path)


def test_a_segment_that_a_crash_tore_in_its_first_batch_holds_nothing_yet(tmp_path: Path) -> None:
    home = tmp_path / "__cluster_metadata-0"
    home.mkdir()
    write_segment(home / segment_name(0), some_batches())
    [begun] = some_batches(1, start=8)
    (home / segment_name(8)).write_bytes(begun.encoded[:-3])

    content = read_metadata_log(locate(tmp_path).logs[0])

    assert [placed.batch.base_offset for placed in content.batches] == [0, 2, 4, 6]
    assert content.torn is not None and content.torn.lost_bytes == begun.size - 3
