"""E34 beside long logs: a fold that reads piece by piece has the rows of one that holds all."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from minicluster.log.directory import locate
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.spark.images import image_rows, snapshot_ends, snapshot_rows
from minicluster.verify.spark.long.logs import long_log
from minicluster.verify.spark.long.snapshots import fold_up_to_snapshots

LOGS = Path(__file__).resolve().parents[1] / "data" / "kafka-logs"


@pytest.mark.parametrize("name", ["cluster-3.3", "migration-of-versions", "trimmed", "smoke"])
def test_the_rows_of_a_log_read_by_pieces_are_those_of_one_that_is_held(name: str) -> None:
    path = next(iter(sorted((LOGS / name).glob("controller-*"))))
    run = read_run(path, name)
    images, problem = image_rows(run, snapshot_ends(run))
    held = [row for row in snapshot_rows(run, images) if row["in_log"]]
    log = long_log(path, name, locate(path, partly=True, limits=DEFAULT_LIMITS).logs[0])
    rows = pickle.loads(fold_up_to_snapshots(pickle.dumps((log, DEFAULT_LIMITS, None))))
    assert problem is None
    assert [row for row in rows if row["in_log"]] == held
    assert name in ("trimmed", "smoke") or len(held) > 5
