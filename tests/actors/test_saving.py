"""A run folder is put in place whole, owns what it wrote, and leaves everything else alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from minicluster import MiniCluster
from minicluster.actors.play.player import run_name
from minicluster.actors.recording.run_place import escaped_name, put_in_place
from minicluster.errors import UserError
from minicluster.scenario import Scenario


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    """An idle cluster, whose saved folder has every file nevertheless."""
    with MiniCluster(brokers=1, controllers=1, seed=1) as started:
        yield started


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_header_lists_the_files_of_the_run(cluster: MiniCluster, tmp_path: Path) -> None:
    run = cluster.save(tmp_path / "run")
    listed = set(json.loads((run / "run.json").read_text())["files"])
    assert files(run) <= listed
    assert listed - files(run) == {"report.html", "report.json"}
    assert os.listdir(tmp_path) == ["run"], "a save leaves nothing beside its folder"


def test_a_users_files_stay_where_they_are(cluster: MiniCluster, tmp_path: Path) -> None:
    run = cluster.save(tmp_path / "run")
    (run / "notes" / "of mine").mkdir(parents=True)
    (run / "notes" / "of mine" / "thesis.txt").write_text("years of work")
    (run / "trace" / "mine.parquet").write_text("mine, too")
    (run / "latest").symlink_to(run / "notes")
    (run / "report.html").write_text("of the run before")
    cluster.save(run)
    assert (run / "notes" / "of mine" / "thesis.txt").read_text() == "years of work"
    assert (run / "trace" / "mine.parquet").read_text() == "mine, too"
    assert (run / "latest").is_symlink()
    assert not (run / "report.html").exists(), "the run before was judged, not this one"


def test_a_folder_of_a_user_is_written_into_and_not_emptied(
    cluster: MiniCluster, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    run = cluster.save(tmp_path / "mine")
    assert {"thesis.txt", "run.json", "controller-101/meta.properties"} <= files(run)


@pytest.mark.parametrize("text", ["{}", "[]", "not json", '{"files": "all"}', '{"files": [null]}'])
def test_a_run_json_of_somebody_else_is_refused(
    cluster: MiniCluster, tmp_path: Path, text: str
) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "run.json").write_text(text)
    with pytest.raises(UserError, match=r"package: its run\.json lists no files of a run"):
        cluster.save(tmp_path / "package")
    assert files(tmp_path / "package") == {"run.json"}


def test_a_file_of_a_user_under_the_name_of_a_runs_file_is_refused(
    cluster: MiniCluster, tmp_path: Path
) -> None:
    (tmp_path / "run" / "controller-101").mkdir(parents=True)
    (tmp_path / "run" / "controller-101" / "meta.properties").write_text("mine")
    with pytest.raises(UserError, match=r"controller-101/meta\.properties: is not a file of a run"):
        cluster.save(tmp_path / "run")
    assert (tmp_path / "run" / "controller-101" / "meta.properties").read_text() == "mine"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "trace").write_text("a file")
    with pytest.raises(UserError, match="trace: is not a file of a run"):
        cluster.save(tmp_path / "other")


def test_a_controller_of_an_earlier_run_does_not_survive(tmp_path: Path) -> None:
    with MiniCluster(brokers=1, controllers=5) as earlier:
        earlier.save(tmp_path / "run")
    with MiniCluster(brokers=1, controllers=3) as later:
        run = later.save(tmp_path / "run")
    assert sorted(path.name for path in run.glob("controller-*")) == [
        "controller-101", "controller-102", "controller-103",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "full",
    [
        OSError(28, "No space left on device", "/of/its/own"),
        OSError("Error writing bytes to file. Detail: [errno 28] No space left on device"),
    ],
    ids=["of the system", "of Arrow"],
)
def test_the_run_before_stays_until_the_new_one_is_whole(
    full: OSError, cluster: MiniCluster, tmp_path: Path
) -> None:
    run = cluster.save(tmp_path / "run")
    before = {name: (run / name).read_bytes() for name in files(run)}

    def fails(folder: Path) -> dict[str, object]:
        (folder / "half").write_text("written")
        raise full

    with pytest.raises(OSError) as raised:
        put_in_place(run, fails)
    assert (raised.value.filename, raised.value.strerror) == (str(run), "No space left on device")
    assert {name: (run / name).read_bytes() for name in files(run)} == before
    assert os.listdir(tmp_path) == ["run"]


SLOW_SAVE = """
import sys, time
from pathlib import Path
from minicluster.actors.recording.run_place import put_in_place

