"""The actions of consumers in groups, of transactional producers, and of both as one."""

from __future__ import annotations

from typing import Any

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.group_clients import (
    ConsumerActor,
    ConsumerGroup,
    TransactionalProducerActor,
    TransactionLoad,
    TransformerActor,
)
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.clients.consumer import Consumer, ConsumerConfig
from minicluster.clients.reader import ConsumedRecord
from minicluster.clients.transactional_producer import Transaction, TransactionalProducer
from minicluster.clients.transformer import Transformer
from minicluster.durations import LONGEST_MS, format_duration
from minicluster.errors import UserError
from minicluster.scenario.actions import clients as declared
from minicluster.scenario.actions.arguments import Duration, read_duration

WITHIN = "60s"
LEAVE_WITHIN_MS = 30_000
TRANSACTION_TIMEOUT_MS = 60_000


@performs(declared.Consume)
def consume(cluster: ClusterRoles, do: declared.Consume) -> list[ConsumedRecord] | ConsumerGroup:
    config = ConsumerConfig(
        group=do.group,
        topics=(str(do.topic),),
        read_committed=do.isolation == "read_committed",
        protocol=do.protocol,
    )
    group = ConsumerGroup([_consumer(cluster, config) for _ in range(do.members)])
    if do.count is None:
        return _in_background(cluster, group, do.lasting)
    group.start()
    wanted = do.count
    within_ms = ms(read_duration(do.within or WITHIN, "consume: within"))
    has_all = cluster.run_until(lambda: group.count >= wanted, within_ms)
    group.stop()
    cluster.run_until(lambda: group.has_left, LEAVE_WITHIN_MS)
    found = group.records
    if not has_all:
        within = format_duration(within_ms)
        raise UserError(f"consume: {len(found)} of {wanted} records came within {within}")
    return found


@performs(declared.Transaction)
def transaction(cluster: ClusterRoles, do: declared.Transaction) -> list[Transaction]:
    topic = str(do.topic)
    partitions = _partitions(cluster, topic, "transaction")
    producer = _producer(cluster, do.id, do.client)
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
        )
        cluster.loads.append(load)
        producer.deliver(load)
        return load.transactions
    commits = None if do.end == "open" else do.end == "commit"
    one = Transaction(records=producer.new_records(topic, partitions, do.count), commits=commits)
    producer.deliver(one)
    within_ms = ms(read_duration(do.within or WITHIN, "transaction: within"))
    if not cluster.run_until(lambda: one.outcome is not None, within_ms):
        within = format_duration(within_ms)
        raise UserError(f"transaction: {do.id} has not ended within {within}")
    return [one]


@performs(declared.Transform)
def transform(cluster: ClusterRoles, do: declared.Transform) -> ConsumerGroup:
    to = str(do.to), _partitions(cluster, str(do.to), "transform")
    config = ConsumerConfig(
        group=do.group, topics=(str(do.topic),), read_committed=True, protocol=do.protocol
    )
    group = ConsumerGroup(
        [_transformer(cluster, config, to, do.abort_every) for _ in range(do.members)]
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


def _consumer(cluster: ClusterRoles, config: ConsumerConfig) -> ConsumerActor:
    name = _member_name(cluster, config)
    machine = Consumer(name, cluster.broker_ids, config)
    return _member(cluster, name, ConsumerActor, machine)


def _transformer(
    cluster: ClusterRoles, config: ConsumerConfig, to: tuple[str, int], abort_every: int | None
) -> ConsumerActor:
    name = _member_name(cluster, config)
    machine = Transformer(name, cluster.broker_ids, config, to=to, abort_every=abort_every)
    return _member(cluster, name, TransformerActor, machine, _producer(cluster, name, None))


def _member_name(cluster: ClusterRoles, config: ConsumerConfig) -> str:
    return f"{config.group}-{len(cluster.members) + 1}"


def _member(
    cluster: ClusterRoles, name: str, kind: type[ConsumerActor], machine: Consumer, *more: Any
) -> ConsumerActor:
    cluster.rt.spawn(kind, name, machine, cluster.network, *more)
    actor = cluster.rt.actor(name)
    assert isinstance(actor, ConsumerActor)
    cluster.members.append(actor)
    return actor


def _producer(
    cluster: ClusterRoles, transactional_id: str, client: str | None
) -> TransactionalProducerActor:
    """The producer of a transactional id, made when it is first needed."""
    name = f"producer-{client or transactional_id}"
    actor = cluster.producers.get(name)
    if actor is None:
        machine = TransactionalProducer(
            name,
            cluster.broker_ids,
            transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            record_ms=cluster.rt.epoch_ms,
        )
        cluster.rt.spawn(TransactionalProducerActor, name, machine, cluster.network)
        made = cluster.rt.actor(name)
        assert isinstance(made, TransactionalProducerActor)
        actor = cluster.producers[name] = made
    return actor
