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
from minicluster.verify.comparison import Comparison, Level, compare
from minicluster.verify.evidence.reading import read_run
from tests.replayed.replay import SETTINGS, Replay, lead, placements, recorded_steps, shortened

pytestmark = pytest.mark.slow

LOGS = Path(__file__).resolve().parents[1] / "data" / "kafka-logs"

RELEASE_3_3: dict[str, Any] = {"rules": "kafka-3.9", "metadata_version": "3.3-IV3"}
_NO_UNCLEAN_CONFIG = "KRaft of 3.3 ignores unclean.leader.election.enable"
EXPLAINED: dict[str, dict[str, str]] = {
    "cluster": {},
    "divergent": {},
    "smoke": {},
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
    name: str, folder: Path, *, led_by: int | None = None, elr: bool = False, **shape: Any
) -> Comparison:
    """A recorded run beside the same steps on a cluster.

    Shapes:  led_by: the controller that the steps take for the active one.
    """
    recorded = LOGS / name
    summary = json.loads((recorded / "summary.json").read_text())
    steps = recorded_steps(recorded)
    config = {**SETTINGS, "kraft.version": int(summary["dynamic_quorum"])}
    config["eligible.leader.replicas.enable"] = elr
    with MiniCluster(
        brokers=len(summary["brokers"] or summary["combined"]),
        controllers=len(summary["controllers"]) or 1,
        seed=1,
        config=config,
        **shape,
    ) as cluster:
        if led_by is not None:
            lead(cluster, led_by)
        Replay(cluster, steps, placements(read_run(recorded, "kafka"))).run()
        ours = read_run(cluster.save(folder / "ours"), "ours")
    short = shortened(recorded, folder / "kafka", steps[-1].at_ms)
    return compare(read_run(short, "kafka"), ours)


@pytest.mark.parametrize(
    ("name", "shape", "partitions"),
    [
        ("cluster", {}, 37),
        ("migration-of-versions", {"metadata_version": "3.3-IV3"}, 26),
        ("cluster-3.3", RELEASE_3_3, 15),
        ("divergent", {"led_by": 103, "elr": True}, 6),
        ("smoke", {"elr": True}, 8),
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
    assert comparison.same == partitions - len(explained)
