"""Relative paths in a session of minicluster's own: they mean the folder of the user."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

LOG = Path(__file__).parents[2] / "tests/data/kafka-logs/smoke"
EXPORT = """
from minicluster.verify import spark_session, views

spark = spark_session()
frames = views(spark, "logs/smoke")
frames["records"].write.parquet("records.parquet")
kraft = spark.read.format("kraft").load("logs/smoke")
print(kraft.count(), spark.read.parquet("records.parquet").count())
"""


def test_what_is_exported_to_a_relative_path_is_in_the_users_folder(tmp_path: Path) -> None:
    """Java's own working folder is temporary: a file there would be removed at the end."""
    shutil.copytree(LOG, tmp_path / "logs/smoke")
    done = subprocess.run(
        [sys.executable, "-c", EXPORT], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )

    assert done.returncode == 0, done.stderr
    read, exported = map(int, done.stdout.split())
    assert read >= exported > 0  # kraft has the snapshots as well
    assert list(tmp_path.glob("records.parquet/*.parquet"))
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "records.parquet"}
