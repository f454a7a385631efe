"""A run whose controllers have dropped the beginning of their logs is accused of nothing new."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from minicluster.actors.play.player import play
from minicluster.log.checkpoint import Snapshot, encode_snapshot
from minicluster.log.directory import write_checkpoint
from minicluster.log.segment import segment_name, write_segment
from minicluster.metadata.snapshot import image_records
from minicluster.scenario import Scenario, load_scenario
from minicluster.scenario.nemesis import generate
from minicluster.verify import Finding, Verdict
from tests.log.controller_directory import read_controller_directory
from tests.metadata.committed_fold import CommittedFold
from tests.verify.damaged_runs import sign
from tests.verify.in_process import verified

ROOT = Path(__file__).resolve().parents[2]
STORIES = sorted((ROOT / "examples").glob("*.yaml"))
CUTS = (0.2, 0.4, 0.6, 0.8)
FEW_CUTS = (0.3, 0.7)


@dataclass(frozen=True)
class Cut:
    """A copy of a run in which every log begins where a snapshot ends."""

    run: Path
    folder: Path
    share: float

    def write(self) -> Path | None:
        """Where it is; None where a controller's log is too short for it."""
        shutil.copytree(self.run, self.folder)
        if not all(map(self._cut, self.folder.glob("controller-*"))):
            return None
        sign(self.folder)
        return self.folder

    def _cut(self, controller: Path) -> bool:
        log, _, _ = read_controller_directory(controller)
        if log.start_offset > 0 or log.snapshots or len(log.batches) < 10:
            return False
        dropped = log.batches[: int(len(log.batches) * self.share)]
        fold = CommittedFold.EMPTY
        for batch in dropped:
            fold = fold.apply_batch(batch)
        if fold.in_transaction:
            return False
        home = controller / "__cluster_metadata-0"
        for segment in home.glob("*.log"):
            segment.unlink()
        end, epoch = dropped[-1].next_offset, dropped[-1].leader_epoch
        records = tuple(image_records(fold.image))
        snapshot = Snapshot(records=records, last_contained_log_timestamp=0)
        write_checkpoint(home, (end, epoch), encode_snapshot(snapshot, epoch=epoch, timestamp_ms=0))
        write_segment(home / segment_name(end), log.batches[len(dropped) :])
        return True


def check(
    played: dict[Path, Scenario], folder: Path, least: int, cuts: tuple[float, ...] = CUTS
) -> None:
    """Judge these runs and cut copies of them, in one job.

    Shapes:  played: the scenario of each run folder. least: so many copies there must be.
    """
    copies: dict[str, str] = {}
    runs = []
    for whole in played:
        runs.append(whole)
        for share in cuts:
            cut = Cut(whole, folder / f"{whole.name}-from-{share}", share).write()
            if cut is not None:
                runs.append(cut)
                copies[cut.name] = whole.name
    assert len(copies) >= least
    report = verified(*runs)
    known = {described(finding, finding.run) for finding in report.findings}
    new = [
        finding
        for finding in report.findings
        if finding.run in copies and described(finding, copies[finding.run]) not in known
    ]
    assert new == []
    unknown = {
        one.rule.id for one in report.rules for _, word, _ in one.by_run if word is Verdict.UNKNOWN
    }
    named = {rule for scenario in played.values() for rule in scenario.exercises}
    assert unknown <= named  # a rule that the story names may have lost its case


def described(finding: Finding, run: str) -> tuple[object, ...]:
    """A finding as if it were about this run."""
    return (run, finding.rule, finding.offset, finding.topic, finding.partition, finding.broker)


def test_the_stories_stay_innocent_when_their_logs_are_truncated(tmp_path: Path) -> None:
    told = map(load_scenario, STORIES)
    played = {play(scenario, runs=tmp_path / "runs").path: scenario for scenario in told}
    check(played, tmp_path, 8, FEW_CUTS)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(2))
def test_drawn_scenarios_stay_innocent_when_their_logs_are_truncated(
    block: int, tmp_path: Path
) -> None:
    drawn = [generate(100 * block + seed) for seed in range(15)]
    played = {play(scenario, runs=tmp_path / "runs").path: scenario for scenario in drawn}
    check(played, tmp_path, least=8)
