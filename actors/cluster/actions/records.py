"""The action that produces records: a count of them, or a load in the background."""

from __future__ import annotations

from typing import cast

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.actions.requests import finish
from minicluster.actors.cluster.client import Load, ProduceOperation, Producer
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.durations import LONGEST_MS
from minicluster.scenario.actions import topics as declared
from minicluster.scenario.actions.arguments import Duration, read_duration

WITHIN = "30s"
DELIVERY_WITHIN = "2m"  # delivery.timeout.ms


@performs(declared.Produce)
def produce(cluster: ClusterRoles, do: declared.Produce) -> list[ProduceOperation]:
    if do.rate is not None:
        return _start_load(cluster, do, do.rate)
    longest: Duration = do.within or (DELIVERY_WITHIN if do.idempotent else WITHIN)
    deadline_ms = cluster.now_ms + ms(read_duration(longest, "produce: within"))
    target = None if do.to is None else cluster.ids(do.to)[0]
    operations: list[ProduceOperation] = []
    producer = Producer() if do.idempotent else None
    for _ in range(1 if do.count is None else do.count):
        operation = cluster.own_client.new_operation(
            str(do.topic),
            do.partition,
            acks=cast(declared.AcksWord, do.acks),
            deadline_ms=deadline_ms,
            key=do.key,
            to=target,
            producer=producer,
        )
        if operations:
            operations[-1].then = operation
        operations.append(operation)
    if operations:
        cluster.own_client.deliver(operations[0])
    finish(cluster, operations, deadline_ms + 60_000)
    return operations


def pause_load(cluster: ClusterRoles) -> None:
    """Stop every background load."""
    for load in cluster.loads:
        load.stopped = True
    cluster.loads.clear()


def _start_load(cluster: ClusterRoles, do: declared.Produce, rate: float) -> list[ProduceOperation]:
    lasting_ms = LONGEST_MS if do.lasting is None else ms(do.lasting)
    load = Load(
        topic=str(do.topic),
        partition=do.partition,
        rate=rate,
        from_ms=cluster.now_ms,
        until_ms=cluster.now_ms + lasting_ms,
        acks=cast(declared.AcksWord, do.acks),
        key=do.key,
    )
    cluster.loads.append(load)
    cluster.own_client.deliver(load)
    return load.operations
