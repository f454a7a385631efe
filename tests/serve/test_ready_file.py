"""The ready file: whole or absent, for its user alone, found by an address."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from minicluster.actors.serve.ready_file import (
    NotOne,
    ReadyFile,
    place_of_user,
    read_ready_file,
    serving_at,
    serving_clusters,
    serving_from,
    serving_into,
)
from minicluster.errors import UserError
from minicluster.values import replace

READY = ReadyFile(
    name="shop",
    directory="/shop",
    bootstrap_servers="127.0.0.1:9092,127.0.0.1:9093",
    control="127.0.0.1:4711",
    token="token",
    pid=os.getpid(),
    runs="/runs",
    run="/runs/serve-1",
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = place_of_user()
    assert folder is not None
    return folder


def test_it_is_there_for_a_section_and_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    with READY.at([path]):
        assert read_ready_file(path) == READY
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_another_cluster_in_the_same_place_stays(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    other = replace(READY, token="another")
    with READY.at([path]):
        other.write(path)
    assert read_ready_file(path) == other


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"pid": "x"}', "[" * 10_000, "\x00" * 70_000])
def test_what_is_no_ready_file_is_one_line(content: str, tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text(content)
    with pytest.raises(UserError, match="is not a ready file") as refused:
        read_ready_file(path)
    assert "\n" not in str(refused.value)


def test_no_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file; no cluster serves yet"):
        read_ready_file(tmp_path / "ready.json")


@pytest.mark.parametrize(
    "address", ["127.0.0.1:4711", "localhost:9093", "127.0.0.1:9092", "[::1]:9092"]
)
def test_a_cluster_is_found_by_any_of_its_addresses(place: Path, address: str) -> None:
    with READY.at([place / "1.json"]):
        assert serving_at(address) == READY


def test_without_an_address_only_the_cluster_of_the_directory_or_of_the_runs_is_meant(
    place: Path,
) -> None:
    other = replace(READY, directory="/bank", runs="/bank/runs")
    with READY.at([place / "1.json"]):
        with pytest.raises(NotOne, match="no cluster was started in /bank; name one") as refused:
            serving_from(Path("/bank"))
        assert refused.value.serving == [READY], "the only one that serves, and another project's"
        with pytest.raises(NotOne, match="no cluster leaves its run in /bank/runs"):
            serving_into(Path("/bank/runs"))
        with other.at([place / "2.json"]):
            assert serving_from(Path("/shop")) == READY
            assert serving_from(Path("/bank")) == other
            assert serving_into(Path("/runs")) == READY


def test_several_of_one_directory_are_listed(place: Path) -> None:
    other = replace(READY, bootstrap_servers="127.0.0.1:9192", name="bank")
    elsewhere = replace(READY, directory="/elsewhere")
    with (
        READY.at([place / "1.json"]),
        other.at([place / "2.json"]),
        elsewhere.at([place / "3.json"]),
        pytest.raises(NotOne, match="2 clusters are meant; name one with --at") as refused,
    ):
        serving_from(Path("/shop"))
    assert refused.value.serving == [READY, other]


def test_what_is_not_found_is_one_line(place: Path) -> None:
    with pytest.raises(UserError, match="no cluster of yours serves here"):
        serving_from(Path("/shop"))
    with READY.at([place / "1.json"]):
        with pytest.raises(NotOne, match="no cluster of yours serves there; name one with --at"):
            serving_at("127.0.0.1:9099")
        other = replace(READY, bootstrap_servers="127.0.0.1:9192", control="127.0.0.1:4712")
        with other.at([place / "2.json"]):
            assert serving_at("localhost:9192") == other


def test_the_file_of_a_killed_process_is_removed(place: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    replace(READY, pid=ended.pid).write(place / "1.json")
    (place / "2.json").write_text("garbage")
    assert list(serving_clusters()) == []
    assert not (place / "1.json").exists()


def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    user = tmp_path / f"minicluster-{os.getuid()}"
    user.mkdir(mode=0o777)
    user.chmod(0o777)
    assert place_of_user() is None
    user.rmdir()
    user.symlink_to(tmp_path)
    assert place_of_user() is None
    assert list(serving_clusters()) == []