def write(folder):
    (folder / "controller-105").mkdir()
    (folder / "controller-105" / "meta.properties").write_text("of a run that is killed")
    print("writing", flush=True)
    time.sleep(600)

put_in_place(Path(sys.argv[1]), write)
"""


def test_what_a_killed_run_has_written_does_not_survive_beneath_the_next(
    cluster: MiniCluster, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", SLOW_SAVE, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "run").exists()
    run = cluster.save(tmp_path / "run")
    assert not (run / "controller-105").exists()
    assert os.listdir(tmp_path) == ["run"], "what the killed process left is gone"


def test_many_may_save_to_one_place_at_the_same_time(tmp_path: Path) -> None:
    clusters = [MiniCluster(brokers=1, controllers=1 + n, seed=n).start() for n in range(4)]
    errors: list[BaseException] = []

    def save(cluster: MiniCluster) -> None:
        try:
            for _ in range(5):
                cluster.save(tmp_path / "run")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(cluster,)) for cluster in clusters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for cluster in clusters:
        cluster.stop()
    assert not errors
    header = json.loads((tmp_path / "run" / "run.json").read_text())
    assert files(tmp_path / "run") == {*header["files"]} - {"report.html", "report.json"}
    assert len(header["controllers"]) == header["seed"] + 1
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize(
    "run_id", ["../../victim", "a/b", "..", ".", "", "a\\b", "a\nb", "a\0b", "x" * 256, 7]
)
def test_a_run_id_names_a_folder_and_leads_nowhere(run_id: object) -> None:
    with pytest.raises(UserError, match="run_id"):
        MiniCluster(run_id=run_id)  # type: ignore[arg-type]


def test_different_names_make_different_folders() -> None:
    names = [
        "a b", "a-b", "a_b", "A b", "a  b", "a--b", "a%20b", "a%b", "a.b", ".a", "..", ".", "a/b",
        "../a", "ä", "a\N{COMBINING DIAERESIS}", "日本", "名", "", "a\tb", "-1", " 1",
    ]  # fmt: skip
    folders = [escaped_name(name) for name in names]
    assert len({*folders}) == len(names)
    assert all("/" not in folder and not folder.startswith(".") for folder in folders)
    back = str.maketrans({"-": " ", "_": "-"})
    assert [unquote(folder.translate(back)) for folder in folders] == names


def test_seeds_and_faults_are_distinguished_from_names() -> None:
    names = [("a", 12), ("a 1", 2), ("a-1", 2), ("a1", 2)]
    assert len({run_name(Scenario(name=name, seed=seed)) for name, seed in names}) == len(names)


def test_a_name_that_no_folder_can_have_is_refused_before_the_play() -> None:
    with pytest.raises(UserError, match="makes a folder name of 300 bytes"):
        run_name(Scenario(name="x" * 300))


def test_where_the_process_works_and_files_are_no_place(
    cluster: MiniCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="is a file; name a folder"):
        cluster.save(tmp_path / "file")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="is where this process works"):
        cluster.save(".")
    with pytest.raises(UserError, match="at most 255 bytes"):
        cluster.save(tmp_path / ("x" * 300))


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_the_file_system_has_not_is_refused(
    name: str, cluster: MiniCluster, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="no folder can have this name") as refused:
        cluster.save(tmp_path / name)
    assert str(refused.value).isprintable()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("method", ["save", "verify", "ingest", "export"])
def test_where_no_folder_can_be_made_one_line_names_the_path(
    cluster: MiniCluster, method: str
) -> None:
    with pytest.raises(UserError) as refused:
        getattr(cluster, method)("/proc/run")
    what = "save" if method == "verify" else method
    assert str(refused.value).startswith(f"{what}: /proc/run: cannot be written: No such file")
