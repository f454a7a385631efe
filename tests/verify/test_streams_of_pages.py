"""What the pages say about streams, as their reader runs it.

Spark's connector for Kafka is not there: ``tests/kafka`` runs the example with it.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.errors import UserError
from minicluster.log.segment import segment_name, write_segment
from minicluster.verify import follow_findings
from tests.verify.handwritten.log import change, cluster

DOCS = Path(__file__).parents[2] / "docs"
STREAMING = (DOCS / "guide.md").read_text().partition("## Spark Structured Streaming")[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (DOCS / "verifying.md").read_text(), re.DOTALL)
[FINDINGS] = (block for block in BLOCKS if "follow_findings(" in block)
LIMIT_S = 120.0


def test_what_the_page_does_to_a_cluster_can_be_done() -> None:
    calls = re.findall(r"`(cluster\.\w+\(.*?\))`", STREAMING)
    assert len(calls) == 3
    for call in calls:
        with MiniCluster() as mini_cluster:
            orders = mini_cluster.create_topic("orders", partitions=3, replicas=3, min_isr=2)
            exec(call, {"cluster": mini_cluster, "orders": orders})
            assert mini_cluster.verify(engine="process").valid, call


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_page_judges_a_growing_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over a batch that is still being written, and a new segment."""
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "kraft-logs" / "__cluster_metadata-0"
    home.mkdir(parents=True)
    log = cluster()
    write_segment(home / segment_name(0), log.batches)
    names: dict[str, Any] = {}
    exec(FINDINGS, names)
    query = names["query"]
    try:
        query.processAllAvailable()
        (grown,) = log.op(change((2, 3))).batches[-1:]
        segment = home / segment_name(grown.base_offset)
        segment.write_bytes(grown.encoded[:40])
        query.processAllAvailable()
        assert capsys.readouterr().out == ""
        with segment.open("ab") as file:
            file.write(grown.encoded[40:])
        limit, printed = time.monotonic() + LIMIT_S, ""
        while not printed:
            assert query.isActive and time.monotonic() < limit, query.exception()
            query.processAllAvailable()
            printed = capsys.readouterr().out
    finally:
        query.stop()

    assert printed.startswith(f"Row(run='kraft-logs', rule='E10', offset={grown.base_offset}, ")
    assert printed.count("\n") == 1


def test_a_client_of_spark_connect_follows_no_log() -> None:
    """It would wait for findings that only the server prints."""
    with pytest.raises(UserError, match="its functions run on the server"):
        follow_findings(object(), "kraft-logs", lambda found: None)  # type: ignore[arg-type]
