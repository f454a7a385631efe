"""Rules over the life of a topic: ids, names, and partitions that belong to a live topic."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule
from minicluster.verify.rules.partition import UNKNOWN_PARTITION

VIEW = """
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

RULES = (
    Rule(
        id="E25",
        title="Topic ids are used once, live names are unique",
        statement="No topic id is used twice, no live topic's name is given again, and a topic "
        "comes before its partitions.",
        source="KIP-516; ReplicationControlManager.replay(TopicRecord)",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="topic",
                when="judged and kind = 'Topic'",
                bad="topics_before > 0",
                message="the id of topic {topic} was used before",
                partition="null",
            ),
            Check(
                group="topic",
                when="judged and kind = 'Topic'",
                counts=False,
                bad="topics_before = 0 and partitions_before > 0",
                message="topic {topic} comes after partitions of its id",
                partition="null",
            ),
            Check(
                group="topic",
                when="judged and kind = 'Topic'",
                counts=False,
                bad="p_name_kind = 'Topic'",
                message="topic {topic} is made while a topic of that name lives",
                partition="null",
            ),
        ),
    ),
    Rule(
        id="E26",
        title="Partitions belong to live topics",
        statement="No record makes or changes a partition of an unknown or deleted topic.",
        source="ReplicationControlManager.replay(PartitionRecord)",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="topic",
                when="judged and kind in ('Partition', 'RemoveTopic')",
                bad="coalesce(p_kind, 'RemoveTopic') <> 'Topic'",
                message="the record names a topic that does not exist",
            ),
            UNKNOWN_PARTITION,
        ),
    ),
    Rule(
        id="E18",
        title="Partitions are numbered without gaps",
        statement="The partitions of a topic are 0, 1, 2, …, and there come only more of them.",
        source="KIP-195; ReplicationControlManager.createTopic, createPartitions",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="topic",
                when="judged and kind = 'Partition'",
                bad="part <> partitions_before",
                message="partition {partition} is made where {number} is due",
                number="partitions_before",
            ),
        ),
    ),
    Rule(
        id="E38",
        title="Nothing outlives a deleted topic",
        statement="No config names a topic that does not exist; what a topic had is gone with the "
        "operation that deletes it.",
        source="KIP-516; ConfigurationControlManager.deleteTopicConfigs",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="topic",
                when="judged and kind = 'Config'",
                bad="coalesce(p_name_kind, 'RemoveTopic') <> 'Topic' and topics_in_op = 0",
                message="a config is set for topic {topic}, which does not exist",
                partition="null",
            ),
        ),
    ),
)

# The part of E29 that the log shows.
WHOLE_TOPICS = Check(
    group="topic",
    when="judged and kind = 'Topic'",
    bad="partitions_in_op = 0",
    message="topic {topic} was made without its partitions",
    partition="null",
)
