"""Temporary folders go with their process, or with the next one where it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from minicluster import own_folders
from minicluster.own_folders import OwnFolder, temporary_folder

ROOT = Path(__file__).parents[2]
MAKER = """
import sys
from pathlib import Path
from minicluster.own_folders import OwnFolder
own = OwnFolder(Path(sys.argv[1]), "some-")
(own.path / "file").write_text("content")
print(own.path, flush=True)
sys.stdin.read()
"""


def maker(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """Another process that has made a folder and waits."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", MAKER, str(parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def unlock(own: OwnFolder) -> None:
    if own.descriptor is not None:
        os.close(own.descriptor)
        own.descriptor = None


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
def test_the_folder_of_a_killed_process_goes_and_that_of_a_live_one_stays(tmp_path: Path) -> None:
    killed, left = maker(tmp_path)
    alive, kept = maker(tmp_path)
    other = tmp_path / "another"
    other.mkdir()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert left.is_dir()

    with OwnFolder(tmp_path, "some-") as next_one:
        assert next_one.path.is_dir()

    assert not left.exists()
    assert (kept / "file").is_file() and other.is_dir()
    alive.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
def test_a_folder_stays_while_a_child_of_a_killed_process_has_its_lock(tmp_path: Path) -> None:
    """Java works on in its folder after the end of the process that has started it."""
    own = OwnFolder(tmp_path, "some-")
    assert own.descriptor is not None
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(own.descriptor,))
    unlock(own)

    OwnFolder(tmp_path, "some-").cleanup()
    assert own.path.is_dir()

    child.communicate()
    OwnFolder(tmp_path, "some-").cleanup()
    assert not own.path.exists()


def test_a_temporary_folder_goes_with_its_use_and_sweeps_what_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first = temporary_folder("run")
    unlock(first)  # as its process's death does

    with temporary_folder("run") as second:
        assert second.path.is_dir()
        assert list(tmp_path.iterdir()) == [second.path]

    assert not list(tmp_path.iterdir())


def test_a_folder_that_was_taken_for_abandoned_before_its_lock_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []

    lock = own_folders._lock

    def late(folder: Path, *, wait: bool = True) -> int | None:
        if not taken:
            taken.append(folder)
            folder.rmdir()
        return lock(folder, wait=wait)

    monkeypatch.setattr(own_folders, "_lock", late)

    with OwnFolder(tmp_path, "some-") as own:
        assert own.path.is_dir() and own.path != taken[0]


def test_two_threads_may_remove_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is closed once: its number may be another file's by the second time."""
    own = OwnFolder(tmp_path, "some-")
    unlock_, others = own_folders._unlock, [own]

    def meanwhile(descriptor: int | None) -> None:
        if others:
            others.pop().cleanup()
        unlock_(descriptor)

    monkeypatch.setattr(own_folders, "_unlock", meanwhile)
    own.cleanup()
    assert not own.path.exists()
