"""Examples of the rules in `topics.py`."""

from __future__ import annotations

from minicluster.protocol import records as r
from minicluster.verify.rules.topics import (
    an_operation_is_written_as_a_whole,
    configs_do_not_outlive_their_topic,
    metadata_transactions_do_not_nest,
    partitions_are_numbered_without_gaps,
    topic_ids_are_used_once,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.log import (
    OTHER_TOPIC,
    TOPIC,
    LogBuilder,
    change,
    cluster,
    partition,
)


@breaks(partitions_are_numbered_without_gaps)
def e18_bad() -> LogBuilder:
    """A topic is created with partitions 0 and 2."""
    return LogBuilder().brokers(1).topic(partition((1,)), partition((1,), part=2))


@breaks(partitions_are_numbered_without_gaps)
def e18_again() -> LogBuilder:
    """A topic is created with partition 0 twice."""
    return LogBuilder().brokers(1).topic(partition((1,)), partition((1,), part=0))


@keeps(partitions_are_numbered_without_gaps)
def e18_near() -> LogBuilder:
    """A topic is created with partition 0, and partition 1 is added."""
    return LogBuilder().brokers(1).topic(partition((1,))).op(partition((1,), part=1))


@breaks(topic_ids_are_used_once)
def e25_bad() -> LogBuilder:
    """orders is deleted, and a new topic has its id."""
    log = cluster().op(r.RemoveTopicRecord(topic_id=TOPIC))
    return log.op(r.TopicRecord(name="again", topic_id=TOPIC))


@breaks(topic_ids_are_used_once)
def e25_name() -> LogBuilder:
    """A topic is created under the name orders, which another topic still has."""
    return cluster().topic(name="orders", topic_id=OTHER_TOPIC)


@breaks(topic_ids_are_used_once)
def e25_late() -> LogBuilder:
    """The TopicRecord of orders comes after its partition, in one operation."""
    log = LogBuilder().brokers(1)
    return log.op(partition((1,)), r.TopicRecord(name="orders", topic_id=TOPIC))


@keeps(topic_ids_are_used_once)
def e25_near() -> LogBuilder:
    """orders is deleted, and created again under another id."""
    log = cluster().op(r.RemoveTopicRecord(topic_id=TOPIC))
    return log.topic(partition(topic_id=OTHER_TOPIC), topic_id=OTHER_TOPIC)


@breaks(an_operation_is_written_as_a_whole)
def e29_bad() -> LogBuilder:
    """The TopicRecord of orders is one operation, and its first partition the next."""
    log = LogBuilder().brokers(1).op(r.TopicRecord(name="orders", topic_id=TOPIC))
    return log.op(partition((1,)))


@keeps(an_operation_is_written_as_a_whole)
def e29_near() -> LogBuilder:
    """orders and partition 0 are one operation, and partition 1, added later, one of its own."""
    return LogBuilder().brokers(1).topic(partition((1,))).op(partition((1,), part=1))


@breaks(metadata_transactions_do_not_nest)
def e30_bad() -> LogBuilder:
    """A metadata transaction begins while another is open."""
    begin = r.BeginTransactionRecord(name="x")
    return cluster().op(begin, change((1, 2))).op(begin).op(r.EndTransactionRecord())


@breaks(metadata_transactions_do_not_nest)
def e30_end_alone() -> LogBuilder:
    """An AbortTransaction comes where no metadata transaction is open."""
    return cluster().op(r.AbortTransactionRecord(reason="no"))


@keeps(metadata_transactions_do_not_nest)
def e30_near() -> LogBuilder:
    """A metadata transaction is aborted, and another one begins and ends."""
    log = cluster().op(r.BeginTransactionRecord(name="x"), change((1, 2)))
    log.op(r.AbortTransactionRecord(reason="no"))
    return log.op(r.BeginTransactionRecord(name="y"), change((1, 3)), r.EndTransactionRecord())


def _config(topic: str, value: str | None) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=2, resource_name=topic, name="retention.ms", value=value)


@breaks(configs_do_not_outlive_their_topic)
def e38_bad() -> LogBuilder:
    """orders is deleted, and then its retention.ms is set."""
    return cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)).op(_config("orders", "1"))


@keeps(configs_do_not_outlive_their_topic)
def e38_near() -> LogBuilder:
    """A config of orders is set before the topic is deleted, and one is removed after it."""
    log = cluster().op(_config("orders", "1"))
    log.op(_config("other", "1"), r.TopicRecord(name="other", topic_id=OTHER_TOPIC))
    log.op(r.RemoveTopicRecord(topic_id=TOPIC))
    return log.op(_config("orders", None))
