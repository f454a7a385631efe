"""The life of topics in the committed log: ids, names, configs; metadata transactions."""

from __future__ import annotations

from minicluster.verify.histories.committed_log import TransactionMarker
from minicluster.verify.histories.topics import (
    NamedTopic,
    NewPartition,
    NewTopic,
    TopicConfig,
    TopicOperation,
)
from minicluster.verify.rules.partitions import partitions_belong_to_live_topics
from minicluster.verify.rules.rule import CASE, Findings, broken, rule


@rule("E18", "Partitions are numbered without gaps",
      source="KIP-195; ReplicationControlManager.createTopic, createPartitions",
      breaks="A topic is created with partitions 0 and 2.",
      keeps="A topic is created with partition 0, and partition 1 is added.")  # fmt: skip
def partitions_are_numbered_without_gaps(partition: NewPartition) -> Findings:
    """The partitions of a topic are 0, 1, 2, …, and their number only grows."""
    yield CASE
    if partition.number != partition.expected:
        created = f"partition {partition.number} is created"
        yield broken(f"{created} where {partition.expected} was expected")


@rule("E25", "Topic ids are used once, names of live topics are unique",
      source="KIP-516; ReplicationControlManager.replay(TopicRecord)",
      breaks="orders is deleted, and a new topic has its id.",
      keeps="orders is deleted, and created again under another id.")  # fmt: skip
def topic_ids_are_used_once(topic: NewTopic) -> Findings:
    """No topic id is used twice, no name of a live topic is used again, and a TopicRecord comes
    before its partitions."""
    yield CASE
    if topic.id_was_used:
        yield broken(f"the id of topic {topic.name} was used before")
    elif topic.has_partitions:
        yield broken(f"the TopicRecord of {topic.name} comes after partitions of its id")
    if topic.name_is_taken:
        yield broken(f"topic {topic.name} is created while a topic of that name exists")


@partitions_belong_to_live_topics.also
def _and_their_topic_exists(topic: NamedTopic) -> Findings:
    yield CASE
    if not topic.exists:
        yield broken("the record names a topic that does not exist")


@rule("E29", "An operation is written as a whole or not at all",
      source="KIP-631, KAFKA-12376; QuorumController (ControllerResult.atomicOf)",
      breaks="The TopicRecord of orders is one operation, and its first partition the next.",
      keeps="orders and partition 0 are one operation, and partition 1, added "
      "later, one of its own.")  # fmt: skip
def an_operation_is_written_as_a_whole(topic: TopicOperation) -> Findings:
    """A topic and its first partitions are one operation."""
    yield CASE
    if not topic.partitions:
        yield broken(f"topic {topic.name} was created without partitions")


@rule("E30", "Metadata transactions do not nest",
      source="KIP-868; OffsetControlManager, MetadataBatchLoader.replay",
      breaks="A metadata transaction begins while another is open.",
      keeps="A metadata transaction is aborted, and another one begins and ends.")  # fmt: skip
def metadata_transactions_do_not_nest(marker: TransactionMarker) -> Findings:
    """A metadata transaction begins where none is open, and ends or is aborted where one is
    open."""
    yield CASE
    if marker.begins == marker.is_open:
        yield broken("a metadata transaction begins inside another one, or ends where none is open")


@rule("E38", "Configs of a topic do not outlive it",
      source="KIP-516; ConfigurationControlManager.deleteTopicConfigs",
      breaks="orders is deleted, and then its retention.ms is set.",
      keeps="A config of orders is set before the topic is deleted, and one is "
      "removed after it.")  # fmt: skip
def configs_do_not_outlive_their_topic(config: TopicConfig) -> Findings:
    """No config names a topic that does not exist; the operation that deletes a topic deletes its
    configs."""
    yield CASE
    if not config.exists:
        yield broken(f"a config is set for topic {config.name}, which does not exist")
