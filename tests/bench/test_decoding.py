"""Decoding of a metadata log, beside the tool of Apache Kafka that prints one.

Both in processor time, on the same log. Kafka's Java starts and loads its classes first, which a
run over a short log shows and which is taken off. Its compiler works on a thread of its own.
"""

from __future__ import annotations

import resource
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from minicluster.log.locating import locate
from minicluster.log.segment import read_segment
from minicluster.verify.spark.rows import COLUMNS, Rows
from tests.bench.fixed_work import fixed_work
from tests.java import java
from tests.kafka.jars import jars_folder, missing
from tests.verify.long_log import write_long_log

RECORDS = 100_000


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(RECORDS, tmp_path_factory.mktemp("long"))


def written(records: int, folder: Path) -> Path:
    """The one segment of a log of so many records."""
    (log,) = locate(write_long_log(records, folder / "controller-101")).logs
    (file,) = log.segments
    return file


def ours(segment: Path, *, with_json: bool) -> float:
    """Processor seconds of one core for every typed column, and for the record's JSON besides."""
    begun = time.process_time()
    batches = [placed.batch for placed in read_segment(segment, whole=True).batches]
    wanted = [name for name, _, _ in COLUMNS if with_json or name not in ("data", "key")]
    rows = sum(part.num_rows for part in Rows(wanted).of(batches, file=segment.name))
    assert rows > RECORDS
    return time.process_time() - begun


def rates(segment: Path) -> dict[str, int]:
    """Records per second of one core."""
    return {
        "typed_columns_per_s": round(RECORDS / ours(segment, with_json=False)),
        "with_json_per_s": round(RECORDS / ours(segment, with_json=True)),
    }


def dumped(segment: Path) -> float:
    """Processor seconds of Kafka's tool over a segment, from the start of its Java to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [
            str(java()),
            "-XX:+UseSerialGC",
            "-cp",
            f"{jars_folder()}/*",
            "org.apache.kafka.tools.DumpLogSegments",
            "--cluster-metadata-decoder",
            "--files",
            str(segment),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert '"type":"PARTITION_CHANGE_RECORD"' in done.stdout
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.slow
def test_decoding_into_columns(benchmark: Any, segment: Path) -> None:
    benchmark.extra_info.update(benchmark.pedantic(lambda: rates(segment), rounds=1))
    benchmark.extra_info["fixed_work_s"] = fixed_work()
    assert benchmark.extra_info["with_json_per_s"] > 1_000


@pytest.mark.kafka
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_decoding_beside_the_tool_of_apache_kafka(
    benchmark: Any, segment: Path, tmp_path: Path
) -> None:
    start = dumped(written(1_000, tmp_path))
    theirs = benchmark.pedantic(lambda: dumped(segment), rounds=1) - start
    benchmark.extra_info.update(
        rates(segment),
        kafka_per_s=round(RECORDS / theirs),
        kafka_start_s=round(start, 2),
        fixed_work_s=fixed_work(),
    )
    assert theirs > 0
