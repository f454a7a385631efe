"""``minicluster log`` on a broker's log directory, and on the archive that a run has of it."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from minicluster.cli import broker_logs, run
from minicluster.log.segment import write_segment
from tests.coordinator.groups import Groups

SEGMENT = f"{0:020}.log"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A broker with the log of a group, an empty log of another one, and a topic's."""
    groups = Groups(orders=2)
    groups.heartbeat("a", 0, topics=("orders",))
    path = tmp_path / "broker-1.zip"
    segment = tmp_path / SEGMENT
    write_segment(segment, groups.log.batches)
    with ZipFile(path, "w") as broker:
        broker.write(segment, f"d0/__consumer_offsets-12/{SEGMENT}")
        broker.write(segment, f"d0/__consumer_offsets-3/{SEGMENT}")
        broker.writestr(f"d0/__transaction_state-0/{SEGMENT}", b"")
        broker.writestr(f"d0/orders-0/{SEGMENT}", b"")
    return path


def shown(capfd: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    """The files whose records were printed, and the whole."""
    out, err = capfd.readouterr()
    assert err == ""
    return [line.removeprefix("== ") for line in out.splitlines() if line.startswith("== ")], out


def test_an_archive_shows_the_internal_topics_that_hold_records(
    archive: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["log", str(archive)]) == 0
    files, out = shown(capfd)
    assert files == [f"d0/__consumer_offsets-{n}/{SEGMENT}" for n in (3, 12)]
    assert out.count("ConsumerGroupMetadata v0  groupId=g: epoch=2") == 2
    with ZipFile(archive) as broker:
        broker.extractall(tmp_path / "unpacked")
    assert run(["log", str(tmp_path / "unpacked" / "d0")]) == 0
    assert [f"d0/{file}" for file in shown(capfd)[0]] == files


def test_a_path_leads_into_an_archive(archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = archive / "d0" / "__consumer_offsets-12"
    for path in (folder, folder / SEGMENT):
        assert run(["log", str(path)]) == 0
        files, out = shown(capfd)
        assert files == [SEGMENT] and "groupId=g memberId=a" in out


@pytest.mark.parametrize(
    ("place", "most", "expected"),
    [
        ("d0/__consumer_offsets-1", None, "broker-1.zip: holds nothing at d0/__consumer_offsets-1"),
        ("d0", 10, "broker-1.zip: unpacks to"),
    ],
)
def test_what_an_archive_does_not_hold_is_one_line(
    archive: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    most: int | None,
    expected: str,
) -> None:
    if most is not None:
        monkeypatch.setattr(broker_logs, "UNPACKED_BYTES_MAX", most)
    assert run(["log", str(archive / place)]) == 66
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and expected in err


def test_an_archive_without_records_of_internal_topics_is_named_itself(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The line named the temporary folder into which the archive had been unpacked."""
    path = tmp_path / "broker-1.zip"
    with ZipFile(path, "w") as broker:
        broker.writestr(f"d0/orders-0/{SEGMENT}", b"no records of the metadata" * 9)
        broker.writestr(f"d0/__transaction_state-0/{SEGMENT}", b"")
    for named in (path, path / "d0"):
        assert run(["log", str(named)]) == 66
        expected = f"minicluster: {named}: no log of an internal topic here holds records\n"
        assert capfd.readouterr().err == expected
    with ZipFile(path) as broker:
        broker.extractall(tmp_path / "unpacked")
    assert run(["log", str(tmp_path / "unpacked" / "d0")]) == 66
    assert "d0: no log of an internal topic here holds records" in capfd.readouterr().err
    assert run(["log", str(path / "d0" / "orders-0")]) == 66
    err = capfd.readouterr().err
    assert err.startswith(f"minicluster: {path}/d0/orders-0/{SEGMENT}: not a Kafka log")


def test_a_file_that_is_no_archive_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broker-1.zip"
    path.write_bytes(b"no archive")
    assert run(["log", str(path)]) == 66
    assert f"{path}: is not an archive of a broker" in capfd.readouterr().err
