"""Other machines: executors without this project, and paths of Hadoop's file systems."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from minicluster.errors import UserError
from minicluster.verify import Verdict, verify, views
from minicluster.verify.spark import travel
from minicluster.verify.spark.data_source import KraftDataSource
from tests.verify.examples.controller import c6_near
from tests.verify.handwritten.log import change, cluster
from tests.verify.long_log import write_long_log

pytestmark = pytest.mark.spark

LIMIT_S = 300.0

# Executors begin elsewhere, with a Python that finds no minicluster but the one sent to it.
_SCRIPT = """
import os, sys
sys.path.insert(0, sys.argv[2])
from minicluster.verify import register, verify
from minicluster.verify.spark import session
spark = session.spark_session(**{sys.argv[3]: sys.argv[4]})
def home(_):
    import minicluster
    return minicluster.__file__
report = verify(sys.argv[1], spark=spark, rules=["E10", "E11"])
register(spark)
print(report.verdict, [finding.rule for finding in report.findings])
print(spark.read.format("kraft").load(sys.argv[1]).count())
from minicluster.verify.evidence.reading import named_paths
from minicluster.verify.rules.every import RULES
from minicluster.verify.spark import pipeline
from minicluster.verify.spark.judging_worker import Task
named = named_paths([sys.argv[1], sys.argv[5]])
for judged in pipeline.judge_in_spark(spark, named, Task.of(RULES)):
    print(judged.run.extent.records, [f.rule for t in judged.tallies.values() for f in t.findings])
if sys.argv[3] == "master":
    homes = spark.sparkContext.parallelize(range(4), 4).map(home).collect()
    assert all(".zip" in one for one in homes), homes
"""


@pytest.fixture
def hadoop(tmp_path: Path, spark: Any) -> str:
    """A mount of Hadoop's, which Arrow does not open without Hadoop's native library."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set(f"fs.viewfs.mounttable.{tmp_path.name}.link./here", f"file://{tmp_path}")
    return f"viewfs://{tmp_path.name}/here"


def test_a_path_of_hadoops_is_copied_and_judged(tmp_path: Path, spark: Any, hadoop: str) -> None:
    cluster().op(change((2, 3))).write(tmp_path / "log")
    report = verify(f"{hadoop}/log", rules=["E10"])

    assert [finding.rule for finding in report.findings] == ["E10"]
    assert report.around(report.findings[0])


def test_a_folder_of_runs_on_a_path_of_hadoops_is_one_job_and_has_views(
    tmp_path: Path, spark: Any, hadoop: str
) -> None:
    for name in ("one", "two"):
        c6_near().write(tmp_path / "runs" / name)
    report = verify(f"{hadoop}/runs", rules=["C6"])
    records = views(spark, f"{hadoop}/runs/one")["records"]

    assert [run.verdict for run in report.each] == [Verdict.VALID, Verdict.VALID]
    assert records.count() == report.runs[0].records


def test_the_data_source_names_the_way_to_read_a_path_of_hadoops(hadoop: str) -> None:
    with pytest.raises(UserError, match=f"{hadoop}: Arrow has no file system for it; views"):
        KraftDataSource({"path": hadoop}).reader(StructType()).partitions()


def test_a_scheme_of_no_file_system_is_one_line(spark: Any) -> None:
    with pytest.raises(UserError, match='cannot be read: No FileSystem for scheme "nothing"'):
        verify("nothing://log", rules=["E10"])


def test_a_path_of_hadoops_that_is_not_there_is_one_line(spark: Any, hadoop: str) -> None:
    with pytest.raises(UserError, match="nowhere: cannot be read: ") as raised:
        verify(f"{hadoop}/nowhere", rules=["E10"])

    assert "\n" not in str(raised.value)


def test_sources_alone_of_the_compiled_wheel_go_to_executors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python imports no native code from an archive."""
    (tmp_path / "minicluster").mkdir()
    for name in ("machine.py", f"machine{EXTENSION_SUFFIXES[0]}"):
        (tmp_path / "minicluster" / name).touch()
    monkeypatch.setattr(travel, "_PACKAGE", tmp_path / "minicluster")

    with zipfile.ZipFile(travel._archive(tmp_path)) as archive:
        assert archive.namelist() == ["minicluster/machine.py", "mypy_extensions.py"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark's own launcher needs a Java")
@pytest.mark.parametrize(
    ("how", "where"), [("master", "local-cluster[2,1,1024]"), ("remote", "local[2]")]
)
def test_executors_and_a_connect_server_need_not_have_the_project(
    how: str, where: str, tmp_path: Path
) -> None:
    """PySpark starts a server of Spark Connect for a remote that is no address."""
    if how == "remote":
        pytest.importorskip("grpc", reason="Spark Connect needs pyspark[connect]")
    root = Path(__file__).parents[2]
    log = cluster().op(change((2, 3))).write(tmp_path / "log")
    longer = write_long_log(25_000, tmp_path / "longer")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    errors, printed = tmp_path / "stderr", tmp_path / "stdout"
    with errors.open("w") as stderr, printed.open("w") as stdout:
        process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, str(log), str(root), how, where, str(longer)],
            stdout=stdout,
            stderr=stderr,
            cwd=tmp_path,
            env=environment,
            start_new_session=True,
        )
        try:
            code = process.wait(LIMIT_S)
        finally:
            with suppress(ProcessLookupError):  # a server and executors that outlive it
                os.killpg(process.pid, signal.SIGKILL)

    assert code == 0, errors.read_text()[-3_000:]
    verdict, rows, short, long = printed.read_text().splitlines()
    assert verdict == "invalid ['E10']"
    assert int(rows) > 10
    assert short.endswith(" ['E10']")
    assert re.fullmatch(r"2\d{4} \[\]", long)
