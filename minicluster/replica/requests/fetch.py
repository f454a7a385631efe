"""Fetch on the leader, for followers and consumers.

A fetch that finds enough bytes gets its response at once. Another waits until the bytes are there,
until there is something else to respond (diverging logs, an error), or until its deadline; then it
reads again. The fetch offset of a follower shows its leader how far it is: see partition/reads.

    handle_fetch
      new_context             the partitions: those of the request or of its session
      read_from_log           each partition, within what is left of the limit in bytes
      DelayedFetch            waits, then reads again
      _respond                what the context responds with; a session's skipped partitions

Versions: v1 to v3 add throttle time, timestamps and a response limit in bytes (KIP-74). v4 has the
          isolation level, v5 the follower's log start. v7 has fetch sessions (KIP-227), v9 the
          current leader epoch (KIP-320), v11 the rack of the consumer, who may read from followers
          (KIP-392). v12 has the last fetched epoch (KIP-595), v13 topic ids in place of names
          (KIP-516), v14 OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405), v15 the replica's broker epoch
          (KIP-903), v16 the endpoints of new leaders (KIP-951), v17 the follower's directory
          (KIP-853), v18 its high watermark (KIP-1166).
Leaves out: quotas of clients, tiered storage.
Source:     KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from minicluster.protocol import ErrorCode, encode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import FetchResponse
from minicluster.replica.broker_context import NO_BROKER_EPOCH
from minicluster.replica.fetching.fetch_session import (
    FetchContext,
    PartitionKey,
    new_context,
    partitions_of,
)
from minicluster.replica.fetching.skipped import skip_unchanged
from minicluster.replica.replica_manager_state import TOPIC_IDS_FROM, ReplicaManagerState
from minicluster.replica.requests.delayed_fetch import DelayedFetch
from minicluster.replica.requests.read_from_log import (
    NO_RECORDS,
    FetchedPartition,
    FetchParams,
    read_from_log,
)
from minicluster.security.acls import Operation, ResourceType
from minicluster.security.screening import EVERYTHING, Access
from minicluster.values import replace

_FUTURE_REPLICA = -3
_ANY_REPLICA_FROM = 11
_REPLICA_STATE_FROM = 15
CONSUMER = -1
READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)  # IsolationLevel.forId takes no other one

_SIZE_OF_LENGTH = 4


def handle_fetch(
    state: ReplicaManagerState,
    token: Any,
    request: Any,
    version: int,
    now_ms: int,
    access: Access = EVERYTHING,
) -> None:
    """Respond to a fetch, now or later.

    Partitions that are not in the metadata are rejected before the others are read, and do not keep
    a fetch from waiting: otherwise a session with one deleted topic would be answered at once, over
    and over.
    A session keeps partitions that may not be read, and each fetch asks about them again, so a
    right that is given or taken counts from the next fetch on.

    Errors:  TOPIC_AUTHORIZATION_FAILED per partition; consumers need READ of the topic, followers
             CLUSTER_ACTION. UNKNOWN_SERVER_ERROR for an unknown isolation level, once the session
             has continued, and for a session id that no shard of sessions has.
    """
    if not state.fetch_sessions.has_shard(request.session_id):
        _fail(state, token, request, version)
        return
    params = _params(state, request, version)
    uses_topic_ids = version >= TOPIC_IDS_FROM
    context = new_context(
        state.fetch_sessions,
        request,
        partitions_of(request, uses_topic_ids, state.topic_name),
        uses_topic_ids=uses_topic_ids,
        follower=(params.replica_id, params.broker_epoch) if params.is_from_follower else None,
        name_of=state.topic_name,
        now_ms=now_ms,
    )
    # From here on the session has continued: its epoch has moved, whatever the response will be. A
    # client whose request fails now must open another, as after a response that was lost.
    session = context.session
    wanted: list[FetchedPartition] = []
    unknown: dict[PartitionKey, Any] = {}
    may_read = _readable(access, is_from_follower=params.is_from_follower)
    for key, partition in context.partitions.items():
        if partition.topic is None:
            unknown[key] = _unknown(partition.data, ErrorCode.UNKNOWN_TOPIC_ID)
        elif not may_read(partition.topic):
            unknown[key] = _unknown(partition.data, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif not state.is_known(partition.topic, partition.data.partition):
            unknown[key] = _unknown(partition.data, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            wanted.append(FetchedPartition.of_session(key, partition))
    if not params.is_from_follower:  # whose ids are unknown comes first, and makes one topic
        by_error = sorted(
            unknown.items(), key=lambda item: item[1].error_code != ErrorCode.UNKNOWN_TOPIC_ID
        )
        unknown = dict(by_error)
    if wanted and request.isolation_level not in ISOLATION_LEVELS:
        _fail(state, token, request, version)
        return
    respond = partial(_respond, state, token, context, params, unknown)
    # The first read counts as the follower's progress, even if the fetch then waits: the high
    # watermark moves when the offset is known, not when there is something to send.
    results = read_from_log(state, params, wanted, now_ms)
    if (
        results.responds_at_once
        or not (wanted or (session is not None and session.skipped))
        or params.max_wait_ms <= 0
        or results.size >= params.min_bytes
    ):
        respond(results.data, now_ms)
        return
    deadline_ms = now_ms + params.max_wait_ms
    DelayedFetch(state, params, wanted, results, respond, deadline_ms).wait(session, now_ms)


def _readable(access: Access, *, is_from_follower: bool) -> Callable[[str], bool]:
    """Whether the sender may read a topic."""
    if is_from_follower:
        may_follow = access.may_on_cluster(Operation.CLUSTER_ACTION)
        return lambda topic: may_follow
    return cache(partial(access.may, Operation.READ, ResourceType.TOPIC))


def _fail(state: ReplicaManagerState, token: Any, request: Any, version: int) -> None:
    """Respond as Kafka does after an exception that it does not expect."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    state.respond(token, error_response(request, error, version=version))


