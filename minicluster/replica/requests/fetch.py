"""Fetch on the leader, for followers and consumers.

A fetch that finds enough bytes gets its response at once. Another waits until the bytes are there,
until there is something else to respond (diverging logs, an error), or until its deadline; then it
reads again. The fetch offset of a follower shows its leader how far it is: see partition/reads.

Versions: v1 to v3 add throttle time, timestamps and a response limit in bytes (KIP-74). v4 has the
          isolation level, v5 the follower's log start. v7 has fetch sessions (KIP-227), v9 the
          current leader epoch (KIP-320), v11 the rack of the consumer, who may read from followers
          (KIP-392). v12 has the last fetched epoch (KIP-595), v13 topic ids in place of names
          (KIP-516), v14 OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405), v15 the replica's broker epoch
          (KIP-903), v16 the endpoints of new leaders (KIP-951), v17 the follower's directory
          (KIP-853), v18 its high watermark (KIP-1166).
Leaves out: quotas, tiered storage.
Source:     KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import FetchResponse
from minicluster.replica.requests.delayed_fetch import DelayedFetch
from minicluster.replica.requests.read_from_log import (
    ISOLATION_LEVELS,
    NO_RECORDS,
    READ_COMMITTED,
    FetchedPartition,
    FetchParams,
    read_from_log,
)
from minicluster.replica.requests.settled import settle
from minicluster.replica.sessions.fetch_context import FetchContext, new_context
from minicluster.replica.sessions.fetch_session import PartitionKey
from minicluster.replica.state.broker_context import NO_BROKER_EPOCH
from minicluster.replica.state.replica_manager_state import TOPIC_IDS_FROM, ReplicaManagerState

_ANY_REPLICA_FROM = 11
_REPLICA_STATE_FROM = 15


def handle_fetch(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> None:
    """Respond to a fetch or let it wait.

    Partitions that are not in the metadata are refused without a look at the others, and do not
    keep a fetch from waiting.

    Errors:  UNKNOWN_SERVER_ERROR for an unknown isolation level, once the session has gone on, and
             for a session id that no shard of sessions has.
    """
    if not state.fetch_sessions.has_shard(request.session_id):
        _fail(state, token, request, version)
        return
    params = _params(state, request, version)
    context = new_context(
        state.fetch_sessions,
        request,
        uses_topic_ids=version >= TOPIC_IDS_FROM,
        follower=(params.replica_id, params.broker_epoch) if params.is_from_follower else None,
        name_of=state.topic_name,
        now_ms=now_ms,
    )
    session = context.session
    wanted: list[FetchedPartition] = []
    unknown: dict[PartitionKey, Any] = {}
    for key, partition in context.partitions.items():
        if partition.topic is None:
            unknown[key] = _unknown(partition.data, ErrorCode.UNKNOWN_TOPIC_ID)
        elif not state.is_known(partition.topic, partition.data.partition):
            unknown[key] = _unknown(partition.data, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            wanted.append(FetchedPartition.of_session(key, partition))
    if wanted and request.isolation_level not in ISOLATION_LEVELS:
        _fail(state, token, request, version)
        return
    respond = partial(_respond, state, token, context, params, unknown)
    results = read_from_log(state, params, wanted, now_ms)
    if (
        results.responds_at_once
        or not (wanted or (session is not None and session.settled))
        or params.max_wait_ms <= 0
        or results.size >= params.min_bytes
    ):
        respond(results.data, now_ms)
        return
    deadline_ms = now_ms + params.max_wait_ms
    operation = DelayedFetch(state, params, wanted, results, respond, deadline_ms)
    if operation.try_complete(now_ms):
        operation.on_complete(now_ms)
        return
    keys = (state.key_named(item.topic, item.data.partition) for item in wanted)
    number = state.delayed.fetches.watch(operation, [key for key in keys if key is not None])
    if session is not None:
        session.waiting[number] = operation


def _fail(state: ReplicaManagerState, token: Any, request: Any, version: int) -> None:
    """Respond as Kafka does after an exception that it does not expect."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    state.respond(token, error_response(request, error, version=version))


def _params(state: ReplicaManagerState, request: Any, version: int) -> FetchParams:
    in_state = version >= _REPLICA_STATE_FROM
    max_bytes = min(request.max_bytes, state.fetch_max_bytes)
    return FetchParams(
        version=version,
        replica_id=request.replica_state.replica_id if in_state else request.replica_id,
        broker_epoch=request.replica_state.replica_epoch if in_state else NO_BROKER_EPOCH,
        max_wait_ms=request.max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        reads_committed=request.isolation_level == READ_COMMITTED,
        rack=request.rack_id if version >= _ANY_REPLICA_FROM else None,
    )


def _unknown(data: Any, error: ErrorCode) -> Any:
    return FetchResponse.PartitionData(
        partition_index=data.partition, error_code=error, high_watermark=-1, records=NO_RECORDS
    )


def _respond(
    state: ReplicaManagerState,
    token: Any,
    context: FetchContext,
    params: FetchParams,
    unknown: dict[PartitionKey, Any],
    read: dict[PartitionKey, Any],
    now_ms: int,
) -> None:
    """Respond with what was read, then with the partitions that are not known."""
    endpoints: tuple[Any, ...] = ()
    if not params.is_from_follower:
        leaders = dict.fromkeys(data.current_leader.leader_id for data in read.values())
        endpoints = tuple(
            FetchResponse.NodeEndpoint(node_id=n, host=e.host, port=e.port, rack=rack)
            for n, e, rack in state.endpoints(leaders)
        )
    response = context.response({**read, **unknown} if unknown else read, endpoints, now_ms)
    if read and params.is_from_follower:
        session = state.fetch_sessions.find(response.session_id)
        if session is not None:
            settle(state, session, read)
    state.respond(token, response)
