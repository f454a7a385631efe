"""The process that becomes Spark's daemon of workers, without Spark."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from minicluster.own_folders import temporary_folder
from minicluster.verify.spark.early_workers import EarlyWorkers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has early workers")
DAEMON = ["-m", "pyspark.daemon", "pyspark.worker"]
LIMIT_S = 120.0

_KEY = """
from hashlib import sha256
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify.rules import RULES
from minicluster.verify.spark.fold_job import Task
print(sha256(Task(RULES, DEFAULT_LIMITS).pickled()).hexdigest())
"""


@pytest.fixture
def early() -> Iterator[EarlyWorkers]:
    with temporary_folder("test") as folder:
        found = EarlyWorkers.started(folder.path)
        assert found is not None
        yield found
        found.close()


def started_by_spark(early: EarlyWorkers, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHON_WORKER_FACTORY_SECRET": "secret"}
    return subprocess.Popen(
        [str(early.python), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )


def test_it_becomes_the_daemon_and_ends_when_spark_closes_its_stream(early: EarlyWorkers) -> None:
    with started_by_spark(early, *DAEMON) as spark:
        assert spark.stdout is not None and spark.stdin is not None
        (port,) = struct.unpack(">i", spark.stdout.read(4))
        assert early._process.poll() is None
        spark.stdin.close()

        assert spark.wait(LIMIT_S) == 0
        assert early._process.wait(LIMIT_S) == 0
    assert port > 0


def test_where_it_is_gone_spark_gets_the_python_that_it_wanted(early: EarlyWorkers) -> None:
    early.close()
    with started_by_spark(early, "-c", "print('the usual one')") as spark:
        assert spark.communicate(timeout=LIMIT_S)[0] == b"the usual one\n"


def test_it_ends_with_its_maker_when_spark_never_came(early: EarlyWorkers) -> None:
    assert early._process.stdin is not None
    early._process.stdin.close()

    assert early._process.wait(LIMIT_S) == 0


def test_another_python_that_the_user_wants_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(shutil.which("sh")))

    assert EarlyWorkers.started(tmp_path) is None


def test_the_usual_task_is_the_same_bytes_in_each_process() -> None:
    """Else the workers would compile the rules a second time."""
    found = {
        subprocess.run(
            [sys.executable, "-c", _KEY],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(found) == 1
