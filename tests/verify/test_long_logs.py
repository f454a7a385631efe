"""Long logs, judged share by share: the same report as when one worker folds the whole log."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.verify import Report, verify
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.online.checker import OnlineChecker
from minicluster.verify.online.share import Share
from minicluster.verify.spark import routing
from tests.verify.damage import Damage
from tests.verify.test_spark_rules import EVERY_CASE, KAFKA_LOGS, RUNS

pytestmark = pytest.mark.spark

ONE_CONTROLLER = [name for name in RUNS if len(read_run(KAFKA_LOGS / name, name).nodes) == 1]


def by_shares(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> Report:
    with monkeypatch.context() as patch:
        patch.setattr(routing, "SHORT_LOG_BYTES", -1)
        return verify(*paths)


def check(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folded, shared = verify(*paths), by_shares(paths, monkeypatch)

    for one, two in zip(folded.rules, shared.rules, strict=True):
        assert one == two, one.id
    assert folded.runs == shared.runs
    assert folded.verdict == shared.verdict


def test_shares_find_what_folds_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: object
) -> None:
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
        for index, checker in enumerate(shares):
            checker.commit(Share(index, 3).batch_of(batch))

    assert whole.looked_at == {
        rule: sum(checker.looked_at[rule] for checker in shares) for rule in whole.looked_at
    }
    assert sum(checker.looked_at["E10"] > 0 for checker in shares) > 1
