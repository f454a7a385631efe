"""Members of groups and transactional producers, each with its actor."""

from __future__ import annotations

from typing import Any

from minicluster.actors.cluster.clients.group_clients import (
    ConsumerActor,
    TransactionalProducerActor,
    TransformerActor,
)
from minicluster.actors.cluster.cluster import Cluster
from minicluster.clients.consumer import Consumer, ConsumerConfig
from minicluster.clients.transactional_producer import TransactionalProducer
from minicluster.clients.transformer import Transformer

TRANSACTION_TIMEOUT_MS = 60_000


def consumer(cluster: Cluster, config: ConsumerConfig) -> ConsumerActor:
    """A new member of a group."""
    name = _member_name(cluster, config)
    machine = Consumer(name, cluster.broker_ids, config)
    return _member(cluster, name, ConsumerActor, machine)


def transformer(
    cluster: Cluster, config: ConsumerConfig, to: tuple[str, int], abort_every: int | None
) -> ConsumerActor:
    """A new member of a group that writes what it reads, in transactions."""
    name = _member_name(cluster, config)
    machine = Transformer(name, cluster.broker_ids, config, to=to, abort_every=abort_every)
    producer = transactional_producer(cluster, name, None)
    return _member(cluster, name, TransformerActor, machine, producer)


def _member_name(cluster: Cluster, config: ConsumerConfig) -> str:
    return f"{config.group}-{len(cluster.members) + 1}"


def _member(
    cluster: Cluster, name: str, kind: type[ConsumerActor], machine: Consumer, *more: Any
) -> ConsumerActor:
    cluster.rt.spawn(kind, name, machine, cluster.network, *more)
    actor = cluster.rt.actor(name)
    assert isinstance(actor, ConsumerActor)
    actor.requester = cluster.requester
    cluster.members.append(actor)
    return actor


def transactional_producer(
    cluster: Cluster, transactional_id: str, client: str | None
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
            record_ms=lambda: cluster.rt.epoch_ms + cluster.rt.behind_ms,
        )
        cluster.rt.spawn(TransactionalProducerActor, name, machine, cluster.network)
        spawned = cluster.rt.actor(name)
        assert isinstance(spawned, TransactionalProducerActor)
        actor = cluster.producers[name] = spawned
    actor.requester = cluster.requester
    return actor
