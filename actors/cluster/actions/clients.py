"""The actions of consumers in groups, of transactional producers, and of both as one.

The clients are loaded by the first action of a process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.durations import LONGEST_MS, format_duration
from minicluster.errors import UserError, counted
from minicluster.scenario.actions import clients as declared
from minicluster.scenario.actions.arguments import Duration, read_duration

if TYPE_CHECKING:
    from minicluster.actors.cluster.clients.group_clients import ConsumerGroup
    from minicluster.clients.transactional_producer import Transaction

WITHIN = "60s"
LEAVE_WITHIN_MS = 30_000


@performs(declared.Consume)
def consume(cluster: ClusterRoles, do: declared.Consume) -> ConsumerGroup:
    from minicluster.actors.cluster.clients.group_clients import ConsumerGroup
    from minicluster.actors.cluster.clients.spawning import consumer
    from minicluster.clients.consumer import ConsumerConfig

    config = ConsumerConfig(
        group=do.group,
        topics=(str(do.topic),),
        read_committed=do.isolation == "read_committed",
        protocol=do.protocol,
        records_max=cluster.own_client.recorder.own_records_max if do.count is None else None,
    )
    group = ConsumerGroup([consumer(cluster, config) for _ in range(do.members)])
    if do.count is None:
        return _in_background(cluster, group, do.lasting)
    group.start()
    wanted = do.count
    within_ms = ms(read_duration(do.within or WITHIN, "consume: within"))
    has_all = cluster.run_until(lambda: group.seen >= wanted, within_ms)
    group.stop()
    cluster.run_until(lambda: group.has_left, LEAVE_WITHIN_MS)
    if not has_all:
        within = format_duration(within_ms)
        raise UserError(
            f"consume: {len(group)} of {counted(wanted, 'record')} came within {within}"
        )
    return group


@performs(declared.Transaction)
def transaction(cluster: ClusterRoles, do: declared.Transaction) -> list[Transaction]:
    from minicluster.actors.cluster.clients.group_clients import TransactionLoad
    from minicluster.actors.cluster.clients.spawning import transactional_producer
    from minicluster.clients.transactional_producer import Transaction

    topic = str(do.topic)
    partitions = _partitions(cluster, topic, "transaction")
    producer = transactional_producer(cluster, do.transactional_id, do.client)
    if do.rate is not None:
        lasting_ms = LONGEST_MS if do.lasting is None else ms(do.lasting)
        load = TransactionLoad(
            topic=topic,
            partitions=partitions,
            count=do.count,
            rate=do.rate,
            from_ms=cluster.now_ms,
            until_ms=cluster.now_ms + lasting_ms,
            abort_every=do.abort_every,
            transactions=[],
            transactions_max=cluster.own_client.recorder.own_records_max,
        )
        cluster.loads.append(load)
        producer.deliver(load)
        return load.transactions
    commits = None if do.end == "open" else do.end == "commit"
    delivered = Transaction(
        records=producer.new_records(topic, partitions, do.count), commits=commits
    )
    producer.deliver(delivered)
    within_ms = ms(read_duration(do.within or WITHIN, "transaction: within"))
    if not cluster.run_until(lambda: delivered.outcome is not None, within_ms):
        within = format_duration(within_ms)
        raise UserError(f"transaction: {do.transactional_id} has not ended within {within}")
    return [delivered]


@performs(declared.Transform)
def transform(cluster: ClusterRoles, do: declared.Transform) -> ConsumerGroup:
    from minicluster.actors.cluster.clients.group_clients import ConsumerGroup
    from minicluster.actors.cluster.clients.spawning import transformer
    from minicluster.clients.consumer import ConsumerConfig

    to = str(do.to), _partitions(cluster, str(do.to), "transform")
    config = ConsumerConfig(
        group=do.group,
        topics=(str(do.topic),),
        read_committed=True,
        protocol=do.protocol,
        records_max=cluster.own_client.recorder.own_records_max,
    )
    group = ConsumerGroup(
        [transformer(cluster, config, to, do.abort_every) for _ in range(do.members)]
    )
    return _in_background(cluster, group, do.lasting)


def _in_background(
    cluster: ClusterRoles, group: ConsumerGroup, lasting: Duration | None
) -> ConsumerGroup:
    group.start()
    cluster.groups.append(group)
    if lasting is not None:
        group.stop(after_ms=ms(lasting))
    return group


def _partitions(cluster: ClusterRoles, topic: str, action: str) -> int:
    known = cluster.image.topics.named(topic)
    if known is None:
        raise UserError(f"{action}: there is no topic {topic}")
    return len(known.partitions)
