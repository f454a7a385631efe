"""The session: what it needs of the machine, and what it leaves behind."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from minicluster.verify.spark import jvm, session
from tests.verify.build import cluster

pytestmark = pytest.mark.spark

_SCRIPT = """
import os, sys
from minicluster.verify import verify
from minicluster.verify.spark import jvm, session
print(verify(sys.argv[1], rules=["E10"]).verdict)
print(sorted(name for name in os.environ if name.startswith("PYSPARK_GATEWAY")))
print(session._jvm._process.pid)
spark = session.spark_session()  # a session of SQL over the context that judged
print(spark.sql("select 1").count(), verify(sys.argv[1], rules=["E10"]).verdict)
"""


@pytest.fixture
def report(tmp_path: Path) -> list[str]:
    """The output of a process that finds no Java, no shell and no writable folder."""
    log = cluster().write(tmp_path / "log")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("JAVA_HOME", "SPARK_HOME") and not name.startswith("PYSPARK")
    }
    (tmp_path / "file").write_text("")
    nowhere = {"PATH": str(tmp_path / "empty"), "MINICLUSTER_CACHE": str(tmp_path / "file" / "x")}
    out = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(log)],
        capture_output=True,
        text=True,
        env=environment | nowhere,
        cwd=Path(__file__).parents[2],
    )
    assert out.returncode == 0, out.stderr
    assert out.stderr == ""
    return out.stdout.splitlines()


def test_spark_needs_no_java_on_the_path_and_no_place_to_keep_things(report: list[str]) -> None:
    verdict, inherited, pid, queried = report

    assert (verdict, queried) == ("valid", "1 valid")
    assert inherited == "[]"  # a child of that process would else join its JVM
    assert not Path(f"/proc/{pid}").exists()


def test_the_end_of_the_jvm_prints_no_traceback_of_py4j(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread may release an object of Java at that moment."""
    root, before = logging.getLogger(), list(logging.getLogger().filters)
    monkeypatch.setattr(session, "close", lambda: None)
    monkeypatch.setattr(session, "_jvm", None)
    try:
        session._end()
        logging.exception("Exception while sending command.")
        logging.error("anything else")
    finally:
        root.filters[:] = before

    assert [record.getMessage() for record in caplog.records] == ["anything else"]


def test_a_session_that_the_user_gives_is_used_as_it_is(spark: object) -> None:
    assert session.spark_session(spark) is spark  # type: ignore[arg-type]
    assert session.spark_session() is spark


def test_local_users_cannot_join_the_session_without_its_secret(spark: Any) -> None:
    settings = spark.sparkContext.getConf()

    assert settings.get("spark.authenticate") == "true"
    assert settings.get("spark.driver.bindAddress") == "127.0.0.1"


def test_a_session_that_cannot_be_reached_is_one_clear_line() -> None:
    with pytest.raises(jvm.SparkUnavailable) as raised:
        session.spark_session(remote="sc://127.0.0.1:1")

    assert str(raised.value).startswith("Spark: ")
    assert "\n" not in str(raised.value)


def test_an_old_lock_does_not_stop_the_archive_for_ever(tmp_path: Path) -> None:
    archive = tmp_path / "a.aot"
    lock = tmp_path / "a.aot.lock"

    assert jvm._only_one_trains(archive)
    assert not jvm._only_one_trains(archive)
    os.utime(lock, (1, 1))
    assert jvm._only_one_trains(archive)


def test_what_a_killed_process_left_of_an_archive_goes(tmp_path: Path) -> None:
    names = ("spark-java25-a.aot.7", "spark-java25-a.aot.7.config", "spark-java25-a.aot.8")
    for name in (*names, "spark-java25-a.aot", "spark-java25-a.aot.lock"):
        (tmp_path / name).touch()
    for old in names[:2]:
        os.utime(tmp_path / old, (1, 1))

    jvm._keep_newest(tmp_path)

    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["spark-java25-a.aot", "spark-java25-a.aot.8", "spark-java25-a.aot.lock"]


def test_the_archive_of_java_can_be_switched_off_and_few_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def options() -> tuple[list[str], Path | None, bool]:
        return jvm._archive_options(Path("java"), 21, tmp_path, training=True)

    monkeypatch.setenv("MINICLUSTER_CACHE", "off")
    assert options() == ([], None, False)
    monkeypatch.setenv("MINICLUSTER_CACHE", str(tmp_path))
    for number in range(4):
        old = tmp_path / f"spark-java17-{number}.jsa"
        old.write_text("of another Java")
        os.utime(old, (number, number))
    written, archive, trains = options()
    assert archive is not None and archive.parent == tmp_path and written and trains
    kept = sorted(path.name for path in tmp_path.glob("spark-*.jsa"))
    assert kept == ["spark-java17-2.jsa", "spark-java17-3.jsa"], "the newest"


def test_what_the_first_run_leaves_behind_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    class Training:
        trains = True
        archive = Path("/home/user/.cache/minicluster/spark-java21.jsa")

    monkeypatch.setattr(session, "_jvm", Training())
    note = session.archive_note()
    assert note is not None and "/home/user/.cache/minicluster" in note
    assert "MINICLUSTER_CACHE=off" in note
    monkeypatch.setattr(session, "_jvm", None)
    assert session.archive_note() is None


@pytest.mark.parametrize(
    ("master", "environment", "why"),
    [
        ("foo", {}, "'foo' is no master; write local[2], local-cluster[2,1,1024], spark://"),
        ("yarn", {}, "there is no java on the PATH; set JAVA_HOME"),
        ("spark://h:1", {"JAVA_HOME": "/none"}, "/none/bin/java: there is no such program"),
    ],
)
def test_a_master_that_cannot_be_used_is_one_line(
    master: str, environment: dict[str, str], why: str, tmp_path: Path
) -> None:
    log = cluster().write(tmp_path / "log")
    kept = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "SPARK_HOME")}
    done = subprocess.run(
        [sys.executable, "-m", "minicluster", "verify", str(log), "--master", master],
        capture_output=True,
        text=True,
        env={**kept, "PATH": str(tmp_path / "empty"), **environment},
        cwd=Path(__file__).parents[2],
    )

    assert (done.returncode, done.stdout) == (69, "")
    assert why in done.stderr and done.stderr.count("\n") == 1
