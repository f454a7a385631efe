"""Rules about the snapshots beside a log, of a run or of Apache Kafka (E34)."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

_SNAPSHOTS = """
select *, cast(null as string) as topic, cast(null as int) as part from snapshots
"""


# The part of E38 that snapshots show.
CONFIGS_OF_SNAPSHOTS = Check(
    view="snapshot_states",
    when="configs is not null",
    counts=False,
    bad="configs > 0",
    message="the snapshot of controller {broker} that ends at {offset} has configs of topic "
    "{topic}, which it lacks",
    topic="orphan",
    broker="node",
)

VIEWS = (View(name="snapshot_states", sql=_SNAPSHOTS, empty_unless=("snapshots", None, None)),)

RULES = (
    Rule(
        id="E34",
        title="Snapshots are folds of the log",
        statement="A snapshot ends (exclusive) where a committed batch ends, carries the epoch "
        "and the time of that batch, and holds the fold of the log up to its end.",
        source="KIP-630, KAFKA-14618, KAFKA-17713; SnapshotGenerator",
        evidence=Evidence.SNAPSHOTS,
        checks=(
            Check(
                view="snapshot_states",
                when="in_log",
                bad="not coalesce(hash = expected_hash and epoch = expected_epoch, false)",
                message="the snapshot of controller {broker} that ends at {offset} differs "
                "from the fold of the log up to there",
                broker="node",
            ),
            Check(
                view="snapshot_states",
                when="in_log and timestamp is not null and expected_timestamp is not null",
                counts=False,
                bad="timestamp <> expected_timestamp",
                message="the header of the snapshot of controller {broker} that ends at {offset} "
                "has another time than the batch before, {number}",
                broker="node",
                number="expected_timestamp",
            ),
        ),
    ),
)
