"""Damaged logs of Kafka: live and afterwards the same is found, and nothing fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from minicluster.verify import Report, Verdict
from minicluster.verify.evidence.reading import read_run
from tests.verify.check_run import check_run
from tests.verify.damage import Damage
from tests.verify.in_process import verified
from tests.verify.test_log_rules import KAFKA_LOGS, compare

SOURCES = ("cluster", "cluster-3.3", "jbod", "migration-of-versions", "smoke")

Judge = Callable[[int, int], tuple[Report, dict[str, list[str]]]]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    def damaged(first: int, count: int) -> tuple[Report, dict[str, list[str]]]:
        done = {}
        for source in SOURCES:
            batches = read_run(KAFKA_LOGS / source, source).committed
            for seed in range(first, first + count):
                damage = Damage(batches, f"{source}/{seed}")
                damage.write(tmp_path / f"{source}-{seed}")
                done[f"{source}-{seed}"] = damage.done
        report = verified(*(tmp_path / name for name in done))
        for name, what in done.items():
            try:
                compare(check_run(read_run(tmp_path / name, name)), report, name)
            except Exception as error:
                error.add_note(f"{name}: {'; '.join(what)}")
                raise
        return report, done

    return damaged


def check(report: Report, runs: int) -> None:
    verdicts = {word for one in report.rules for _, word, _ in one.by_run}
    assert Verdict.UNKNOWN not in verdicts
    accused = {finding.run for finding in report.findings}
    broken = {finding.rule for finding in report.findings}
    assert len(accused) > runs / 4
    assert len(broken) >= 10


def test_damaged_logs_are_judged_live_as_afterwards(judge: Judge) -> None:
    report, done = judge(0, 5)

    check(report, len(done))


@pytest.mark.slow
def test_many_damaged_logs_are_judged_live_as_afterwards(judge: Judge) -> None:
    report, done = judge(1_000, 200)

    check(report, len(done))
