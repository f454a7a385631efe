"""Images and snapshots beside the fold of the log, and a log that cannot be folded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.protocol import records as r
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.source import Source
from minicluster.verify.images.snapshots import NO_LOG
from minicluster.verify.judged import Judged, report_of
from minicluster.verify.model import Verdict
from minicluster.verify.rules.every import BY_ID
from minicluster.verify.rules.rule import Rule
from minicluster.verify.whole import judge_whole
from tests.verify.handwritten.log import TOPIC, cluster
from tests.verify.handwritten.run import RunBuilder
from tests.verify.test_snapshots_of_kafka import LOGS


def judge_path(path: Path, name: str, rules: Sequence[Rule]) -> Judged:
    return judge_whole(read_run(path, name), rules)


OF_IMAGES = tuple(BY_ID[rule] for rule in ("E32", "E33", "E34"))


def test_images_after_a_record_that_fits_no_state_are_unknown(tmp_path: Path) -> None:
    """The verdict names the record; what a node published there may be the node's fault, or not."""
    log = cluster()
    offset = log.offset
    log.op(r.TopicRecord(name="again", topic_id=TOPIC))
    run = RunBuilder(log).committed().publish(2, offset - 1).publish(2, offset, image_hash="a")
    judged = judge_path(run.write(tmp_path / "run"), "run", OF_IMAGES)
    (problem,) = judged.run.problems
    assert f"the log cannot be folded: offset {offset}: " in problem.why
    source = Source(tmp_path / "run", "run", DEFAULT_LIMITS, is_long=False)
    report = report_of([judged], OF_IMAGES, [source])
    for rule in OF_IMAGES:
        assert report.rule(rule.id).verdict is Verdict.UNKNOWN, rule
        assert problem.why in report.rule(rule.id).reasons[0]


def test_other_rules_do_not_ask_whether_the_log_can_be_folded(tmp_path: Path) -> None:
    log = cluster()
    log.op(r.TopicRecord(name="again", topic_id=TOPIC))
    run = RunBuilder(log).committed().publish(2, image_hash="a")
    folder = run.write(tmp_path / "run")
    judged = judge_path(folder, "run", (BY_ID["E25"],))
    assert not judged.run.problems
    assert len(judged.tallies["E25"].findings) == 1


def test_the_snapshots_of_a_plain_log_are_judged_without_a_trace() -> None:
    judged = judge_path(LOGS / "cluster-3.3", "log", (*OF_IMAGES, BY_ID["E38"]))
    assert judged.tallies["E34"].looked_at >= 7
    assert not any(tally.findings for tally in judged.tallies.values())
    assert judged.tallies["E32"].looked_at == 0


def test_a_snapshot_before_the_log_is_exempt_with_the_reason() -> None:
    judged = judge_path(LOGS / "trimmed", "log", OF_IMAGES)
    assert judged.tallies["E34"].exempt[NO_LOG] >= 1
