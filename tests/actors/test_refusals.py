"""A refusal of the controller has its reason in the trace and in the log of the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minicluster.actors.play.player import play_once
from minicluster.log.written_files import WRITTEN
from minicluster.scenario import load_scenario
from minicluster.verify.evidence.reading import read_run
from tests.verify.damaged_runs import saved_run, with_header

ROOT = Path(__file__).resolve().parents[2]


def test_the_proposal_of_a_fenced_follower_is_refused_as_fenced() -> None:
    scenario = load_scenario(ROOT / "examples" / "fenced_follower.yaml")
    cluster, failure = play_once(scenario)
    assert failure is None
    rows = list(cluster.recorder.table("refusal"))
    logged = [entry for entry in cluster.log.entries if entry["event"] == "request.refused"]
    fenced = [row for row in rows if row["reason"] == "fenced"]
    assert fenced
    row = fenced[0]
    assert (row["api"], row["topic"], row["part"]) == ("AlterPartition", "orders", 0)
    assert row["error"] == "INELIGIBLE_REPLICA"
    assert "IneligibleReplica[replicaId=" in row["message"]
    assert len(logged) == len(rows)
    assert logged[-1]["reason"] == rows[-1]["reason"]


def test_a_run_of_a_version_without_the_table_is_whole(tmp_path: Path) -> None:
    run = saved_run(tmp_path)
    (run / "trace" / "refusal.parquet").unlink()

    def older(header: dict[str, Any]) -> None:
        del header["trace_rows"]["refusal"]
        del header[WRITTEN]["trace/refusal.parquet"]

    with_header(run, older)
    assert read_run(run, "older").problems == ()
