"""Verification: cold as a whole process, warm in one session, many runs in one job, rates.

A cold run is a new process from its start to the verdict; the bounds are far above what an idle
machine needs. Every row has the processor time of all its processes, Java and Python's workers
among them, and fixed work beside it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from minicluster.actors.play.player import play
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.scenario import load_scenario
from minicluster.verify import register, verify
from minicluster.verify.log_rows import Item
from minicluster.verify.rules.every import RULES
from minicluster.verify.spark import session
from minicluster.verify.spark.judging_worker import Task, judge_rows
from tests.bench.fixed_work import fixed_work
from tests.verify.examples.controller import c6_near
from tests.verify.in_pipeline import scanned
from tests.verify.long_log import write_long_log

pytestmark = [pytest.mark.slow, pytest.mark.spark]

LONG = 100_000
LONGER = 1_000_000
MANY = 1_000
COLD_LIMIT_S = 300.0  # twenty jobs may share the cores
_COLD = "import sys; from minicluster.verify import verify; print(verify(sys.argv[1]).verdict)"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return c6_near().write(tmp_path_factory.mktemp("small") / "run")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_long_log(LONG, tmp_path_factory.mktemp("long") / "controller-101")


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_long_log(LONGER, tmp_path_factory.mktemp("longer") / "controller-101")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with its whole trace."""
    story = Path(__file__).parents[2] / "examples/fenced_follower.yaml"
    return play(load_scenario(story), runs=tmp_path_factory.mktemp("runs")).path


def load() -> float:
    """The number of processes that wanted a core in the last minute."""
    return round(os.getloadavg()[0], 1)


def processor_s() -> float:
    """Processor seconds of this process, of the JVM, and of the workers that it has started."""
    ticks = 0
    session_of_java = None if session._jvm is None else session._jvm._process.pid
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session_of_java:
                ticks += sum(map(int, fields[11:15]))  # of its dead children, too
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def cold(path: Path) -> float:
    started = time.perf_counter()
    out = subprocess.run(
        [sys.executable, "-c", _COLD, str(path)], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "valid", out.stdout + out.stderr
    return time.perf_counter() - started


@pytest.mark.parametrize("what", ["small", "played", "long", "longer"])
def test_cold_verification_as_a_whole_process(
    what: str, benchmark: Any, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(what)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = benchmark.pedantic(lambda: cold(path), rounds=1)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    benchmark.extra_info.update(processor_s=round(used, 2), fixed_work_s=fixed_work(), load=load())
    assert seconds < COLD_LIMIT_S


@pytest.mark.parametrize("what", ["small", "played", "long", "longer"])
def test_warm_verification_in_one_session(
    what: str, benchmark: Any, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(what)
    if what != "longer":
        verify(path)  # workers compile the rules
    before = processor_s()
    report = benchmark.pedantic(lambda: verify(path), rounds=1)
    used = round(processor_s() - before, 2)
    benchmark.extra_info.update(processor_s=used, fixed_work_s=fixed_work(), load=load())
    assert report.valid


def test_many_runs_in_one_job(benchmark: Any, small: Path) -> None:
    verify(small)
    before = processor_s()
    report = benchmark.pedantic(lambda: verify(*([small] * MANY)), rounds=1)
    used = round((processor_s() - before) / MANY, 3)
    benchmark.extra_info.update(processor_s_per_run=used, fixed_work_s=fixed_work(), load=load())
    assert report.valid and len(report.each) == MANY


@pytest.mark.parametrize(("what", "records"), [("long", LONG), ("longer", LONGER)])
def test_the_worker_of_a_long_log(
    what: str, records: int, benchmark: Any, request: pytest.FixtureRequest
) -> None:
    """Processor time of the worker that judges it, beside fixed work."""
    item, task = Item.at(request.getfixturevalue(what), "long"), Task.of(RULES)
    batches = scanned([item]).to_batches(max_chunksize=2_000)
    started = time.process_time()
    done = benchmark.pedantic(lambda: [*judge_rows(task, DEFAULT_LIMITS, batches)], rounds=1)
    benchmark.extra_info["processor_s"] = time.process_time() - started
    benchmark.extra_info["fixed_work_s"] = fixed_work()
    judged = [row for batch in done for row in batch.to_pylist()]
    assert sum(row["looked_at"] or 0 for row in judged) > records
    assert {row["kind"] for row in judged}.isdisjoint({"finding", "crash", "rejected"})


def test_the_data_source_reads_typed_columns(benchmark: Any, long: Path) -> None:
    spark: Any = session.spark_session()
    register(spark)
    columns = "offset bigint, type string, partition_id int, isr array<int>, leader int"

    def read() -> int:
        frame = spark.read.format("kraft").schema(columns).load(str(long))
        return int(frame.selectExpr("count(isr) + count(leader)").collect()[0][0])

    benchmark.pedantic(read, rounds=3, warmup_rounds=1)
    benchmark.extra_info["records_per_second"] = round(LONG / benchmark.stats["mean"])
    assert benchmark.extra_info["records_per_second"] > 1_000
