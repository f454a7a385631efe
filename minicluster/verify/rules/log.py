"""Rules over the batches of each controller's own log: offsets, epochs, leaders of the quorum."""

from __future__ import annotations

from minicluster.verify.rules import quorum
from minicluster.verify.rules.model import Check, Evidence, Rule

VIEW = """
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

RULES = (
    Rule(
        id="E01",
        title="Offsets have no gap",
        statement="A log is contiguous from 0, or from a start that a snapshot reaches into or "
        "meets.",
        source="KIP-595, KIP-630; UnifiedLog",
        evidence=Evidence.QUORUM,
        online=True,
        checks=(
            Check(
                group="log",
                when="p_last is not null",
                bad="base_offset <> p_last + 1",
                message="controller {broker}: a batch begins at {offset} where {number} is due",
                broker="node",
                number="p_last + 1",
            ),
            Check(
                group="log",
                when="p_last is null",
                bad="not begins_well",
                message="controller {broker}: the log begins at {offset} and no snapshot reaches "
                "into it",
                broker="node",
            ),
        ),
    ),
    Rule(
        id="E02",
        title="Epochs do not go back",
        statement="The leader epoch of batches never decreases along a log.",
        source="KIP-595; LeaderEpochFileCache",
        evidence=Evidence.QUORUM,
        online=True,
        checks=(
            Check(
                group="log",
                when="true",
                bad="epoch < p_epoch",
                message="controller {broker}: a batch of epoch {number} follows one of a later "
                "epoch",
                broker="node",
                number="epoch",
            ),
        ),
    ),
    Rule(
        id="E03",
        title="Each epoch begins with its one leader",
        statement="The first record of an epoch is the LeaderChange of its leader, and no epoch "
        "has two leaders.",
        source="KIP-595; LeaderState.appendLeaderChangeMessage",
        evidence=Evidence.QUORUM,
        online=True,
        checks=(
            Check(
                group="log",
                when="(p_epoch is not null and epoch <> p_epoch) "
                "or (p_epoch is null and base_offset = 0)",
                bad="elected is null",
                message="controller {broker}: epoch {number} does not begin with a LeaderChange",
                broker="node",
                number="epoch",
            ),
            Check(
                group="log",
                when="elected is not null",
                counts=False,
                bad="lowest_leader <> highest_leader",
                message="epoch {number} has two leaders, {broker} and another",
                broker="elected",
                number="epoch",
            ),
            quorum.ONE_LEADER,
        ),
        tables=("raft_event",),
    ),
    Rule(
        id="E05",
        title="Epoch and offset name one record",
        statement="What two nodes hold, or ever held, at the same offset of the same epoch is the "
        "same.",
        source="KIP-595, KAFKA-10527; log matching",
        evidence=Evidence.QUORUM,
        checks=(
            Check(
                group="log",
                when="copies > 1",
                bad="differs",
                message="controller {broker} holds another batch of epoch {number} at {offset} "
                "than others do",
                broker="node",
                number="epoch",
            ),
            quorum.SAME_BATCH,
        ),
        tables=("raft_event",),
    ),
    Rule(
        id="E09",
        title="What is deleted is in a snapshot",
        statement="A log that begins above 0 begins where a snapshot reaches into it or meets it.",
        source="KIP-630, KAFKA-14238; KafkaMetadataLog.deleteBeforeSnapshot",
        evidence=Evidence.QUORUM,
        checks=(
            Check(
                group="log",
                when="p_last is null and base_offset > 0",
                bad="not begins_well",
                message="controller {broker}: the log begins at {offset}, and no snapshot holds "
                "what came before",
                broker="node",
            ),
        ),
    ),
)
