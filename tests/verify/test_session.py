"""The session: what it needs of the machine, and what it leaves behind."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from minicluster.verify.spark import jvm, session
from tests.java import java
from tests.verify.handwritten.log import change, cluster

pytestmark = pytest.mark.spark

_LOG = Path(__file__).parents[2] / "tests/data/kafka-logs/smoke"
_SCRIPT = """
import os
from minicluster.cli import run
from minicluster.verify.spark import session
spark = session.spark_session()
spark.read.format("kraft").load("logs/smoke").write.parquet("records.parquet")
code = run(["verify", "logs/smoke", "--format", "json"])
print(code, [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")])
print(session._jvm._process.pid)
print(session.spark_session() is spark)  # which has judged
java = spark.sparkContext._jvm.System
print(java.getProperty("java.io.tmpdir") == str(session._jvm.folder))
"""


def test_a_process_needs_no_java_on_the_path_and_works_in_the_users_folder(tmp_path: Path) -> None:
    """It finds neither Java nor bash, whose scripts start Spark otherwise.

    Java's own working folder is removed at the end.
    """
    home, path = tmp_path / "home", tmp_path / "path"
    shutil.copytree(_LOG, home / "logs" / "smoke")
    path.mkdir()
    for name in ("chmod", "sh"):  # Hadoop writes files with one, Spark looks Python up by the other
        (path / name).symlink_to(str(shutil.which(name)))
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("JAVA_HOME", "SPARK_HOME") and not name.startswith("PYSPARK")
    }
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        capture_output=True,
        text=True,
        env=environment | {"PATH": str(path)},
        cwd=home,
        timeout=300,
    )

    assert (done.returncode, done.stderr) == (0, "")
    *printed, inherited, pid, is_one_session, unpacks_in_its_folder = done.stdout.splitlines()
    assert json.loads("\n".join(printed))["verdict"] == "valid"
    assert inherited == "0 []"  # a child of that process would else join its JVM
    assert not Path(f"/proc/{pid}").exists()
    assert is_one_session == "True"
    assert unpacks_in_its_folder == "True"  # libraries, which a Java that is killed leaves behind
    assert pq.read_table(home / "records.parquet").num_rows > 0
    assert {file.name for file in home.iterdir()} == {"logs", "records.parquet"}


def test_a_call_that_is_cut_off_prints_no_traceback_of_py4j(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its thread may release an object of Java when the JVM ends, or be interrupted by Ctrl-C."""
    root, before = logging.getLogger(), list(logging.getLogger().filters)
    try:
        session._end_with_this_process()
        logging.exception("Exception while sending command.")
        logging.exception("KeyboardInterrupt while sending command.")
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


def test_a_java_that_does_not_start_tells_its_last_reason(tmp_path: Path) -> None:
    """Lines that begin with a tab are of a traceback, its "... 32 more" as well."""
    java = tmp_path / "java"
    java.write_text(
        """#!/bin/sh
        printf 'Exception in main\\n\\tat A.b\\nCaused by: too few files\\n\\t... 32 more\\n'
        """
    )
    java.chmod(0o755)
    started = jvm.Jvm(java)

    with pytest.raises(jvm.SparkUnavailable, match=r"did not start: Caused by: too few files$"):
        started.connection()
    started.kill()


@pytest.mark.parametrize(
    ("master", "environment", "why"),
    [
        ("foo", {}, "'foo' is not a master; write local[2], local-cluster[2,1,1024], spark://"),
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


_OWN_SESSION = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").getOrCreate()
from minicluster.errors import UserError
from minicluster.verify import as_of, register, views
frames = views(spark, sys.argv[1])
print(frames["records"].count(), frames["elections"].count())
print(as_of(frames, "1500ms").count())
for moment in ("garbage", "0ms"):
    try:
        as_of(frames, moment)
    except UserError as error:
        print(error)
register(spark)
print(spark.read.format("kraft").load(sys.argv[1]).count())
"""


@pytest.mark.slow
@pytest.mark.skipif(java() is None, reason="there is no Java on the path")
def test_a_session_of_ones_own_runs_this_python(tmp_path: Path) -> None:
    """In a notebook the environment is not activated: ``python3`` is another, without packages."""
    log = cluster().fence(3, change((1, 2)))
    path = log.write(tmp_path / "log")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK")}
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 3\n")
    other.chmod(0o700)

    out = subprocess.run(
        [sys.executable, "-c", _OWN_SESSION, str(path)],
        capture_output=True,
        text=True,
        env=environment | {"PATH": f"{other.parent}:{os.environ['PATH']}"},
        cwd=Path(__file__).parents[2],
    )

    assert out.returncode == 0, out.stderr
    counts, states, garbage, early, read = out.stdout.splitlines()
    assert (counts, states) == (f"{log.offset} 0", "1")
    assert "'garbage' is no time since the start of the run, such as 90s" in garbage
    assert "is before the first partition; the log goes from 1." in early
    assert read == str(log.offset)
