"""Logs of every minor release of Kafka: promises of younger code are not asked of older code."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.protocol import records as r
from minicluster.verify import Report, Verdict
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.rules.every import BY_ID
from tests.verify.check_run import OF_EACH_LOG, OF_LOGS, check_run
from tests.verify.handwritten.log import LogBuilder, cluster
from tests.verify.in_process import verified
from tests.verify.recorded_releases import RELEASES, unpacked
from tests.verify.test_log_rules import compare

MINORS = [f"3.{minor}" for minor in range(3, 10)] + [f"4.{minor}" for minor in range(5)]
NAMED_BUGS = {"E11": "a bug of Kafka", "E12": "a bug of Kafka"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("releases")
    return {release: unpacked(release, folder) for release in RELEASES}


@pytest.fixture(scope="module")
def report(folders: dict[str, Path]) -> Report:
    return verified(*folders.values())


def test_there_is_a_run_of_every_minor_release() -> None:
    assert [release.rpartition(".")[0] for release in RELEASES] == MINORS


def test_a_sound_log_of_any_release_is_accused_of_nothing(report: Report) -> None:
    """What is found is a bug of Kafka's that the finding names."""
    unnamed = [
        finding
        for finding in report.findings
        if NAMED_BUGS.get(finding.rule, "no bug") not in finding.message
    ]

    assert unnamed == []
    assert {run.name for run in report.runs} == set(RELEASES)


@pytest.mark.parametrize("release", RELEASES)
def test_it_is_judged_live_as_afterwards(
    release: str, report: Report, folders: dict[str, Path]
) -> None:
    rules = [rule for rule in OF_LOGS if rule not in OF_EACH_LOG]
    compare(check_run(read_run(folders[release], release)), report, release, rules)


@pytest.mark.parametrize(
    ("rule", "since"), [("E22", "3.9"), ("E03", "3.6")], ids=["again", "leader change"]
)
def test_what_a_release_promises_is_judged_from_there_on(
    rule: str, since: str, report: Report
) -> None:
    """The levels of these runs begin below their release: registrations tell the rest."""
    for name, verdict, _ in report.rule(rule).by_run:
        assert BY_ID[rule].id == rule
        if MINORS.index(name.rpartition(".")[0]) >= MINORS.index(since):
            assert verdict in (Verdict.VALID, Verdict.NO_CASES), name


def registered_again(log: LogBuilder) -> LogBuilder:
    """Broker 1 registers its incarnation again, with a new epoch."""
    return log.register(1)


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        (registered_again(LogBuilder(mv=21).register(1)), Verdict.INVALID),
        (registered_again(LogBuilder(mv=20).register(1)), Verdict.NOT_PROMISED),
    ],
    ids=["3.9-IV0", "3.8-IV0"],
)
def test_a_level_tells_the_oldest_code(log: LogBuilder, verdict: Verdict, tmp_path: Path) -> None:
    assert verified(log.write(tmp_path / "log")).rule("E22").verdict is verdict


@pytest.mark.parametrize(
    ("registered", "verdict"),
    [
        ([(7, 25)], Verdict.INVALID),  # 4.0
        ([(1, 21)], Verdict.INVALID),  # 3.9
        ([(1, 20)], Verdict.NOT_PROMISED),  # 3.8
        ([(7, 25), (1, 19)], Verdict.NOT_PROMISED),  # in the midst of a rolling upgrade
        ([], Verdict.NOT_PROMISED),
    ],
)
def test_controllers_tell_the_code_below_an_old_level(
    registered: list[tuple[int, int]], verdict: Verdict, tmp_path: Path
) -> None:
    log = LogBuilder(mv=15)
    for number, (lowest, highest) in enumerate(registered):
        feature = r.RegisterControllerRecord.ControllerFeature(
            name="metadata.version",
            min_supported_version=lowest,
            max_supported_version=highest,
        )
        log.op(r.RegisterControllerRecord(controller_id=101 + number, features=(feature,)))

    judged = verified(registered_again(log.register(1)).write(tmp_path / "log"))

    assert judged.rule("E22").verdict is verdict


@pytest.mark.parametrize(("mv", "verdict"), [(12, Verdict.INVALID), (11, Verdict.NOT_PROMISED)])
def test_a_leader_of_3_5_may_write_before_its_leader_change(
    mv: int, verdict: Verdict, tmp_path: Path
) -> None:
    """KAFKA-15345. The LeaderChange of epoch 2 follows."""
    log = cluster(mv=mv)
    log.epoch = 2
    log.op(r.NoOpRecord()).lead(102, epoch=2)

    # Epoch 1 began as it should, which counts as a case.
    expected = Verdict.VALID if verdict is Verdict.NOT_PROMISED else verdict
    judged = verified(log.write(tmp_path / "log")).rule("E03")
    assert judged.verdict is expected
    assert judged.not_promised == (verdict is Verdict.NOT_PROMISED)
