"""Long logs, judged share by share: the same report as when one worker folds the whole log."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest

from minicluster.log import heads
from minicluster.log.batch import RecordBatch
from minicluster.log.directory import locate
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify import Finding, Report
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.online import shared_records
from minicluster.verify.online.checker import OnlineChecker
from minicluster.verify.online.share import Share
from minicluster.verify.online.steps import transitions
from minicluster.verify.spark import routing
from minicluster.verify.spark.long import logs as long_logs
from tests.bench.verify_log import write_long_log
from tests.verify.damage import Damage
from tests.verify.in_process import verified
from tests.verify.test_spark_rules import EVERY_CASE, KAFKA_LOGS, RUNS

ONE_CONTROLLER = [name for name in RUNS if len(read_run(KAFKA_LOGS / name, name).nodes) == 1]


def by_shares(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> Report:
    with monkeypatch.context() as patch:
        patch.setattr(routing, "SHORT_LOG_BYTES", -1)
        return verified(*paths)


def check(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folded, shared = verified(*paths), by_shares(paths, monkeypatch)

    for one, two in zip(folded.rules, shared.rules, strict=True):
        assert one == two, one.id
    assert folded.runs == shared.runs
    assert folded.verdict == shared.verdict


def test_shares_find_what_folds_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [KAFKA_LOGS / name for name in ONE_CONTROLLER]
    for name, case in EVERY_CASE.items():
        case().write(tmp_path / name)
        paths.append(tmp_path / name)
    batches = read_run(KAFKA_LOGS / "jbod", "jbod").committed
    for seed in range(8):
        Damage(batches, f"share-{seed}").write(tmp_path / f"damaged-{seed}")
        paths.append(tmp_path / f"damaged-{seed}")

    check(paths, monkeypatch)


def test_each_partition_is_in_one_share_and_what_is_of_none_is_in_the_first() -> None:
    run = read_run(KAFKA_LOGS / "cluster", "cluster")
    whole = OnlineChecker()
    shares = [OnlineChecker(share=Share(index, 3)) for index in range(3)]
    for batch in run.committed:
        whole.commit(batch)
        for checker in shares:
            checker.commit(batch)

    assert whole.looked_at == {
        rule: sum(checker.looked_at[rule] for checker in shares) for rule in whole.looked_at
    }
    assert sum(checker.looked_at["E10"] > 0 for checker in shares) > 1


def findings_by_shares(batches: Sequence[RecordBatch]) -> list[Finding]:
    """The findings of three shares of a log, each once."""
    shares = [OnlineChecker(share=Share(index, 3)) for index in range(3)]
    for batch in batches:
        for checker in shares:
            checker.commit(batch)
    return sorted({finding for checker in shares for finding in checker.findings})


@pytest.mark.parametrize("kept", [transitions._KEPT_MIN, 2])
def test_shares_find_in_damaged_logs_what_the_checker_finds(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few of the transitions are remembered."""
    monkeypatch.setattr(transitions, "_KEPT_MIN", kept)
    monkeypatch.setattr(transitions, "_KEPT_PER_PARTITION", 0)
    monkeypatch.setattr(shared_records, "_KEPT_MAX", kept)
    batches = read_run(KAFKA_LOGS / "jbod", "jbod").committed
    found = 0
    for seed in range(12):
        Damage(batches, f"found-{seed}").write(tmp_path / f"{seed}")
        damaged = read_run(tmp_path / f"{seed}", "damaged").committed
        whole = OnlineChecker()
        for batch in damaged:
            whole.commit(batch)

        assert findings_by_shares(damaged) == sorted(set(whole.findings)), seed
        found += len(whole.findings)
    assert found > 10


def most_memory(records: int, folder: Path) -> int:
    """The most bytes that a worker holds while it judges a share of a log."""
    path = write_long_log(records, folder / str(records))
    log = long_logs.long_log(path, "long", locate(path).logs[0])
    item = pickle.dumps((log, Share(0, 2), DEFAULT_LIMITS, None))
    tracemalloc.start()
    try:
        done = pickle.loads(long_logs.judge_share(item))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (done.is_damaged, done.records >= records) == (False, True)
    return most


def test_memory_does_not_grow_with_the_length_of_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "SPLIT_BYTES", 64 << 10)
    most_memory(1_000, tmp_path / "first")  # loads what is loaded once
    short, long = most_memory(3_000, tmp_path), most_memory(9_000, tmp_path)

    assert long < 1.2 * short
