"""The driver of the publications of a run that has ended."""

from __future__ import annotations

from minicluster.verify.histories.commits import commits
from minicluster.verify.histories.traced_run import History, TracedRun
from minicluster.verify.images import publications, snapshots
from minicluster.verify.images.publications import LogOfRun, Publication, Publications
from minicluster.verify.judging import Judge
from minicluster.verify.rules.rule import rules_in

MODULES = (publications, snapshots)


def judge_publications(run: TracedRun, judge: Judge) -> None:
    """Judge the images that nodes published."""
    log = LogOfRun(run.images.digests, run.first_image, run.promises.empty_images)
    fold, committed = Publications(log), run.context(commits)
    for row in run.rows("publish"):
        judge.hear(fold.on_event(Publication(row, committed.end_before(row["seq"]))))


HISTORY = History(
    yields=(),
    reads=("publish", "raft_event"),
    fold=judge_publications,
    rules=rules_in(publications),
)