def _params(state: ReplicaManagerState, request: Any, version: int) -> FetchParams:
    in_state = version >= _REPLICA_STATE_FROM
    replica_id = request.replica_state.replica_id if in_state else request.replica_id
    max_bytes = min(request.max_bytes, state.config.fetch_max_bytes)
    rack = request.rack_id if version >= _ANY_REPLICA_FROM else None
    is_from_follower = replica_id >= 0
    return FetchParams(
        version=version,
        replica_id=replica_id,
        broker_epoch=request.replica_state.replica_epoch if in_state else NO_BROKER_EPOCH,
        max_wait_ms=request.max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        reads_committed=request.isolation_level == READ_COMMITTED,
        rack=rack,
        is_from_follower=is_from_follower,
        # A consumer that says where it is may read from a follower (KIP-392). One of an older
        # version may not, and the debugging consumer (-2) is a consumer.
        leader_only=is_from_follower or (rack is None and replica_id != _FUTURE_REPLICA),
    )


def _unknown(data: Any, error: ErrorCode) -> Any:
    return FetchResponse.PartitionData(
        partition_index=data.partition, error_code=error, high_watermark=-1, records=NO_RECORDS
    )


# --- the response -------------------------------------------------------------------------------


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
    if params.is_from_follower:
        _count_throttled(state, params, response, now_ms)
        session = state.fetch_sessions.find(response.session_id)
        if session is not None:
            skip_unchanged(state, session, read)
    state.respond(token, response)


def _count_throttled(
    state: ReplicaManagerState, params: FetchParams, response: Any, now_ms: int
) -> None:
    """Count what the response has of throttled partitions, whether in sync or not (KIP-73).

    A response without any counts with what it has besides, as in Kafka: where the rate is a few
    bytes, the fetches of those in sync exceed it. Without a bound nothing is counted.

    Source:  KafkaApis.sizeOfThrottledPartitions.
    """
    quota = state.quotas.leader
    if quota.bytes_per_second is None:
        return
    topics = []
    for topic in response.responses:
        name = topic.topic or state.topic_name(topic.topic_id)
        throttled = tuple(
            data
            for data in topic.partitions
            if name is not None and quota.is_throttled(name, data.partition_index)
        )
        if throttled:
            topics.append(replace(topic, partitions=throttled))
    counted = encode(replace(response, responses=tuple(topics)), params.version)
    quota.record(_SIZE_OF_LENGTH + len(counted), now_ms)
