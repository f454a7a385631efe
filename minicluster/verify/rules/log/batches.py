"""The batches of each controller's own log: offsets, epochs, leaders of the quorum."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.rules.trace.quorum import ONE_LEADER, SAME_BATCH

_STATES = """
select *, cast(null as string) as topic, cast(null as int) as part,
  lag(last_offset) over w as p_last,
  lag(epoch) over w as p_epoch,
  min(elected) over e as lowest_leader,
  max(elected) over e as highest_leader,
  min(crc) over o <> max(crc) over o as differs,
  count(*) over o as copies
from batches
window w as (partition by run, node order by pos),
  o as (partition by run, epoch, base_offset),
  e as (partition by run, epoch)
"""


VIEWS = (View(name="batch_states", sql=_STATES),)

RULES = (
    Rule(
        id="E01",
        title="Log offsets have no gap",
        statement="A log is contiguous from offset 0, or from an offset that a snapshot covers.",
        source="KIP-595, KIP-630; UnifiedLog",
        evidence=Evidence.QUORUM,
        online=True,
        checks=(
            Check(
                view="batch_states",
                when="p_last is not null",
                bad="base_offset <> p_last + 1",
                message="controller {broker}: a batch begins at {offset} where {number} was "
                "expected",
                broker="node",
                number="p_last + 1",
            ),
            Check(
                view="batch_states",
                when="p_last is null",
                bad="not begins_well",
                message="controller {broker}: the log begins at {offset}, and no snapshot "
                "covers the records before",
                broker="node",
            ),
        ),
    ),
    Rule(
        id="E02",
        title="Leader epochs do not decrease along a log",
        statement="The leader epoch of batches never decreases along a log.",
        source="KIP-595; LeaderEpochFileCache",
        evidence=Evidence.QUORUM,
        online=True,
        checks=(
            Check(
                view="batch_states",
                when="true",
                bad="epoch < p_epoch",
                message="controller {broker}: a batch of epoch {number} follows a batch of a "
                "later epoch",
                broker="node",
                number="epoch",
            ),
        ),
    ),
    Rule(
        id="E03",
        title="Each epoch begins with the LeaderChange of its one leader",
        statement="The first record of an epoch is the LeaderChange of its leader, and no "
        "epoch has two leaders.",
        source="KIP-595; LeaderState.appendLeaderChangeMessage",
        evidence=Evidence.QUORUM,
        online=True,
        tables=("raft_event",),
        checks=(
            Check(
                view="batch_states",
                when="(p_epoch is not null and epoch <> p_epoch) "
                "or (p_epoch is null and base_offset = 0)",
                bad="elected is null",
                message="controller {broker}: epoch {number} does not begin with a LeaderChange",
                broker="node",
                number="epoch",
            ),
            Check(
                view="batch_states",
                when="elected is not null",
                counts=False,
                bad="lowest_leader <> highest_leader",
                message="epoch {number} has a second leader besides {broker}",
                broker="elected",
                number="epoch",
            ),
            ONE_LEADER,
        ),
    ),
    Rule(
        id="E05",
        title="Logs match: one epoch and offset is one record",
        statement="Two nodes never hold different records at the same offset of the same "
        "epoch, not even before a truncation.",
        source="KIP-595, KAFKA-10527; log matching",
        evidence=Evidence.QUORUM,
        tables=("raft_event",),
        checks=(
            Check(
                view="batch_states",
                when="copies > 1",
                bad="differs",
                message="controller {broker} holds a batch of epoch {number} at {offset} "
                "that differs from other controllers'",
                broker="node",
                number="epoch",
            ),
            SAME_BATCH,
        ),
    ),
    Rule(
        id="E09",
        title="Deleted records are in a snapshot",
        statement="A log that begins above offset 0 has a snapshot that ends at its first "
        "offset or later.",
        source="KIP-630, KAFKA-14238; KafkaMetadataLog.deleteBeforeSnapshot",
        evidence=Evidence.QUORUM,
        checks=(
            Check(
                view="batch_states",
                when="p_last is null and base_offset > 0",
                bad="not begins_well",
                message="controller {broker}: the log begins at {offset}, and no snapshot "
                "holds the records before",
                broker="node",
            ),
        ),
    ),
)
