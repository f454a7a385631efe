"""The actions on records: produce a count of them or a load in the background, delete them."""

from __future__ import annotations

from typing import cast

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.actions.requests import finish, raise_if_rejected, send
from minicluster.actors.cluster.client import Load, ProduceOperation, Producer
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.durations import LONGEST_MS
from minicluster.errors import RequestRejected, UserError
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.scenario.actions import topics as declared

WITHIN_MS = 30_000
ALL_COMMITTED = -1  # an offset of DeleteRecords
DELIVERY_WITHIN_MS = 120_000  # delivery.timeout.ms


def _check_topic(cluster: ClusterRoles, do: declared.Produce) -> None:
    """Fail at once where there is no such partition, for which a record would wait 30 s.

    A scenario may produce to a topic that it has deleted, so that a client meets its end.
    """
    topic = cluster.image.topics.named(str(do.topic))
    if topic is None:
        raise UserError(f"produce: there is no topic {do.topic}")
    if do.partition not in topic.partitions:
        last = len(topic.partitions) - 1
        raise UserError(
            f"produce: there is no partition {do.topic}-{do.partition}; the last one is {last}"
        )


@performs(declared.Produce, check=_check_topic)
def produce(cluster: ClusterRoles, do: declared.Produce) -> list[ProduceOperation]:
    if do.rate is not None:
        return _start_load(cluster, do, do.rate)
    longest_ms = DELIVERY_WITHIN_MS if do.idempotent else WITHIN_MS
    deadline_ms = cluster.now_ms + (ms(do.within) if do.within else longest_ms)
    target = None if do.to is None else cluster.ids(do.to)[0]
    operations: list[ProduceOperation] = []
    producer = Producer() if do.idempotent else None
    before = None
    for first in range(0, do.records, do.batch):
        places = range(first, min(first + do.batch, do.records))
        batch = cluster.own_client.new_batch(
            str(do.topic),
            do.partition,
            [do.content(place) for place in places],
            acks=cast(declared.AcksWord, do.acks),
            deadline_ms=deadline_ms,
            to=target,
            producer=producer,
            requester=cluster.requester,
        )
        if before is not None:
            before.then = batch[0]
        before = batch[0]
        operations += batch
    if operations:
        cluster.own_client.deliver(operations[0])
    finish(cluster, operations, deadline_ms + 60_000)
    return operations


@performs(declared.DeleteRecords)
def delete_records(cluster: ClusterRoles, do: declared.DeleteRecords) -> dict[str, int]:
    request = m.DeleteRecordsRequest
    before = ALL_COMMITTED if do.before is None else do.before
    low: dict[str, int] = {}
    for topic, index in cast(tuple[tuple[str, int], ...], do.partitions):
        task = f"delete records of {topic}-{index}"
        leader = cluster.own_client.directory.leader(topic, index)
        if leader is None:
            raise RequestRejected(task, ErrorCode.LEADER_NOT_AVAILABLE, None)
        wanted = request.DeleteRecordsPartition(partition_index=index, offset=before)
        of_topic = request.DeleteRecordsTopic(name=topic, partitions=(wanted,))
        deletion = request(topics=(of_topic,), timeout_ms=ms(do.within))
        [response] = send(cluster, task, deletion, do.within, to=leader).topics
        [result] = response.partitions
        raise_if_rejected(task, result.error_code)
        low[f"{topic}-{index}"] = result.low_watermark
    return low


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
        content=do.content(0),
        batch=do.batch,
        requester=cluster.requester,
        operations_max=cluster.own_client.recorder.own_records_max,
    )
    cluster.loads.append(load)
    cluster.own_client.deliver(load)
    return load.operations
