"""A transaction is lost with the log of its coordinator, and a group waits for it for ever.

Found by seed 300925 of the campaign, which was "stuck" (G12). In Kafka the group waits as well,
until an administrator ends the transaction (KIP-664): nothing is promised to it.
"""

from __future__ import annotations

from minicluster.actors.play.campaign import outcome_of
from minicluster.scenario import parse_scenario

STORY = """
cluster:
  brokers: 3
  controllers: 1
  seed: 1
  config:
    offsets.topic.num.partitions: 1
    transaction.state.log.num.partitions: 1
    transaction.state.log.replication.factor: 1
    transaction.state.log.min.isr: 1
steps:
  - {do: create_topic, name: orders}
  - {do: create_topic, name: bills}
  - {do: produce, topic: orders, rate: 20}
  - {do: transform, topic: orders, to: bills, group: billing}
  - {at: 5030ms, do: bounce, node: leader(__transaction_state-0), down: 1s, lose_tail: unflushed}
  - {after: 5s, do: liveness, bound: 3m}
"""


def test_nothing_is_promised_to_a_group_whose_transaction_was_lost() -> None:
    outcome = outcome_of(parse_scenario(STORY))
    assert outcome.failure is None
    assert outcome.cluster_ms < 60_000  # it is not waited for
