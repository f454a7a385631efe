"""Recordings of real brokers on ZooKeeper (tests/data/zookeeper-runs) as run folders."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "data" / "zookeeper-runs"
MADE_UP = "drawn-"
"""Runs whose requests and znodes are drawn: odd ones break promises that brokers keep."""
RECORDINGS = sorted(
    path.name for path in RECORDED.iterdir() if path.is_dir() and not path.name.startswith(MADE_UP)
)


def recorded(name: str, folder: Path) -> Path:
    """A recording of real servers as a run folder, without the topic of requests made up."""
    summary = json.loads((RECORDED / name / "summary.json").read_text())
    text = gzip.decompress((RECORDED / name / "zk.jsonl.gz").read_bytes()).decode()
    kept = [line for line in text.splitlines() if "/topics/probe" not in line]
    (folder / "zookeeper").mkdir(parents=True)
    (folder / "zookeeper" / "log.jsonl").write_text("\n".join(kept))
    releases = (summary.get("releases") or {"": summary["release"]}).values()
    header = {
        "inter_broker_protocol": summary["inter.broker.protocol.version"],
        "ineligible_members_refused": min(releases) > "3.3",
        "ended_at_ms": json.loads(kept[-1])["ms"],
    }
    (folder / "run.json").write_text(json.dumps(header))
    return folder
