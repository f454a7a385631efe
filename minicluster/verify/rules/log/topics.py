"""The life of a topic: ids, names, and partitions that belong to a live topic."""

from __future__ import annotations

from minicluster.verify.rules.log.partitions import UNKNOWN_PARTITION
from minicluster.verify.rules.log.snapshots import CONFIGS_OF_SNAPSHOTS
from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.rules.trace.controller_requests import ATOMIC_REQUESTS

_STATES = """
select *,
  last(case when kind in ('Topic', 'RemoveTopic') then kind end, true) over i as p_kind,
  count_if(kind = 'Topic') over i as topics_before,
  count_if(kind = 'Partition') over i as partitions_before,
  count_if(kind = 'Partition') over (partition by run, topic_id, op) as partitions_in_op,
  count_if(kind = 'Topic') over (partition by run, name_key, op) as topics_in_op,
  case when kind <> 'Partition'
    then last(case when kind <> 'Config' then kind end, true) over n end as p_name_kind
from (select *, case when kind = 'Partition' then topic_id else topic end as name_key from topics)
window i as (partition by run, topic_id order by pos
    rows between unbounded preceding and 1 preceding),
  n as (partition by run, name_key order by pos
    rows between unbounded preceding and 1 preceding)
"""

# The part of E29 that the log shows.
WHOLE_TOPICS = Check(
    view="topic_states",
    when="judged and kind = 'Topic'",
    bad="partitions_in_op = 0",
    message="topic {topic} was created without partitions",
    partition="null",
)


VIEWS = (View(name="topic_states", sql=_STATES),)

RULES = (
    Rule(
        id="E18",
        title="Partitions are numbered without gaps",
        statement="The partitions of a topic are 0, 1, 2, …, and their number only grows.",
        source="KIP-195; ReplicationControlManager.createTopic, createPartitions",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="topic_states",
                when="judged and kind = 'Partition'",
                bad="part <> partitions_before",
                message="partition {partition} is created where {number} was expected",
                number="partitions_before",
            ),
        ),
    ),
    Rule(
        id="E25",
        title="Topic ids are used once, names of live topics are unique",
        statement="No topic id is used twice, no name of a live topic is used again, and a "
        "TopicRecord comes before its partitions.",
        source="KIP-516; ReplicationControlManager.replay(TopicRecord)",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="topic_states",
                when="judged and kind = 'Topic'",
                bad="topics_before > 0",
                message="the id of topic {topic} was used before",
                partition="null",
            ),
            Check(
                view="topic_states",
                when="judged and kind = 'Topic'",
                counts=False,
                bad="topics_before = 0 and partitions_before > 0",
                message="the TopicRecord of {topic} comes after partitions of its id",
                partition="null",
            ),
            Check(
                view="topic_states",
                when="judged and kind = 'Topic'",
                counts=False,
                bad="p_name_kind = 'Topic'",
                message="topic {topic} is created while a topic of that name exists",
                partition="null",
            ),
        ),
    ),
    Rule(
        id="E26",
        title="Partitions belong to live topics",
        statement="No record creates or changes a partition of an unknown or deleted topic.",
        source="ReplicationControlManager.replay(PartitionRecord)",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="topic_states",
                when="judged and kind in ('Partition', 'RemoveTopic')",
                bad="coalesce(p_kind, 'RemoveTopic') <> 'Topic'",
                message="the record names a topic that does not exist",
            ),
            UNKNOWN_PARTITION,
        ),
    ),
    Rule(
        id="E29",
        title="An operation is written as a whole or not at all",
        statement="A topic and its first partitions are one operation, and a request that "
        "creates or deletes topics or partitions writes all of its records in one operation.",
        source="KIP-631, KAFKA-12376; QuorumController (ControllerResult.atomicOf)",
        evidence=Evidence.LOG,
        online=True,
        tables=("rpc",),
        checks=(
            WHOLE_TOPICS,
            ATOMIC_REQUESTS,
        ),
    ),
    Rule(
        id="E38",
        title="Configs of a topic do not outlive it",
        statement="No config names a topic that does not exist, neither in the log nor in a "
        "snapshot; the operation that deletes a topic deletes its configs.",
        source="KIP-516; ConfigurationControlManager.deleteTopicConfigs",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="topic_states",
                when="judged and kind = 'Config'",
                bad="coalesce(p_name_kind, 'RemoveTopic') <> 'Topic' and topics_in_op = 0",
                message="a config is set for topic {topic}, which does not exist",
                partition="null",
            ),
            CONFIGS_OF_SNAPSHOTS,
        ),
    ),
)
