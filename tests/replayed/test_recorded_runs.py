"""A cluster does what Apache Kafka did: the same images, the same history of each partition.

The steps of a recorded run are done again at the same times, with the placement that Kafka drew.
What differs is either a rule of ours that is wrong, or is explained here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.reporting.comparison import Comparison, Level, compare
from minicluster.verify.reporting.scale import Clock
from tests.replayed.replay import (
    SETTINGS,
    Replay,
    directories,
    in_snapshot,
    lead,
    placements,
    recorded_steps,
    shortened,
)

pytestmark = pytest.mark.slow

LOGS = Path(__file__).resolve().parents[1] / "data" / "kafka-logs"

RELEASE_3_3: dict[str, Any] = {"rules": "kafka-3.9", "metadata_version": "3.3-IV3"}
_NO_UNCLEAN_CONFIG = "KRaft of 3.3 ignores unclean.leader.election.enable"
EXPLAINED: dict[str, dict[str, str]] = {
    "cluster": {},
    "divergent": {},
    "smoke": {},
    "jbod": {
        "config cordoned.log.dirs of broker 1": "Kafka had it in the broker's properties file",
        **dict.fromkeys(
            ("orders-1", "orders-4", "orders-7", "orders-10"),
            "broker 3, whose disk was new, came into the ISRs of leader 2 after broker 1 had begun "
            "to shut down; here, where a log of few records is copied at once, before",
        ),
    },
    "trimmed": {},
    "migration-of-versions": {
        "at-17-0": "Kafka made it before its brokers had registered their directories anew"
    },
    "cluster-3.3": {
        "u-always-0": _NO_UNCLEAN_CONFIG,
        "u-config-0": _NO_UNCLEAN_CONFIG,
        "pairs-2": "3.3 ends a move once the added replicas are in sync, later releases once all "
        "replicas of the target are",
        "single-0": "the two added replicas come into the ISR in either order",
    },
}


def replayed(
    name: str,
    folder: Path,
    *,
    led_by: int | None = None,
    elr: bool = False,
    log_dirs: str = "",
    log_of: str = "*",
    **shape: Any,
) -> Comparison:
    """A recorded run beside the same steps on a cluster.

    Shapes:  led_by: the controller that the steps take for the active one; log_of: the controller
             whose log is compared, where each has its own beginning.
    """
    recorded = LOGS / name
    summary = json.loads((recorded / "summary.json").read_text())
    steps = recorded_steps(recorded)
    config = {**SETTINGS, "kraft.version": int(summary["dynamic_quorum"])}
    config["eligible.leader.replicas.enable"] = elr
    config |= {"log.dirs": log_dirs} if log_dirs else {}
    short = shortened(recorded, folder / "kafka", steps[-1].at_ms, log_of)
    theirs = read_run(short, "kafka")
    snapshot_ms = None if theirs.start is None else Clock(theirs).of(theirs.start.end_offset)
    placed = placements(theirs) | ({} if theirs.start is None else in_snapshot(theirs))
    with MiniCluster(
        brokers=len(summary["brokers"] or summary["combined"]),
        controllers=len(summary["controllers"]) or 1,
        seed=1,
        config=config,
        **shape,
    ) as cluster:
        if led_by is not None:
            lead(cluster, led_by)
        held_in = directories(theirs) if log_dirs else {}
        Replay(cluster, steps, placed, held_in=held_in, snapshot_ms=snapshot_ms).run()
        ours = read_run(cluster.save(folder / "ours"), "ours")
    return compare(theirs, ours)


@pytest.mark.parametrize(
    ("name", "shape", "partitions"),
    [
        ("cluster", {}, 37),
        ("migration-of-versions", {"metadata_version": "3.3-IV3"}, 26),
        ("cluster-3.3", RELEASE_3_3, 15),
        ("divergent", {"led_by": 103, "elr": True}, 6),
        ("smoke", {"elr": True}, 8),
        ("jbod", {"elr": True, "log_dirs": "d1,d2,d3"}, 24),
        ("trimmed", {"elr": True, "log_of": "103", "led_by": 101}, 85),
    ],
)
def test_every_partition_goes_through_what_it_did_in_kafka(
    tmp_path: Path, name: str, shape: dict[str, Any], partitions: int
) -> None:
    comparison = replayed(name, tmp_path, **shape)
    explained = EXPLAINED[name]
    about = {one.about.partition(",")[0].split(" (life")[0]: one for one in comparison.differences}
    unexplained = [one for key, one in about.items() if key not in explained]
    assert not unexplained, "\n".join(
        f"{Level(one.level).name} {one.about}\n  kafka {one.left}\n  ours  {one.right}"
        for one in unexplained
    )
    assert about.keys() == explained.keys(), "an explanation of what does not differ any more"
    assert comparison.partitions == partitions
    of_partitions = [key for key in explained if not key.startswith("config ")]
    assert comparison.same == partitions - len(of_partitions)
