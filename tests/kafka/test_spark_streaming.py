"""Spark's own Kafka source and sink, on a cluster: the example, as its reader runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kafka.jars import CONNECTOR_VERSION, spark_jars

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_streaming.py"
LIMIT_S = 600


@pytest.mark.skipif(not spark_jars(), reason="no connector of Spark: python -m tests.kafka fetch")
def test_a_pipeline_ships_each_committed_order_once() -> None:
    jars = ",".join(str(jar) for jar in spark_jars())
    ended = subprocess.run(
        [sys.executable, EXAMPLE, "--jars", jars],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert "shipped: TEA, CAKE, COFFEE" in ended.stdout
    assert f':{CONNECTOR_VERSION}"' in EXAMPLE.read_text(encoding="utf-8")
