"""ControlledShutdown (api key 7, versions 0-3): leaders move before the broker ends.

Versions: 0-3; 2 has the broker epoch (KIP-380), 3 is flexible.
Source:   kafka.controller.KafkaController.doControlledShutdown.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ControlledShutdownRequest, ControlledShutdownResponse
from minicluster.zookeeper.controller.context import PartitionStatus, ReplicaStatus
from minicluster.zookeeper.controller.controller_api import ControllerApi
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.elections import Strategy
from minicluster.zookeeper.controller.errors import FAILURES, ControllerMoved
from minicluster.zookeeper.controller.partition_states import change_partitions
from minicluster.zookeeper.controller.replica_states import change_replicas
from minicluster.zookeeper.controller.request_batch import RequestBatch
from minicluster.zookeeper.process import Process

UNKNOWN_EPOCH = -1


def process_controlled_shutdown(
    state: ControllerState, token: Any, request: ControlledShutdownRequest
) -> Process[None]:
    """Move leaders away, then remove the broker from the other ISRs; the response has the rest."""
    refusal = _refusal(state, request)
    if refusal is not None:
        state.respond(token, ControlledShutdownResponse(error_code=refusal))
        return
    try:
        yield from _shut_down(state, request.broker_id)
    except ControllerMoved:
        moved = ControlledShutdownResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        state.respond(token, moved)
        return
    except FAILURES:
        failed = ControlledShutdownResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        state.respond(token, failed)
        return
    state.respond(
        token,
        ControlledShutdownResponse(
            remaining_partitions=tuple(
                ControlledShutdownResponse.RemainingPartition(
                    topic_name=partition.topic, partition_index=partition.partition
                )
                for partition in state.context.partitions_with_leaders()
                if state.context.leaderships[partition].leader_and_isr.leader == request.broker_id
                and len(state.context.assignment(partition).replicas) > 1
            )
        ),
    )


def _refusal(state: ControllerState, request: ControlledShutdownRequest) -> ErrorCode | None:
    if not state.is_active:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    known = state.context.broker_epochs.get(request.broker_id)
    if request.broker_epoch == UNKNOWN_EPOCH:
        return ErrorCode.BROKER_NOT_AVAILABLE if known is None else None
    if known is None:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka finds no epoch to compare with, and fails
    return ErrorCode.STALE_BROKER_EPOCH if request.broker_epoch < known else None


def _shut_down(state: ControllerState, broker: int) -> Process[None]:
    context = state.context
    context.shutting_down.add(broker)
    partitions = [
        partition
        for partition in context.partitions_on(broker)
        if len(context.assignment(partition).replicas) > 1
        and partition in context.leaderships
        and not context.is_queued_for_deletion(partition.topic)
    ]
    led = [p for p in partitions if context.leaderships[p].leader_and_isr.leader == broker]
    followed = [p for p in partitions if p not in led]
    yield from change_partitions(state, led, PartitionStatus.ONLINE, Strategy.CONTROLLED_SHUTDOWN)
    batch = RequestBatch(state)
    for partition in followed:
        batch.add_stop_replica(broker, partition, delete=False)
    batch.send()
    replicas = [(partition, broker) for partition in followed]
    yield from change_replicas(state, replicas, ReplicaStatus.OFFLINE)


API = ControllerApi(
    ControlledShutdownRequest,
    lambda state, event: process_controlled_shutdown(state, event.token, event.request),
    preempted=lambda request: ControlledShutdownResponse(
        error_code=ErrorCode.STALE_CONTROLLER_EPOCH
    ),
)
