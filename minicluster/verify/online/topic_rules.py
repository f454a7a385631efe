"""Online rules about topics and their configs (E18, E25, E26, E29, E38)."""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import records as r
from minicluster.verify.online.history import TOPIC_RESOURCE, TopicHistory
from minicluster.verify.online.log_state import LogState
from minicluster.verify.online.partition_rules import add_step
from minicluster.verify.online.steps.transitions import REMOVED


def on_feature_level(state: LogState, record: r.FeatureLevelRecord) -> None:
    """Apply a feature level."""
    if record.name == "metadata.version":
        state.mv = record.feature_level
    elif record.name == "eligible.leader.replicas.version":
        state.elr = record.feature_level > 0


def on_config(state: LogState, record: r.ConfigRecord) -> None:
    """Judge a config that is set for a topic, and apply it."""
    name = record.resource_name
    if state.judged and record.resource_type == TOPIC_RESOURCE and record.value is not None:
        state.findings.look("E38", 0, state.level)
        if name not in state.live:  # Kafka 3.3 writes a topic's configs before the topic
            state.operation.orphan_configs.append((name, state.findings.offset))
    state.min_isr.set(record)


def on_topic(state: LogState, record: r.TopicRecord) -> None:
    """Judge and apply the creation of a topic."""
    topic = state.topic(record.topic_id)
    findings = state.findings
    if state.judged:
        findings.look("E25", 0, state.level)
        if topic.topics:
            findings.find("E25", 0, topic=record.name)
        elif topic.partitions:
            findings.find("E25", 1, topic=record.name)
        if state.names.get(record.name) == "Topic":
            findings.find("E25", 2, topic=record.name)
        state.operation.new_topics.append((record.topic_id, record.name, findings.offset))
    topic.name, topic.kind = record.name, "Topic"
    topic.topics += 1
    state.names[record.name] = "Topic"
    state.live[record.name] = record.topic_id


def on_remove_topic(state: LogState, record: r.RemoveTopicRecord) -> None:
    """Judge and apply the deletion of a topic with its partitions."""
    topic = _owner(state, record.topic_id, None)
    for part in topic.parts:
        if state.owns(record.topic_id, part):
            add_step(state, state.partitions[record.topic_id, part], REMOVED)
    topic.parts = {}
    topic.kind = "RemoveTopic"
    if topic.name is not None:
        state.names[topic.name] = "RemoveTopic"
        if state.live.get(topic.name) == record.topic_id:
            del state.live[topic.name]
            state.min_isr.forget(topic)


def on_partition(state: LogState, record: r.PartitionRecord) -> None:
    """Judge and apply the creation of a partition."""
    topic = _owner(state, record.topic_id, record.partition_id)
    created = state.operation.new_partitions
    created[record.topic_id] = created.get(record.topic_id, 0) + 1
    if state.judged:
        state.findings.look("E18", 0, None)
        part, expected = record.partition_id, topic.partitions
        if part != expected:
            state.findings.find("E18", 0, topic=topic.name, part=part, number=expected)
    topic.partitions += 1
    topic.parts[record.partition_id] = len(record.replicas)
    if not state.owns(record.topic_id, record.partition_id):
        return
    history = state.partition(record.topic_id, record.partition_id)
    add_step(state, history, state.changes.of_partition(record))


def end_of_topics(state: LogState) -> None:
    """Judge the topics and configs of an operation at its end."""
    operation, findings = state.operation, state.findings
    for topic_id, name, offset in operation.new_topics:
        findings.look("E29", 0, None)
        if not operation.new_partitions.get(topic_id):
            findings.find("E29", 0, offset=offset, topic=name)
    created = {name for _, name, _ in operation.new_topics}
    for name, offset in operation.orphan_configs:
        if name not in created:
            findings.find("E38", 0, offset=offset, topic=name)


def _owner(state: LogState, topic_id: UUID, part: int | None) -> TopicHistory:
    """The topic that a partition or a removal names, judged by E26."""
    topic = state.topic(topic_id)
    if state.judged:
        state.findings.look("E26", 0, state.level)
        if topic.kind != "Topic":
            state.findings.find("E26", 0, topic=topic.name, part=part)
    return topic
